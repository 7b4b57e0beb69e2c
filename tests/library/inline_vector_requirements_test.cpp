// What inline_vector asks of its elements and iterators, and what not: elements that cannot be assigned to, that are
// copied only explicitly, and whose operators and braces mean something else; iterators without a comma.
#include <gtest/gtest.h>

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "sluice/inline_vector.hpp"

namespace {

using sluice::inline_vector;

struct Constant {
  explicit Constant(int number) : value(number) {}
  const int value;
};
// Not trivially copied.
struct Fixed {
  explicit Fixed(int number) noexcept : text(std::to_string(number)), value(number) {}
  std::string text;
  const int value;
};
struct CopiedExplicitly {
  explicit CopiedExplicitly(int number) noexcept : value(number) {}
  explicit CopiedExplicitly(const CopiedExplicitly&) = default;
  int value;
};
// Not trivially copied, and alike to an aggregate of ints, a comma operator's operand, and an address of its own kind.
struct Peculiar {
  explicit Peculiar(int number) noexcept : value(number) {}
  Peculiar(std::initializer_list<int>) = delete;
  Peculiar(std::initializer_list<Peculiar>) = delete;
  Peculiar(const Peculiar& other) noexcept : value(other.value) {}
  Peculiar& operator=(const Peculiar&) = default;
  void operator&() const = delete;
  template <class Other>
  void operator,(Other&&) const = delete;
  int value;
};

template <class T>
std::vector<int> values(const sluice::vector_base<T>& vector) {
  std::vector<int> found;
  for (const T& each : vector)
    found.push_back(each.value);
  return found;
}

template <class T>
class InlineVectorRequirements : public testing::Test {};
using Elements = testing::Types<Constant, Fixed, CopiedExplicitly, Peculiar>;
TYPED_TEST_SUITE(InlineVectorRequirements, Elements);

TYPED_TEST(InlineVectorRequirements, AreMetWithoutAssignment) {
  inline_vector<TypeParam, 4> vector;
  const TypeParam one(1);
  vector.push_back(one);
  vector.emplace_back(2);
  vector.push_back(vector[0]);
  vector.insert(vector.begin(), vector[1]);
  vector.emplace(vector.begin() + 1, 3);
  vector.insert(vector.begin() + 2, 2, one);
  vector.append(2, vector[1]);
  EXPECT_EQ(values(vector), (std::vector<int>{2, 3, 1, 1, 1, 2, 1, 3, 3}));

  inline_vector<TypeParam, 2> copy(vector), moved(std::move(vector));
  moved.erase(moved.begin(), moved.begin() + 7);
  moved.shrink_to_fit();
  EXPECT_TRUE(moved.is_inline());
  moved = std::move(copy);
  EXPECT_EQ(values(moved), (std::vector<int>{2, 3, 1, 1, 1, 2, 1, 3, 3}));
}

// An iterator over a row that has nothing but what its category demands.
template <class T, class Category>
struct Bare {
  using iterator_concept = Category;
  using value_type = T;
  using difference_type = std::ptrdiff_t;

  const T& operator*() const { return *place; }
  Bare& operator++() {
    ++place;
    return *this;
  }
  Bare operator++(int) { return {place++}; }
  bool operator==(const Bare&) const = default;
  template <class Other>
  void operator,(Other&&) const = delete;
  template <class Other>
  friend void operator,(Other&&, const Bare&) = delete;

  const T* place = nullptr;
};

template <class Category>
void expect_to_take_bare_iterators() {
  using iterator = Bare<std::string, Category>;
  const std::vector<std::string> source{"a", "b", "c"};
  const iterator first{source.data()}, last{source.data() + source.size()};
  inline_vector<std::string, 4> vector(first, last);
  vector.insert(vector.begin() + 1, first, last);
  vector.append(first, last);
  EXPECT_EQ(vector, (inline_vector<std::string, 1>{"a", "a", "b", "c", "b", "c", "a", "b", "c"}));
  vector.resize(2);
  vector.assign(first, last);
  EXPECT_EQ(vector, (inline_vector<std::string, 1>{"a", "b", "c"}));
}

TEST(InlineVectorIterators, NeedNoComma) {
  expect_to_take_bare_iterators<std::input_iterator_tag>();
  expect_to_take_bare_iterators<std::forward_iterator_tag>();
}

}  // namespace
