// Elements from a pool: each has its own place, aligned and untouched by the others; memory is taken when it should be;
// everything comes back.
#include "sluice/pool.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <memory_resource>
#include <new>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "counting_resource.hpp"
#include "tracked.hpp"

namespace {

using library_test::CountingResource;
using library_test::Tracked;
using library_test::Tracking;
using sluice::checked;
using sluice::unchecked;

template <std::size_t Size, std::size_t Align>
struct alignas(Align) Bytes {
  unsigned char bytes[Size];
};

// In constant expressions.
struct Point {
  int x;
  double y;
};
struct Counted {
  constexpr explicit Counted(int number) : value(number) {}
  int value;
};
template <class Checks>
constexpr int use_in_a_constant_expression() {
  sluice::pool<Point, Checks> points(2);
  Point* const a = points.create(1, 2.0);
  Point* const b = points.try_create(3, 4.0);
  if (a == nullptr || b == nullptr || points.size() != 2 || points.capacity() != 2) return -1;
  if (points.try_create(5, 6.0) != nullptr || points.try_acquire() != nullptr) return -2;
  points.destroy(a);
  Point* const c = points.try_create(7, 8.0);
  Point* const d = points.create(9, 10.0);
  if (c == nullptr || points.capacity() != 4) return -3;
  const int sum = b->x + c->x + d->x;
  points.destroy(d);
  points.destroy(b);
  points.destroy(c);

  sluice::pool<Counted, Checks> counted;
  counted.reserve(3);
  Counted* const raw = counted.acquire();
  std::construct_at(raw, 100);
  const int value = raw->value;
  std::destroy_at(raw);
  counted.release(raw);
  return counted.empty() && counted.capacity() == 3 ? sum + value : -4;
}
static_assert(use_in_a_constant_expression<checked>() == 119);
static_assert(use_in_a_constant_expression<unchecked>() == 119);

// Unchecked, there is no member for it.
static_assert(sizeof(sluice::pool<Point, unchecked>) == 8 * sizeof(void*));
static_assert(sizeof(sluice::pool<Point, checked>) > sizeof(sluice::pool<Point, unchecked>));
static_assert(!std::is_copy_constructible_v<sluice::pool<Point>> && !std::is_move_constructible_v<sluice::pool<Point>>);

// Memory per element.
template <class T>
constexpr std::size_t stride = sluice::detail::block_pool<sizeof(T), alignof(T), unchecked>::stride;
static_assert(stride<char> == sizeof(void*));
static_assert(stride<void*> == sizeof(void*));
static_assert(stride<Bytes<12, 4>> == 12);
static_assert(stride<Bytes<9, 1>> == 9);
static_assert(stride<Bytes<64, 64>> == 64);
static_assert(stride<Bytes<1, 32>> == 32);

TEST(Pool, AnElementAsLargeAsAPointerTakesNoMoreThanAPointer) {
  const auto textbook_version = [](std::size_t element) { return element > sizeof(void*); };
  EXPECT_FALSE(textbook_version(sizeof(void*)));  // it refuses what fits

  CountingResource memory;
  sluice::pool<void*, unchecked> pool(1000, &memory);
  EXPECT_LE(memory.live_bytes(), 1000 * sizeof(void*) + 3 * sizeof(void*));
  std::vector<void**> all;
  for (int i = 0; i < 1000; ++i) {
    all.push_back(pool.try_create(&all));
    ASSERT_NE(all.back(), nullptr);
  }
  EXPECT_EQ(memory.allocations(), 1u);
  for (void** each : all) {
    EXPECT_EQ(*each, &all);
    pool.destroy(each);
  }
}

TEST(Pool, AnOverAlignedElementIsAligned) {
  using Line = Bytes<64, 64>;
  // Elements one after the other from wherever a malloc puts the block.
  const auto textbook_version = [](std::uintptr_t block, std::size_t place) { return block + place * sizeof(Line); };
  EXPECT_NE(textbook_version(16, 3) % alignof(Line), 0u);

  CountingResource memory;
  sluice::pool<Line, unchecked> lines(5, &memory);
  std::vector<Line*> all;
  for (int i = 0; i < 40; ++i) {
    all.push_back(lines.acquire());
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(all.back()) % alignof(Line), 0u);
  }
  for (Line* each : all)
    lines.release(each);
}

TEST(Pool, ReleasedLastIsAcquiredFirst) {
  sluice::pool<int, unchecked> pool(10);
  int* const a = pool.acquire();
  int* const b = pool.acquire();
  pool.release(a);
  pool.release(b);
  EXPECT_EQ(pool.acquire(), b);
  EXPECT_EQ(pool.acquire(), a);
  pool.release(a);
  pool.release(b);
}

