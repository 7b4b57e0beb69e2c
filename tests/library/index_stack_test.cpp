// What must hold for index_stack. Open it when free indices are handed out twice, lost, or cost more than they should.
#include "sluice/index_stack.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <type_traits>
#include <vector>

#include "constant.hpp"
#include "violations.hpp"

// All members, used or not.
template class sluice::index_stack<300, std::uint16_t, sluice::checked>;
template class sluice::index_stack<300, std::uint16_t, sluice::unchecked>;

namespace {

using library_test::Constant;
using library_test::Violations;
using sluice::checked;
using sluice::index_stack;
using sluice::unchecked;
using sluice::violation_kind;

template <class Checks>
constexpr bool hands_out_and_takes_back() {
  index_stack<3, std::uint8_t, Checks> stack;
  bool right = stack.full() && stack.size() == 3;
  const auto a = stack.pop(), b = stack.pop();
  right = right && *a == 0 && *b == 1 && stack.in_use() == 2 && stack.size() == 1;
  stack.push(*a);
  stack.push(*b);
  right = right && *stack.pop() == 1 && *stack.pop() == 0 && *stack.pop() == 2 && !stack.pop() && stack.empty();
  auto copy = stack;
  copy.push(2);
  stack.clear();
  return right && copy.size() == 1 && stack.full() && *stack.pop() == 0;
}
static_assert(hands_out_and_takes_back<checked>());
static_assert(hands_out_and_takes_back<unchecked>());

template <class Checks>
struct ReleasesTwice {
  constexpr void operator()() const {
    index_stack<4, std::uint8_t, Checks> stack;
    const auto a = stack.pop(), b = stack.pop();
    stack.push(*a);
    stack.push(*a);
    static_cast<void>(b);
  }
};
static_assert(!Constant<ReleasesTwice<checked>>, "the compiler finds a double release");
static_assert(Constant<ReleasesTwice<unchecked>>, "and only the check does");

// The table and two counters of four bytes.
static_assert(sizeof(index_stack<256, std::uint8_t, unchecked>) == 256 + 8);
static_assert(sizeof(index_stack<1000, std::uint16_t, unchecked>) == 2 * 1000 + 8);
static_assert(sizeof(index_stack<65536 + 4, std::uint32_t, unchecked>) == 4 * (65536 + 4) + 8);
static_assert(std::is_same_v<index_stack<256>::value_type, std::uint8_t>);
static_assert(std::is_same_v<index_stack<257>::value_type, std::uint16_t>);
static_assert(std::is_same_v<index_stack<65536>::value_type, std::uint16_t>);
static_assert(std::is_same_v<index_stack<65537>::value_type, std::uint32_t>);
static_assert(std::is_trivially_copyable_v<index_stack<256, std::uint8_t, unchecked>>);
static_assert(std::is_trivially_copyable_v<index_stack<256, std::uint8_t, checked>>);
static_assert(std::is_trivially_destructible_v<index_stack<256, std::uint8_t, checked>>);

constinit index_stack<256, std::uint8_t, unchecked> in_bss;

TEST(IndexStack, AStaticOneIsAllZeroBytes) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&in_bss);
  for (std::size_t i = 0; i < sizeof in_bss; ++i)
    ASSERT_EQ(bytes[i], 0) << i;
  EXPECT_EQ(in_bss.pop(), 0);
  EXPECT_EQ(in_bss.pop(), 1);
  in_bss.clear();
}

TEST(IndexStack, PopOnAnEmptyOneGivesNothing) {
  index_stack<2, std::uint8_t, checked> stack;
  EXPECT_EQ(stack.pop(), 0);
  EXPECT_EQ(stack.pop(), 1);
  EXPECT_EQ(stack.pop(), std::nullopt);
  EXPECT_EQ(stack.pop(), std::nullopt);
  EXPECT_EQ(stack.in_use(), 2u);
}

TEST(IndexStack, AnEnumerationCanBeTheIndex) {
  enum class Voice : std::uint8_t {};
  index_stack<256, Voice, checked> stack;
  for (int i = 0; i < 256; ++i)
    ASSERT_EQ(stack.pop(), Voice(i));
  EXPECT_EQ(stack.pop(), std::nullopt);
  stack.push(Voice(255));
  EXPECT_EQ(stack.pop(), Voice(255));
}

// The textbook stack asserts "freed twice?" when the stack is full already: a double release before that goes unseen.
struct TextbookVersion {
  bool full() const { return size == capacity; }
  std::size_t size = 0, capacity;
};

