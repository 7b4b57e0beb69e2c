// Random operations on vectors with inline storage, checked against a std::vector of the numbers that their elements
// stand for. Open it when a new operation must be tried in all orders with the others.
#include <gtest/gtest.h>

#include <forward_list>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "counting_resource.hpp"
#include "inline_vector_elements.hpp"
#include "sluice/inline_vector.hpp"

namespace {

using library_test::CountingResource;
using library_test::element;
using library_test::number_of;

template <class T>
void expect_equal(const sluice::vector_base<T>& vector, const std::vector<int>& model) {
  ASSERT_EQ(vector.size(), model.size());
  ASSERT_LE(vector.size(), vector.capacity());
  if (vector.is_inline()) {
    ASSERT_EQ(vector.capacity(), vector.inline_capacity());
  }
  for (std::size_t i = 0; i < model.size(); ++i)
    ASSERT_EQ(number_of(vector[i]), model[i]) << "at " << i;
}

// A pair of vectors, of any room inside, and what they should hold.
template <class T>
struct Pair {
  sluice::vector_base<T>& vector;
  sluice::vector_base<T>& other;
  std::vector<int> model, other_model;
  std::mt19937 random;
  int next = 1;

  int below(std::size_t end) { return static_cast<int>(random() % (end == 0 ? 1 : end)); }
  std::vector<T> elements(int count) {
    std::vector<T> made;
    for (int i = 0; i < count; ++i)
      made.push_back(element<T>(next + i));
    return made;
  }
  void model_insert(int at, int count) {
    for (int i = 0; i < count; ++i)
      model.insert(model.begin() + at + i, next++);
  }

