// Where a program has many more threads than processors, blocks of more than 8 KiB lie in caches of processors, not of
// threads: what each thread would keep of each class is kept by few for all. Open it for what such a program's larger
// blocks cost. Decision: lib/docs/decisions/053-larger-blocks-lie-in-caches-of-processors.md.
//
//   thread ── bin empty, or full ──▶ the cache of the processor that it runs on: one list for each class
//                                       ▲ refill │ flush
//                                       └ slabs ◀┘ that this cache owns, as a thread's cache owns its
//
// SLUICE_PROCESSOR_CACHES=1 asks for them. They begin when there are more than four times as many threads as processors
// were seen, and more threads than processors need budgets of a MiB; and end when there are no more than twice as many
// threads. The processor is asked for where no system call is needed for it (os::processor). A cache is used by whoever
// holds its lock, for a moment: a thread that is moved to another processor meanwhile does no harm, and one that finds
// the lock taken looks at others' before it waits.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "heap/budget.hpp"

namespace sluice::cache::processors {

extern constinit std::atomic<bool> are_used __attribute__((visibility("hidden")));
extern constinit std::atomic<bool> were_used __attribute__((visibility("hidden")));  // and may hold blocks

// Whether blocks of the class lie there now.
inline bool serve(unsigned size_class) noexcept {
  return budget::counts_room(size_class) && are_used.load(std::memory_order_relaxed);
}

// Effects: takes a block of the class, which the processor's cache serves. Null where there is no memory, and in a
// signal handler that interrupted the heap: the thread's own cache serves then. Requires: the calling thread's cache,
// attached, and its lock.
void* take(ThreadCache& own, unsigned size_class) noexcept;

// Effects: puts a block back. False where take would return null. Requires: as take.
bool put(ThreadCache& own, unsigned size_class, void* block) noexcept;

inline constexpr uint32_t least_rich = 3;  // threads with large budgets, where they begin

// Effects: so many threads have caches now. Requires: the registry's lock, or that there is no other thread.
void note_live(size_t threads) noexcept;

inline constexpr unsigned most_caches = 64;                      // processors beyond share them
extern constinit std::atomic<ThreadCache*> caches[most_caches];  // null until a thread has come that ran there

// Effects: gives the lock of such a cache back, after a look whether vacant pages of its slabs are due.
void let_go(ThreadCache& c) noexcept SLUICE_GIVES_BACK(c.lock);

// Calls act(cache) under its lock for those that nobody uses, at this moment or within so many tenths of a millisecond.
template <typename Act>
__attribute__((noinline, cold)) void for_each(Act act, unsigned patience = 1) noexcept SLUICE_UNCHECKED_LOCKS {
  for (std::atomic<ThreadCache*>& each : caches) {
    ThreadCache* const c = each.load(std::memory_order_acquire);  // pairs with the store of one that is made
    if (c == nullptr || c->lock.held_by_this_thread() || !c->lock.try_lock_patiently(patience)) continue;
    act(*c);
    let_go(*c);
  }
}

// Effects: gives back what these caches hold. flush() waits some milliseconds for who uses one, flush_idle() leaves it
// alone. Requires, of flush(): the caller is no signal handler that interrupted the heap.
__attribute__((cold)) void flush() noexcept;
__attribute__((cold)) void flush_idle() noexcept;

// Effects: gives back what lay there unused since the last look, which is due now and then.
__attribute__((cold)) void look_if_due() noexcept;

// Effects: threads begin to use them, if there are so many.
__attribute__((cold)) void begin_if_many() noexcept;

// Effects: both, where there may be something to do; called now and then.
inline void look() noexcept {
  if (were_used.load(std::memory_order_relaxed)) [[unlikely]]
    look_if_due();
  if (budget::rich_threads.load(std::memory_order_relaxed) >= least_rich && !are_used.load(std::memory_order_relaxed))
      [[unlikely]]
    begin_if_many();
}

// Odd while somebody takes the locks of all caches, one after the other; one more each time it begins or ends. A thread
// that holds its cache's lock most of the time sees it and lets that one in.
extern constinit std::atomic<uintptr_t> wants_all __attribute__((visibility("hidden")));
__attribute__((noinline, cold)) void let_in_who_wants_all(ThreadCache& own, uintptr_t wanted) noexcept;
inline void let_in_who_wants_all(ThreadCache& own) noexcept {
  if (const uintptr_t seen = wants_all.load(std::memory_order_relaxed); (seen & 1) != 0) [[unlikely]]
    let_in_who_wants_all(own, seen);
}

}  // namespace sluice::cache::processors
