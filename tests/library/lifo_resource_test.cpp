// Containers on a stack: whatever the order of their deallocations, memory is reclaimed, and when it is full it goes on
// upstream.
#include "sluice/lifo_resource.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <memory_resource>
#include <new>
#include <random>
#include <string>
#include <vector>

#include "counting_resource.hpp"
#include "resource_model.hpp"

namespace {

using library_test::CountingResource;
using sluice::checked;
using sluice::unchecked;

template <class Checks>
class LifoResource : public testing::Test {};
using Policies = testing::Types<checked, unchecked>;
TYPED_TEST_SUITE(LifoResource, Policies);

TYPED_TEST(LifoResource, TakesOneBlockAndGivesItBack) {
  CountingResource memory;
  {
    sluice::lifo_resource<TypeParam> stack(10000, &memory);
    EXPECT_EQ(stack.upstream_resource(), &memory);
    EXPECT_EQ(stack.capacity(), 10000u);
    EXPECT_EQ(memory.allocations(), 1u);
    std::pmr::string text(&stack);
    for (int i = 0; i < 1000; ++i)
      text += 'x';
    EXPECT_EQ(memory.allocations(), 1u);
  }
  EXPECT_EQ(memory.live_blocks(), 0u);
}

TYPED_TEST(LifoResource, WithoutBytesTakesNothingAndPassesAllOn) {
  CountingResource memory;
  sluice::lifo_resource<TypeParam> stack(0, &memory);
  EXPECT_EQ(memory.allocations(), 0u);
  void* const block = stack.allocate(100, 64);
  EXPECT_EQ(memory.live_blocks(), 1u);
  stack.deallocate(block, 100, 64);
  EXPECT_EQ(memory.live_blocks(), 0u);
}

TYPED_TEST(LifoResource, ACallersBlockIsAllThereIsUnlessAnotherResourceIsNamed) {
  alignas(16) std::byte bytes[256];
  sluice::lifo_resource<TypeParam> alone(bytes, sizeof bytes);
  EXPECT_THROW((void)alone.allocate(300), std::bad_alloc);
  void* const fits = alone.allocate(100);
  EXPECT_THROW((void)alone.allocate(200), std::bad_alloc);
  alone.deallocate(fits, 100);
  EXPECT_EQ(alone.used(), 0u);

  alignas(16) std::byte other_bytes[256];
  CountingResource memory;
  sluice::lifo_resource<TypeParam> with_more(other_bytes, sizeof other_bytes, &memory);
  EXPECT_EQ(memory.allocations(), 0u);
  void* const large = with_more.allocate(300);
  EXPECT_EQ(memory.allocations(), 1u);
  with_more.deallocate(large, 300);
}

TYPED_TEST(LifoResource, IsEqualToItselfOnly) {
  sluice::lifo_resource<TypeParam> stack(100), other(100);
  EXPECT_TRUE(stack.is_equal(stack));
  EXPECT_FALSE(stack.is_equal(other));
}

TYPED_TEST(LifoResource, ABlockThatIsNotTheLastGoesWithThoseAboveIt) {
  sluice::lifo_resource<TypeParam> stack(1000);
  void* const a = stack.allocate(10);
  const std::size_t used_by_a = stack.used();
  void* const b = stack.allocate(10);
  void* const c = stack.allocate(10);
  void* const d = stack.allocate(10);
  const std::size_t used = stack.used();
  stack.deallocate(b, 10);
  stack.deallocate(c, 10);
  EXPECT_EQ(stack.used(), used);
  stack.deallocate(d, 10);
  EXPECT_EQ(stack.used(), used_by_a);
  stack.deallocate(a, 10);
  EXPECT_EQ(stack.used(), 0u);
}

// A vector that grows deallocates its old block below the new one: a strict stack could not take it back.
TYPED_TEST(LifoResource, GrowingContainersLeaveNothingBehind) {
  CountingResource memory;
  sluice::lifo_resource<TypeParam> stack(200000, &memory);
  for (int round = 0; round < 20; ++round) {
    std::pmr::vector<int> numbers(&stack);
    for (int i = 0; i < 3000; ++i)
      numbers.push_back(i);
    {
      std::pmr::vector<std::pmr::string> words(&stack);
      for (int i = 0; i < 100; ++i)
        words.emplace_back(static_cast<std::size_t>(i), 'x');
      words.erase(words.begin() + 10, words.begin() + 50);
      std::pmr::string joined(&stack);
      for (const auto& word : words)
        joined += word;
      EXPECT_EQ(joined.size(), 99u * 50 - (10 + 49) * 20);
    }
    for (int i = 0; i < 3000; ++i)
      ASSERT_EQ(numbers[static_cast<std::size_t>(i)], i);
  }
  EXPECT_EQ(stack.used(), 0u);
  EXPECT_EQ(memory.allocations(), 1u) << "it was enough for each round";
}

TYPED_TEST(LifoResource, WhenItIsFullMemoryComesFromUpstreamAndGoesBackThere) {
  CountingResource memory;
  sluice::lifo_resource<TypeParam> stack(1000, &memory);
  std::vector<void*> all(50);
  for (void*& each : all)
    each = stack.allocate(64);
  EXPECT_GT(memory.live_blocks(), 10u);
  for (void* each : all)
    stack.deallocate(each, 64);
  EXPECT_EQ(memory.live_blocks(), 1u);
  EXPECT_EQ(stack.used(), 0u);
}

TYPED_TEST(LifoResource, OutOfMemoryLeavesAllWhole) {
  CountingResource memory;
  memory.fail_after(0);
  EXPECT_THROW((sluice::lifo_resource<TypeParam>(100, &memory)), std::bad_alloc);
  memory.fail_after(1);
  sluice::lifo_resource<TypeParam> stack(1000, &memory);
  std::pmr::vector<int> numbers(&stack);
  try {
    for (int i = 0;; ++i)
      numbers.push_back(i);
  } catch (const std::bad_alloc&) {
  }
  EXPECT_GE(numbers.size(), 64u);
  for (std::size_t i = 0; i < numbers.size(); ++i)
    EXPECT_EQ(numbers[i], static_cast<int>(i));
  volatile std::size_t most = std::numeric_limits<std::size_t>::max();  // volatile, or compilers warn
  EXPECT_THROW((void)stack.allocate(most, 1), std::bad_alloc);
  numbers = {};
  numbers.shrink_to_fit();
  EXPECT_EQ(stack.used(), 0u);
}

TYPED_TEST(LifoResource, ReleaseFreesTheStack) {
  sluice::lifo_resource<TypeParam> stack(1000);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 10; ++i)
      std::memset(stack.allocate(40, 8), round, 40);
    stack.release();
    EXPECT_EQ(stack.used(), 0u);
  }
}

TYPED_TEST(LifoResource, BlocksKeepWhatWasWrittenInAnyOrderOfDeallocation) {
  for (unsigned seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    CountingResource memory;
    sluice::lifo_resource<TypeParam> stack(random() % 20000, &memory);
    library_test::ResourceModel(stack, random)
        .run(
            2000, 2, [&] { return random() % 200; }, [&] { return std::size_t{1} << random() % 7; });
    EXPECT_EQ(stack.used(), 0u);
  }
}

}  // namespace
