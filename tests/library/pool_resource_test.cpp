// Containers on a pool of blocks: requests that fit come from it, others from upstream, and out of memory harms none.
#include "sluice/pool_resource.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <list>
#include <map>
#include <memory_resource>
#include <new>
#include <random>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "counting_resource.hpp"
#include "resource_model.hpp"

namespace {

using library_test::CountingResource;
using sluice::checked;
using sluice::unchecked;

static_assert(sizeof(sluice::pool_resource<64, 16, unchecked>) == 9 * sizeof(void*));

template <class Checks>
class PoolResource : public testing::Test {};
using Policies = testing::Types<checked, unchecked>;
TYPED_TEST_SUITE(PoolResource, Policies);

TYPED_TEST(PoolResource, ServesWhatFitsFromThePoolAndTheRestFromUpstream) {
  CountingResource memory;
  sluice::pool_resource<64, 16, TypeParam> pool(10, &memory);
  EXPECT_EQ(pool.upstream_resource(), &memory);
  EXPECT_EQ(memory.allocations(), 1u);
  void* const none = pool.allocate(0, 1);
  void* const other_none = pool.allocate(0, 1);
  EXPECT_NE(none, nullptr);
  EXPECT_NE(none, other_none);
  void* const fits = pool.allocate(64, 16);
  EXPECT_EQ(memory.allocations(), 1u);
  EXPECT_EQ(pool.size(), 3u);
  void* const too_large = pool.allocate(65, 1);
  EXPECT_EQ(memory.allocations(), 2u);
  void* const too_aligned = pool.allocate(8, 32);
  EXPECT_EQ(memory.allocations(), 3u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(too_aligned) % 32, 0u);
  EXPECT_EQ(pool.size(), 3u);
  pool.deallocate(too_aligned, 8, 32);
  pool.deallocate(too_large, 65, 1);
  EXPECT_EQ(memory.live_blocks(), 1u);
  pool.deallocate(none, 0, 1);
  pool.deallocate(fits, 64, 16);
  pool.deallocate(other_none, 0, 1);
  EXPECT_EQ(pool.size(), 0u);
}

TYPED_TEST(PoolResource, IsEqualToItselfOnly) {
  sluice::pool_resource<64, 16, TypeParam> pool, other;
  EXPECT_TRUE(pool.is_equal(pool));
  EXPECT_FALSE(pool.is_equal(other));
  EXPECT_FALSE(pool.is_equal(*std::pmr::new_delete_resource()));
}

TYPED_TEST(PoolResource, ReleaseGivesAllBlocksBackAndGoesOnAsNew) {
  CountingResource memory;
  sluice::pool_resource<48, 16, TypeParam> pool(0, &memory);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 1000; ++i)
      std::memset(pool.allocate(48), round, 48);
    EXPECT_EQ(pool.size(), 1000u);
    EXPECT_GT(memory.live_blocks(), 0u);
    pool.release();
    EXPECT_EQ(pool.size(), 0u);
    EXPECT_EQ(pool.capacity(), 0u);
    EXPECT_EQ(memory.live_blocks(), 0u);
  }
  pool.reserve(100);
  EXPECT_EQ(pool.capacity(), 100u);
  EXPECT_EQ(memory.live_blocks(), 1u);
}

TYPED_TEST(PoolResource, SizesThatNoMemoryHoldsAreUpstreamsToRefuse) {
  volatile std::size_t unknown = std::numeric_limits<std::size_t>::max();  // to compilers, which would warn
  const std::size_t most = unknown;
  sluice::pool_resource<64, 16, TypeParam> pool(0, std::pmr::null_memory_resource());
  EXPECT_THROW((void)pool.allocate(most, 1), std::bad_alloc);
  EXPECT_THROW((void)pool.allocate(1, most / 2 + 1), std::bad_alloc);
  EXPECT_THROW(pool.reserve(most), std::bad_alloc);
  EXPECT_THROW(pool.reserve(most / 64), std::bad_alloc);
  EXPECT_THROW((void)pool.allocate(1, 1), std::bad_alloc);
}

// The same operations on a container over the pool and on one over the default resource.
template <class Checks, class Container, class Reference>
void compare_sets(unsigned seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  CountingResource memory;
  sluice::pool_resource<64, 16, Checks> pool(0, &memory);
  {
    Container container(&pool);
    Reference reference;
    for (int step = 0; step < 5000; ++step) {
      const int key = static_cast<int>(random() % 500);
      if (random() % 5 < (step / 1000 % 2 == 0 ? 3u : 2u)) {
        container[key] = step;
        reference[key] = step;
      } else {
        ASSERT_EQ(container.erase(key), reference.erase(key));
      }
    }
    ASSERT_EQ(container.size(), reference.size());
    ASSERT_GE(pool.size(), reference.size());
    for (const auto& [key, value] : reference)
      ASSERT_EQ(container.at(key), value);
  }
  EXPECT_EQ(pool.size(), 0u);
}

TYPED_TEST(PoolResource, MapsOnItHoldWhatOtherMapsHold) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    compare_sets<TypeParam, std::pmr::map<int, int>, std::map<int, int>>(seed);
    compare_sets<TypeParam, std::pmr::unordered_map<int, int>, std::map<int, int>>(seed);
  }
}

TYPED_TEST(PoolResource, ListsOnItSortSpliceAndShrink) {
  CountingResource memory;
  sluice::pool_resource<64, 16, TypeParam> pool(100, &memory);
  std::pmr::list<std::pmr::string> words(&pool), others(&pool);
  for (int i = 0; i < 2000; ++i)
    (i % 2 == 0 ? words : others).push_back(std::pmr::string(static_cast<std::size_t>(i % 100), 'x'));
  words.splice(words.begin(), others);
  words.sort();
  std::size_t before = 0;
  for (const auto& word : words) {
    EXPECT_LE(before, word.size());
    before = word.size();
  }
  words.remove_if([](const auto& word) { return word.size() % 2 == 0; });
  EXPECT_EQ(words.size(), 1000u);
  words.clear();
  EXPECT_EQ(pool.size(), 0u);
}

TYPED_TEST(PoolResource, OutOfMemoryAtAnyPointLeavesAllWhole) {
  for (std::size_t successes = 0; successes < 12; ++successes) {
    CountingResource memory;
    memory.fail_after(successes);
    sluice::pool_resource<64, 16, TypeParam> pool(0, &memory);
    std::pmr::map<int, int> numbers(&pool);
    std::pmr::vector<int> list(&pool);  // outgrows the blocks
    bool failed = false;
    for (int i = 0; i < 2000 && !failed; ++i) {
      const std::size_t size = list.size();
      try {
        list.push_back(i);
        numbers[i] = i;
      } catch (const std::bad_alloc&) {
        failed = true;
        EXPECT_LE(list.size() - size, 1u);
      }
    }
    EXPECT_TRUE(failed);
    for (const auto& [key, value] : numbers)
      EXPECT_EQ(key, value);
    memory.never_fail();
    for (int i = 0; i < 2000; ++i)
      numbers[i] = i;
    EXPECT_EQ(numbers.size(), 2000u);
  }
}

TYPED_TEST(PoolResource, BlocksKeepWhatWasWrittenAndDoNotOverlap) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    CountingResource memory;
    sluice::pool_resource<40, 8, TypeParam> pool(seed, &memory);
    library_test::ResourceModel(pool, random)
        .run(
            4000, 8, [&] { return random() % 10 == 0 ? random() % 100 : random() % 41; },
            [&] { return std::size_t{1} << random() % 5; });
  }
}

}  // namespace
