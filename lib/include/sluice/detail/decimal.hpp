// Writes integers in decimal, two digits at a time. Open it when numbers in text cost too much time; std::to_chars
// gives the same text, but looks at its room and its base first.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace sluice::detail {

inline constexpr std::size_t most_decimal_characters = 20;  // of 64 bits: twenty digits, or a minus and nineteen

inline constexpr auto digit_pairs = [] {
  std::array<char, 200> pairs{};
  for (unsigned i = 0; i < 100; ++i) {
    pairs[2 * i] = static_cast<char>('0' + i / 10);
    pairs[2 * i + 1] = static_cast<char>('0' + i % 10);
  }
  return pairs;
}();

inline constexpr auto powers_of_ten = [] {
  std::array<std::uint64_t, 20> powers{};
  std::uint64_t power = 1;
  for (std::uint64_t& entry : powers) {
    entry = power;
    power *= 10;
  }
  return powers;
}();

// Returns: how many digits the number has; 1 for 0.
constexpr unsigned count_digits(std::uint64_t number) noexcept {
  number |= 1;  // powers of ten but the first are even, so that this changes nothing but 0
  // 1233 / 4096 is log10(2), near enough for 64 bits: the estimate is right or one too few.
  const unsigned estimate = static_cast<unsigned>(std::bit_width(number)) * 1233 >> 12;
  return estimate + (number >= powers_of_ten[estimate] ? 1 : 0);
}

// Effects: writes the number. Returns: where it ends. Requires: room for most_decimal_characters, at most 64 bits.
template <std::integral T>
char* print_decimal(char* place, T number) noexcept {
  using unsigned_type = std::conditional_t<(sizeof(T) <= 4), std::uint32_t, std::uint64_t>;
  auto rest = static_cast<unsigned_type>(number);  // NOLINT: with its sign, which is taken off below
  if constexpr (std::is_signed_v<T>) {
    *place = '-';  // overwritten unless it belongs there
    place += number < 0 ? 1 : 0;
    rest = number < 0 ? unsigned_type{0} - rest : rest;
  }
  char* const end = place + count_digits(rest);
  char* digit = end;
  while (rest >= 100) {
    digit -= 2;
    std::memcpy(digit, digit_pairs.data() + rest % 100 * 2, 2);
    rest /= 100;
  }
  if (rest >= 10)
    std::memcpy(digit - 2, digit_pairs.data() + rest * 2, 2);
  else
    digit[-1] = static_cast<char>('0' + rest);
  return end;
}

}  // namespace sluice::detail
