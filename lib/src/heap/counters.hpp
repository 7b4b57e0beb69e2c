// Exact counts, kept while statistics are on. Open it to see what is counted and how a peak is found without a shared
// write on each call.
//
// Each thread cache counts for itself. Its change of live blocks and bytes since it last told the total is a `delta`,
// with the highest value that the delta had: the peak of the total is found when the delta is handed over. A thread
// that is alone never has to, and its peaks are exact. Several hand over every few KiB: each may add what it has not
// handed over yet (16 KiB, or a thousandth of the total). While calls are counted their own fast paths count
// (heap.cpp).
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/layout.hpp"

namespace sluice::counters {

struct ForeignCounters {
#define SLUICE_FIGURE_FOREIGN(name, ...) std::atomic<uint64_t> name;
#include "os/statistics.def"
};

// The process's totals of what caches have handed over, and of what is not counted by cache.
struct Totals {
  std::atomic<int64_t> live_blocks[size_class_count], peak_blocks[size_class_count];
  std::atomic<int64_t> live_bytes, peak_bytes;
  std::atomic<int64_t> large_live_bytes, large_peak_bytes;
  ClassCounters shared[size_class_count];  // blocks of threads without a cache…
  ArenaCounters arena;                     // …objects of scopes that they freed…
  LargeCounters large;                     // …and large blocks
  ForeignCounters foreign;
};
extern constinit Totals totals;

// Of counts of what was freed: whoever sees such a count (a snapshot acquires it) sees that the block was counted when
// it was handed out, by whichever thread.
inline constexpr std::memory_order of_frees = std::memory_order_release;

inline void bump(std::atomic<uint64_t>& count, uint64_t by = 1,
                 std::memory_order order = std::memory_order_relaxed) noexcept {
  count.fetch_add(by, order);
}

#if defined(__x86_64__) && !defined(SLUICE_THREAD_SANITIZER)
inline constexpr bool adds_at_once = true;
#else
inline constexpr bool adds_at_once = false;
#endif

// Adds to a count that its thread alone writes, and others read. One instruction where the processor has one, so that a
// signal handler that counts in between loses nothing; it costs less than two, besides.
template <typename T>
inline __attribute__((always_inline)) void add(std::atomic<T>& count, T by,
                                               std::memory_order order = std::memory_order_relaxed) noexcept {
#if defined(__x86_64__) && !defined(SLUICE_THREAD_SANITIZER)
  (void)order;  // every store releases
  asm("addq %1, %0" : "+m"(count) : "er"(by) : "memory");
#else
  count.store(count.load(std::memory_order_relaxed) + by, order);
#endif
}

namespace detail {

// Return: whether the delta is to be handed over.
inline bool grow(UntoldChange& change, int64_t by) noexcept {
  add(change.delta, by);
  const int64_t now = change.delta.load(std::memory_order_relaxed);
  if (now > change.high.load(std::memory_order_relaxed)) change.high.store(now, std::memory_order_relaxed);
  return now >= change.slack.load(std::memory_order_relaxed);
}
inline bool shrink(UntoldChange& change, int64_t by) noexcept {
  add(change.delta, -by);
  return change.delta.load(std::memory_order_relaxed) <= -change.slack.load(std::memory_order_relaxed);
}

}  // namespace detail

// Count small blocks of a thread that has counters of its own. Return: whether hand_over() has something to do.
inline __attribute__((always_inline)) bool count_own_malloc(Counters& own, unsigned size_class,
                                                            size_t requested) noexcept {
  ClassCounters& c = own.classes[size_class];
  add(c.mallocs, uint64_t{1});
  add(c.requested_bytes, uint64_t{requested});
  const bool are_many = detail::grow(c.live, 1);
  return detail::grow(own.live_bytes, class_sizes[size_class]) || are_many;
}
inline __attribute__((always_inline)) bool count_own_free(Counters& own, unsigned size_class) noexcept {
  ClassCounters& c = own.classes[size_class];
  add(c.frees, uint64_t{1}, of_frees);
  const bool are_many = detail::shrink(c.live, 1);
  return detail::shrink(own.live_bytes, class_sizes[size_class]) || are_many;
}

// Effects: the deltas of the class and of all bytes go to the totals, where they are as large as they may become.
__attribute__((noinline, cold)) void hand_over(Counters& own, unsigned size_class) noexcept;

// In all of these `counters` belongs to the calling thread, or is null on a thread without a cache. Small blocks:
void count_malloc(Counters* counters, unsigned size_class, size_t requested) noexcept;
void count_free(Counters* counters, unsigned size_class) noexcept;

// Large spans; `bytes` is the usable size.
void count_large_malloc(Counters* counters, size_t requested, size_t bytes) noexcept;
void count_large_free(Counters* counters, size_t bytes) noexcept;

// A large span that grew or shrank in place.
void count_large_resize(Counters* counters, size_t requested, size_t old_bytes, size_t new_bytes) noexcept;

// Objects of scopes; `bytes` is the usable size.
enum class ArenaFree : uint8_t { Lifo, OutOfOrder, Remote };
void count_arena_malloc(Counters* counters, size_t requested, size_t bytes) noexcept;
void count_arena_free(Counters* counters, ArenaFree how, size_t bytes) noexcept;
void count_arena_resize(Counters* counters, size_t requested, size_t old_bytes, size_t new_bytes) noexcept;

// Effects: what a thread that has been alone has not told is added for it, and it tells from now on. Called once, for
// each cache, by whoever finds that there are several threads, when has_several_threads is set.
void note_several(Counters& counters) noexcept;

// How high a change was, of what has not been told.
int64_t untold_high(const UntoldChange& change) noexcept;

// Memory for one cache's counters, zeroed; nullptr when there is none.
Counters* create() noexcept;

}  // namespace sluice::counters
