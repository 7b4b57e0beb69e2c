// What the containers' microbenchmarks put into containers: numbers, objects of 32 bytes, and strings. Open it to add a
// kind of element or of key.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "micro.hpp"

namespace micro {

struct Pod32 {
  std::uint64_t words[4];
  bool operator==(const Pod32&) const = default;
};

template <class T>
inline const char* const name_of = nullptr;
template <>
inline const char* const name_of<int> = "int";
template <>
inline const char* const name_of<std::uint64_t> = "uint64";
template <>
inline const char* const name_of<Pod32> = "pod32";
template <>
inline const char* const name_of<std::string> = "string";

/// A value made from a number; of strings half are of 8 letters, and half of 24, which take memory of their own.
template <class T>
T value_of(std::uint64_t number) {
  if constexpr (std::is_same_v<T, Pod32>) {
    return {{number, number + 1, number + 2, number + 3}};
  } else if constexpr (std::is_same_v<T, std::string>) {
    static constexpr char digits[] = "0123456789abcdef";
    std::string text;
    for (int i = 0; i < 8; ++i)
      text += digits[number >> 4 * i & 15];
    if (number % 2 != 0) text += "-a longer name-";
    return text;
  } else {
    return static_cast<T>(number);
  }
}

/// What a loop over elements adds up.
inline std::uint64_t weight(const Pod32& pod) {
  return pod.words[0];
}
inline std::uint64_t weight(const std::string& text) {
  return text.size();
}
inline std::uint64_t weight(std::uint64_t number) {
  return number;
}

/// Distinct values in random order, the same for each `seed`; different seeds have no value in common.
template <class T>
std::vector<T> distinct_values(std::size_t count, std::uint64_t seed) {
  std::vector<T> values;
  values.reserve(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    // An odd factor and shifts map 32 bits to 32 bits one to one; the seed stands above, and below for the strings.
    std::uint32_t mixed = static_cast<std::uint32_t>(i * 2 + seed % 2);
    mixed ^= mixed >> 16;
    mixed *= 0x7feb352d;
    mixed ^= mixed >> 15;
    mixed *= 0x846ca68b;
    mixed ^= mixed >> 16;
    values.push_back(value_of<T>(mixed));
  }
  return values;
}

}  // namespace micro
