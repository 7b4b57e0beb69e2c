// The stack arena of a thread: where malloc and free go while a scope is open, and for objects that were placed there.
// Open it to see how an object is placed and how it ends. lib/src/README.md tells the whole story.
//
// allocate(size), while a scope routes (the gate of the thread's cache is shut, so that malloc comes to allocate_slow):
//   1. larger than 16 KiB, or it does not fit the window? → rest (next window; counting; the heap)
//   2. a header at the cursor; the cursor moves on
// free(block), for a unit of the arena (its bin never has room, so that free comes to free_slow):
//   1. the last object of the window? it is popped, and what was freed under it
//   2. of a chunk of this thread? marked as freed, and counted
//   3. else marked as freed by another thread: one store
//
// The functions here stand where those of heap/heap.hpp stand, take and give the same, and pass on what is not theirs.
#pragma once

#include <cstddef>

#include "arena/object.hpp"
#include "heap/heap.hpp"

namespace sluice::arena {

// For heap::allocate and heap::free.
__attribute__((noinline)) void* allocate_slow(size_t size, ThreadCache* cache) noexcept;
__attribute__((noinline)) void free_slow(void* block, size_t unit, ThreadCache* cache) noexcept;

// As those of heap.hpp.
void* allocate_zeroed(size_t count, size_t size) noexcept;
void* allocate_aligned(size_t alignment, size_t size) noexcept;
void* reallocate(void* block, size_t size) noexcept;
size_t usable_size(const void* block) noexcept;

// Figures of all arenas. Requires cache::lock_all.
struct Figures {
  uint64_t scopes, stale_leaves, abandoned, overflows, back_offs;
  uint64_t chunks_opened, holes_opened;
  uint64_t frame_chunks_opened;
  uint64_t window_bytes;  // not yet given out in current chunks
  uint64_t hot_chunks;    // empty ones
};
Figures figures() noexcept;

}  // namespace sluice::arena
