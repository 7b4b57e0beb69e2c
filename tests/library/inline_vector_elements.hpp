// Element types for the tests of inline_vector, each made from a number and telling it again. Open it to test with a
// further kind of element.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "tracked.hpp"

namespace library_test {

struct alignas(64) OverAligned {
  int value;
};
struct ThreeBytes {
  unsigned char bytes[3];
};
struct NoDefault {
  explicit NoDefault(int number) : value(number) {}
  int value;
};

template <class T>
T element(int number) {
  if constexpr (std::is_same_v<T, std::string>)
    return (number % 3 == 0 ? "a string too long for its own room inside " : "") + std::to_string(number);
  else if constexpr (std::is_same_v<T, std::unique_ptr<int>>)
    return std::make_unique<int>(number);
  else if constexpr (std::is_same_v<T, OverAligned>)
    return OverAligned{number};
  else if constexpr (std::is_same_v<T, ThreeBytes>)
    return ThreeBytes{{static_cast<unsigned char>(number), static_cast<unsigned char>(number >> 8),
                       static_cast<unsigned char>(number >> 16)}};
  else
    return T(number);
}

inline int number_of(int value) {
  return value;
}
inline int number_of(const std::string& text) {
  const std::size_t space = text.rfind(' ');
  return text.empty() ? 0 : std::stoi(space == std::string::npos ? text : text.substr(space + 1));
}
inline int number_of(const std::unique_ptr<int>& pointer) {
  return pointer == nullptr ? 0 : *pointer;
}
inline int number_of(const OverAligned& aligned) {
  if (reinterpret_cast<std::uintptr_t>(&aligned) % alignof(OverAligned) != 0) throw std::logic_error("misaligned");
  return aligned.value;
}
inline int number_of(const ThreeBytes& three) {
  return three.bytes[0] + three.bytes[1] * 256 + three.bytes[2] * 65536;
}
inline int number_of(const NoDefault& element) {
  return element.value;
}
template <bool NothrowMove>
int number_of(const BasicTracked<NothrowMove>& tracked) {
  return tracked.value();
}

}  // namespace library_test
