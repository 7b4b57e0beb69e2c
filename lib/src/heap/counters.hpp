// Exact counts, kept while statistics are on. Open it to see what is counted and how a peak is found without a shared
// write on each call.
//
// Each thread cache counts for itself. Its change of live blocks and bytes since it last told the total is a `delta`,
// with the highest value that the delta had: the peak of the total is found when the delta is handed over, every few
// KiB. For one thread it is exact; for several each may add what it has not handed over yet (16 KiB at most).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/layout.hpp"

namespace sluice::counters {

struct LargeCounters {
#define SLUICE_FIGURE_LARGE SLUICE_EXACT_COUNTER
#include "os/statistics.def"
};
struct ForeignCounters {
#define SLUICE_FIGURE_FOREIGN(name, ...) std::atomic<uint64_t> name;
#include "os/statistics.def"
};

// The process's totals of what caches have handed over, and of what is not counted by cache.
struct Totals {
  std::atomic<int64_t> live_blocks[size_class_count], peak_blocks[size_class_count];
  std::atomic<int64_t> live_bytes, peak_bytes;
  LargeCounters large;
  std::atomic<int64_t> large_live_bytes, large_peak_bytes;
  ClassCounters shared[size_class_count];  // blocks of threads without a cache
  ArenaCounters arena;                     // objects of scopes that threads without a cache freed
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

// Memory for one cache's counters, zeroed; nullptr when there is none.
Counters* create() noexcept;

}  // namespace sluice::counters
