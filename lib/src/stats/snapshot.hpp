// Snapshot: all figures of the heap at one moment, as plain numbers. Open it to add a figure; the writers (text, JSON,
// malloc_info) and mallinfo read nothing else.
//
// Sizes are in bytes and count whole blocks, so that for each class and for the total
//   allocated_bytes - freed_bytes == live_bytes      and      mallocs - frees == live_blocks      (while counting)
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/size_class.hpp"

namespace sluice::stats {

struct ClassFigures {
  uint32_t block_size;       // bytes
  uint64_t mallocs;          // 0 unless counting
  uint64_t frees;            // 0 unless counting
  uint64_t requested_bytes;  // 0 unless counting
  uint64_t live_blocks;
  uint64_t peak_live_blocks;  // 0 unless counting
  uint64_t cached_blocks;     // free blocks held by thread caches
  uint64_t slabs;
  uint64_t slab_bytes;     // address space of these slabs
  uint64_t carved_blocks;  // blocks ever cut from these slabs: live + cached + free
};

struct LargeFigures {
  uint64_t mallocs;  // 0 unless counting
  uint64_t frees;
  uint64_t requested_bytes;
  uint64_t allocated_bytes;
  uint64_t freed_bytes;
  uint64_t live_spans;
  uint64_t live_bytes;
  uint64_t peak_live_bytes;
};

struct ArenaFigures {
  uint64_t scopes;
  uint64_t objects;  // 0 unless counting, as the other counts of objects and their bytes
  uint64_t requested_bytes;
  uint64_t bytes;
  uint64_t freed_bytes;
  uint64_t live_bytes;
  uint64_t lifo_frees;
  uint64_t out_of_order_frees;
  uint64_t remote_frees;
  uint64_t grown_in_place;
  uint64_t chunks;         // in use, empty ones included
  uint64_t hot_chunks;     // empty ones
  uint64_t pinned_chunks;  // kept by survivors alone
  uint64_t pinned_bytes;   // freed bytes in them
  uint64_t chunks_opened;
  uint64_t chunks_recycled;  // holes between survivors used again
  uint64_t back_offs;
  uint64_t stale_leaves;
  uint64_t abandoned_scopes;
  uint64_t depth_overflows;
  uint64_t frame_chunks;
  uint64_t frame_bytes;  // address space
  uint64_t frame_chunks_opened;
};

struct ThreadFigures {
  uint64_t live;     // threads with a cache now
  uint64_t peak;     // most at one time
  uint64_t started;  // caches handed to threads, ever
  uint64_t caches;   // cache structures made, in use or waiting for the next thread
};

struct OsFigures {
  uint64_t mmap_calls;
  uint64_t munmap_calls;
  uint64_t mremap_calls;
  uint64_t mprotect_calls;
  uint64_t madvise_calls;
  uint64_t failed_calls;
  uint64_t purged_bytes;  // given back to the OS, summed
};

struct ForeignFigures {
  uint64_t frees;           // free of a pointer that is not ours
  uint64_t reallocs;        // realloc of one
  uint64_t usable_sizes;    // malloc_usable_size of one
  uint64_t passed_to_libc;  // of these, how many libc was known to own
  uint64_t late_calls;      // allocations and frees on threads without a cache: past their end, or there was none
};

struct Snapshot {
  bool counting;  // exact counts since the first call
  uint64_t mallocs, frees, requested_bytes;
  uint64_t allocated_bytes, freed_bytes, live_bytes, peak_live_bytes;
  uint64_t active_bytes;    // address space of slabs and large spans in use
  uint64_t resident_bytes;  // of mapped_bytes, pages in memory now (0 when the OS does not tell)
  uint64_t reserved_bytes;  // address space set aside
  uint64_t mapped_bytes;    // of it, readable and writable
  uint64_t metadata_bytes;
  uint64_t cached_bytes;
  uint64_t retained_bytes;
  ClassFigures classes[size_class_count];  // index 0 is unused
  LargeFigures large;
  ArenaFigures arena;
  ThreadFigures threads;
  OsFigures os;
  ForeignFigures foreign;
};

// Effects: fills *out with the heap's figures while every lock of the heap is held.
// Not reentrant from a signal handler that interrupted the heap. Does not allocate.
void take_snapshot(Snapshot* out) noexcept;

// Effects: as take_snapshot, but gives up when a lock of the heap is held. Returns: whether *out was filled.
bool try_take_snapshot(Snapshot* out) noexcept;

}  // namespace sluice::stats
