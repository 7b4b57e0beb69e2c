// sluice::hash<K>: the hash function of inline_set and inline_map. Open it when a type of yours is to be a key, or when
// another hash table should have a fast hash that mixes well.
//
//   integers, enumerations, pointers   one 64×64 → 128 bit multiplication whose halves are folded together
//   float, double                      the same on their bits; 0.0 and -0.0 are equal, so their hashes are
//   strings: whatever converts to      16 bytes a step; transparent, so that any string finds any other: a
//     a std::basic_string_view         std::string key is found by a std::string_view or a literal, no key is made
//   std::pair, std::tuple              their parts' hashes, combined
//   anything else                      std::hash<K>, mixed by the same multiplication
//
// When to use it: always, for keys that your own program makes. When not: keys chosen by somebody who wishes to slow
// the program down; the function has no secret seed. Values differ between versions and machines: do not store them.
//
// A type of your own takes part by a specialisation of std::hash. All 64 bits of a result are mixed, which a hash
// function says by `using is_avalanching = void;`; tables mix the results of others once more.
//
// Complexity: constant, linear for strings. Thread-safety: pure functions. Errors: what std::hash<K> throws.
//
//   sluice::hash<std::string> hash;
//   hash("tile") == hash(std::string("tile"));
#pragma once

#include "sluice/detail/require_cpp20.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

