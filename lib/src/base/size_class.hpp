// Size classes: which block size serves a request. Open it to see or change the sizes that slabs are cut into.
//
// Classes 1…16 are 16, 32, … 256 bytes; then come eight classes per doubling, up to 64 KiB (classes 17…80). A step
// above 256 bytes is an eighth of the power of two below, so that rounding takes a ninth of a block at most, just above
// a power of two. Every size is a multiple of 16, and each power of two from 16 up is a class, which serves alignments.
// Class 0 means "no block": what is free, the heap's own, or not ours.
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
inline constexpr unsigned classes_per_doubling = 8;
inline constexpr unsigned size_class_count =
    1 + linear_class_count + classes_per_doubling * (std::bit_width(max_small_size / linear_class_limit) - 1);

static_assert(size_class_count == 81);

// Requires: size <= max_small_size. Returns: the smallest class whose blocks hold `size` bytes (size 0 counts as 1).
constexpr unsigned size_class_of(size_t size) noexcept {
  if (size <= linear_class_limit)
    return size == 0 ? 1 : static_cast<unsigned>((size + min_alignment - 1) / min_alignment);
  const unsigned width = static_cast<unsigned>(std::bit_width(size - 1));    // 2^(width-1) < size <= 2^width
  const unsigned eighth = static_cast<unsigned>((size - 1) >> (width - 4));  // 8…15: which eighth of the doubling
  return linear_class_count + (width - 9) * classes_per_doubling + (eighth - classes_per_doubling) + 1;
}

namespace detail {
constexpr std::array<uint32_t, size_class_count> make_class_sizes() noexcept {
  std::array<uint32_t, size_class_count> sizes{};
  for (unsigned c = 1; c < size_class_count; ++c) {
    if (c <= linear_class_count) {
      sizes[c] = c * min_alignment;
    } else {
      const unsigned doubling = (c - linear_class_count - 1) / classes_per_doubling;
      const unsigned eighth = (c - linear_class_count - 1) % classes_per_doubling + 1;
      const uint32_t base = static_cast<uint32_t>(linear_class_limit) << doubling;
      sizes[c] = base + base / classes_per_doubling * eighth;
    }
  }
  return sizes;
}
}  // namespace detail

// Block size of each class, in bytes; 0 for class 0.
inline constexpr std::array<uint32_t, size_class_count> class_sizes = detail::make_class_sizes();

}  // namespace sluice
