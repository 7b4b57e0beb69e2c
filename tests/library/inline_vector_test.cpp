// What a vector with inline storage promises beyond std::vector's behaviour. Open it for memory, moves, resources,
// constant expressions and concepts; random operations are in inline_vector_model_test.cpp.
#include "sluice/inline_vector.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <compare>
#include <iterator>
#include <memory>
#include <memory_resource>
#include <numeric>
#include <ranges>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "counting_resource.hpp"
#include "inline_vector_elements.hpp"

namespace {

using library_test::CountingResource;
using sluice::inline_vector;
using sluice::vector_base;
using testing::ElementsAre;

using Ints = inline_vector<int, 4>;
static_assert(std::ranges::contiguous_range<Ints> && std::ranges::sized_range<Ints>);
static_assert(std::ranges::contiguous_range<const vector_base<int>>);
static_assert(std::contiguous_iterator<Ints::iterator> && std::contiguous_iterator<Ints::const_iterator>);
static_assert(std::is_nothrow_move_constructible_v<Ints>);
static_assert(std::is_nothrow_move_constructible_v<inline_vector<std::string, 4>>);
static_assert(!std::is_nothrow_move_constructible_v<inline_vector<library_test::ThrowingMove, 4>>);
static_assert(!std::is_copy_constructible_v<vector_base<int>> && !std::is_destructible_v<vector_base<int>>);
static_assert(std::is_convertible_v<inline_vector<int, 2>, Ints> && !std::is_convertible_v<std::vector<int>, Ints>);
static_assert(std::uses_allocator_v<Ints, std::pmr::polymorphic_allocator<>>);
static_assert(std::totally_ordered<Ints> && std::three_way_comparable<Ints>);
static_assert(!std::equality_comparable<inline_vector<library_test::NoDefault, 4>>);
static_assert(sizeof(vector_base<int>) == 32 && sizeof(Ints) == 48 && sizeof(inline_vector<int, 0>) == 32);

constexpr bool works_in_constant_expressions() {
  inline_vector<int, 4> vector{1, 2, 3};
  vector.push_back(4);
  vector.push_back(vector[0]);
  vector.insert(vector.begin() + 1, 9);
  vector.insert(vector.begin(), vector.back());
  vector.insert(vector.begin(), 2, vector.back());
  vector.erase(vector.begin() + 2);
  inline_vector<int, 2> other(vector);
  vector.clear();
  other.swap(vector);
  vector.shrink_to_fit();
  vector.reserve(100);
  vector.resize_for_overwrite(20);
  vector.resize(8);
  other.append(vector);
  inline_vector<int, 2> moved(std::move(other));
  other = std::move(moved);
  other = vector;
  return other == inline_vector<int, 0>{1, 1, 1, 9, 2, 3, 4, 1} && erase(other, 1) == 4 && other.size() == 4 &&
         !(other < vector) && moved.empty();
}
static_assert(works_in_constant_expressions());

constexpr bool nests_in_constant_expressions() {
  inline_vector<inline_vector<int, 2>, 2> vector(2);
  vector.push_back({1, 2, 3});
  vector.insert(vector.begin(), vector.back());
  return vector.size() == 4 && vector[0].size() == 3 && vector[0] == vector[3];
}
static_assert(nests_in_constant_expressions());

std::size_t fill(vector_base<int>& found, int count) {
  for (int i = 0; i < count; ++i)
    found.push_back(i);
  return found.size();
}

TEST(InlineVector, TakesNoMemoryUpToN) {
  CountingResource resource;
  inline_vector<std::string, 8> strings(&resource);
  for (int i = 0; i < 8; ++i)
    strings.insert(strings.begin(), std::to_string(i));
  strings.resize(3);
  strings.assign(8, "x");
  inline_vector<std::string, 8> moved(std::move(strings));
  strings = std::move(moved);
  strings.reserve(8);
  strings.shrink_to_fit();
  EXPECT_TRUE(strings.is_inline());
  EXPECT_EQ(resource.allocations(), 0u);
  strings.push_back("x");
  EXPECT_FALSE(strings.is_inline());
  EXPECT_EQ(resource.allocations(), 1u);
}

TEST(InlineVector, IsFilledThroughItsBaseWhateverItsRoom) {
  inline_vector<int, 0> none;
  inline_vector<int, 3> three;
  inline_vector<int, 100> hundred;
  EXPECT_EQ(fill(none, 10), 10u);
  EXPECT_EQ(fill(three, 10), 10u);
  EXPECT_EQ(fill(hundred, 10), 10u);
  EXPECT_TRUE(hundred.is_inline());
  EXPECT_TRUE(none == three && three == hundred);
  vector_base<int>& base = hundred;
  base = static_cast<const vector_base<int>&>(none);  // not a slice
  EXPECT_EQ(hundred.size(), 10u);
  base = std::move(static_cast<vector_base<int>&>(three));
  EXPECT_TRUE(hundred.is_inline());  // the block of `three` is smaller than the room here
  EXPECT_TRUE(three.empty());
}

TEST(InlineVector, HandsItsBlockOverWhenItMoves) {
  CountingResource resource;
  Ints vector(20, 7, &resource);
  const int* const elements = vector.data();
  Ints moved(std::move(vector));
  EXPECT_EQ(moved.data(), elements);
  EXPECT_EQ(moved.resource(), &resource);
  EXPECT_TRUE(vector.empty() && vector.is_inline());
  vector.push_back(1);  // usable, and inside
  EXPECT_TRUE(vector.is_inline());
  inline_vector<int, 9> other_room(&resource);
  other_room = std::move(moved);
  EXPECT_EQ(other_room.data(), elements);
  inline_vector<int, 30> larger(&resource);
  larger = std::move(other_room);  // has room inside for all of it
  EXPECT_TRUE(larger.is_inline());
  EXPECT_EQ(larger.size(), 20u);
  EXPECT_TRUE(other_room.empty());
  EXPECT_EQ(resource.allocations(), 1u);
}

TEST(InlineVector, MovesElementsFromInside) {
  inline_vector<std::unique_ptr<int>, 4> vector;
  vector.push_back(std::make_unique<int>(1));
  const int* const pointed = vector[0].get();
  auto moved = std::move(vector);
  EXPECT_TRUE(vector.empty() && moved.is_inline());
  EXPECT_EQ(moved[0].get(), pointed);
}

TEST(InlineVector, SurvivesBeingAssignedToItself) {
  for (const std::size_t size : {0u, 3u, 10u}) {
    inline_vector<std::string, 4> vector(size, "a string that is too long for its own room");
    const inline_vector<std::string, 4> before(vector);
    auto& self = vector;
    vector = self;
    EXPECT_EQ(vector, before);
    vector = std::move(self);
    EXPECT_EQ(vector, before);
    vector.swap(self);
    EXPECT_EQ(vector, before);
  }
}

TEST(InlineVector, TakesItsOwnElementsAsArguments) {
  for (std::size_t size = 1; size < 12; ++size) {  // with and without growth
    inline_vector<std::string, 4> vector;
    for (std::size_t i = 0; i < size; ++i)
      vector.push_back("a string that is too long for its own room " + std::to_string(i));
    const std::string first = vector.front(), last = vector.back();
    vector.push_back(vector[0]);
    EXPECT_EQ(vector.back(), first);
    vector.insert(vector.begin(), vector[size - 1]);
    EXPECT_EQ(vector.front(), last);
    vector.emplace(vector.begin() + 1, vector.back().c_str());
    EXPECT_EQ(vector[1], first);
    vector.insert(vector.begin(), 3, vector.back());
    EXPECT_THAT(std::vector(vector.begin(), vector.begin() + 3), ElementsAre(first, first, first));
    vector.emplace_back(std::move(vector[3]));
    EXPECT_EQ(vector.back(), last);
    vector.append(vector);
    EXPECT_EQ(vector.back(), last);
    vector.assign(50, vector[0]);
    EXPECT_EQ(vector.back(), first);
    vector.assign(2, vector[40]);
    EXPECT_THAT(vector, ElementsAre(first, first));
  }
}

TEST(InlineVector, ComesBackInsideWhenItShrinks) {
  CountingResource resource;
  inline_vector<std::string, 4> vector({"1", "2", "3", "4", "5"}, &resource);
  vector.reserve(20);
  vector.shrink_to_fit();
  EXPECT_EQ(vector.capacity(), 5u);
  vector.pop_back();
  vector.shrink_to_fit();
  EXPECT_TRUE(vector.is_inline());
  EXPECT_EQ(resource.live_blocks(), 0u);
  EXPECT_THAT(vector, ElementsAre("1", "2", "3", "4"));
}

TEST(InlineVector, ComesBackInsideFromABlockThatIsFullAndNoLarger) {
  inline_vector<int, 2> small{1, 2, 3, 4};
  ASSERT_EQ(small.capacity(), 4u);
  inline_vector<int, 4> vector;
  vector = std::move(small);
  ASSERT_FALSE(vector.is_inline());
  vector.shrink_to_fit();
  EXPECT_TRUE(vector.is_inline());
  EXPECT_EQ(vector, (inline_vector<int, 4>{1, 2, 3, 4}));
}

// Bytes for the processor, but not copied by anyone.
struct ticket {
  explicit ticket(int given) noexcept : number(given) {}
  ticket(ticket&&) = default;
  ticket& operator=(ticket&&) = default;
  int number;
};

TEST(InlineVector, HoldsWhatIsTriviallyMovedButNotCopied) {
  static_assert(std::is_trivially_copyable_v<ticket> && !std::is_copy_constructible_v<ticket>);
  inline_vector<ticket, 2> vector;
  for (int i = 0; i < 5; ++i)
    vector.emplace_back(i);
  vector.push_back(ticket(5));
  vector.emplace(vector.begin() + 1, 6);
  inline_vector<ticket, 2> other(std::move(vector));
  vector = std::move(other);
  std::vector<int> numbers;
  for (const ticket& one : vector)
    numbers.push_back(one.number);
  EXPECT_EQ(numbers, (std::vector<int>{0, 6, 1, 2, 3, 4, 5}));
}

TEST(InlineVector, SwapsBlocksAndElementsBetweenRooms) {
  CountingResource resource, another;
  for (const std::size_t left : {0u, 1u, 2u, 3u, 10u, 40u})
    for (const std::size_t right : {0u, 1u, 6u, 7u, 30u})
      for (std::pmr::memory_resource* const other : {&resource, &another}) {
        inline_vector<std::string, 2> first(left, "left", &resource);
        inline_vector<std::string, 6> second(right, "right", other);
        swap(first, second);
        EXPECT_EQ(first, (inline_vector<std::string, 0>(right, "right")));
        EXPECT_EQ(second, (inline_vector<std::string, 0>(left, "left")));
        EXPECT_EQ(first.resource(), &resource);
        EXPECT_EQ(second.resource(), other);
        first.resize(20);
        second.resize(20);
      }
  Ints one(20, 1, &resource), two(30, 2, &resource);
  const int* const elements = one.data();
  swap(one, two);
  EXPECT_EQ(two.data(), elements);
}

TEST(InlineVector, KeepsItsResourceAsPmrVectorsDo) {
  CountingResource one, two;
  const Ints source(10, 1, &one);
  EXPECT_EQ(Ints(source).resource(), std::pmr::get_default_resource());
  EXPECT_EQ(Ints(source, &two).resource(), &two);
  Ints target(3, 2, &two);
  target = source;
  EXPECT_EQ(target.resource(), &two);
  Ints movable(source, &one);
  target = std::move(movable);
  EXPECT_EQ(target.resource(), &two);
  EXPECT_TRUE(movable.empty());
  EXPECT_EQ(target, source);
  EXPECT_EQ(Ints(std::move(target)).resource(), &two);
  inline_vector<int, 2> other_room(source, &one);
  EXPECT_EQ(Ints(static_cast<vector_base<int>&&>(other_room)).resource(), &one);
  EXPECT_EQ(Ints(&one).get_allocator().resource(), &one);
  EXPECT_EQ(Ints(std::pmr::polymorphic_allocator<int>(&one)).resource(), &one);
}

TEST(InlineVector, AsksForTheDefaultResourceWhenItFirstTakesMemory) {
  CountingResource resource;
  Ints vector;
  std::pmr::set_default_resource(&resource);
  vector.resize(10);
  std::pmr::set_default_resource(nullptr);
  EXPECT_EQ(resource.allocations(), 1u);
  EXPECT_EQ(vector.resource(), &resource);
}

TEST(InlineVector, TellsElementsItsResource) {
  CountingResource resource;
  inline_vector<std::pmr::string, 2> strings(&resource);
  strings.push_back("a string that is too long for its own room");
  strings.emplace_back(50u, 'x');
  strings.insert(strings.begin(), std::pmr::string("another string that is too long for its own room"));
  strings.resize(5);
  for (const auto& string : strings)
    EXPECT_EQ(string.get_allocator().resource(), &resource);
  inline_vector<std::pair<int, std::pmr::string>, 2> pairs(&resource);
  pairs.emplace_back(1, "x");
  EXPECT_EQ(pairs[0].second.get_allocator().resource(), &resource);
  inline_vector<inline_vector<int, 2>, 2> nested(&resource);
  nested.emplace_back(3u);
  EXPECT_EQ(nested[0].resource(), &resource);
  CountingResource other;
  inline_vector<std::pmr::string, 2> moved(&other);
  moved = std::move(strings);
  for (const auto& string : moved)
    EXPECT_EQ(string.get_allocator().resource(), &other);
  inline_vector<std::pmr::string, 2> kept({"x"}, &resource);
  const inline_vector<std::pmr::string, 2> taken(std::move(kept));
  EXPECT_EQ(taken[0].get_allocator().resource(), &resource);
}

constinit inline_vector<int, 4> initialized_by_the_compiler;
TEST(InlineVector, UsesItsRoomWhenItIsAConstantInitializedStatic) {
  auto& vector = initialized_by_the_compiler;
  EXPECT_EQ(vector.capacity(), 4u);
  EXPECT_EQ(vector.begin(), vector.end());
  vector.reserve(2);
  Ints copy(vector), moved(std::move(vector));
  vector = copy;
  vector.append({1, 2, 3});
  const auto* const start = reinterpret_cast<const char*>(&vector);
  const auto* const element = reinterpret_cast<const char*>(vector.data());
  EXPECT_TRUE(element > start && element + 3 * sizeof(int) <= start + sizeof(vector));
  EXPECT_TRUE(vector.is_inline());
  vector.append({4, 5});
  EXPECT_FALSE(vector.is_inline());
  vector.resize(2);
  vector.shrink_to_fit();
  EXPECT_THAT(vector, ElementsAre(1, 2));
  static constinit inline_vector<std::string, 2> asleep;
  inline_vector<std::string, 2> awake{"1", "2", "3"};
  asleep.swap(awake);
  EXPECT_EQ(asleep.size(), 3u);
  static constinit inline_vector<int, 4> assigned;
  assigned = Ints{1, 2};
  EXPECT_TRUE(assigned.is_inline());
  EXPECT_THAT(assigned, ElementsAre(1, 2));
}

TEST(InlineVector, ComparesAcrossRooms) {
  EXPECT_TRUE((Ints{1, 2} == inline_vector<int, 2>{1, 2}));
  EXPECT_TRUE((Ints{1, 2} < inline_vector<int, 2>{1, 3}));
  EXPECT_TRUE((Ints{1, 2, 3} > inline_vector<int, 2>{1, 2}));
  EXPECT_TRUE((inline_vector<double, 2>{1.0} <=> inline_vector<double, 3>{2.0}) == std::partial_ordering::less);
  struct OnlyLess {
    int value;
    bool operator<(const OnlyLess& other) const { return value < other.value; }
  };
  EXPECT_TRUE((inline_vector<OnlyLess, 2>{{1}} <=> inline_vector<OnlyLess, 3>{{2}}) == std::weak_ordering::less);
}

TEST(InlineVector, TakesAnyRange) {
  std::istringstream words("b c d");
  inline_vector<std::string, 2> vector{"a", "e"};
  vector.insert(vector.begin() + 1, std::istream_iterator<std::string>(words), std::istream_iterator<std::string>());
  EXPECT_THAT(vector, ElementsAre("a", "b", "c", "d", "e"));
  Ints numbers(std::vector{0, 1, 2, 3, 4, 5});
  numbers.append(std::vector<long>{60, 70});
  numbers.append_range(std::vector<short>{3});
  EXPECT_THAT(numbers, ElementsAre(0, 1, 2, 3, 4, 5, 60, 70, 3));
  std::ranges::sort(numbers);
  std::istringstream more("8 9");
  numbers.assign(std::istream_iterator<int>(more), std::istream_iterator<int>());
  EXPECT_THAT(numbers, ElementsAre(8, 9));
  numbers.assign_range(std::vector{1});
  numbers = {4, 5};
  EXPECT_EQ(std::accumulate(numbers.rbegin(), numbers.rend(), 0), 9);
  std::ranges::copy(std::vector{1, 2}, std::back_inserter(numbers));
  EXPECT_EQ(erase_if(numbers, [](int number) { return number % 2 == 0; }), 2u);
  EXPECT_EQ(erase(numbers, 1), 1u);
  EXPECT_THAT(numbers, ElementsAre(5));
}

TEST(InlineVector, LeavesNewElementsWithoutAValueForOverwriting) {
  inline_vector<int, 4> vector{1, 2, 3, 4};
  vector.clear();
  vector.resize_for_overwrite(4);
  std::iota(vector.begin(), vector.end(), 5);
  EXPECT_THAT(vector, ElementsAre(5, 6, 7, 8));
  inline_vector<std::string, 1> strings;
  strings.resize_for_overwrite(3);
  EXPECT_THAT(strings, ElementsAre("", "", ""));
}

TEST(InlineVector, MovesAsItsElementsInsideAVector) {
  std::vector<inline_vector<std::string, 2>> vectors;
  for (int i = 0; i < 50; ++i)
    vectors.push_back({std::to_string(i), "a string that is too long for its own room"});
  vectors.erase(vectors.begin());
  EXPECT_THAT(vectors[20], ElementsAre("21", "a string that is too long for its own room"));
}

}  // namespace