namespace sluice {
namespace detail {

// Odd, with bits set and clear in no pattern: 2^64 divided by the golden ratio and by the square roots of 2 and 3.
inline constexpr std::uint64_t hash_factor = 0x9e3779b97f4a7c15;
inline constexpr std::uint64_t hash_first = 0xb504f333f9de6485;
inline constexpr std::uint64_t hash_second = 0x93cd3a2c8198e26b;

// Returns: the two halves of the product, each of whose bits depends on many of the factors', xor-ed.
constexpr std::uint64_t fold_product(std::uint64_t a, std::uint64_t b) noexcept {
#if defined(__SIZEOF_INT128__)
  __extension__ using uint128 = unsigned __int128;
  const uint128 product = static_cast<uint128>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
#else
  const std::uint64_t a_low = a & 0xffffffff, a_high = a >> 32, b_low = b & 0xffffffff, b_high = b >> 32;
  const std::uint64_t low = a_low * b_low, middle = a_high * b_low + (low >> 32);
  const std::uint64_t other = a_low * b_high + (middle & 0xffffffff);
  return ((other << 32) | (low & 0xffffffff)) ^ (a_high * b_high + (middle >> 32) + (other >> 32));
#endif
}

constexpr std::uint64_t mix_hash(std::uint64_t value) noexcept {
  return fold_product(value, hash_factor);
}

template <class Word>
std::uint64_t read_word(const unsigned char* from) noexcept {
  Word word;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

[[gnu::noinline]] inline std::uint64_t hash_long(const unsigned char* from, std::size_t length) noexcept {
  using eight = std::uint64_t;
  std::uint64_t state = hash_factor ^ length, beside = hash_first;
  const unsigned char* const last = from + length - 16;
  for (; last - from > 16; from += 32) {  // two chains of multiplications, which overlap
    state = fold_product(read_word<eight>(from) ^ hash_first, read_word<eight>(from + 8) ^ state);
    beside = fold_product(read_word<eight>(from + 16) ^ hash_second, read_word<eight>(from + 24) ^ beside);
  }
  if (last > from) state = fold_product(read_word<eight>(from) ^ hash_first, read_word<eight>(from + 8) ^ state);
  return mix_hash(fold_product(read_word<eight>(last) ^ hash_second ^ beside, read_word<eight>(last + 8) ^ state));
}

inline std::uint64_t hash_bytes(const void* bytes, std::size_t length) noexcept {
  const auto* const from = static_cast<const unsigned char*>(bytes);
  std::uint64_t a = 0, b = 0;
  if (length > 16) return hash_long(from, length);
  if (length >= 8) {  // the two words overlap, and cover all
    a = read_word<std::uint64_t>(from);
    b = read_word<std::uint64_t>(from + length - 8);
  } else if (length >= 4) {
    a = read_word<std::uint32_t>(from);
    b = read_word<std::uint32_t>(from + length - 4);
  } else if (length != 0) {
    a = static_cast<std::uint64_t>(from[0]) << 16 | static_cast<std::uint64_t>(from[length / 2]) << 8 |
        from[length - 1];
  }
  return mix_hash(fold_product(a ^ hash_first, b ^ hash_second ^ (length * hash_factor)));
}

// The view of a string-like key, or void. Pointers are not: as keys they are compared as pointers.
template <class K, class... Characters>
struct first_view {
  using type = void;
};
template <class K, class Character, class... Others>
struct first_view<K, Character, Others...>
    : std::conditional<std::is_convertible_v<const K&, std::basic_string_view<Character>>,
                       std::basic_string_view<Character>, typename first_view<K, Others...>::type> {};
template <class K>
using view_of = typename std::conditional_t<std::is_pointer_v<K> || std::is_null_pointer_v<K>, first_view<K>,
                                            first_view<K, char, wchar_t, char8_t, char16_t, char32_t>>::type;

template <class K>
struct scalar_hash {
  using is_avalanching = void;
  std::size_t operator()(const K& key) const noexcept(noexcept(std::hash<K>()(key))) {
    if constexpr (std::is_enum_v<K>)
      return static_cast<std::size_t>(
          mix_hash(static_cast<std::uint64_t>(static_cast<std::underlying_type_t<K>>(key))));
    else if constexpr (std::is_integral_v<K> && sizeof(K) <= 8)
      return static_cast<std::size_t>(mix_hash(static_cast<std::uint64_t>(key)));
    else if constexpr (std::is_pointer_v<K>)
      return static_cast<std::size_t>(mix_hash(reinterpret_cast<std::uintptr_t>(key)));
    else if constexpr (std::is_same_v<K, double>)
      return static_cast<std::size_t>(mix_hash(key == 0 ? 0 : std::bit_cast<std::uint64_t>(key)));
    else if constexpr (std::is_same_v<K, float>)
      return static_cast<std::size_t>(mix_hash(key == 0 ? 0 : std::bit_cast<std::uint32_t>(key)));
    else
      return static_cast<std::size_t>(mix_hash(std::hash<K>()(key)));
  }
};

template <class View>
struct string_hash {
  using is_transparent = void;
  using is_avalanching = void;
  using view_type = View;
  std::size_t operator()(View text) const noexcept {
    return static_cast<std::size_t>(hash_bytes(text.data(), text.size() * sizeof(*text.data())));
  }
};

template <class View>
struct string_equal {
  using is_transparent = void;
  using view_type = View;
  constexpr bool operator()(View a, View b) const noexcept { return a == b; }
};

template <class K>
using chosen_hash = std::conditional_t<std::is_void_v<view_of<K>>, scalar_hash<K>, string_hash<view_of<K>>>;

}  // namespace detail

// Returns, for a key: its hash. Throws: what std::hash<K> throws. Complexity: constant; for strings their length.
template <class K>
struct hash : detail::chosen_hash<K> {};

template <class First, class Second>
struct hash<std::pair<First, Second>> {
  using is_avalanching = void;
  std::size_t operator()(const std::pair<First, Second>& key) const {
    const std::uint64_t first = hash<std::remove_cv_t<First>>()(key.first);
    return static_cast<std::size_t>(detail::fold_product(
        first ^ detail::hash_first, hash<std::remove_cv_t<Second>>()(key.second) ^ detail::hash_second));
  }
};

template <class... Parts>
struct hash<std::tuple<Parts...>> {
  using is_avalanching = void;
  std::size_t operator()(const std::tuple<Parts...>& key) const {
    std::uint64_t state = detail::hash_first;
    std::apply(
        [&state](const auto&... part) {
          ((state = detail::fold_product(state ^ detail::hash_factor,
                                         hash<std::remove_cvref_t<decltype(part)>>()(part) ^ detail::hash_second)),
           ...);
        },
        key);
    return static_cast<std::size_t>(state);
  }
};

// What keys are compared by: for strings, transparently as views; else std::equal_to<K>.
template <class K>
using equal_to =
    std::conditional_t<std::is_void_v<detail::view_of<K>>, std::equal_to<K>, detail::string_equal<detail::view_of<K>>>;

}  // namespace sluice
