// What must hold for split_index_stack, at each width from 1 to 32 bits. Open it when values come back with other bits,
// or cost more than their width.
#include "sluice/split_index_stack.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <type_traits>
#include <utility>
#include <vector>

#include "constant.hpp"
#include "violations.hpp"

// All members, used or not.
template class sluice::split_index_stack<18, 300, sluice::checked>;
template class sluice::split_index_stack<18, 300, sluice::unchecked>;

namespace {

using library_test::Constant;
using library_test::Violations;
using sluice::checked;
using sluice::split_index_stack;
using sluice::unchecked;
using sluice::violation_kind;

// Calls `function.template operator()<Bits>()` for each width.
template <class Function>
constexpr void for_each_width(Function function) {
  [&]<unsigned... Bits>(std::integer_sequence<unsigned, Bits...>) {
    (function.template operator()<Bits + 1>(), ...);
  }
  (std::make_integer_sequence<unsigned, 32>());
}

constexpr std::uint32_t largest(unsigned bits) {
  return ~std::uint32_t{0} >> (32 - bits);
}

template <unsigned Bits, class Checks>
constexpr bool last_in_first_out() {
  split_index_stack<Bits, 40, Checks> stack;
  const std::uint32_t top = stack.max_value;
  bool right = stack.empty() && !stack.pop() && !stack.top() && stack.push(top) && stack.push(0);
  const auto copy = stack;
  right = right && stack.top() == 0u && stack.pop() == 0u && stack.pop() == top && !stack.pop();
  stack.push(0);
  right = right && stack.pop() == 0u && copy.size() == 2;
  if constexpr (Bits >= 6) {
    stack.fill_with_all();
    right = right && stack.full() && stack.pop() == 0u && stack.pop() == 1u && stack.push(0) && stack.pop() == 0u;
  }
  stack.clear();
  return right && stack.empty() && top == largest(Bits);
}
static_assert(last_in_first_out<1, checked>() && last_in_first_out<1, unchecked>());
static_assert(last_in_first_out<5, checked>() && last_in_first_out<12, unchecked>());
static_assert(last_in_first_out<18, checked>() && last_in_first_out<18, unchecked>());
static_assert(last_in_first_out<24, checked>() && last_in_first_out<24, unchecked>());
static_assert(last_in_first_out<31, checked>() && last_in_first_out<32, unchecked>());

template <class Checks>
struct PushesTwice {
  constexpr void operator()() const {
    split_index_stack<18, 32, Checks> stack;
    stack.push(7);
    stack.push(8);
    stack.push(7);
  }
};
template <class Checks>
struct PushesTooMuch {
  constexpr void operator()() const {
    split_index_stack<18, 32, Checks> stack;
    stack.push(0x40000);
  }
};
static_assert(!Constant<PushesTwice<checked>> && !Constant<PushesTooMuch<checked>>, "the compiler finds it");
static_assert(Constant<PushesTwice<unchecked>> && Constant<PushesTooMuch<unchecked>>, "and only the check does");

// Exactly the bits of the entries, at each width, and for all of them two counters of four bytes and, if the width is
// no multiple of 8, a word of eight.
template <std::size_t N, unsigned... Bits>
constexpr bool costs_its_bits(std::integer_sequence<unsigned, Bits...>) {
  return ((sizeof(split_index_stack<Bits + 1, N, unchecked>) == (Bits + 1) * N / 8 + (Bits % 8 == 7 ? 8 : 16)) && ...);
}
static_assert(costs_its_bits<64>(std::make_integer_sequence<unsigned, 32>()));
static_assert(costs_its_bits<4096>(std::make_integer_sequence<unsigned, 32>()));
static_assert(sizeof(split_index_stack<18, 262'144, unchecked>) == 262'144 * 18 / 8 + 16);
static_assert(sizeof(split_index_stack<24, 1 << 20, unchecked>) == (1 << 20) * 3 + 8);
// Seventeen entries of 2 bits: one in the word, and sixteen in four bytes.
static_assert(sizeof(split_index_stack<18, 17, unchecked>) == 8 + 4 + 34 + 2 + 8);
static_assert(std::is_trivially_copyable_v<split_index_stack<18, 32, unchecked>>);
static_assert(std::is_trivially_copyable_v<split_index_stack<18, 32, checked>>);
static_assert(std::is_trivially_destructible_v<split_index_stack<18, 32, checked>>);

constinit split_index_stack<18, 64, unchecked> in_bss;

TEST(SplitIndexStack, AStaticOneIsAllZeroBytes) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&in_bss);
  for (std::size_t i = 0; i < sizeof in_bss; ++i)
    ASSERT_EQ(bytes[i], 0) << i;
  EXPECT_TRUE(in_bss.empty());
}

constexpr std::size_t model_capacity = 50;

