// Snapshot: all figures of the heap at one moment, as plain numbers. Open it for how they are put together; the
// writers (text, JSON, malloc_info) and mallinfo read nothing else. A figure is added in os/statistics.def.
//
// Sizes are in bytes and count whole blocks, so that for each class and for the total
//   allocated_bytes - freed_bytes == live_bytes      and      mallocs - frees == live_blocks      (while counting)
#pragma once

#include <cstdint>

#include "base/size_class.hpp"

namespace sluice::stats {

// The members of these structs are the figures of statistics.def, which says what each is.
struct ResidentFigures {
#define SLUICE_FIGURE_RESIDENT(name, ...) uint64_t name;
#include "os/statistics.def"
};

struct ClassFigures {
  uint32_t block_size;  // bytes
#define SLUICE_FIGURE_CLASS(name, ...) uint64_t name;
#include "os/statistics.def"
};

struct LargeFigures {
#define SLUICE_FIGURE_LARGE(name, ...) uint64_t name;
#include "os/statistics.def"
};

struct ArenaFigures {
#define SLUICE_FIGURE_ARENA(name, ...) uint64_t name;
#include "os/statistics.def"
};

struct ThreadFigures {
#define SLUICE_FIGURE_THREADS(name, ...) uint64_t name;
#include "os/statistics.def"
};

struct OsFigures {
#define SLUICE_FIGURE_OS(name, ...) uint64_t name;
#include "os/statistics.def"
};

struct ForeignFigures {
#define SLUICE_FIGURE_FOREIGN(name, ...) uint64_t name;
#include "os/statistics.def"
};

struct Snapshot {
  bool counting;  // exact counts since the first call
#define SLUICE_FIGURE_TOTAL(name, ...) uint64_t name;
#include "os/statistics.def"
  ResidentFigures resident;                // all 0 where there was no memory to find them out
  ClassFigures classes[size_class_count];  // index 0 is unused
  LargeFigures large;
  uint64_t guarded_blocks, guarded_bytes;  // live ones, which `large` counts too; for mallinfo alone
  ArenaFigures arena;
  ThreadFigures threads;
  OsFigures os;
  ForeignFigures foreign;
};

// Effects: fills *out with the heap's figures while every lock of the heap is held.
// Not reentrant from a signal handler that interrupted the heap. Does not allocate.
void take_snapshot(Snapshot* out) noexcept;

// Effects: as take_snapshot, but leaves out what is resident: that asks the system about every page.
void take_figures(Snapshot* out) noexcept;

// Effects: as take_snapshot, but gives up when a lock of the heap is held. Returns: whether *out was filled.
bool try_take_snapshot(Snapshot* out) noexcept;

}  // namespace sluice::stats
