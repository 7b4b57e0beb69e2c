// That single elements go into and out of every place of rows of every length, which inline_vector moves by loops when
// they are short and by memmove when they are long, and that the element that goes in may be one of the vector's own.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "inline_vector_elements.hpp"
#include "sluice/inline_vector.hpp"

namespace library_test {

template <std::size_t Bytes>
struct Wide {
  explicit Wide(int number) { words.fill(number); }
  std::array<int, Bytes / sizeof(int)> words;
};
template <std::size_t Bytes>
int number_of(const Wide<Bytes>& wide) {
  for (const int word : wide.words)
    if (word != wide.words[0]) return -1;
  return wide.words[0];
}

namespace {

using sluice::inline_vector;

template <class T>
class InlineVectorRows : public testing::Test {
 protected:
  using elements = inline_vector<T, 8>;
  static constexpr std::size_t longest = 40;

  // With room for one more, or none.
  static elements filled(std::size_t length, bool full) {
    elements made;
    made.reserve(full ? length : length + 1);
    for (std::size_t i = 0; i != length; ++i)
      made.push_back(element<T>(static_cast<int>(i)));
    if (full) made.shrink_to_fit();
    return made;
  }
  static void expect(const elements& row, const std::vector<int>& expected) {
    std::vector<int> numbers;
    for (const T& each : row)
      numbers.push_back(number_of(each));
    ASSERT_EQ(numbers, expected);
  }
  static std::vector<int> counted(std::size_t length) {
    std::vector<int> numbers;
    for (std::size_t i = 0; i != length; ++i)
      numbers.push_back(static_cast<int>(i));
    return numbers;
  }
};
using Elements = testing::Types<unsigned char, ThreeBytes, int, std::uint64_t, OverAligned, Wide<12>, Wide<32>,
                                Wide<100>, Wide<256>, Wide<400>, std::string, std::unique_ptr<int>, Tracked>;
TYPED_TEST_SUITE(InlineVectorRows, Elements);

TYPED_TEST(InlineVectorRows, TakeAnElementInAnyPlaceAndGiveItBack) {
  for (std::size_t length = 0; length <= this->longest; ++length) {
    for (std::size_t place = 0; place <= length; ++place) {
      auto vector = this->filled(length, false);
      const auto at = static_cast<std::ptrdiff_t>(place);
      const auto inserted = vector.insert(vector.begin() + at, element<TypeParam>(99));
      ASSERT_EQ(inserted, vector.begin() + at);
      auto numbers = this->counted(length);
      numbers.insert(numbers.begin() + at, 99);
      this->expect(vector, numbers);
      ASSERT_EQ(vector.erase(vector.begin() + at), vector.begin() + at);
      this->expect(vector, this->counted(length));
    }
  }
}

TYPED_TEST(InlineVectorRows, TakeTheirOwnElements) {
  for (const std::size_t length : {1, 2, 7, 8, 9, 17, 33}) {
    for (const bool full : {false, true}) {
      for (std::size_t place = 0; place <= length; ++place) {
        for (std::size_t own = 0; own < length; ++own) {
          const auto at = static_cast<std::ptrdiff_t>(place);
          auto numbers = this->counted(length);
          if constexpr (std::is_copy_constructible_v<TypeParam>) {
            auto vector = this->filled(length, full);
            vector.insert(vector.begin() + at, vector[own]);
            numbers.insert(numbers.begin() + at, static_cast<int>(own));
            this->expect(vector, numbers);
          } else {
            auto vector = this->filled(length, full);
            vector.insert(vector.begin() + at, std::move(vector[own]));
            numbers[own] = 0;
            numbers.insert(numbers.begin() + at, static_cast<int>(own));
            this->expect(vector, numbers);
          }
        }
      }
    }
  }
}

TYPED_TEST(InlineVectorRows, TakeTheirOwnElementsAtTheEnd) {
  for (const std::size_t length : {1, 7, 8, 9, 16, 33}) {
    for (std::size_t own = 0; own < length; ++own) {
      auto numbers = this->counted(length);
      if constexpr (std::is_copy_constructible_v<TypeParam>) {
        for (const bool full : {false, true}) {
          auto pushed = this->filled(length, full), emplaced = this->filled(length, full);
          pushed.push_back(pushed[own]);
          emplaced.emplace_back(emplaced[own]);
          auto longer = numbers;
          longer.push_back(static_cast<int>(own));
          this->expect(pushed, longer);
          this->expect(emplaced, longer);
        }
      }
    }
  }
}

constexpr bool takes_its_own_elements_in_a_constant_expression() {
  struct Large {
    int words[20];
  };
  inline_vector<Large, 2> large;
  inline_vector<int, 2> numbers;
  for (int i = 0; i != 10; ++i) {
    large.push_back(large.empty() ? Large{{1}} : large.front());
    large.insert(large.begin(), large.back());
    numbers.push_back(numbers.empty() ? 7 : numbers.front());
    numbers.emplace_back(numbers.front());
    numbers.insert(numbers.begin() + 1, numbers.back());
  }
  for (const Large& each : large)
    if (each.words[0] != 1) return false;
  for (const int number : numbers)
    if (number != 7) return false;
  return large.size() == 20 && numbers.size() == 30;
}
static_assert(takes_its_own_elements_in_a_constant_expression());

}  // namespace
}  // namespace library_test
