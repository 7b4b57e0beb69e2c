// How long a slab of a class is, how many blocks it has, where they lie, and how an address becomes a block's number.
// Open it to change how much a slab holds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/layout.hpp"
#include "pages/units.hpp"

namespace sluice::slab {

constexpr size_t units_per_slab(unsigned size_class) noexcept {
  return (class_sizes[size_class] * slab_min_blocks + unit_size - 1) / unit_size;
}
constexpr size_t blocks_per_slab(unsigned size_class) noexcept {
  return units_per_slab(size_class) * unit_size / class_sizes[size_class];
}

// What is left behind the last block of a slab, in bytes.
inline size_t tail_bytes(const Unit* s) noexcept {
  return s->units * unit_size - s->slab.capacity * size_t{class_sizes[s->slab.size_class]};
}

// A block's number in its slab is offset * reciprocal >> 40: exact while offset * size < 2^40.
// What is behind the point is less than one reciprocal for a block's first byte alone.
inline constexpr unsigned reciprocal_shift = 40;
inline constexpr uint64_t reciprocal_fraction = (uint64_t{1} << reciprocal_shift) - 1;
inline constexpr auto reciprocals = [] {
  std::array<uint64_t, size_class_count> r{};
  for (unsigned k = 1; k < size_class_count; ++k)
    r[k] = ((uint64_t{1} << reciprocal_shift) + class_sizes[k] - 1) / class_sizes[k];
  return r;
}();
static_assert(units_per_slab(size_class_count - 1) * unit_size * max_small_size < uint64_t{1} << reciprocal_shift);

// A list of free blocks, linked through their first word and ended by nullptr.
struct BlockList {
  void* first;
  uint32_t count;
};

// The slab that a block lies in. Requires: the unit of `block` has the class byte of a slab.
inline Unit* of(const void* block) noexcept {
  Unit* unit = region::unit_at(unit_index_of(block));
  return unit - unit->slab.back;
}

// Where a block lies in that slab, in bytes from its beginning.
inline size_t offset_of(const void* block) noexcept {
  const size_t at = reinterpret_cast<uintptr_t>(block) - reinterpret_cast<uintptr_t>(region_base);
  return size_t{region::unit_at(at >> unit_shift)->slab.back} << unit_shift | at % unit_size;
}

inline char* start_of(const Unit* s) noexcept {
  return region::address_of(region::index_of(s));
}

// Which block of a slab lies at an offset, by the reciprocal of its class.
struct BlockNumber {
  size_t number;
  bool begins;  // there, not before it
};
inline BlockNumber number_at(size_t offset, uint64_t reciprocal) noexcept {
  const uint64_t quotient = offset * reciprocal;
  return {static_cast<size_t>(quotient >> reciprocal_shift), (quotient & reciprocal_fraction) < reciprocal};
}

inline size_t number_of(const Unit* s, const void* block) noexcept {
  return static_cast<size_t>(static_cast<const char*>(block) - start_of(s)) * reciprocals[s->slab.size_class] >>
         reciprocal_shift;
}
inline char* block_at(const Unit* s, size_t number) noexcept {
  return start_of(s) + number * class_sizes[s->slab.size_class];
}

// Blocks of the slab that are with the program, in caches, or remote.
inline uint32_t used_of(const Unit* s) noexcept {
  return uint32_t{s->slab.carved} - s->slab.free_count;
}

// Words of a bitmap of its blocks.
inline uint32_t words_of(const Unit* s) noexcept {
  return (uint32_t{s->slab.capacity} + 63) / 64;
}

}  // namespace sluice::slab