// Has no more than a megabyte: a size that overflowed would be given.
class Bounded final : public std::pmr::memory_resource {
  void* do_allocate(std::size_t size, std::size_t align) override {
    if (size > 1 << 20) throw std::bad_alloc();
    return std::pmr::new_delete_resource()->allocate(size, align);
  }
  void do_deallocate(void* block, std::size_t size, std::size_t align) override {
    std::pmr::new_delete_resource()->deallocate(block, size, align);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }
};

template <class Checks>
class PoolOf : public testing::Test {};
using Policies = testing::Types<checked, unchecked>;
TYPED_TEST_SUITE(PoolOf, Policies);

TYPED_TEST(PoolOf, TakesMemoryAtConstructionAndNotWhileItLasts) {
  CountingResource memory;
  {
    sluice::pool<double, TypeParam> pool(100, &memory);
    EXPECT_EQ(pool.resource(), &memory);
    EXPECT_EQ(memory.allocations(), 1u);
    std::vector<double*> all;
    all.reserve(100);
    for (int i = 0; i < 100; ++i)
      all.push_back(pool.create(i));
    EXPECT_EQ(pool.try_acquire(), nullptr);
    EXPECT_EQ(pool.try_create(1.0), nullptr);
    EXPECT_EQ(memory.allocations(), 1u);
    EXPECT_EQ(pool.size(), 100u);
    EXPECT_EQ(pool.capacity(), 100u);
    all.push_back(pool.create(100));
    EXPECT_EQ(memory.allocations(), 2u);
    EXPECT_GE(pool.capacity(), 200u);
    for (int i = 0; i <= 100; ++i) {
      EXPECT_EQ(*all[static_cast<std::size_t>(i)], i);
      pool.destroy(all[static_cast<std::size_t>(i)]);
    }
    EXPECT_TRUE(pool.empty());
  }
  EXPECT_EQ(memory.live_blocks(), 0u);
}

TYPED_TEST(PoolOf, WithoutACapacityTakesNothingUntilItIsUsed) {
  CountingResource memory;
  sluice::pool<int, TypeParam> pool(0, &memory);
  EXPECT_EQ(pool.try_acquire(), nullptr);
  EXPECT_EQ(memory.allocations(), 0u);
  int* const number = pool.create(3);
  EXPECT_EQ(memory.allocations(), 1u);
  EXPECT_EQ(*number, 3);
  pool.destroy(number);
}

TYPED_TEST(PoolOf, TheCapacityDoublesSoThatFewChunksAreTaken) {
  CountingResource memory;
  sluice::pool<int, TypeParam> pool(1, &memory);
  std::vector<int*> all;
  all.reserve(100000);
  for (int i = 0; i < 100000; ++i)
    all.push_back(pool.create(i));
  EXPECT_LE(memory.allocations(), 18u);
  EXPECT_LE(pool.capacity(), 400000u);
  for (std::size_t i = 0; i < all.size(); ++i)
    EXPECT_EQ(*all[i], static_cast<int>(i));
  for (int* each : all)
    pool.destroy(each);
}

TYPED_TEST(PoolOf, ReserveLosesNothingOfTheChunkThatIsInUse) {
  CountingResource memory;
  sluice::pool<Bytes<40, 8>, TypeParam> pool(1000, &memory);
  std::vector<Bytes<40, 8>*> all{pool.acquire()};
  pool.reserve(500);  // has them
  EXPECT_EQ(memory.allocations(), 1u);
  pool.reserve(3000);
  pool.reserve(5000);
  EXPECT_EQ(memory.allocations(), 3u);
  EXPECT_EQ(pool.capacity(), 5000u);
  while (Bytes<40, 8>* const more = pool.try_acquire())
    all.push_back(more);
  EXPECT_EQ(all.size(), 5000u);
  EXPECT_EQ(pool.size(), 5000u);
  for (auto* each : all) {
    EXPECT_TRUE(pool.owns(each));
    pool.release(each);
  }
}

TYPED_TEST(PoolOf, OwnsTheAddressesOfElementsAndNoOthers) {
  sluice::pool<Bytes<24, 8>, TypeParam> pool(10), other(10);
  auto* const a = pool.acquire();
  auto* const b = other.acquire();
  EXPECT_TRUE(pool.owns(a));
  EXPECT_FALSE(pool.owns(b));
  EXPECT_FALSE(pool.owns(nullptr));
  EXPECT_FALSE(pool.owns(reinterpret_cast<Bytes<24, 8>*>(reinterpret_cast<unsigned char*>(a) + 8)));
  EXPECT_TRUE(pool.owns(a + 0));
  pool.release(a);
  EXPECT_TRUE(pool.owns(a));
  other.release(b);
}

