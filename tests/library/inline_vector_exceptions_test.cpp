// Each operation of a vector with inline storage, failing at each of its steps: memory that runs out, and elements that
// throw. Open it when an operation's guarantee changes.
#include <gtest/gtest.h>

#include <functional>
#include <iterator>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "counting_resource.hpp"
#include "inline_vector_elements.hpp"
#include "sluice/inline_vector.hpp"

namespace {

using library_test::CountingResource;
using library_test::ThrowingMove;
using library_test::Tracked;
using library_test::Tracking;

enum class Guarantee { strong, strong_if_moves_do_not_throw, basic };

template <class T>
struct Operation {
  const char* name;
  Guarantee guarantee;
  std::function<void(sluice::vector_base<T>&, sluice::vector_base<T>&)> run;
};

template <class T>
std::vector<Operation<T>> operations() {
  using Vector = sluice::vector_base<T>;
  static const std::vector<int> numbers{101, 102, 103, 104, 105};
  constexpr auto strong = Guarantee::strong, mostly = Guarantee::strong_if_moves_do_not_throw, basic = Guarantee::basic;
  const auto middle = [](Vector& vector) { return vector.begin() + static_cast<std::ptrdiff_t>(vector.size() / 2); };
  return {
      {"push_back", strong, [](Vector& v, Vector& other) { v.push_back(other[0]); }},
      {"push_back of its own", strong, [](Vector& v, Vector&) { v.push_back(v.empty() ? T(1) : v[0]); }},
      {"emplace_back", strong, [](Vector& v, Vector&) { v.emplace_back(101); }},
      {"reserve", strong, [](Vector& v, Vector&) { v.reserve(v.capacity() + 1); }},
      {"resize", strong, [](Vector& v, Vector&) { v.resize(v.size() + 5); }},
      {"resize with a value", strong, [](Vector& v, Vector&) { v.resize(v.size() + 5, v.empty() ? T(1) : v[0]); }},
      {"append", strong, [](Vector& v, Vector&) { v.append(numbers); }},
      {"append of itself", strong, [](Vector& v, Vector&) { v.append(v); }},
      {"append of equals", strong, [](Vector& v, Vector& other) { v.append(3, other[0]); }},
      {"shrink_to_fit", strong, [](Vector& v, Vector&) { v.shrink_to_fit(); }},
      {"insert", mostly, [=](Vector& v, Vector& other) { v.insert(middle(v), other[0]); }},
      {"insert of its own", mostly, [=](Vector& v, Vector&) { v.insert(middle(v), v.empty() ? T(1) : v[0]); }},
      {"emplace", mostly, [=](Vector& v, Vector&) { v.emplace(middle(v), 101); }},
      {"insert of equals", mostly, [=](Vector& v, Vector& other) { v.insert(middle(v), 3, other[0]); }},
      {"insert of a range", mostly, [=](Vector& v, Vector&) { v.insert_range(middle(v), numbers); }},
      {"erase", mostly,
       [=](Vector& v, Vector&) {
         if (!v.empty()) v.erase(v.begin());
       }},
      {"assign", basic, [](Vector& v, Vector&) { v.assign(numbers.begin(), numbers.end()); }},
      {"assign of equals", basic, [](Vector& v, Vector& other) { v.assign(6, other[0]); }},
      {"copy", basic, [](Vector& v, Vector& other) { v = other; }},
      {"move", basic, [](Vector& v, Vector& other) { v = std::move(other); }},
      {"swap", basic, [](Vector& v, Vector& other) { v.swap(other); }},
  };
}

template <class T>
std::vector<int> numbers_of(const sluice::vector_base<T>& vector) {
  std::vector<int> numbers;
  for (const T& element : vector)
    numbers.push_back(element.value());
  return numbers;
}

// Returns: whether it failed.
template <class T, std::size_t N>
bool fail_once(const Operation<T>& operation, int length, std::size_t successes, bool memory_fails,
               bool same_resource) {
  SCOPED_TRACE(std::string(operation.name) + " with " + std::to_string(length) + " elements, failing after " +
               std::to_string(successes));
  CountingResource one, two;
  sluice::inline_vector<T, N> vector(&one);
  sluice::inline_vector<T, 2> other(same_resource ? &one : &two);
  for (int i = 0; i < length; ++i)
    vector.push_back(T(i + 1));
  for (int i = 0; i < 7; ++i)
    other.push_back(T(i + 201));
  const std::vector<int> before = numbers_of(vector);
  const std::size_t living = Tracking::living();
  if (memory_fails)
    one.fail_after(successes);
  else
    Tracking::throw_after(successes);
  bool failed = false;
  try {
    operation.run(vector, other);
  } catch (const std::bad_alloc&) {
    failed = true;
  } catch (const std::runtime_error&) {
    failed = true;
  }
  one.never_fail();
  Tracking::never_throw();
  const bool moves_throw = std::is_same_v<T, ThrowingMove>;
  if (failed && (operation.guarantee == Guarantee::strong ||
                 (operation.guarantee == Guarantee::strong_if_moves_do_not_throw && !moves_throw))) {
    EXPECT_EQ(numbers_of(vector), before);
    EXPECT_EQ(Tracking::living(), living);
  }
  // Whole in any case: the elements live, and it can be used.
  EXPECT_EQ(numbers_of(vector).size() + numbers_of(other).size(), Tracking::living());
  vector.push_back(T(1));
  vector.insert(vector.begin(), T(2));
  other.assign(3, T(3));
  EXPECT_EQ(vector.back().value(), 1);
  return failed;
}

template <class T, std::size_t N>
void fail_everywhere() {
  const Tracking tracking;
  for (const Operation<T>& operation : operations<T>())
    for (const int length : {0, 1, 2, 4, 5, 8})
      for (const bool memory_fails : {false, true})
        for (const bool same_resource : {false, true}) {
          std::size_t successes = 0;
          while (fail_once<T, N>(operation, length, successes, memory_fails, same_resource))
            ++successes;
          EXPECT_LT(successes, 100u);
        }
}

TEST(InlineVectorExceptions, LeaveAVectorWithNoRoomInsideWhole) {
  fail_everywhere<Tracked, 0>();
}
TEST(InlineVectorExceptions, LeaveAVectorWithRoomForOneWhole) {
  fail_everywhere<Tracked, 1>();
}
TEST(InlineVectorExceptions, LeaveAVectorWithRoomForFourWhole) {
  fail_everywhere<Tracked, 4>();
}
TEST(InlineVectorExceptions, LeaveAVectorWithRoomForSixteenWhole) {
  fail_everywhere<Tracked, 16>();
}
TEST(InlineVectorExceptions, LeaveAVectorWithNoRoomInsideWholeWhenMovesThrow) {
  fail_everywhere<ThrowingMove, 0>();
}
TEST(InlineVectorExceptions, LeaveAVectorWithRoomForFourWholeWhenMovesThrow) {
  fail_everywhere<ThrowingMove, 4>();
}
TEST(InlineVectorExceptions, LeaveAVectorWithRoomForSixteenWholeWhenMovesThrow) {
  fail_everywhere<ThrowingMove, 16>();
}

// A constructor that throws has made nothing.
template <class Make>
void construct_failing(Make make) {
  const Tracking tracking;
  for (std::size_t successes = 0;; ++successes) {
    ASSERT_LT(successes, 50u);
    CountingResource resource;
    Tracking::throw_after(successes);
    try {
      make(&resource);
      Tracking::never_throw();
      return;
    } catch (const std::runtime_error&) {
      Tracking::never_throw();
      EXPECT_EQ(resource.live_blocks(), 0u);
    }
  }
}

TEST(InlineVectorExceptions, LeaveNothingBehindInConstructors) {
  const std::vector<int> numbers{1, 2, 3, 4, 5};
  using Vector = sluice::inline_vector<ThrowingMove, 3>;
  construct_failing([](auto* resource) { Vector(5, resource); });
  construct_failing([](auto* resource) { Vector(5, ThrowingMove(1), resource); });
  construct_failing([&](auto* resource) { Vector(numbers.begin(), numbers.end(), resource); });
  construct_failing([&](auto* resource) { Vector(numbers, resource); });
  construct_failing([](auto* resource) { Vector({1, 2, 3, 4, 5}, resource); });
  construct_failing([](auto* resource) {
    sluice::inline_vector<ThrowingMove, 8> source(5, resource);
    const Vector copy(source, resource);
    const Vector moved(std::move(source), resource);
  });
  construct_failing([](auto* resource) {
    Vector source(2, resource);
    const Vector moved(std::move(source));
  });
}

// What may throw in the middle of a single pass takes back what it has appended.
TEST(InlineVectorExceptions, TakeBackWhatASinglePassHasAppended) {
  const Tracking tracking;
  struct Throwing {
    using value_type = int;
    using difference_type = std::ptrdiff_t;
    int operator*() const {
      if (*left == 0) throw std::runtime_error("no more");
      return (*left)--;
    }
    Throwing& operator++() { return *this; }
    void operator++(int) {}
    bool operator==(std::default_sentinel_t) const { return false; }
    int* left;
  };
  int left = 20;
  sluice::inline_vector<Tracked, 4> vector{1, 2};
  EXPECT_THROW(vector.append(Throwing{&left}, std::default_sentinel), std::runtime_error);
  EXPECT_EQ(numbers_of<Tracked>(vector), (std::vector<int>{1, 2}));
}

TEST(InlineVectorExceptions, NameTheFunctionThatWasAskedForTooMuch) {
  sluice::inline_vector<int, 4> vector{1};
  const auto message = [](auto function) -> std::string {
    try {
      function();
    } catch (const std::length_error& error) {
      return error.what();
    }
    return "none";
  };
  constexpr std::size_t most = sluice::inline_vector<int, 4>::max_size();
  static_assert(most == 0xffffffff);
  EXPECT_EQ(message([&] { vector.reserve(most + 1); }), "vector_base::reserve");
  EXPECT_EQ(message([&] { vector.resize(most + 1); }), "vector_base::resize");
  EXPECT_EQ(message([&] { vector.append(most, 7); }), "vector_base::append");
  EXPECT_EQ(message([&] { vector.append(std::size_t(-1), 7); }), "vector_base::append");
  EXPECT_EQ(message([&] { vector.insert(vector.begin(), most, 7); }), "vector_base::insert");
  EXPECT_EQ(message([&] { vector.assign(most + 1, 7); }), "vector_base::assign");
  EXPECT_THROW(vector.at(1), std::out_of_range);
  EXPECT_EQ(vector.at(0), 1);
}

}  // namespace