// A stack of some width, so that the tests of all widths are compiled once.
class AnyStack {
 public:
  virtual ~AnyStack() = default;
  virtual bool push(std::uint32_t value) = 0;
  virtual std::optional<std::uint32_t> pop() = 0;
  virtual std::optional<std::uint32_t> top() const = 0;
  virtual std::size_t size() const = 0;
  virtual bool empty() const = 0;
  virtual bool full() const = 0;
  virtual void clear() = 0;
  virtual bool fill_with_all() = 0;  // false when its width is too small for it
};
template <class Stack>
class StackOf final : public AnyStack {
  bool push(std::uint32_t value) override { return stack_.push(value); }
  std::optional<std::uint32_t> pop() override { return stack_.pop(); }
  std::optional<std::uint32_t> top() const override { return stack_.top(); }
  std::size_t size() const override { return stack_.size(); }
  bool empty() const override { return stack_.empty(); }
  bool full() const override { return stack_.full(); }
  void clear() override { stack_.clear(); }
  bool fill_with_all() override {
    if constexpr (requires { stack_.fill_with_all(); }) {
      stack_.fill_with_all();
      return true;
    }
    return false;
  }
  Stack stack_;
};

// The textbook stack of 18 bits: it checks values against 0x400000, and its push sets bits that it does not clear.
struct TextbookVersion {
  bool push(std::uint32_t value) {
    if (value >= 0x400000) return false;
    low[size] = static_cast<std::uint16_t>(value);
    high[size / 16] |= value >> 16 << size % 16 * 2;
    ++size;
    return true;
  }
  std::uint32_t pop() {
    --size;
    return low[size] | (high[size / 16] >> size % 16 * 2 & 3) << 16;
  }
  std::array<std::uint16_t, 64> low{};
  std::array<std::uint32_t, 4> high{};
  std::size_t size = 0;
};

TEST(SplitIndexStack, EighteenBitsEndAt0x40000) {
  TextbookVersion text;
  EXPECT_TRUE(text.push(0x40000));
  EXPECT_NE(text.pop(), 0x40000u) << "the textbook version takes a value that it cannot hold";
  Violations violations;
  split_index_stack<18, 64, unchecked> stack;
  EXPECT_TRUE(stack.push(0x3ffff));
  EXPECT_FALSE(stack.push(0x40000));
  EXPECT_FALSE(stack.push(0x3fffff));
  EXPECT_FALSE(stack.push(0x400000));
  EXPECT_EQ(stack.size(), 1u);
  EXPECT_EQ(stack.pop(), 0x3ffffu);
  EXPECT_TRUE(violations.none());
}

void shows_no_old_bits(AnyStack&& stack, unsigned bits) {
  for (const std::uint32_t value : {largest(bits), 0u, largest(bits), 0x55555555 & largest(bits), 0u}) {
    while (stack.push(value)) {
    }
    ASSERT_TRUE(stack.full());
    while (const auto popped = stack.pop())
      ASSERT_EQ(*popped, value) << bits << " bits";
  }
}
TEST(SplitIndexStack, APushClearsTheBitsOfTheValueThatWasThereBefore) {
  TextbookVersion text;
  text.push(0x3ffff);
  text.pop();
  text.push(0);
  EXPECT_NE(text.pop(), 0u) << "without the mask old bits shine through";
  for_each_width(
      []<unsigned Bits>() { shows_no_old_bits(StackOf<split_index_stack<Bits, model_capacity, unchecked>>(), Bits); });
}

void takes_all_values_and_none_beyond(AnyStack&& stack, unsigned bits) {
  SCOPED_TRACE(testing::Message() << bits << " bits");
  std::vector<std::uint32_t> values = {0, 1, largest(bits), largest(bits) - 1, largest(bits) / 2};
  for (unsigned bit = 0; bit < bits; ++bit) {
    values.push_back(std::uint32_t{1} << bit);
    values.push_back(largest(bits) ^ std::uint32_t{1} << bit);
    values.push_back(largest(bit + 1));
  }
  for (const std::uint32_t value : values) {
    ASSERT_TRUE(stack.push(value)) << value;
    ASSERT_EQ(stack.top(), value);
    ASSERT_EQ(stack.pop(), value);
  }
  for (unsigned bit = bits; bit < 32; ++bit) {
    ASSERT_FALSE(stack.push(std::uint32_t{1} << bit)) << bit;
    ASSERT_FALSE(stack.push(largest(bit + 1))) << bit;
  }
  ASSERT_TRUE(stack.empty());
}
TEST(SplitIndexStack, TakesAllValuesOfItsWidthAndNoneBeyond) {
  for_each_width([]<unsigned Bits>() {
    takes_all_values_and_none_beyond(StackOf<split_index_stack<Bits, model_capacity, unchecked>>(), Bits);
  });
}

TEST(SplitIndexStack, EachValueIsFoundAtItsPlaceAndLeavesItsNeighboursAlone) {
  for_each_width([]<unsigned Bits>() {
    SCOPED_TRACE(testing::Message() << Bits << " bits, seed 7");
    std::mt19937 random(7);
    sluice::detail::packed_stack<Bits, 100> stack;
    std::vector<std::uint32_t> model;
    for (int step = 0; step < 600; ++step) {
      const bool push = model.size() < random() % 100;
      if (push) {
        const auto any = static_cast<std::uint32_t>(random()) & largest(Bits);
        const std::uint32_t value = step % 3 == 0 ? 0 : step % 3 == 1 ? any : largest(Bits);
        stack.push(model.size(), value);
        model.push_back(value);
      } else if (!model.empty()) {
        ASSERT_EQ(stack.pop(model.size()), model.back());
        model.pop_back();
      }
      std::size_t same = 0;
      while (same < model.size() && stack.get(model.size(), same) == model[same])
        ++same;
      ASSERT_EQ(same, model.size()) << (push ? "after a push" : "after a pop");
    }
  });
}