TYPED_TEST(PoolOf, OutOfMemoryChangesNothing) {
  CountingResource memory;
  memory.fail_after(0);
  EXPECT_THROW((sluice::pool<int, TypeParam>(10, &memory)), std::bad_alloc);
  memory.fail_after(1);
  sluice::pool<int, TypeParam> pool(10, &memory);
  std::vector<int*> all;
  all.reserve(10);
  for (int i = 0; i < 10; ++i)
    all.push_back(pool.create(i));
  for (int attempt = 0; attempt < 3; ++attempt) {
    EXPECT_THROW((void)pool.acquire(), std::bad_alloc);
    EXPECT_THROW(pool.create(1), std::bad_alloc);
    EXPECT_THROW(pool.reserve(11), std::bad_alloc);
    EXPECT_EQ(pool.size(), 10u);
    EXPECT_EQ(pool.capacity(), 10u);
  }
  memory.never_fail();
  all.push_back(pool.create(10));
  EXPECT_EQ(pool.size(), 11u);
  for (int i = 0; i <= 10; ++i)
    EXPECT_EQ(*all[static_cast<std::size_t>(i)], i);
  for (int* each : all)
    pool.destroy(each);
}

TYPED_TEST(PoolOf, CapacitiesThatNoMemoryHoldsAreRefused) {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  using Large = Bytes<4096, 64>;
  Bounded memory;
  for (const std::size_t capacity : {most, most - 1, most / 2, most / 2 + 1, most / 8, most / 8 + 1, most / 9}) {
    EXPECT_THROW((sluice::pool<char, TypeParam>(capacity, &memory)), std::bad_alloc) << capacity;
    EXPECT_THROW((sluice::pool<Large, TypeParam>(capacity, &memory)), std::bad_alloc) << capacity;
    EXPECT_THROW((sluice::pool<Large, TypeParam>(capacity / 4096 + 1, &memory)), std::bad_alloc) << capacity;
  }
}

TYPED_TEST(PoolOf, AConstructorThatThrowsLeavesTheStorageInThePool) {
  Tracking tracking;
  sluice::pool<Tracked, TypeParam> pool(2);
  Tracked* const first = pool.create(1);
  Tracking::throw_after(0);
  EXPECT_THROW(pool.create(2), std::runtime_error);
  EXPECT_THROW(pool.try_create(2), std::runtime_error);
  EXPECT_EQ(pool.size(), 1u);
  Tracking::never_throw();
  Tracked* const second = pool.try_create(2);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(pool.try_acquire(), nullptr);
  EXPECT_EQ(first->value() + second->value(), 3);
  pool.destroy(first);
  pool.destroy(second);
}

TYPED_TEST(PoolOf, MakesAggregatesAndMoveOnlyElements) {
  sluice::pool<Point, TypeParam> points;
  Point* const point = points.create(1, 2.5);
  EXPECT_EQ(point->x, 1);
  EXPECT_EQ(point->y, 2.5);
  points.destroy(point);

  struct Named {
    std::string name;
    std::unique_ptr<int> number;
  };
  sluice::pool<Named, TypeParam> named;
  Named* const one = named.create("a name that is longer than the room inside", std::make_unique<int>(3));
  EXPECT_EQ(*one->number, 3);
  named.destroy(one);
}

// A compiler makes what it can at compile time, when there is neither a default resource nor memory.
sluice::pool<int, checked> static_checked(1000);
sluice::pool<int, unchecked> static_unchecked(1000);
sluice::pool<int, unchecked> static_empty;
TEST(Pool, AStaticOneTakesItsMemoryWhenTheProgramBegins) {
  const auto is_ready = [](auto& pool, std::size_t capacity) {
    EXPECT_NE(pool.resource(), nullptr);
    EXPECT_EQ(pool.capacity(), capacity);
    int* const first = capacity == 0 ? pool.create(1) : pool.try_create(1);
    ASSERT_NE(first, nullptr);
    pool.destroy(first);
  };
  is_ready(static_checked, 1000);
  is_ready(static_unchecked, 1000);
  is_ready(static_empty, 0);
}

TYPED_TEST(PoolOf, AggregatesWithoutACopyAreMadeInPlace) {
  struct NoCopy {
    NoCopy() = default;
    NoCopy(const NoCopy&) = delete;
  };
  struct Aggregate {
    int number;
    NoCopy rest{};
  };
  sluice::pool<Aggregate, TypeParam> pool;
  Aggregate* const one = pool.create(3);
  EXPECT_EQ(one->number, 3);
  pool.destroy(one);
}

// Its destructor destroys another one and makes some more.
template <class Checks>
struct Testator {
  using Pool = sluice::pool<Testator, Checks>;

  explicit Testator(Pool& its_pool) : pool(&its_pool) {}
  ~Testator() {
    if (servant != nullptr) pool->destroy(servant);
    while (heirs.size() < heirs.capacity())
      heirs.push_back(pool->create(*pool));
    for (Testator* const heir : heirs)
      pool->destroy(heir);
  }
  Testator(const Testator&) = delete;
  Testator& operator=(const Testator&) = delete;

