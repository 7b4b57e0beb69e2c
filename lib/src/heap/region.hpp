// The region: address space in units of 64 KiB. It hands out spans of units, takes them back, joins neighbours, and
// returns pages to the system. Open it when memory is not given back, or when address space runs out.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/layout.hpp"

namespace sluice {

// What malloc and free read. Set once before the first block exists. Each is a variable of its own: an instruction
// reaches it without loading an address first.
extern constinit char* region_base __attribute__((visibility("hidden")));  // also where the class bytes begin
extern constinit size_t region_window_units
    __attribute__((visibility("hidden")));  // units from the base that have a class byte
extern constinit Unit* region_units
    __attribute__((visibility("hidden")));  // descriptor of unit 0, which is not committed

// Of unit 0, in secure builds.
extern constinit std::atomic<uint16_t>* region_block_states __attribute__((visibility("hidden")));

inline uint8_t* class_bytes() noexcept {
  return reinterpret_cast<uint8_t*>(region_base);
}

// The unit in which an address lies; a number >= region_window_units when the address is not ours.
inline size_t unit_index_of(const void* address) noexcept {
  return (reinterpret_cast<uintptr_t>(address) - reinterpret_cast<uintptr_t>(region_base)) >> unit_shift;
}

namespace region {

// Figures of the region, under its lock.
struct Figures {
  size_t reserved_bytes;   // units, without metadata
  size_t committed_bytes;  // units, without metadata
  size_t metadata_bytes;   // class bytes and descriptors that have been committed
  size_t free_clean_bytes;
  size_t free_dirty_bytes;
};

// Reserves the window. False when even the smallest could not be had. Called once.
bool initialize() noexcept;

inline Unit* unit_at(size_t index) noexcept {
  return region_units + index;
}
inline size_t index_of(const Unit* unit) noexcept {
  return static_cast<size_t>(unit - region_units);
}

// The bitmaps of a slab that begins at the unit, bitmap_words words each.
uint64_t* free_bitmap_at(size_t index) noexcept;
std::atomic<uint64_t>* remote_bitmap_at(size_t index) noexcept;
inline char* address_of(size_t index) noexcept {
  return region_base + (index << unit_shift);
}

// The units that can hold blocks: those from first_index() up to, not including, limit() are committed. The limit only
// grows; it is exact under the lock.
size_t first_index() noexcept;
size_t limit() noexcept;

// Which pages allocate() looks for first: those in memory, or those that read as zero and cost nothing until touched.
enum class Prefer : uint8_t { Dirty, Clean };

// Effects: takes a span of `units` and gives its first unit's index; unit_index_none when there is
// no more memory. *clean tells whether it reads as zero. The ends of the span get the state `use`; its class bytes are
// 0. `align_units` is a power of two: the first unit's address is a multiple of align_units * unit_size.
size_t allocate(size_t units, size_t align_units, UnitState use, bool* clean, Prefer prefer = Prefer::Dirty) noexcept;

// Effects: gives a span back. `clean`: it reads as zero. May return pages to the system.
// Requires: the span's class bytes are 0 already.
void free(size_t index, size_t units, bool clean) noexcept;

// Effects: makes a large span `units` long, in place. False when the units that it needs are not free.
bool resize(size_t index, size_t units) noexcept;

// Effects: returns the pages of free spans that are older than the purge delay, at most once in a while. Cheap when
// there is nothing to do.
void purge_aged() noexcept;

// Effects: returns all free pages but the `keep` bytes freed last. Returns how many bytes went.
size_t purge_all(size_t keep) noexcept;

// In secure builds. Effects: nobody can touch the span at `index` from the first page behind `bytes` on; those in front
// of it can be touched, all of them. Where the system allows no more mappings the span is as any other.
void guard(size_t index, size_t bytes) noexcept;
// Effects: a span that is in use serves for something else from now on.
void change_use(size_t index, UnitState use) noexcept;
// Effects: nobody can touch the span.
void shut(size_t index) noexcept;
// Effects: the whole span can be touched. False when the system refuses.
bool open(size_t index) noexcept;
// The states of the blocks of a slab that begins at the unit, by their numbers.
inline std::atomic<uint16_t>* block_states_at(size_t index) noexcept {
  return region_block_states + index * states_per_unit;
}

// Effects: memory for the heap's own structures, zeroed, in a cache line of its own, never given back; nullptr when
// there is none. Requires: bytes <= unit_size.
void* allocate_metadata(size_t bytes) noexcept;

// In the child of a fork: takes back the spans that other threads were purging. Requires the lock.
void adopt_busy_spans() noexcept;

Figures figures() noexcept;  // requires the lock
Mutex& mutex() noexcept;

// Walks the free lists and compares them with the descriptors. Requires the lock. Returns nullptr, or what is wrong.
const char* validate() noexcept;

}  // namespace region
}  // namespace sluice
