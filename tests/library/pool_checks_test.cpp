// Mistakes with a checked pool or pool_resource: each is found, told, and leaves the pool whole.
#include <gtest/gtest.h>

#include <cstring>
#include <list>
#include <memory_resource>

#include "counting_resource.hpp"
#include "sluice/pool.hpp"
#include "sluice/pool_resource.hpp"
#include "tracked.hpp"
#include "violations.hpp"

namespace {

using library_test::CountingResource;
using library_test::Tracked;
using library_test::Tracking;
using library_test::Violations;
using sluice::checked;
using sluice::violation_kind;

struct Element {
  unsigned char bytes[24];
};
using Pool = sluice::pool<Element, checked>;

TEST(CheckedPool, FindsADoubleReleaseBeforeThePoolIsFull) {
  Violations violations;
  Pool pool(4);
  Element* const a = pool.acquire();
  Element* const b = pool.acquire();
  // Too many came back only when there are more free elements than there are.
  const auto textbook_version = [free = 2](int released) { return free + released > 4; };
  EXPECT_FALSE(textbook_version(2));

  pool.release(a);
  EXPECT_TRUE(Violations::none());
  pool.release(a);
  const sluice::violation found = Violations::take();
  EXPECT_EQ(found.kind, violation_kind::double_release);
  EXPECT_EQ(found.address, a);
  EXPECT_EQ(found.object, &pool);
  EXPECT_STREQ(found.component, "pool");
  EXPECT_EQ(pool.size(), 1u);

  // It is in the list once: two elements are different.
  Element* const c = pool.acquire();
  Element* const d = pool.acquire();
  EXPECT_NE(c, d);
  for (Element* each : {b, c, d})
    pool.release(each);
}

TEST(CheckedPool, FindsPointersThatAreNotFromHere) {
  Violations violations;
  Pool pool(4), other(4);
  Element* const mine = pool.acquire();
  Element* const its = other.acquire();
  Element local;
  Element* const inside = reinterpret_cast<Element*>(mine->bytes + 1);
  Element* const never = mine + 100000;
  for (Element* const wrong : {its, &local, inside, never, static_cast<Element*>(nullptr)}) {
    pool.release(wrong);
    Violations::expect(violation_kind::foreign);
    pool.destroy(wrong);
    Violations::expect(violation_kind::foreign);
  }
  EXPECT_EQ(pool.size(), 1u);
  pool.release(mine);
  other.release(its);
}

TEST(CheckedPool, DoesNotRunTheDestructorOfWhatDoesNotLive) {
  Violations violations;
  Tracking tracking;
  sluice::pool<Tracked, checked> pool(4);
  Tracked* const one = pool.create(1);
  pool.destroy(one);
  pool.destroy(one);
  Violations::expect(violation_kind::double_release);
}

struct ReleasesItself {
  explicit ReleasesItself(sluice::pool<ReleasesItself, checked>& owner) : pool(&owner) {}
  ~ReleasesItself() { pool->release(this); }
  sluice::pool<ReleasesItself, checked>* pool;
};
TEST(CheckedPool, FindsADestructorThatReleasesItsOwnStorage) {
  Violations violations;
  sluice::pool<ReleasesItself, checked> pool;
  pool.destroy(pool.create(pool));
  Violations::expect(violation_kind::double_release);
  EXPECT_EQ(pool.size(), 0u);
}

TEST(CheckedPool, CountsWhatIsNotBackAtItsEnd) {
  Violations violations;
  CountingResource memory;
  {
    Pool pool(4, &memory, "entities");
    pool.release(pool.acquire());
    EXPECT_NE(pool.acquire(), nullptr);
    EXPECT_NE(pool.acquire(), nullptr);
  }
  const sluice::violation found = Violations::take();
  EXPECT_EQ(found.kind, violation_kind::leak);
  EXPECT_EQ(found.value, 2u);
  EXPECT_STREQ(found.name, "entities");
  EXPECT_EQ(memory.live_blocks(), 0u);
}

TEST(CheckedPool, FindsWritesBehindAnElement) {
  Violations violations;
  Pool pool(4);
  for (std::size_t behind = 0; behind < sluice::detail::fence_bytes; ++behind) {
    Element* const element = pool.acquire();
    element->bytes[0] = 1;
    (reinterpret_cast<unsigned char*>(element) + sizeof(Element))[behind] ^= 1;
    pool.release(element);
    Violations::expect(violation_kind::write_past_end);
    EXPECT_TRUE(pool.empty());
  }
}

TEST(CheckedPool, FindsWritesToAReleasedElementWhenItIsAcquired) {
  Violations violations;
  Pool pool(4);
  for (std::size_t place = 0; place < sizeof(Element); ++place) {
    Element* const element = pool.acquire();
    pool.release(element);
    element->bytes[place] ^= 1;
    EXPECT_EQ(pool.acquire(), element);
    Violations::expect(violation_kind::write_after_release);
    pool.release(element);
  }
}

TEST(CheckedPool, FindsWritesToAReleasedElementAtItsEnd) {
  Violations violations;
  {
    Pool pool(4);
    Element* const element = pool.acquire();
    Element* const next = pool.acquire();
    pool.release(element);
    std::memset(element, 0, sizeof(Element));
    pool.release(next);
  }
  Violations::expect(violation_kind::write_after_release);
}

TEST(CheckedPool, FindsWritesToAnElementThatWasNeverHandedOut) {
  Violations violations;
  Pool pool(4);
  Element* const element = pool.acquire();
  const std::size_t stride = sluice::detail::block_pool<sizeof(Element), alignof(Element), checked>::stride;
  reinterpret_cast<unsigned char*>(element)[stride] = 0;
  Element* const next = pool.acquire();
  Violations::expect(violation_kind::write_after_release);
  pool.release(element);
  pool.release(next);
}

TEST(CheckedPool, SaysWhatHappenedAndStops) {
  const auto twice = [] {
    Pool pool(4, nullptr, "entities");
    Element* const element = pool.acquire();
    pool.release(element);
    pool.release(element);
  };
  EXPECT_DEATH(twice(), "sluice: pool \"entities\" \\(0x[0-9a-f]+\\): block 0x[0-9a-f]+ released twice");
}

TEST(CheckedPoolResource, FindsDoubleAndForeignDeallocations) {
  Violations violations;
  sluice::pool_resource<32, 8, checked> pool(0, nullptr, "nodes");
  void* const block = pool.allocate(32, 8);
  pool.deallocate(block, 32, 8);
  pool.deallocate(block, 32, 8);
  const sluice::violation found = Violations::take();
  EXPECT_EQ(found.kind, violation_kind::double_release);
  EXPECT_STREQ(found.component, "pool_resource");
  EXPECT_STREQ(found.name, "nodes");
  EXPECT_EQ(found.object, &pool);
  int local = 0;
  void* const volatile outside = &local;  // the compiler would warn of what is read behind it, which is never done
  pool.deallocate(outside, 4, 4);
  Violations::expect(violation_kind::foreign);
  pool.deallocate(outside, 4000, 4);  // nothing went upstream
  Violations::expect(violation_kind::foreign);
}

TEST(CheckedPoolResource, FindsDeallocationsWithASizeFromTheOtherSideOfTheLargest) {
  Violations violations;
  CountingResource memory;
  sluice::pool_resource<32, 8, checked> pool(4, &memory);
  void* const small = pool.allocate(32, 8);
  void* const large = pool.allocate(33, 8);
  pool.deallocate(small, 33, 8);  // not upstream's, which has another block of ours
  EXPECT_EQ(Violations::take().address, small);
  pool.deallocate(large, 32, 8);
  Violations::expect(violation_kind::foreign);
  EXPECT_EQ(memory.live_blocks(), 2u);
  pool.deallocate(small, 32, 8);
  pool.deallocate(large, 33, 8);
  EXPECT_EQ(pool.size(), 0u);
}

TEST(CheckedPoolResource, CountsWhatIsNotDeallocatedUnlessItIsReleased) {
  Violations violations;
  CountingResource memory;
  void* large = nullptr;
  {
    sluice::pool_resource<32, 8, checked> pool(0, &memory);
    EXPECT_NE(pool.allocate(32, 8), nullptr);
  }
  EXPECT_EQ(Violations::take().value, 1u);
  {
    sluice::pool_resource<32, 8, checked> pool(0, &memory);
    EXPECT_NE(pool.allocate(32, 8), nullptr);
    pool.release();
  }
  EXPECT_TRUE(Violations::none());
  {
    sluice::pool_resource<32, 8, checked> pool(0, &memory);
    large = pool.allocate(33, 8);
  }
  Violations::expect(violation_kind::leak);
  memory.deallocate(large, 33, 8);
}

TEST(CheckedPoolResource, UnderAContainerFindsNothing) {
  Violations violations;
  sluice::pool_resource<32, 8, checked> pool;
  std::pmr::list<int> numbers(&pool);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 1000; ++i)
      numbers.push_back(i);
    numbers.remove_if([](int i) { return i % 3 == 0; });
  }
}

}  // namespace
