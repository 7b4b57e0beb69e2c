// The stack arena of a thread: where malloc and free go while a scope is open, and for objects that were placed there.
// Open it to see how an object is placed and how it ends. lib/docs/internals/arena.md tells the whole story.
//
// allocate(size), while a scope routes (the gate of the thread's cache is shut, so that malloc comes to allocate_slow):
//   1. larger than 16 KiB, or it does not fit the window? → rest (next window; counting; the heap)
//   2. a header at the cursor; the cursor moves on
// free(block), of a block in a chunk (the bin of the arena never has room, so that free comes to free_slow):
//   1. the last object before the cursor? the cursor moves back, and over what was freed before it
//   2. another one of a chunk of this thread? marked as freed, and counted
//   3. else marked as freed by another thread: one store
//
// The functions here stand where those of heap/heap.hpp stand, take and give the same, and pass on what is not theirs.
#pragma once

#include <cstddef>

#include "arena/object.hpp"
#include "heap/heap.hpp"

namespace sluice::arena {

inline constexpr unsigned arena_bin = class_byte_arena / bin_stride;

// The fast path: an object at the cursor; null where the slow path begins.
template <auto limit = &StackWindow::open_limit>
inline __attribute__((always_inline)) void* place_at_cursor(size_t size, ThreadCache* cache) noexcept {
  if (size > most_bytes) [[unlikely]]
    return nullptr;
  StackWindow& window = cache->window;
  char* const header = window.cursor.load(std::memory_order_relaxed);
  const size_t total = total_for(size);
  // As numbers: there may be no window.
  const uintptr_t end = reinterpret_cast<uintptr_t>(header) + total;
  if (end > reinterpret_cast<uintptr_t>(static_cast<char*>(window.*limit))) [[unlikely]]
    return nullptr;
  write_header(header, total, window.last.load(std::memory_order_relaxed), Live);
  window.last.store(total, std::memory_order_relaxed);
  window.cursor.store(reinterpret_cast<char*>(end), std::memory_order_relaxed);
  return header + header_size;
}

__attribute__((noinline)) void* allocate_routed(size_t size, ThreadCache* cache) noexcept;
__attribute__((noinline)) void* allocate_rest(size_t size, ThreadCache* cache) noexcept;  // after place_at_cursor

// As heap::allocate_slow_with, while a scope routes.
template <typename Policy>
inline __attribute__((always_inline)) void* allocate_routed_with(size_t size, ThreadCache* cache, Policy policy) {
  if (void* const block = place_at_cursor(size, cache)) [[likely]]
    return block;
  return policy.template finish<allocate_rest>(size, cache);
}

// For heap::allocate and heap::free. Inline, so that without a scope the heap's own is one compare away.
inline __attribute__((always_inline)) void* allocate_slow(size_t size, ThreadCache* cache) noexcept {
  if (cache->mode.has(CacheMode::Routing)) return allocate_routed(size, cache);
  return heap::allocate_slow(size, cache);
}
__attribute__((noinline)) void free_slow(void* block, size_t unit, ThreadCache* cache) noexcept;

// As those of heap.hpp.
void* allocate_zeroed(size_t count, size_t size) noexcept;
void* allocate_aligned(size_t alignment, size_t size) noexcept;
void* reallocate(void* block, size_t size) noexcept;
size_t usable_size(const void* block) noexcept;

// Sums over all arenas. Requires cache::lock_all, as figures_of.
struct Figures {
#define SLUICE_FIGURE_ARENA(name, source, ...) SLUICE_IF_THREAD(source, uint64_t name;)
#include "os/statistics.def"
};
Figures figures() noexcept;

// One chunk; `live_bytes` includes headers, and objects that other threads freed until somebody looks. While its thread
// goes on, they are those of a moment ago.
struct ChunkFigures {
  bool hot, retired;
  size_t free_bytes, live_bytes;
};
ChunkFigures figures_of(const Unit& chunk) noexcept;

}  // namespace sluice::arena
