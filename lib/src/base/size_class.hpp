// Size classes: which block size serves a request. Open it to see or change the sizes that slabs are cut into.
//
// Up to 256 bytes classes are 16 bytes apart; then come nine per doubling, up to 64 KiB: eight whose step is an eighth
// of the power of two below, and one in the first of these steps, where programs ask for a power of two and a header.
// Rounding takes a ninth of a block at most, in the first step. Every size is a multiple of 16, and each power of two
// from 16 up is a class, which serves alignments. Class 0 means "no block": what is free, the heap's own, or not ours.
// Decision: lib/docs/decisions/058-classes-for-a-power-of-two-and-a-header.md.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace sluice {

inline constexpr size_t min_alignment = 16;          // bytes; of every block
inline constexpr size_t max_small_size = 64 * 1024;  // bytes; larger requests are large spans
inline constexpr size_t max_direct_size = 1024;      // bytes; up to here the class comes from a table
inline constexpr size_t linear_class_limit = 256;    // bytes; up to here classes are 16 bytes apart
inline constexpr unsigned linear_class_count = linear_class_limit / min_alignment;
inline constexpr unsigned steps_per_doubling = 8;
inline constexpr unsigned classes_per_doubling = steps_per_doubling + 1;
inline constexpr unsigned first_doubling = std::bit_width(linear_class_limit) - 1;  // begins at 2 to this power
inline constexpr unsigned size_class_count =
    1 + linear_class_count + classes_per_doubling * (std::bit_width(max_small_size / linear_class_limit) - 1);

static_assert(size_class_count == 89);

// Of each doubling, by the power of two below it, the class for that and a header; in bytes.
inline constexpr std::array<uint32_t, 16> header_class_sizes = {0,   0,   0,    0,    0,    0,    0,     0,
                                                                272, 544, 1040, 2112, 4368, 8256, 16640, 33280};

// Requires: size <= max_small_size. Returns: the smallest class whose blocks hold `size` bytes (size 0 counts as 1).
constexpr unsigned size_class_of(size_t size) noexcept {
  if (size <= linear_class_limit)
    return size == 0 ? 1 : static_cast<unsigned>((size + min_alignment - 1) / min_alignment);
  const unsigned power = 63 ^ static_cast<unsigned>(__builtin_clzll(size - 1));  // 2^power < size <= 2^(power+1)
  const unsigned eighth = static_cast<unsigned>((size - 1) >> (power - 3));      // 8…15: which one of the doubling
  return linear_class_count + (power - first_doubling) * classes_per_doubling + (eighth - steps_per_doubling) + 1 +
         (size > header_class_sizes[power]);
}

namespace detail {
constexpr std::array<uint32_t, size_class_count> make_class_sizes() noexcept {
  std::array<uint32_t, size_class_count> sizes{};
  for (size_t size = min_alignment; size <= max_small_size; size += min_alignment)
    sizes[size_class_of(size)] = static_cast<uint32_t>(size);
  return sizes;
}
}  // namespace detail

// Block size of each class, in bytes; 0 for class 0.
inline constexpr std::array<uint32_t, size_class_count> class_sizes = detail::make_class_sizes();

}  // namespace sluice
