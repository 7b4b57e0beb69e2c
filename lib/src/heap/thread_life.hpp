// What the files behind thread_cache.hpp need of each other: thread_cache.cpp, where a cache is filled and flushed,
// tick.cpp, where it is looked at now and then, and thread_life.cpp, where it comes and goes with its thread. Open it
// to change what passes between them; all others include thread_cache.hpp.
#pragma once

#include "base/mutex.hpp"
#include "heap/thread_cache.hpp"

namespace sluice::cache {

using CacheLock = MutexLock<OwnerMutex>;

// Requires: there is an arena.
inline const ArenaHooks& hooks() noexcept {
  return *arena_hooks.load(std::memory_order_acquire);
}

// In tick.cpp.

inline constexpr unsigned slow_calls_per_tick = 16;  // between two looks at the clock
inline constexpr uint32_t idle_after =
    slow_calls_per_tick * (size_class_count - 1);  // slow calls without a sign of use

// In thread_cache.cpp.

// Slabs of blocks that are taken and freed without a cache. Its lock is the only one taken on a thread that is past its
// end.
extern constinit ThreadCache shared_cache;

// Effects: gives back to the slabs what waits in a secure build to be used again. Requires c.lock.
void flush_delayed(ThreadCache& c) noexcept SLUICE_REQUIRES(c.lock);

// Effects: gives a list of blocks back to their slabs. Returns: whether most runs were of slabs that this cache owns.
// Requires c.lock.
bool flush_list(ThreadCache& c, void* block) noexcept SLUICE_REQUIRES(c.lock);

// Effects: gives back all that the class keeps. Requires c.lock.
void flush_class(ThreadCache& c, unsigned size_class) noexcept SLUICE_REQUIRES(c.lock);

// Effects: likewise, in favour of other classes, but for what waits together with these: that is little, and goes on
// waiting. Blocks of others are passed on. Requires c.lock.
void evict(ThreadCache& c, unsigned size_class) noexcept SLUICE_REQUIRES(c.lock);

// Effects: puts the scattered blocks into their slabs. Requires c.lock.
__attribute__((noinline)) void flush_scattered(ThreadCache& c) noexcept SLUICE_REQUIRES(c.lock);

// Effects: gives back all that the bins hold, but for one class, and what is empty then. Requires c.lock.
void flush_but(ThreadCache& c, unsigned busy) noexcept SLUICE_REQUIRES(c.lock);

// A slab of the class that has blocks to give, in c's partial list; null when there is no memory. Requires c.lock.
Unit* partial_slab(ThreadCache& c, unsigned size_class) noexcept SLUICE_REQUIRES(c.lock);

// Returns: likewise, but of the first slab of the class no more pages stay in memory than its first block needs. It may
// need few, and what others have left there would stay as long as the slab. Seldom again while the class is in use: its
// slabs may come and go. Requires c.lock.
Unit* sparing_slab(ThreadCache& c, unsigned size_class) noexcept SLUICE_REQUIRES(c.lock);

// Returns: as partial_slab, but null where it would be another's until now, or a new one.
Unit* own_partial_slab(ThreadCache& c, unsigned size_class) noexcept SLUICE_REQUIRES(c.lock);

// Effects: gives all that the cache holds back to the slabs, and destroys those that are empty. Requires c.lock.
void flush_all(ThreadCache& c) noexcept SLUICE_REQUIRES(c.lock);

// In all_caches.cpp.

// Odd while somebody takes the locks of all caches, one after the other; one more each time it begins or ends. A thread
// that holds its cache's lock most of the time sees it and lets that one in.
extern constinit std::atomic<uintptr_t> wants_all __attribute__((visibility("hidden")));
__attribute__((noinline, cold)) void let_in_who_wants_all(ThreadCache& own, uintptr_t wanted) noexcept;
inline void let_in_who_wants_all(ThreadCache& own) noexcept {
  if (const uintptr_t seen = wants_all.load(std::memory_order_relaxed); (seen & 1) != 0) [[unlikely]]
    let_in_who_wants_all(own, seen);
}

// In thread_life.cpp.

// Effects: starts the heap once. False when it could not be started; the next call tries again.
bool start() noexcept;

// Effects: so many threads have caches now. Requires: the registry's lock, or that there is no other thread.
void note_live(size_t threads) noexcept;

// A new cache that no thread has (heap/transfer.hpp), among all others; null when there is no memory. Requires the
// registry's lock.
ThreadCache* add_common_cache() noexcept;

// Effects: takes over a slab of the class that a thread left behind; null when there is none. Requires c.lock.
Unit* steal(ThreadCache& c, unsigned size_class) noexcept SLUICE_REQUIRES(c.lock);

// Effects: gives back what other threads freed into the stack arenas of threads that have ended.
__attribute__((noinline, cold)) void sweep_orphans() noexcept;

}  // namespace sluice::cache
