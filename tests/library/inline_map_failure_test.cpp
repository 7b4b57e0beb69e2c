// When memory runs out or a constructor throws, at any step, an insertion has not happened; memory comes from where the
// constructor was told, and none is taken up to N elements.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory_resource>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "counting_resource.hpp"
#include "sluice/inline_map.hpp"
#include "sluice/inline_set.hpp"
#include "tracked.hpp"

namespace {

using library_test::CountingResource;
using library_test::ThrowingMove;
using library_test::Tracked;
using library_test::Tracking;

TEST(inline_map_memory, NoneIsTakenUpToN) {
  CountingResource memory;
  {
    sluice::inline_map<int, int, 16> map(&memory);
    sluice::inline_set<std::string, 8> set(&memory);
    for (int round = 0; round < 50; ++round) {
      for (int i = 0; i < 16; ++i)
        map[round * 100 + i] = i;
      for (int i = 0; i < 8; ++i)
        set.insert(std::to_string(round + i));
      sluice::inline_map<int, int, 16> moved(std::move(map));
      map = moved;
      map.swap(moved);
      set.clear();
      erase_if(map, [](const auto&) { return true; });
    }
    EXPECT_TRUE(map.is_inline());
    EXPECT_EQ(memory.allocations(), 0u);
    for (int i = 0; i < 17; ++i)
      map[i] = i;
    EXPECT_EQ(memory.allocations(), 1u);
    map.erase(3);
    map.shrink_to_fit();
    EXPECT_TRUE(map.is_inline());
    EXPECT_EQ(memory.live_blocks(), 0u);
  }
}

TEST(inline_map_memory, EndlessInsertionAndErasureTakesNoMore) {
  CountingResource memory;
  sluice::inline_set<unsigned, 4> set(&memory);
  for (unsigned i = 0; i < 83; ++i)
    set.insert(i);
  const std::size_t allocations = memory.allocations();
  for (unsigned i = 0; i < 200000; ++i) {
    ASSERT_EQ(set.erase(i), 1u);
    set.insert(i + 83);
  }
  EXPECT_EQ(memory.allocations(), allocations);
  EXPECT_EQ(set.size(), 83u);
}

// A table with tombstones, or with marks of overflow that nothing takes back, makes searches longer and longer.
TEST(inline_map_memory, EndlessInsertionAndErasureMakesNoSearchLonger) {
  struct CountingEqual {
    std::size_t* calls;
    bool operator()(unsigned a, unsigned b) const { return ++*calls, a == b; }
  };
  std::size_t calls = 0;
  sluice::inline_set<unsigned, 100, sluice::hash<unsigned>, CountingEqual> set(sluice::hash<unsigned>(),
                                                                               CountingEqual{&calls});
  const auto cost_of_misses = [&] {
    calls = 0;
    for (unsigned i = 1u << 30; i < (1u << 30) + 2000; ++i)
      EXPECT_FALSE(set.contains(i));
    return calls;
  };
  for (unsigned i = 0; i < 95; ++i)
    set.insert(i);
  unsigned oldest = 0;
  const auto churn = [&](unsigned rounds) {
    for (const unsigned end = oldest + rounds; oldest != end; ++oldest) {
      set.erase(oldest);
      set.insert(oldest + 95);
    }
  };
  churn(1000);  // until elements are where others left room
  const std::size_t before = cost_of_misses();
  churn(99000);
  EXPECT_LE(cost_of_misses(), before + before / 4 + 100);
  for (unsigned i = 100000; i < 100095; ++i)
    set.erase(i);
  EXPECT_EQ(cost_of_misses(), 0u);
}

TEST(inline_map_memory, ABlockIsStolenElementsThatAreInlineMove) {
  CountingResource memory, other_memory;
  sluice::inline_set<int, 4> set({1, 2, 3, 4, 5, 6}, &memory);
  const int* const address = &*set.find(3);
  sluice::inline_set<int, 9> stolen(std::move(set));
  EXPECT_EQ(&*stolen.find(3), address);
  EXPECT_EQ(stolen.resource(), &memory);
  EXPECT_TRUE(set.empty());  // NOLINT(bugprone-use-after-move): it says so
  EXPECT_TRUE(set.is_inline());
  sluice::inline_set<int, 4> elsewhere(std::move(stolen), &other_memory);
  EXPECT_NE(&*elsewhere.find(3), address);
  EXPECT_EQ(elsewhere.size(), 6u);
  EXPECT_EQ(other_memory.allocations(), 1u);
  const sluice::inline_set<int, 4> copy(elsewhere);
  EXPECT_EQ(copy.resource(), std::pmr::get_default_resource());
}

// Taken over by an object with more room inside, a block does not bring it to take memory that it does not need.
template <std::size_t N>
void a_small_block_that_was_stolen_is_left_for_the_room_inside() {
  CountingResource memory;
  for (int way = 0; way < 3; ++way) {
    sluice::inline_set<std::uint64_t, 1> small({1, 2, 3, 4, 5}, &memory);
    sluice::inline_set<std::uint64_t, N> large(&memory);
    large = static_cast<sluice::set_base<std::uint64_t>&&>(small);
    const std::size_t allocations = memory.allocations();
    if (way == 1) large.reserve(N);
    if (way == 2) large.insert({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16});
    for (std::uint64_t i = 1; i <= N; ++i)
      large.insert(i);
    EXPECT_EQ(memory.allocations(), allocations);
    EXPECT_TRUE(large.is_inline());
    EXPECT_EQ(large.size(), N);
    EXPECT_EQ(memory.live_blocks(), 0u);
    large.insert(N + 1);
    EXPECT_FALSE(large.is_inline());
  }
}
TEST(inline_map_memory, ASmallBlockThatWasStolenIsLeftForTheRoomInside) {
  a_small_block_that_was_stolen_is_left_for_the_room_inside<16>();
  a_small_block_that_was_stolen_is_left_for_the_room_inside<100>();
}

TEST(inline_map_memory, ElementsAreToldTheResource) {
  CountingResource memory;
  using Text = std::pmr::string;
  sluice::inline_map<Text, Text, 2> map(&memory);
  map.try_emplace("a key that is too long to be inside", "a value that is too long to be inside");
  map.emplace("a second key that is too long to be inside", "a value that is too long to be inside");
  map["a third key that is too long to be inside"];
  for (const auto& [key, value] : map) {
    EXPECT_EQ(key.get_allocator().resource(), &memory);
    EXPECT_EQ(value.get_allocator().resource(), &memory);
  }
  std::pmr::vector<sluice::inline_set<Text, 2>> sets(&memory);
  sets.emplace_back().insert("one");
  EXPECT_EQ(sets[0].resource(), &memory);
  EXPECT_EQ(sets[0].begin()->get_allocator().resource(), &memory);
}

TEST(inline_map_memory, ASwapKeepsResourcesAndExchangesElements) {
  CountingResource memory, other_memory;
  sluice::inline_map<int, std::string, 3> a({{1, "one"}, {2, "two"}}, &memory);
  sluice::inline_map<int, std::string, 5> b(
      {{3, "three"}, {4, "four"}, {5, "five"}, {6, "six"}, {7, "seven"}, {8, "8"}}, &other_memory);
  const auto a_before = a, b_before = sluice::inline_map<int, std::string, 3>(b);
  swap(a, b);
  EXPECT_EQ(a, b_before);
  EXPECT_EQ(b, a_before);
  EXPECT_EQ(a.resource(), &memory);
  EXPECT_EQ(b.resource(), &other_memory);
  swap(a, a);
  EXPECT_EQ(a, b_before);
}

// Under a malloc without headers an object's own block can stand right behind it, and another object's elements too.
// The textbook container takes data behind the object for inline storage; this model of it does, and leaks.
TEST(inline_map_memory, ANeighbouringBlockIsNotTakenForTheRoomInside) {
  struct TextbookVersion {
    explicit TextbookVersion(void* start) : data(start) {}
    bool is_inline() const { return data == this + 1; }
    void* data;
  };
  alignas(64) unsigned char place[1024];
  const TextbookVersion text(place + sizeof(TextbookVersion));
  const auto* const placed = new (place) TextbookVersion(text.data);
  EXPECT_TRUE(placed->is_inline()) << "though the data came from elsewhere";

  // A resource whose blocks stand right behind the set.
  using Set = sluice::inline_set<std::uint64_t, 0>;
  struct Behind final : std::pmr::memory_resource {
    explicit Behind(unsigned char* first) : next(first) {}
    void* do_allocate(std::size_t size, std::size_t) override { return ++live, std::exchange(next, next + size); }
    void do_deallocate(void*, std::size_t, std::size_t) override { --live; }
    bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }
    unsigned char* next;
    int live = 0;
  } behind(place + sizeof(Set));
  static_assert(sizeof(Set) % 16 == 0);
  Set* const set = new (place) Set(&behind);
  set->insert(1);
  using layout = sluice::detail::table_layout<std::uint64_t>;
  EXPECT_EQ(static_cast<const void*>(behind.next - layout::bytes(layout::shape_for(layout::slots))),
            static_cast<const void*>(set + 1));
  EXPECT_FALSE(set->is_inline());
  Set moved(std::move(*set));
  EXPECT_EQ(moved.size(), 1u);
  EXPECT_TRUE(set->is_inline());
  set->~Set();
  moved = Set();
  moved.shrink_to_fit();
  EXPECT_EQ(behind.live, 0);
}

