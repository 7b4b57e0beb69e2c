// Thread caches: free blocks of each class that a thread keeps for itself, and the slabs that it owns. Open it to see
// how a cache is filled and flushed, how a thread starts and ends, and who may touch what.
//
// A cache is used by one thread. Its slabs are touched only under its lock, which the thread takes once for each refill
// or flush. Others try that lock, to work for a thread that has ended (an orphan) or sleeps. Only who holds the
// registry's lock waits for it: a trim for those of orphans, a fork and a look at the whole heap for all. Lock order:
// base/lock_order.hpp. Common caches (heap/transfer.hpp) are of this kind, too, but no thread's.
#pragma once

#include <cstddef>

#include "base/layout.hpp"
#include "heap/sparse.hpp"
#include "os/thread_word.hpp"
#include "pages/region.hpp"

namespace sluice {

// The calling thread's cache; never null. It points at `cache_not_started` before the thread's first slow call and at
// `cache_torn_down` after its last, so that neither needs a test of its own on the fast path: both are always empty.
extern constinit ThreadCache cache_not_started;
extern constinit ThreadCache cache_torn_down;
#if defined(SLUICE_THREAD_SLOTS)
inline constexpr os::ThreadWord<ThreadCache> thread_cache(cache_not_started);
#else
extern constinit thread_local ThreadCache* thread_cache __attribute__((tls_model("initial-exec")));
#endif

namespace cache {

// Effects: starts the heap if need be and gives this thread a cache: an orphan with all it owns, or a new one. Returns
// cache_torn_down when the thread is past its end, and when there is no memory for a cache or the system does not
// promise to tell the thread's end: the next call tries again then.
ThreadCache& attach() noexcept;

// Effects: reads the options if the first call came before libc had set up the environment. Called by a constructor.
void finish_start() noexcept;

// Effects: takes a block of the class. Returns nullptr when there is no memory. Requires: this thread's cache,
// attached.
void* take(ThreadCache& c, unsigned size_class) noexcept;

// The class that serves a request of `size_class`: that, or where the thread has no slab of it another one, of larger
// blocks (stand_in_of). So the first few blocks of classes that the thread seldom uses lie side by side, rather than
// each on a page and in a slab of its own. Not for aligned requests. Requires: as take.
extern constinit uint8_t most_stood_in;  // times for each class; tests that look at one class set it to 0
unsigned stand_in(ThreadCache& c, unsigned size_class) noexcept SLUICE_EXCLUDES(c.lock);
inline unsigned serving_class(ThreadCache& c, unsigned size_class) noexcept {
  const bool may_be_another =
      !checks_blocks && c.stood_in[size_class] < most_stood_in && c.bins[size_class].head == nullptr;
  return may_be_another ? stand_in(c, size_class) : size_class;
}

// Effects: for classes of large blocks others stand in again, as many times: their slabs went, or the thread is new.
void renew_stand_in(ThreadCache& c, unsigned size_class) noexcept;

// Effects: as take, if the class's second list can take the place of the empty bin at once; else returns nullptr.
// Requires also: the gate is open.
void* take_second_list(ThreadCache& c, unsigned size_class) noexcept;
inline void* take_spare(ThreadCache& c, unsigned size_class) noexcept {
  return c.spare[size_class] != nullptr ? take_second_list(c, size_class) : nullptr;
}

// Effects: puts a block of the class into the cache. Requires: as take.
void put(ThreadCache& c, unsigned size_class, void* block) noexcept;

// Effects: sets a block aside that comes to a full bin, on its way to its slab. Requires: the bin has no room, and
// scattered_count is `count`, less than scattered_capacity.
inline void set_aside(ThreadCache& c, uint32_t count, void* block) noexcept {
  c.scattered[count] = block;
  c.scattered_count.store(count + 1, std::memory_order_release);
}

// Effects: as put_full, if put_full has said before that this one may be set aside; else returns false. Requires: as
// put_full.
inline bool set_aside_unseen(ThreadCache& c, unsigned size_class, void* block) noexcept {
  ClassUse& use = c.uses[size_class];
  if (use.unseen == 0) return false;
  --use.unseen;
  const uint32_t count = c.scattered_count.load(std::memory_order_relaxed);  // last: a handler may set blocks aside
  if (count == scattered_capacity) return false;
  set_aside(c, count, block);
  return true;
}

// Effects: as put. Requires also: the gate is open, and the bin has no room.
void put_full(ThreadCache& c, unsigned size_class, void* block) noexcept;

// Effects: take and put for threads without a cache and for signal handlers that interrupted the slow path.
void* take_shared(unsigned size_class) noexcept;
void put_shared(void* block) noexcept;

// Effects: so many units are needed for a large block, and perhaps not in memory: lists of long_class
// (heap/long_lists.hpp) that are in the way of it go, half of what they hold now and the rest at the thread's next slow
// call. Requires: its thread.
void make_way_if_long(ThreadCache& c, size_t units) noexcept SLUICE_EXCLUDES(c.lock);
inline void make_way_for_large(ThreadCache& c, size_t units) noexcept {
  if (c.long_class != 0) make_way_if_long(c, units);
}

// Effects: there are several threads from now on, or are about to be.
void note_several() noexcept;

// Effects: the thread is about to make another one: such lists go, likewise, if two threads may not have as much each.
// Requires: its thread.
void share_long(ThreadCache& c) noexcept SLUICE_EXCLUDES(c.lock);

// Effects: looks after the cache now and then; called after each refill and flush of a bin, and of the like. `busy` is
// the class that the caller is about to use. Requires: its thread, and no lock.
void tick(ThreadCache& c, unsigned busy) noexcept SLUICE_EXCLUDES(c.lock);

// Effects: flushes the calling thread's cache and destroys its empty slabs; of flush_own, memory of its stack arena
// goes back, too: not for a signal handler that may have interrupted the arena.
void flush_own_blocks() noexcept;
void flush_own() noexcept;

// Effects: as flush_own, for the shared cache and those of orphans, too.
void flush_idle() noexcept;

// Effects: gives back what the caches of ended threads hold, as far as nobody else uses them at this moment.
void flush_orphans() noexcept;

// Effects: every thread flushes its cache at its next refill or flush of a bin. Nobody else may touch its bins.
void ask_for_flushes() noexcept;

// Effects: looks at the caches that are due by time (heap/sparse.hpp), for a portion, a millisecond or so: next_due
// says when to go on. Nothing where the caller is a signal handler that interrupted the heap.
void look_at_due() noexcept;

// Effects: where a phase of the program is over, but for what caches hold, the calling thread's blocks go back to their
// slabs and what may not stay then to the system. Nothing where somebody did lately, or the caller is such a handler.
// What lies in caches of ended threads counts as that, and goes back, too: they wait for threads that may not come.
void look_at_own() noexcept;

// Effects: as look_at_own, for the caches of ended threads alone. Seldom, else nothing.
void look_at_ended() noexcept;

// Effects: as both. It costs a few instructions where none is due. Requires: no lock of the heap.
inline void look_if_due() noexcept {
  if (region::has_shrunk.load(std::memory_order_relaxed)) [[unlikely]]
    look_at_own();
  if (vacant::gives_back && sparse::next_due.load(std::memory_order_relaxed) != sparse::never) [[unlikely]]
    look_at_due();
}

// Every cache there is, newest first; caches are never freed. Thread-safe.
ThreadCache* first() noexcept;

// Effects: takes or gives back every lock of the heap, in order; those that this thread holds already (the caller is a
// signal handler) stay as they are. Between the two nothing moves but thread-local lists.
void lock_all() noexcept;
void unlock_all() noexcept;

// Effects: as those, without waiting, and a signal handler that interrupts the caller finds the locks taken.
bool try_lock_all() noexcept;
void unlock_tried() noexcept;

// Around a fork, in the parent: as lock_all, but a thread that has waited long for one of the locks takes it over,
// since the fork may wait for that thread (see base/mutex.hpp).
void lock_for_fork() noexcept;
void unlock_after_fork() noexcept;

// In the child of a fork: gives the locks back and makes orphans of the threads that are no more. What one of them was
// in the middle of changing, under a lock that it had taken over, is given up: its blocks may be freed, and what is
// free there is not used again.
void unlock_in_child() noexcept;

// Whether slabs with this owner have been given up so.
bool is_lost(const ThreadCache* owner) noexcept;

struct ThreadCounts {
  size_t live, peak, started, caches;
};
ThreadCounts thread_counts() noexcept;  // requires lock_all

// Free blocks that a cache holds in one class. Exact for the calling thread and for orphans under their lock.
uint32_t held_blocks(const ThreadCache& c, unsigned size_class) noexcept;

// Effects: adds the freed blocks that wait in a cache to `blocks`, by class. Secure builds only.
void add_delayed_blocks(const ThreadCache& c, uint32_t (&blocks)[size_class_count]) noexcept;

// What the stack arenas of caches (layer arena) are told; null until there is one. All but tick and validate run
// under the cache's lock, on its thread or after its end.
struct ArenaHooks {
  void (*end_thread)(ThreadCache& c) noexcept;
  void (*tick)(ThreadCache& c) noexcept;  // now and then, on its thread
  void (*give_back_orphaned)(ThreadCache& c) noexcept;
  void (*trim)(ThreadCache& c) noexcept;
  void (*forked)(ThreadCache& c) noexcept;                    // in the child, for a thread that stayed behind
  void (*abandon)(ThreadCache& c, ThreadCache& to) noexcept;  // likewise, and it was in the middle of a change
  const char* (*validate)(const ThreadCache& c) noexcept;     // null, or what is wrong; under all locks
};
extern constinit std::atomic<const ArenaHooks*> arena_hooks;

// Effects: every request of this thread, and of threads that start from now on, takes the slow path, where the layer
// above passes some on to another allocator.
void pass_on_new() noexcept;

// Whether calls on this thread are counted, and where; the cache is null on threads without one.
bool counting() noexcept;
inline bool counted(const ThreadCache* c) noexcept {
  return c != nullptr ? c->mode.has(CacheMode::Counting) : counting();
}
inline Counters* counters_of(const ThreadCache* c) noexcept {
  return c != nullptr ? c->counters : nullptr;
}

// Exact counting is on for caches that attach from now on, or off again for the calling thread's.
void set_counting(bool on) noexcept;

}  // namespace cache
}  // namespace sluice
