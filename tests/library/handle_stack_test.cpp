// What must hold for handle_stack. Open it when handles come back changed, twice or not at all.
#include "sluice/handle_stack.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <type_traits>
#include <vector>

#include "constant.hpp"
#include "violations.hpp"

namespace {

using library_test::Constant;
using library_test::Violations;
using sluice::checked;
using sluice::handle_stack;
using sluice::unchecked;
using sluice::violation_kind;

struct Tile {
  std::uint8_t x, y;
  std::uint16_t page;
};
struct Named {  // no default constructor, no assignment, only ==
  explicit constexpr Named(int n) : number(n) {}
  constexpr bool operator==(const Named& other) const { return number == other.number; }
  const int number;
};

template <class Checks>
constexpr bool last_in_first_out() {
  handle_stack<Tile, 2, Checks> stack;
  bool right = stack.empty() && !stack.pop() && !stack.top();
  right = right && stack.push({1, 2, 3}) && stack.push({4, 5, 6}) && !stack.push({7, 8, 9}) && stack.full();
  right = right && stack.top()->page == 6 && stack.size() == 2;
  const auto copy = stack;
  right = right && stack.pop()->x == 4 && stack.pop()->y == 2 && stack.empty();
  stack.push({1, 1, 1});
  stack.clear();
  return right && stack.empty() && copy.size() == 2 && copy.top()->x == 4;
}
static_assert(last_in_first_out<checked>());
static_assert(last_in_first_out<unchecked>());

template <class Checks, class T>
struct PushesTwice {
  constexpr void operator()() const {
    handle_stack<T, 4, Checks> stack;
    stack.push(T(1));
    stack.push(T(2));
    stack.push(T(1));
  }
};
static_assert(!Constant<PushesTwice<checked, int>>, "the compiler finds a double release");
static_assert(Constant<PushesTwice<unchecked, int>>, "and only the check does");
static_assert(!Constant<PushesTwice<checked, Named>> && Constant<PushesTwice<unchecked, Named>>);

static_assert(sizeof(handle_stack<Tile, 64 * 64, unchecked>) == 64 * 64 * sizeof(Tile) + 4);
static_assert(sizeof(handle_stack<std::uint8_t, 100, unchecked>) == 100 + 4);
static_assert(std::is_trivially_copyable_v<handle_stack<Tile, 8, unchecked>>);
static_assert(std::is_trivially_copyable_v<handle_stack<Tile, 8, checked>>);
static_assert(std::is_trivially_destructible_v<handle_stack<Named, 8, checked>>);

constinit handle_stack<Tile, 64, unchecked> in_bss;

TEST(HandleStack, AStaticOneIsAllZeroBytes) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&in_bss);
  for (std::size_t i = 0; i < sizeof in_bss; ++i)
    ASSERT_EQ(bytes[i], 0) << i;
  EXPECT_TRUE(in_bss.empty());
}

TEST(HandleStack, PopOnAnEmptyOneGivesNothing) {
  handle_stack<int*, 2, checked> stack;  // not a pointer of -1
  EXPECT_EQ(stack.pop(), std::nullopt);
  EXPECT_EQ(stack.top(), std::nullopt);
  EXPECT_TRUE(stack.push(nullptr));
  EXPECT_EQ(stack.pop(), std::optional<int*>(nullptr)) << "a null handle is a handle";
}

TEST(HandleStack, AValueThatIsInItAlreadyIsFoundBeforeTheStackIsFull) {
  Violations violations;
  handle_stack<Tile, 8, checked> stack("tiles");  // has no ==
  stack.push({1, 2, 3});
  stack.push({1, 2, 4});
  EXPECT_FALSE(stack.push({1, 2, 3}));
  const sluice::violation found = violations.take();
  EXPECT_EQ(found.kind, violation_kind::double_release);
  EXPECT_STREQ(found.component, "handle_stack");
  EXPECT_STREQ(found.name, "tiles");
  EXPECT_EQ(found.object, &stack);
  EXPECT_EQ(found.value, 0u) << "its position, counted from the bottom";
  EXPECT_EQ(stack.size(), 2u);
  EXPECT_EQ(stack.pop()->page, 4);
  EXPECT_TRUE(stack.push({1, 2, 4})) << "popped, it may come back";
}

TEST(HandleStack, AValueThatIsInAFullStackIsADoubleRelease) {
  Violations violations;
  handle_stack<int, 2, checked> stack;
  EXPECT_TRUE(stack.push(1));
  EXPECT_TRUE(stack.push(2));
  EXPECT_FALSE(stack.push(3));
  EXPECT_TRUE(violations.none()) << "the answer says that it is full";
  EXPECT_FALSE(stack.push(2));
  violations.expect(violation_kind::double_release);
}

TEST(HandleStack, UncheckedItTakesAnyValueAnyTime) {
  Violations violations;
  handle_stack<int, 3, unchecked> stack;
  EXPECT_TRUE(stack.push(1) && stack.push(1) && stack.push(1) && !stack.push(1));
  EXPECT_TRUE(violations.none());
}

TEST(HandleStack, WithoutAWayToCompareNothingIsReported) {
  struct Padded {
    std::uint8_t small;
    std::uint32_t large;
  };
  Violations violations;
  handle_stack<Padded, 3, checked> stack;
  EXPECT_TRUE(stack.push({1, 2}) && stack.push({1, 2}));
  EXPECT_TRUE(violations.none());
}

template <class T, std::size_t N, class Checks>
void agrees_with_a_vector(unsigned seed) {
  SCOPED_TRACE(testing::Message() << "seed " << seed << " capacity " << N);
  Violations violations;
  std::mt19937 random(seed);
  handle_stack<T, N, Checks> stack;
  std::vector<int> model;
  int next = 0;
  unsigned leaning = 50;
  for (int step = 0; step < 20'000; ++step) {
    if (step % 300 == 0) leaning = random() % 101;
    if (random() % 100 < leaning) {
      ASSERT_EQ(stack.push(T(next)), model.size() < N);
      if (model.size() < N) model.push_back(next);
      ++next;
    } else {
      const auto value = stack.pop();
      ASSERT_EQ(value.has_value(), !model.empty());
      if (value) {
        ASSERT_TRUE(*value == T(model.back()));
        model.pop_back();
      }
    }
    if (random() % 1000 == 0) {
      stack.clear();
      model.clear();
    }
    ASSERT_EQ(stack.size(), model.size());
    ASSERT_EQ(stack.top().has_value(), !model.empty());
    ASSERT_TRUE(model.empty() || *stack.top() == T(model.back()));
    ASSERT_EQ(stack.empty(), model.empty());
    ASSERT_EQ(stack.full(), model.size() == N);
  }
}

TEST(HandleStack, AgreesWithAVectorOverRandomOperations) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    agrees_with_a_vector<int, 1, checked>(seed);
    agrees_with_a_vector<int, 40, checked>(seed);
    agrees_with_a_vector<std::uint64_t, 300, unchecked>(seed);
    agrees_with_a_vector<Named, 40, checked>(seed);
    agrees_with_a_vector<Named, 40, unchecked>(seed);
  }
}

}  // namespace