  void step();
  void step_with_copies(int at, int count);
};

template <class T>
void Pair<T>::step() {
  const int at = below(model.size() + 1);
  const int count = below(7);
  const bool empty = model.empty();
  switch (below(std::is_copy_constructible_v<T> ? 30 : 18)) {
    case 0:
    case 1:
      vector.push_back(element<T>(next));
      return model.push_back(next++);
    case 2:
      EXPECT_EQ(number_of(vector.emplace_back(element<T>(next))), next);
      return model.push_back(next++);
    case 3:
      if (empty) return;
      vector.pop_back();
      return model.pop_back();
    case 4:
      EXPECT_EQ(vector.insert(vector.begin() + at, element<T>(next)) - vector.begin(), at);
      return model_insert(at, 1);
    case 5:
      EXPECT_EQ(vector.emplace(vector.begin() + at, element<T>(next)) - vector.begin(), at);
      return model_insert(at, 1);
    case 6: {
      std::vector<T> source = elements(count);
      const auto place = vector.insert(vector.begin() + at, std::make_move_iterator(source.begin()),
                                       std::make_move_iterator(source.end()));
      EXPECT_EQ(place - vector.begin(), at);
      return model_insert(at, count);
    }
    case 7: {
      std::vector<T> source = elements(count);
      vector.append(std::make_move_iterator(source.begin()), std::make_move_iterator(source.end()));
      return model_insert(static_cast<int>(model.size()), count);
    }
    case 8:
    case 9: {
      if (empty) return;
      const int one = below(model.size());
      EXPECT_EQ(vector.erase(vector.begin() + one) - vector.begin(), one);
      model.erase(model.begin() + one);
      return;
    }
    case 10: {
      const int end = at + below(model.size() + 1 - static_cast<std::size_t>(at));
      EXPECT_EQ(vector.erase(vector.begin() + at, vector.begin() + end) - vector.begin(), at);
      model.erase(model.begin() + at, model.begin() + end);
      return;
    }
    case 11:
      vector.reserve(model.size() + static_cast<std::size_t>(count));
      EXPECT_GE(vector.capacity(), model.size() + static_cast<std::size_t>(count));
      return;
    case 12:
      vector.shrink_to_fit();
      if (model.size() <= vector.inline_capacity()) {
        EXPECT_TRUE(vector.is_inline());
      } else {
        EXPECT_EQ(vector.capacity(), model.size());
      }
      return;
    case 13:
      other = std::move(vector);
      other_model = std::move(model);
      return model.clear();
    case 14:
      vector = std::move(other);
      model = std::move(other_model);
      return other_model.clear();
    case 15:
      vector.swap(other);
      return model.swap(other_model);
    case 16: {
      auto& self = vector;
      vector = std::move(self);
      return;
    }
    case 17:
      if (below(4) != 0) return;
      vector.clear();
      return model.clear();
    default:
      return step_with_copies(at, count);
  }
}

template <class T>
void Pair<T>::step_with_copies(int at, int count) {
  if constexpr (std::is_copy_constructible_v<T>) {
    const std::size_t number = static_cast<std::size_t>(count);
    const T one = element<T>(next);
    switch (below(12)) {
      case 0:
        vector.insert(vector.begin() + at, one);
        return model_insert(at, 1);
      case 1:
        vector.insert(vector.begin() + at, number, one);
        model.insert(model.begin() + at, number, next++);
        return;
      case 2:
        vector.append(number, one);
        return model.resize(model.size() + number, next++);
      case 3:
        vector.assign(number, one);
        return model.assign(number, next++);
      case 4: {
        const std::vector<T> source = elements(count);
        const std::forward_list<T> forward(source.begin(), source.end());
        vector.insert_range(vector.begin() + at, forward);
        return model_insert(at, count);
      }
      case 5: {
        const std::vector<T> source = elements(count + 3);
        vector.assign_range(source);
        model.clear();
        return model_insert(0, count + 3);
      }
      case 6:
        vector = other;
        model = other_model;
        return;
      case 7: {
        auto& self = vector;
        vector = self;
        return;
      }
      case 8:  // an element of the vector itself
        if (model.empty()) return;
        vector.push_back(vector[static_cast<std::size_t>(below(model.size()))]);
        model.push_back(number_of(vector.back()));
        return;
      case 9: {
        if (model.empty()) return;
        const int from = below(model.size()), value = model[static_cast<std::size_t>(from)];
        vector.insert(vector.begin() + at, vector[static_cast<std::size_t>(from)]);
        model.insert(model.begin() + at, value);
        return;
      }
      case 10:
        vector.resize(number, one);
        return model.resize(number, next++);
      default: {
        if (model.empty()) return;
        const int from = below(model.size()), value = model[static_cast<std::size_t>(from)];
        vector.insert(vector.begin() + at, number, vector[static_cast<std::size_t>(from)]);
        model.insert(model.begin() + at, number, value);
        return;
      }
    }
  }
}

template <class T>
void run(sluice::vector_base<T>& vector, sluice::vector_base<T>& other, unsigned seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Pair<T> pair{vector, other, {}, {}, std::mt19937(seed)};
  for (int i = 0; i < 300; ++i) {
    pair.step();
    if (pair.model.size() > 60) {
      vector.clear();
      pair.model.clear();
    }
    SCOPED_TRACE("step " + std::to_string(i));
    ASSERT_NO_FATAL_FAILURE(expect_equal(vector, pair.model));
    ASSERT_NO_FATAL_FAILURE(expect_equal(other, pair.other_model));
  }
}

template <class T, std::size_t N>
void run_all() {
  const library_test::Tracking tracking;
  for (unsigned seed = 0; seed < 40; ++seed) {
    CountingResource one, two;
    sluice::inline_vector<T, N> vector(&one);
    if (seed % 3 == 0) {
      sluice::inline_vector<T, 3> other(&one);
      run<T>(vector, other, seed);
    } else if (seed % 3 == 1) {
      sluice::inline_vector<T, 8> other(&two);
      run<T>(vector, other, seed);
    } else {
      sluice::inline_vector<T, N> other(&one);
      run<T>(vector, other, seed);
    }
    sluice::inline_vector<T, N> moved(std::move(vector));
    EXPECT_TRUE(vector.empty());
    vector.push_back(element<T>(1));
  }
}

template <class T>
class InlineVectorModel : public testing::Test {};
using Elements =
    testing::Types<int, std::string, library_test::Tracked, library_test::ThrowingMove, std::unique_ptr<int>,
                   library_test::OverAligned, library_test::ThreeBytes, library_test::NoDefault>;
TYPED_TEST_SUITE(InlineVectorModel, Elements);

TYPED_TEST(InlineVectorModel, BehavesAsAVectorWithNoRoomInside) {
  run_all<TypeParam, 0>();
}
TYPED_TEST(InlineVectorModel, BehavesAsAVectorWithRoomForOne) {
  run_all<TypeParam, 1>();
}
TYPED_TEST(InlineVectorModel, BehavesAsAVectorWithRoomForFour) {
  run_all<TypeParam, 4>();
}
TYPED_TEST(InlineVectorModel, BehavesAsAVectorWithRoomForSixteen) {
  run_all<TypeParam, 16>();
}

}  // namespace