template <class Element>
void insertions_that_fail_leave_the_map_as_it_was() {
  const Tracking tracking;
  CountingResource memory;
  for (std::size_t size : {0, 1, 3, 4, 13, 14, 24, 30}) {
    for (std::size_t steps = 0; steps < 80; ++steps) {
      sluice::inline_map<Element, Element, 4, std::hash<Element>> map(&memory);
      for (std::size_t i = 0; i < size; ++i)
        map.try_emplace(static_cast<int>(i), static_cast<int>(i) + 100);
      const Element key(1000), value(1001);
      bool failed = false;
      Tracking::throw_after(steps / 2);
      if (steps % 2 == 0) memory.fail_after(0);
      try {
        switch (steps % 3) {
          case 0:
            map.try_emplace(key, value);
            break;
          case 1:
            map.emplace(key, value);
            break;
          default:
            map.insert(std::pair<const Element, Element>(key, value));
        }
      } catch (const std::bad_alloc&) {
        failed = true;
      } catch (const std::runtime_error&) {
        failed = true;
      }
      Tracking::never_throw();
      memory.never_fail();
      ASSERT_EQ(map.size(), size + (failed ? 0 : 1)) << size << ' ' << steps;
      ASSERT_EQ(map.contains(key), !failed);
      for (std::size_t i = 0; i < size; ++i)
        ASSERT_EQ(map.at(static_cast<int>(i)).value(), static_cast<int>(i) + 100);
    }
  }
}
TEST(inline_map_failure, InsertionsThatFailLeaveTheMapAsItWas) {
  insertions_that_fail_leave_the_map_as_it_was<Tracked>();
  insertions_that_fail_leave_the_map_as_it_was<ThrowingMove>();
}