  Pool* pool;
  Testator* servant = nullptr;
  std::vector<Testator*> heirs;
};
TYPED_TEST(PoolOf, ADestructorMayUseThePool) {
  CountingResource memory;
  sluice::pool<Testator<TypeParam>, TypeParam> pool(2, &memory);
  auto* const first = pool.create(pool);
  first->servant = pool.create(pool);
  first->servant->heirs.reserve(10);
  first->heirs.reserve(300);
  pool.destroy(first);
  EXPECT_EQ(pool.size(), 0u);
  EXPECT_GE(pool.capacity(), 301u);
}

TYPED_TEST(PoolOf, CountsWhatIsHandedOutAcrossChunks) {
  sluice::pool<Bytes<1000, 8>, TypeParam> pool(10);
  EXPECT_TRUE(pool.empty());
  pool.reserve(30);
  std::vector<Bytes<1000, 8>*> all;
  for (std::size_t i = 1; i <= 35; ++i) {
    all.push_back(pool.acquire());
    EXPECT_EQ(pool.size(), i);
  }
  while (!all.empty()) {
    pool.release(all.back());
    all.pop_back();
    EXPECT_EQ(pool.size(), all.size());
  }
  EXPECT_TRUE(pool.empty());
}

TYPED_TEST(PoolOf, TheDefaultResourceOfItsConstructionServesItToTheEnd) {
  CountingResource at_first, later;
  std::pmr::memory_resource* const before = std::pmr::set_default_resource(&at_first);
  {
    sluice::pool<int, TypeParam> pool(1);
    std::pmr::set_default_resource(&later);
    int* const a = pool.create(1);
    int* const b = pool.create(2);
    pool.destroy(a);
    pool.destroy(b);
    EXPECT_EQ(at_first.allocations(), 2u);
  }
  EXPECT_EQ(later.allocations(), 0u);
  std::pmr::set_default_resource(before);
}

// Random operations against a list of what is handed out: no element overlaps another, and each keeps what was written.
template <class T, class Checks>
struct Case {
  using Element = T;
  using Policy = Checks;
};
template <class Case>
class PoolModel : public testing::Test {};
using Cases =
    testing::Types<Case<Bytes<1, 1>, unchecked>, Case<Bytes<7, 1>, unchecked>, Case<Bytes<8, 8>, unchecked>,
                   Case<Bytes<12, 4>, unchecked>, Case<Bytes<17, 1>, unchecked>, Case<Bytes<48, 16>, unchecked>,
                   Case<Bytes<64, 64>, unchecked>, Case<Bytes<3000, 8>, unchecked>, Case<Bytes<4096, 4096>, unchecked>,
                   Case<Bytes<1, 1>, checked>, Case<Bytes<12, 4>, checked>, Case<Bytes<17, 1>, checked>,
                   Case<Bytes<64, 64>, checked>, Case<Bytes<3000, 8>, checked>>;
TYPED_TEST_SUITE(PoolModel, Cases);

TYPED_TEST(PoolModel, ElementsKeepWhatWasWrittenAndDoNotOverlap) {
  using Element = typename TypeParam::Element;
  for (unsigned seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    CountingResource memory;
    sluice::pool<Element, typename TypeParam::Policy> pool(seed * 7, &memory);
    struct Given {
      Element* element;
      unsigned char value;
    };
    std::vector<Given> live;
    const auto give_back = [&](std::size_t place) {
      for (const unsigned char byte : live[place].element->bytes)
        ASSERT_EQ(byte, live[place].value);
      pool.release(live[place].element);
      live[place] = live.back();
      live.pop_back();
    };
    const std::size_t most = sizeof(Element) > 1000 ? 40 : 300;
    for (int step = 0; step < 3000; ++step) {
      ASSERT_EQ(pool.size(), live.size());
      const bool filling = step / 500 % 2 == 0;
      if (live.empty() || (live.size() < most && random() % 8 < (filling ? 5u : 3u))) {
        const bool may_grow = random() % 2 == 0;
        const std::size_t capacity = pool.capacity();
        Element* const element = may_grow ? pool.acquire() : pool.try_acquire();
        ASSERT_EQ(element == nullptr, !may_grow && live.size() == capacity);
        if (element == nullptr) continue;
        ASSERT_EQ(reinterpret_cast<std::uintptr_t>(element) % alignof(Element), 0u);
        const auto value = static_cast<unsigned char>(random());
        std::memset(element, value, sizeof(Element));
        live.push_back({element, value});
      } else {
        give_back(random() % live.size());
      }
    }
    while (!live.empty())
      give_back(live.size() - 1);
    EXPECT_TRUE(pool.empty());
  }
}

}  // namespace
