// Size classes: which block size serves a request. Open it to see or change the sizes that slabs are cut into.
//
// Up to 256 bytes classes are 16 bytes apart; then come nine per doubling, up to 64 KiB: one for a power of two and a
// header, where many programs ask, seven in steps of an eighth of the power of two below, and the next power. Rounding
// takes an eighth of a block at most. Every size is a multiple of 16, and each power of two from 16 up is a class,
// which serves alignments. Class 0 means "no block": what is free, the heap's own, or not ours.
//
// Blocks of one class lie at multiples of its size, and programs walk over such blocks: the rows of a table, by
// columns. At multiples of 4 KiB or a good part of it they would compete for a few places of the caches. So from 2 KiB
// on the seven in between are a line longer than round, or a line shorter where eight of the longer ones would take a
// unit more; and requests for 2, 8 and 16 KiB take the class for headers. These powers serve alignments alone, and so
// do quarters between powers. For 4 and 32 KiB that would take too much: there a class that is a line shorter serves
// what fits into it, and so it is with quarters whose class is shorter. Decisions:
// lib/docs/decisions/058-classes-for-a-power-of-two-and-a-header.md, and
// 061-blocks-of-a-class-lie-at-uneven-distances.md.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace sluice {

inline constexpr size_t min_alignment = 16;          // bytes; of every block
inline constexpr size_t max_small_size = 64 * 1024;  // bytes; larger requests are large spans
inline constexpr size_t max_direct_size = 1024;      // bytes; up to here the class comes from a thread's table
inline constexpr size_t linear_class_limit = 256;    // bytes; up to here classes are 16 bytes apart
inline constexpr size_t steps_per_doubling = 8;
inline constexpr size_t uneven_from = 2048;  // bytes; from here on classes in between are no round sizes
inline constexpr size_t size_of_line = 64;   // bytes; of the caches

// Of each doubling, by the power of two below it, the class for that and a header; in bytes.
inline constexpr std::array<uint32_t, 16> header_class_sizes = {0,   0,   0,    0,    0,    0,    0,     0,
                                                                272, 544, 1040, 2112, 4368, 8256, 16448, 32832};

namespace detail {
// The class in place of a round one.
constexpr size_t uneven(size_t round) noexcept {
  constexpr size_t unit = 64 * 1024;  // as in layout.hpp, which needs this file
  const auto units_of_eight = [](size_t size) { return (8 * size + unit - 1) / unit; };
  return units_of_eight(round + size_of_line) == units_of_eight(round) ? round + size_of_line : round - size_of_line;
}

// Whether a round size has a class besides the uneven one.
constexpr bool is_quarter(size_t size) noexcept {
  return size > uneven_from && size < max_small_size && !std::has_single_bit(size) &&
         size % (std::bit_floor(size) / 4) == 0;
}
}  // namespace detail

// Whether a size has a class that serves aligned requests alone.
constexpr bool is_for_alignment_alone(size_t size) noexcept {
  if (size == 2048 || size == 8192 || size == 16384) return true;
  return detail::is_quarter(size) && detail::uneven(size) > size;
}

namespace detail {
// Calls add(size) for each class, the smallest first.
template <typename Add>
constexpr void for_each_class(Add add) noexcept {
  for (size_t size = min_alignment; size <= linear_class_limit; size += min_alignment)
    add(size);
  for (size_t power = linear_class_limit; power < max_small_size; power *= 2) {
    add(header_class_sizes[static_cast<size_t>(std::bit_width(power)) - 1]);
    for (size_t step = 1; step < steps_per_doubling; ++step) {
      const size_t round = power + step * power / steps_per_doubling;
      if (power < uneven_from) {
        add(round);
      } else if (!is_quarter(round)) {
        add(uneven(round));
      } else {
        add(std::min(round, uneven(round)));
        add(std::max(round, uneven(round)));
      }
    }
    const size_t next = 2 * power;
    if (next > uneven_from && next < max_small_size && !is_for_alignment_alone(next)) add(next - size_of_line);
    add(next);
  }
}

constexpr unsigned count_classes() noexcept {
  unsigned count = 1;
  for_each_class([&count](size_t) { ++count; });
  return count;
}
}  // namespace detail

