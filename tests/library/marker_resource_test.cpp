// Containers on an arena: they live in its block, end with frames, and hear of its end by std::bad_alloc.
#include "sluice/marker_resource.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <list>
#include <map>
#include <memory_resource>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "counting_resource.hpp"

namespace {

using library_test::CountingResource;
using sluice::checked;
using sluice::unchecked;

template <class Checks>
class MarkerResource : public testing::Test {};
using Policies = testing::Types<checked, unchecked>;
TYPED_TEST_SUITE(MarkerResource, Policies);

TYPED_TEST(MarkerResource, TakesOneBlockAndGivesItBack) {
  CountingResource memory;
  {
    sluice::marker_resource<TypeParam> level(100000, &memory);
    EXPECT_EQ(level.capacity(), 100000u);
    std::pmr::vector<std::pmr::string> words(&level);
    for (int i = 0; i < 100; ++i)
      words.emplace_back("a word that does not fit inside of a string");
    EXPECT_EQ(memory.allocations(), 1u);
    EXPECT_TRUE(level.arena().contains(words.data()));
  }
  EXPECT_EQ(memory.live_blocks(), 0u);
}

TYPED_TEST(MarkerResource, UsesACallersBlock) {
  alignas(16) std::byte bytes[512];
  sluice::marker_resource<TypeParam> level(bytes, sizeof bytes);
  std::pmr::vector<int> numbers({1, 2, 3}, &level);
  EXPECT_GE(reinterpret_cast<std::byte*>(numbers.data()), bytes);
  EXPECT_LT(reinterpret_cast<std::byte*>(numbers.data()), bytes + sizeof bytes);
}

TYPED_TEST(MarkerResource, IsEqualToItselfOnly) {
  sluice::marker_resource<TypeParam> level(100), other(100);
  EXPECT_TRUE(level.is_equal(level));
  EXPECT_FALSE(level.is_equal(other));
}

TYPED_TEST(MarkerResource, FullItThrowsAndAllStaysWhole) {
  CountingResource memory;
  memory.fail_after(0);
  EXPECT_THROW((sluice::marker_resource<TypeParam>(100, &memory)), std::bad_alloc);
  memory.never_fail();
  sluice::marker_resource<TypeParam> level(2000, &memory);
  std::pmr::vector<int> numbers(&level);
  try {
    for (int i = 0;; ++i)
      numbers.push_back(i);
  } catch (const std::bad_alloc&) {
  }
  EXPECT_GE(numbers.size(), 64u);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    EXPECT_EQ(numbers[i], static_cast<int>(i));
  EXPECT_EQ(memory.allocations(), 1u);
  volatile std::size_t most = std::numeric_limits<std::size_t>::max();  // volatile, or compilers warn
  EXPECT_THROW((void)level.allocate(most, 1), std::bad_alloc);
  sluice::marker_resource<TypeParam> none(0, &memory);
  EXPECT_THROW((void)none.allocate(0, 1), std::bad_alloc);
  EXPECT_EQ(memory.allocations(), 1u);
}

TYPED_TEST(MarkerResource, DeallocatingTheLastBlockGivesItBack) {
  sluice::marker_resource<TypeParam> level(10000);
  for (int i = 0; i < 1000; ++i) {
    std::pmr::vector<char> scratch(100, &level);
    std::pmr::vector<char> more(200, &level);
  }
  EXPECT_LE(level.used(), 100u) << "but for what alignment skips";
  void* const a = level.allocate(32);
  void* const b = level.allocate(32);
  const std::size_t used = level.used();
  level.deallocate(a, 32);
  EXPECT_EQ(level.used(), used);
  level.deallocate(b, 32);
  EXPECT_LT(level.used(), used);
}

// A vector made before the marker gives its memory back after it: the marker still stands between blocks.
TYPED_TEST(MarkerResource, WhatWasAllocatedBeforeAMarkerStaysUntilItIsRewoundPast) {
  sluice::marker_resource<TypeParam> level(10000);
  const auto start = level.mark();
  void* const block = level.allocate(100);
  const auto loaded = level.mark();
  const std::size_t used = level.used();
  level.deallocate(block, 100);
  EXPECT_EQ(level.used(), used);
  EXPECT_NE(level.allocate(500), nullptr);
  level.rewind(loaded);
  EXPECT_EQ(level.used(), used);
  level.rewind(start);
  EXPECT_EQ(level.used(), 0u);
}

TYPED_TEST(MarkerResource, ContainersInFramesEndWithThem) {
  using Resource = sluice::marker_resource<TypeParam>;
  CountingResource memory;
  Resource level(1 << 18, &memory);
  std::pmr::map<int, std::pmr::string> names(&level);
  for (int i = 0; i < 50; ++i)
    names.try_emplace(i, static_cast<std::size_t>(i), 'n');
  const std::size_t used = level.used();
  for (unsigned seed = 1; seed <= 30; ++seed) {
    std::mt19937 random(seed);
    typename Resource::frame frame(level.arena());
    std::pmr::vector<unsigned> path(&level);
    std::pmr::list<unsigned> open(&level);
    for (int i = 0; i < 500; ++i) {
      path.push_back(random());
      open.push_back(path.back());
      {
        typename Resource::frame inner(level.arena());
        std::pmr::string text(random() % 100, 't', &level);
        ASSERT_EQ(text.find_first_not_of('t'), std::pmr::string::npos);
      }
    }
    ASSERT_TRUE(std::equal(path.begin(), path.end(), open.begin(), open.end()));
  }
  EXPECT_EQ(level.used(), used);
  for (const auto& [key, name] : names)
    EXPECT_EQ(name.size(), static_cast<std::size_t>(key));
  EXPECT_EQ(memory.allocations(), 1u);
}

TYPED_TEST(MarkerResource, ClearStartsANewLevel) {
  sluice::marker_resource<TypeParam> level(1000);
  for (int round = 0; round < 5; ++round) {
    EXPECT_NE(level.allocate(800), nullptr);
    EXPECT_THROW((void)level.allocate(800), std::bad_alloc);
    level.clear();
    EXPECT_EQ(level.used(), 0u);
  }
}

}  // namespace
