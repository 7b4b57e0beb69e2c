// What the microbenchmarks of inline_vector do with a vector of any kind. Open it to add a case.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "elements.hpp"
#include "micro.hpp"
#include "sluice/inline_vector.hpp"

#if MICRO_BOOST
#include <boost/container/small_vector.hpp>
#endif
#if MICRO_ABSL
#include <absl/container/inlined_vector.h>
#endif
#if MICRO_LLVM
#include <llvm/ADT/SmallVector.h>
#endif

namespace micro {

constexpr std::size_t inside = 8;  // elements that fit inside each of the vectors

template <class T>
const std::vector<T>& elements() {
  static const std::vector<T> made = distinct_values<T>(1000, 1);
  return made;
}

/// Neither the number nor where the elements are is read again for each of them, which would be no work of the
/// vector's.
template <class Vector>
[[gnu::always_inline]] inline void push_all(Vector& vector, const typename Vector::value_type* next,
                                            std::size_t number) {
  for (const auto* const end = next + number; next != end; ++next)
    vector.push_back(*next);
}

/// A vector is made, the first `count` elements are pushed one after another, and it ends.
template <class Vector, std::size_t count>
void push(benchmark::State& state) {
  const auto& from = elements<typename Vector::value_type>();
  std::size_t pushes = count;
  blur(pushes);
  measure(state, count, [next = from.data(), pushes] {
    Vector vector;
    push_all(vector, next, pushes);
    consume(vector.data());
  });
}

/// The same after a reserve().
template <class Vector, std::size_t count>
void push_reserved(benchmark::State& state) {
  const auto& from = elements<typename Vector::value_type>();
  std::size_t pushes = count;
  blur(pushes);
  measure(state, count, [next = from.data(), pushes] {
    Vector vector;
    vector.reserve(pushes);
    push_all(vector, next, pushes);
    consume(vector.data());
  });
}

/// A stack that goes up and down between empty and `inside`.
template <class Vector>
void push_pop(benchmark::State& state) {
  const auto& from = elements<typename Vector::value_type>();
  Vector vector;
  std::size_t pushes = inside;
  blur(pushes);
  measure(state, 2 * inside, [&vector, next = from.data(), pushes] {
    push_all(vector, next, pushes);
    consume(vector.data());
    while (!vector.empty())
      vector.pop_back();
  });
}

/// All elements read, through begin() and end(), of a vector that the compiler knows nothing of.
template <class Vector, std::size_t count>
void iterate(benchmark::State& state) {
  const auto& from = elements<typename Vector::value_type>();
  Vector vector(from.begin(), from.begin() + count);
  Vector* known = &vector;
  measure(state, count, [&] {
    blur(known);
    std::uint64_t sum = 0;
    for (const auto& element : *known)
      sum += weight(element);
    consume(sum);
  });
}

/// Elements read by index, in an order that was drawn.
template <class Vector, std::size_t count>
void subscript(benchmark::State& state) {
  const auto& from = elements<typename Vector::value_type>();
  static const std::vector<std::uint32_t> places = random_numbers(1024, count);
  Vector vector(from.begin(), from.begin() + count);
  Vector* known = &vector;
  measure(state, places.size(), [&] {
    blur(known);
    std::uint64_t sum = 0;
    for (const std::uint32_t place : places)
      sum += weight((*known)[place]);
    consume(sum);
  });
}

/// Nanoseconds for a vector: it is moved into a new one, and from there assigned back.
template <class Vector, std::size_t count>
void move(benchmark::State& state) {
  const auto& from = elements<typename Vector::value_type>();
  Vector vector(from.begin(), from.begin() + count);
  measure(state, 2, [&] {
    Vector other(std::move(vector));
    consume(other.data());
    vector = std::move(other);
    consume(vector.data());
  });
}

/// Nanoseconds for a vector: a copy is made and ends.
template <class Vector, std::size_t count>
void copy(benchmark::State& state) {
  const auto& from = elements<typename Vector::value_type>();
  Vector vector(from.begin(), from.begin() + count);
  Vector* known = &vector;
  measure(state, 1, [&] {
    blur(known);
    const Vector other(*known);
    consume(other.data());
  });
}

/// Nanoseconds for both: `added` elements are inserted in the middle of `count`, and as many erased there.
template <class Vector, std::size_t count, std::size_t added>
void splice(benchmark::State& state) {
  const auto& from = elements<typename Vector::value_type>();
  Vector vector(from.begin(), from.begin() + count);
  measure(state, 1, [&] {
    const auto middle = static_cast<std::ptrdiff_t>(count / 2);
    if constexpr (added == 1)
      vector.insert(vector.begin() + middle, from[count]);
    else
      vector.insert(vector.begin() + middle, from.begin() + count, from.begin() + count + added);
    consume(vector.data());
    if constexpr (added == 1)
      vector.erase(vector.begin() + middle);
    else
      vector.erase(vector.begin() + middle, vector.begin() + middle + added);
    consume(vector.data());
  });
}

template <class Vector>
void add_cases(const std::string& who) {
  const auto add_case = [&](const std::string& what, void (*body)(benchmark::State&)) {
    add("inline_vector", what + "_" + name_of<typename Vector::value_type>, who, body);
  };
  add_case("push_6", push<Vector, 6>);
  add_case("push_1000", push<Vector, 1000>);
  add_case("push_reserved_100", push_reserved<Vector, 100>);
  add_case("push_pop", push_pop<Vector>);
  add_case("iterate_8", iterate<Vector, 8>);
  add_case("iterate_1000", iterate<Vector, 1000>);
  add_case("subscript_8", subscript<Vector, 8>);
  add_case("move_inline_6", move<Vector, 6>);
  add_case("move_heap_100", move<Vector, 100>);
  add_case("copy_6", copy<Vector, 6>);
  add_case("copy_100", copy<Vector, 100>);
  add_case("splice_1_into_6", splice<Vector, 6, 1>);
  add_case("splice_1_into_100", splice<Vector, 100, 1>);
  add_case("splice_3_into_100", splice<Vector, 100, 3>);
}

template <class T>
void add_vectors() {
  add_cases<sluice::inline_vector<T, inside>>("sluice::inline_vector");
#if MICRO_LLVM
  add_cases<llvm::SmallVector<T, inside>>("llvm::SmallVector");
#endif
#if MICRO_BOOST
  add_cases<boost::container::small_vector<T, inside>>("boost::small_vector");
#endif
#if MICRO_ABSL
  add_cases<absl::InlinedVector<T, inside>>("absl::InlinedVector");
#endif
  add_cases<std::vector<T>>("std::vector");
}

}  // namespace micro
