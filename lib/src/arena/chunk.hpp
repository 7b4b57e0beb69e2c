// The chunks of a thread's stack arena: which one the window lies in, which ones wait with survivors in them, which are
// empty. Open it to see how memory is reused and when it goes back.
//
// An arena belongs to a thread cache and outlives its thread with it: the next thread takes over chunks and survivors.
// All functions here require the cache's lock (unless said otherwise) and either its thread or an owner that has ended.
//
// Functions take the descriptor of a chunk's unit; what it says of the chunk is Chunk, in base/layout.hpp.
#pragma once

#include <atomic>
#include <cstddef>

#include "arena/object.hpp"
#include "heap/gate.hpp"
#include "heap/thread_cache.hpp"
#include "pages/region.hpp"
#include "sluice/frame_types.h"

namespace sluice {

namespace arena {

struct ChunkList {
  uint32_t first, last, count;  // unit indices; the chunk retired last is the first
  uint32_t to_probe;            // the next one to look at; none: the last
};

inline constexpr unsigned most_scopes = 64;  // open at one time on a thread

// Sweeps that may find something after a thread freed another's object: it may be between its hint and its store during
// the first.
inline constexpr uint64_t sweeps_after_free = 2;

struct OpenScope {
  const void* storage;
  uintptr_t serial;
  bool routes;
};

}  // namespace arena

// The part of a stack arena that calls of malloc and free do not need each time. Zero-initialised, never freed.
struct Arena {
  Unit* current;  // the chunk of the window; null while there is none
  arena::ChunkList retired, holey, hot;
  size_t wasted_bytes;      // freed in retired and holey chunks, when they were last looked at
  bool backed_off;          // wasted_bytes is above the budget: nothing is placed for now
  unsigned back_off_shift;  // 2 to this power: scopes that are refused before placing is tried again
  unsigned refused_scopes;  // since it backed off
  unsigned windows;         // whole chunks taken since a scope was last opened or left
  bool churning;            // a quarter of these chunks is empty again: the pools do that better, until the next scope

  arena::OpenScope open[arena::most_scopes];
  unsigned depth;
  uintptr_t last_serial;
  sluice_frame_chunk* frames;  // the chunks of frame memory that the thread has taken

  std::atomic<bool>
      freed_elsewhere;   // other threads have freed objects here since the mark was last taken; set by them
  uint32_t probes_left;  // chunks still to be looked at for them
  uint32_t passes;       // scopes opened

  // Written by its thread alone, or under the lock.
#define SLUICE_FIGURE_ARENA(name, source, ...) SLUICE_IF_THREAD(source, std::atomic<uint64_t> name;)
#include "os/statistics.def"
};

namespace arena {

inline void add_one(std::atomic<uint64_t>& count) noexcept {
  count.store(count.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

// The arena of the cache, made if need be; null when there is no memory. Takes the lock itself.
Arena* arena_of(ThreadCache& c) noexcept SLUICE_EXCLUDES(c.lock);

// Effects: makes the gate and the fast paths agree with the open scopes. Needs no lock.
void refresh(ThreadCache& c) noexcept;

// Effects: as refresh, after a scope was opened or left.
void begin_scope(ThreadCache& c) noexcept;

// Holds the lock of this thread's cache and keeps the fast paths shut.
class SLUICE_HOLDS_LOCK WindowLock {
 public:
  explicit WindowLock(ThreadCache& c) noexcept SLUICE_TAKES(c.lock) : c_(c) {
    c.lock.lock();
    cache::shut_window(c);
  }
  ~WindowLock() SLUICE_GIVES_BACK() {
    refresh(c_);
    c_.lock.unlock();
  }
  WindowLock(const WindowLock&) = delete;
  WindowLock& operator=(const WindowLock&) = delete;

 private:
  ThreadCache& c_;
};

// Effects: finds a window for `need` bytes, headers and gaps included. False when there is none; then the arena may
// have backed off. Requires: need <= chunk_capacity.
bool open_window(ThreadCache& c, size_t need) noexcept SLUICE_REQUIRES(c.lock);

// Effects: the window is the whole of the current chunk. Requires: everything in it is free.
void restart_window(ThreadCache& c) noexcept SLUICE_REQUIRES(c.lock);

// Effects: the window has come back to the beginning of its chunk: the next free in the chunk that was current before
// looks whether the window can go back there. Needs no lock.
void expect_pops(ThreadCache& c) noexcept;

// Effects: deals with a chunk whose free_bytes() have come to look_at_bytes(). `freed` is the header of the object just
// freed.
void look_at(ThreadCache& c, Unit& span, char* freed) noexcept SLUICE_REQUIRES(c.lock);

// Effects: when other threads have freed objects of this arena, looks at some of its chunks, and gives back those that
// are empty. Cheap when there is nothing to do. Takes the lock itself.
void give_back_some(ThreadCache& c) noexcept SLUICE_EXCLUDES(c.lock);

// Effects: tries to come back after a back-off; called when a scope is opened.
void resume(ThreadCache& c) noexcept SLUICE_REQUIRES(c.lock);

// Leaves of scopes on threads that never opened one. In scope.cpp.
uint64_t stale_leaves_elsewhere() noexcept;

inline char* start_of(const Unit& span) noexcept {
  return region::address_of(region::index_of(&span));
}

// Compares the arena with the invariants of base/layout.hpp. Requires cache::lock_all, and that nobody is in the middle
// of a change of it. Returns null, or what is wrong. In validate.cpp.
const char* validate(const ThreadCache& c) noexcept;

// Effects: the thread ends; its frame memory goes back. In frame.cpp.
void give_back_frames(Arena& a) noexcept;

// Empty chunks for frames: the class byte becomes that of no blocks, the state Frame, and back. take_empty returns
// unit_index_none when none is kept; in a secure build only frames have any.
size_t take_empty(ThreadCache& c) noexcept;
void put_empty(ThreadCache& c, size_t index) noexcept;

}  // namespace arena
}  // namespace sluice