TEST(IndexStack, ADoubleReleaseIsFoundBeforeTheStackIsFull) {
  Violations violations;
  index_stack<8, std::uint8_t, checked> stack("voices");
  TextbookVersion text{.capacity = 8};
  for (int i = 0; i < 4; ++i)
    ASSERT_TRUE(stack.pop());
  text.size = 4;
  stack.push(2);
  ++text.size;
  ASSERT_TRUE(violations.none());
  EXPECT_FALSE(text.full()) << "the textbook version sees nothing wrong with what comes now";
  stack.push(2);
  const sluice::violation found = violations.take();
  EXPECT_EQ(found.kind, violation_kind::double_release);
  EXPECT_STREQ(found.component, "index_stack");
  EXPECT_STREQ(found.name, "voices");
  EXPECT_EQ(found.object, &stack);
  EXPECT_EQ(found.address, nullptr);
  EXPECT_EQ(found.value, 2u);
  EXPECT_EQ(stack.in_use(), 3u) << "what is released twice stays free once";
  std::set<int> seen;
  while (const auto index = stack.pop())
    EXPECT_TRUE(seen.insert(*index).second) << int{*index};
  EXPECT_EQ(seen.size(), 5u);
}

TEST(IndexStack, AnIndexThatWasNeverHandedOutIsNotTakenBack) {
  Violations violations;
  index_stack<8, std::uint8_t, checked> stack;
  stack.push(0);
  violations.expect(violation_kind::double_release);
  ASSERT_EQ(stack.pop(), 0);
  stack.push(5);
  violations.expect(violation_kind::double_release);
  stack.push(8);
  violations.expect(violation_kind::foreign);
  stack.push(255);
  EXPECT_EQ(violations.take().value, 255u);
  EXPECT_EQ(stack.in_use(), 1u);
  stack.clear();
  stack.push(0);
  violations.expect(violation_kind::double_release);
}

TEST(IndexStack, NothingIsReportedAtItsEnd) {
  Violations violations;
  {
    index_stack<8, std::uint8_t, checked> stack;
    ASSERT_TRUE(stack.pop());
  }
  EXPECT_TRUE(violations.none());
}

template <class Stack>
void agrees_with_a_vector(unsigned seed) {
  SCOPED_TRACE(testing::Message() << "seed " << seed << " capacity " << Stack::capacity());
  Violations violations;
  std::mt19937 random(seed);
  Stack stack;
  std::vector<std::size_t> returned, out;
  std::size_t fresh = 0;
  unsigned leaning = 50;
  for (int step = 0; step < 20'000; ++step) {
    if (step % 500 == 0) leaning = random() % 101;  // to full and to empty, too
    if (random() % 100 < leaning) {
      const auto index = stack.pop();
      if (!returned.empty()) {
        ASSERT_TRUE(index);
        ASSERT_EQ(*index, returned.back()) << "the last released comes first";
        returned.pop_back();
        out.push_back(*index);
      } else if (fresh < Stack::capacity()) {
        ASSERT_TRUE(index);
        ASSERT_EQ(*index, fresh);
        out.push_back(fresh++);
      } else {
        ASSERT_FALSE(index);
      }
    } else if (!out.empty()) {
      std::swap(out[random() % out.size()], out.back());
      stack.push(static_cast<typename Stack::value_type>(out.back()));
      returned.push_back(out.back());
      out.pop_back();
    }
    if (random() % 2000 == 0) {
      stack.clear();
      returned.clear();
      out.clear();
      fresh = 0;
    }
    ASSERT_EQ(stack.in_use(), out.size());
    ASSERT_EQ(stack.size(), Stack::capacity() - out.size());
    ASSERT_EQ(stack.full(), out.empty());
    ASSERT_EQ(stack.empty(), out.size() == Stack::capacity());
  }
}

TEST(IndexStack, AgreesWithAVectorOverRandomOperations) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    agrees_with_a_vector<index_stack<1, std::uint8_t, checked>>(seed);
    agrees_with_a_vector<index_stack<64, std::uint8_t, checked>>(seed);
    agrees_with_a_vector<index_stack<65, std::uint64_t, checked>>(seed);
    agrees_with_a_vector<index_stack<256, std::uint8_t, checked>>(seed);
    agrees_with_a_vector<index_stack<256, std::uint8_t, unchecked>>(seed);
    agrees_with_a_vector<index_stack<300, std::uint16_t, unchecked>>(seed);
  }
}

}  // namespace
