// Slabs: spans of units cut into blocks of one size class. Open it to see how blocks are carved, how they come back, and
// how a thread frees into a slab that another thread owns. Life-cycle and invariants: base/layout.hpp.
//
// "Owner's lock" is the lock of the thread cache in Unit::owner.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/layout.hpp"
#include "heap/region.hpp"

namespace sluice::slab {

// A list of free blocks, linked through their first word; `last` links to nothing in particular.
struct BlockList {
  void* first;
  void* last;
  uint32_t count;
};

inline void*& next_of(void* block) noexcept { return *static_cast<void**>(block); }

// The slab that a block lies in. Requires: the unit of `block` has the class byte of a slab.
inline Unit* of(const void* block) noexcept {
  Unit* unit = region::unit_at(unit_index_of(block));
  return unit - unit->back;
}

inline char* start_of(const Unit* s) noexcept { return region::address_of(region::index_of(s)); }

constexpr size_t units_per_slab(unsigned size_class) noexcept {
  return (class_sizes[size_class] * slab_min_blocks + unit_size - 1) / unit_size;
}
constexpr size_t blocks_per_slab(unsigned size_class) noexcept {
  return units_per_slab(size_class) * unit_size / class_sizes[size_class];
}

// Effects: makes a slab of the class, owned by `owner` and in its partial list. Returns nullptr when there is no memory.
// Requires the owner's lock.
Unit* create(ThreadCache& owner, unsigned size_class) noexcept;

// Effects: gives the slab back to the region. Requires: used == 0, the owner's lock.
void destroy(Unit* s) noexcept;

// Effects: takes every free block of the slab, or carves a page's worth of new ones; it leaves the partial list when that
// was the last. Returns a list of one block or more, ended by nullptr. Requires: s is partial, the owner's lock.
BlockList take_blocks(Unit* s) noexcept;

// Effects: as take_blocks, but one block.
void* take_one(Unit* s) noexcept;

// Effects: puts blocks of s back. A slab that is empty now and not the last of its class with blocks to give is
// destroyed. Requires: all blocks lie in s; the owner's lock.
void put_blocks(Unit* s, BlockList blocks) noexcept;

// Effects: frees blocks into a slab from a thread that does not own it: one compare-and-swap, and when it is the first
// since the owner looked, one more that queues the slab on its owner. Lock-free.
void put_remote(Unit* s, BlockList blocks) noexcept;

// Effects: takes in the remote frees of all slabs queued on `owner`. Requires its lock.
void collect_pending(ThreadCache& owner) noexcept;

// Effects: destroys every slab of the owner that holds nothing. Requires its lock.
void destroy_empty(ThreadCache& owner) noexcept;

// Effects: moves a partial slab from an orphan to another cache's partial list. Requires both locks.
void change_owner(Unit* s, ThreadCache& to) noexcept;

}  // namespace sluice::slab