TEST(inline_map_failure, CopiesAndReservationsThatFailLeakNothing) {
  const Tracking tracking;
  CountingResource memory;
  using Set = sluice::inline_set<ThrowingMove, 4, std::hash<ThrowingMove>>;
  for (int size : {3, 4, 9, 40}) {
    Set set(&memory);
    for (int i = 0; i < size; ++i)
      set.emplace(i);
    for (std::size_t steps = 0; steps < 90; ++steps) {
      Tracking::throw_after(steps);
      try {
        switch (steps % 4) {
          case 0: {
            const Set copy(set, &memory);
            break;
          }
          case 1:
            set.reserve(100);
            break;
          case 2:
            set.shrink_to_fit();
            break;
          default: {
            Set assigned(&memory);
            assigned = set;
          }
        }
      } catch (const std::runtime_error&) {
      }
      Tracking::never_throw();
      ASSERT_EQ(set.size(), static_cast<std::size_t>(size));
      for (int i = 0; i < size; ++i)
        ASSERT_TRUE(set.contains(i));
    }
  }
}

// Throws when it is told to.
struct ThrowingHash {
  int* left;
  std::size_t operator()(int key) const {
    if (*left == 0) throw std::runtime_error("no hash");
    if (*left > 0) --*left;
    return static_cast<std::size_t>(key);
  }
};
TEST(inline_map_failure, AHashThatThrowsLeavesAValidSet) {
  for (int steps = 0; steps < 40; ++steps) {
    int left = -1;
    sluice::inline_set<int, 28, ThrowingHash> set(ThrowingHash{&left});
    for (int i = 0; i < 28; ++i)
      set.insert(i);
    left = steps;
    try {
      set.insert(100);
    } catch (const std::runtime_error&) {
    }
    left = -1;
    std::size_t found = 0;
    for (int key : set)
      found += set.contains(key) ? 1 : 0;
    ASSERT_EQ(found, set.size());
    ASSERT_EQ(static_cast<std::size_t>(std::distance(set.begin(), set.end())), set.size());
    left = 0;
    const std::size_t before = set.size();
    try {
      set.erase(*set.begin());
    } catch (const std::runtime_error&) {
    }
    left = -1;
    ASSERT_EQ(set.size(), before);
    while (!set.empty())
      set.erase(set.begin());
  }
}

}  // namespace