void agrees_with_a_vector(AnyStack&& stack, unsigned bits, bool distinct) {
  SCOPED_TRACE(testing::Message() << bits << " bits, which is the seed, too");
  Violations violations;
  std::mt19937 random(bits);
  std::vector<std::uint32_t> model;
  unsigned leaning = 50;
  for (int step = 0; step < 5000; ++step) {
    if (step % 100 == 0) leaning = random() % 101;
    if (random() % 100 < leaning) {
      const auto value = static_cast<std::uint32_t>(random()) & largest(bits);
      if (distinct && std::find(model.begin(), model.end(), value) != model.end()) continue;
      ASSERT_EQ(stack.push(value), model.size() < model_capacity);
      if (model.size() < model_capacity) model.push_back(value);
    } else {
      const auto value = stack.pop();
      ASSERT_EQ(value.has_value(), !model.empty());
      if (!value) continue;
      ASSERT_EQ(*value, model.back());
      model.pop_back();
    }
    if (random() % 500 == 0) {
      stack.clear();
      model.clear();
    }
    if (random() % 300 == 0 && stack.fill_with_all()) {
      model.clear();
      for (std::size_t i = model_capacity; i > 0; --i)
        model.push_back(static_cast<std::uint32_t>(i - 1));
    }
    ASSERT_EQ(stack.size(), model.size());
    ASSERT_EQ(stack.empty(), model.empty());
    ASSERT_EQ(stack.full(), model.size() == model_capacity);
    ASSERT_EQ(stack.top().has_value(), !model.empty());
    ASSERT_TRUE(model.empty() || stack.top() == model.back());
  }
}

TEST(SplitIndexStack, AgreesWithAVectorOverRandomOperations) {
  for_each_width([]<unsigned Bits>() {
    agrees_with_a_vector(StackOf<split_index_stack<Bits, model_capacity, unchecked>>(), Bits, false);
    agrees_with_a_vector(StackOf<split_index_stack<Bits, model_capacity, checked>>(), Bits, true);
  });
}

TEST(SplitIndexStack, FilledWithAllItHandsOutEachIndexOnce) {
  split_index_stack<18, 262'144, unchecked> stack;
  stack.fill_with_all();
  for (std::uint32_t i = 0; i < 100'000; ++i)
    ASSERT_EQ(stack.pop(), i);
  for (std::uint32_t i = 0; i < 100'000; i += 2)
    ASSERT_TRUE(stack.push(i));
  std::vector<bool> seen(262'144);
  while (const auto index = stack.pop()) {
    ASSERT_FALSE(seen[*index]) << *index;
    seen[*index] = true;
  }
  for (std::uint32_t i = 0; i < seen.size(); ++i)
    ASSERT_EQ(seen[i], i >= 100'000 || i % 2 == 0) << i;
}

TEST(SplitIndexStack, ADoubleReleaseIsFoundBeforeTheStackIsFull) {
  Violations violations;
  split_index_stack<18, 64, checked> stack("blocks");
  stack.fill_with_all();
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(stack.pop());
  EXPECT_TRUE(stack.push(3));
  EXPECT_FALSE(stack.push(3));
  const sluice::violation found = violations.take();
  EXPECT_EQ(found.kind, violation_kind::double_release);
  EXPECT_STREQ(found.component, "split_index_stack");
  EXPECT_STREQ(found.name, "blocks");
  EXPECT_EQ(found.object, &stack);
  EXPECT_EQ(found.value, 3u);
  EXPECT_FALSE(stack.push(60)) << "was never handed out";
  violations.expect(violation_kind::double_release);
  EXPECT_EQ(stack.size(), 55u);
  EXPECT_EQ(stack.pop(), 3u);
  EXPECT_TRUE(stack.push(3)) << "popped, it may come back";
}

TEST(SplitIndexStack, ALargeValueThatIsInItAlreadyIsFound) {
  Violations violations;
  split_index_stack<18, 64, checked> stack;
  EXPECT_TRUE(stack.push(0x3ffff) && stack.push(0x3fffe) && stack.push(63));
  EXPECT_FALSE(stack.push(0x3ffff));
  violations.expect(violation_kind::double_release);
  stack.clear();
  EXPECT_TRUE(stack.push(0x3ffff) && stack.push(63));
}

TEST(SplitIndexStack, AValueThatIsTooWideIsReported) {
  Violations violations;
  split_index_stack<18, 64, checked> stack;
  EXPECT_FALSE(stack.push(0x40000));
  const sluice::violation found = violations.take();
  EXPECT_EQ(found.kind, violation_kind::foreign);
  EXPECT_EQ(found.value, 0x40000u);
  EXPECT_TRUE(stack.empty());
}

}  // namespace
