// The region's units by index and by address, and the tables that say what each of them is. Open it to see what malloc
// and free read.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/layout.hpp"

namespace sluice {

// What malloc and free read. Each is a variable of its own: an instruction reaches it without loading an address first.
// All are set before the first block exists; region_range_units grows with the heap (reservation.cpp), the others stay.
extern constinit char* region_base __attribute__((visibility("hidden")));  // also where the class bytes begin
extern constinit size_t region_range_units
    __attribute__((visibility("hidden")));  // units from the base whose class byte can be read
extern constinit Unit* region_units
    __attribute__((visibility("hidden")));  // descriptor of unit 0, which is not committed

// Whether several threads use the heap, have used it or are about to. Set once, by the first before it makes the
// second, where that is seen, or else by the second.
extern constinit std::atomic<bool> has_several_threads __attribute__((visibility("hidden")));

// The bitmaps of unit 0: which blocks of a slab are free, and which ones other threads have freed.
extern constinit uint64_t* region_free_bitmaps __attribute__((visibility("hidden")));
extern constinit AtomicField<uint64_t>* region_remote_bitmaps __attribute__((visibility("hidden")));

// Block states of unit 0, in secure builds.
extern constinit std::atomic<uint16_t>* region_block_states __attribute__((visibility("hidden")));

inline uint8_t* class_bytes() noexcept {
  return reinterpret_cast<uint8_t*>(region_base);
}

// The unit in which an address lies; a number >= region_range_units when it is certain that the address is not ours.
// Below that the class byte decides: others may use a gap.
inline size_t unit_index_of(const void* address) noexcept {
  return (reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(region_base)) >> unit_shift;
}

namespace region {

inline Unit* unit_at(size_t index) noexcept {
  return region_units + index;
}
inline size_t index_of(const Unit* unit) noexcept {
  return static_cast<size_t>(unit - region_units);
}

// The bitmaps of a slab that begins at the unit, bitmap_words words each.
inline uint64_t* free_bitmap_at(size_t index) noexcept {
  return region_free_bitmaps + index * bitmap_words;
}
inline AtomicField<uint64_t>* remote_bitmap_at(size_t index) noexcept {
  return region_remote_bitmaps + index * bitmap_words;
}

inline char* address_of(size_t index) noexcept {
  return region_base + (index << unit_shift);
}

// The units that can hold blocks: those from first_index() up to, not including, limit() are committed, but for gaps.
// The limit only grows; it is exact under the lock.
size_t first_index() noexcept;
// From here on the units are spans side by side, each as long as its first unit says: first_index(), but for the child
// of a fork that has given its free spans up.
size_t first_span() noexcept;
size_t limit() noexcept;

// The unit behind one, for those who look at every unit: wide gaps that others use are left out.
size_t next_unit(size_t index) noexcept;

// The states of the blocks of a slab that begins at the unit, by their numbers.
inline std::atomic<uint16_t>* block_states_at(size_t index) noexcept {
  return region_block_states + index * states_per_unit;
}

}  // namespace region
}  // namespace sluice