inline constexpr unsigned size_class_count = detail::count_classes();
static_assert(size_class_count == 106);

namespace detail {
constexpr std::array<uint32_t, size_class_count> make_class_sizes() noexcept {
  std::array<uint32_t, size_class_count> sizes{};
  unsigned k = 0;
  for_each_class([&](size_t size) { sizes[++k] = static_cast<uint32_t>(size); });
  return sizes;
}
}  // namespace detail

// Block size of each class, in bytes; 0 for class 0.
inline constexpr std::array<uint32_t, size_class_count> class_sizes = detail::make_class_sizes();

namespace detail {
using ClassTable = std::array<uint8_t, max_small_size / min_alignment + 1>;
constexpr ClassTable make_class_table() noexcept {
  ClassTable table{};
  unsigned k = 1;
  for (size_t i = 0; i < table.size(); ++i) {
    while (class_sizes[k] < i * min_alignment || is_for_alignment_alone(class_sizes[k]))
      ++k;
    table[i] = static_cast<uint8_t>(k);
  }
  return table;
}
inline constexpr ClassTable class_table = make_class_table();  // by (size + 15) / 16
}  // namespace detail

// Requires: size <= max_small_size. Returns: the smallest class whose blocks hold `size` bytes (size 0 counts as 1), of
// those that are not for aligned requests alone.
constexpr unsigned size_class_of(size_t size) noexcept {
  return detail::class_table[(size + min_alignment - 1) / min_alignment];
}

// Requires: size_class != 0. Returns: the class that requests for the next power of two have: each of its blocks holds
// one of the class. The class itself where that is its size, and up to 64 bytes.
constexpr unsigned stand_in_of(unsigned size_class) noexcept {
  constexpr size_t not_worth_it = 64;
  const size_t size = class_sizes[size_class];
  const size_t next_power = std::bit_ceil(size);
  return size <= not_worth_it || size == next_power ? size_class : size_class_of(next_power);
}

// The same of all classes, for aligned requests. Requires: size > 0.
constexpr unsigned first_class_of(size_t size) noexcept {
  const unsigned k = size_class_of(size);
  return class_sizes[k - 1] >= size ? k - 1 : k;
}

// The least multiple of an alignment, a power of two, that holds `size` bytes (0 counts as 1).
constexpr size_t multiple_of(size_t alignment, size_t size) noexcept {
  return ((size != 0 ? size : 1) + alignment - 1) & ~(alignment - 1);
}

namespace detail {
// By size / 128: the first class that holds so much and is a multiple of 128 bytes. It is round, and so a multiple of
// each alignment that the size is a multiple of.
using EvenTable = std::array<uint8_t, max_small_size / (2 * size_of_line) + 1>;
constexpr EvenTable make_even_table() noexcept {
  EvenTable table{};
  unsigned k = 1;
  for (size_t i = 1; i < table.size(); ++i) {
    while (class_sizes[k] < i * 2 * size_of_line || class_sizes[k] % (2 * size_of_line) != 0)
      ++k;
    table[i] = static_cast<uint8_t>(k);
  }
  return table;
}
inline constexpr EvenTable even_table = make_even_table();
}  // namespace detail

// Requires: alignment is a power of two. Returns: a class of blocks of `size` bytes or more that are multiples of the
// alignment; 0 where that is for a large block.
constexpr unsigned aligned_class_for(size_t size, size_t alignment) noexcept {
  if (size > max_small_size || alignment > max_small_size) return 0;
  const size_t multiple = multiple_of(alignment, size);
  if (alignment > size_of_line) return detail::even_table[multiple / (2 * size_of_line)];
  const unsigned k = first_class_of(multiple);
  return k + ((class_sizes[k] & (alignment - 1)) != 0);  // that for headers is not aligned, the next one is
}

}  // namespace sluice
