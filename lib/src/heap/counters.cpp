// See counters.hpp.
#include "heap/counters.hpp"

#include "os/seldom_touched.hpp"
#include "pages/spans.hpp"

namespace sluice::counters {

SLUICE_SELDOM_TOUCHED constinit Totals totals{};

namespace {

constexpr int64_t class_slack = 8 * 1024;   // bytes of one class that a cache may keep to itself
constexpr int64_t total_slack = 16 * 1024;  // bytes in all

static_assert(sizeof(Counters) <= unit_size);

// The owner is the only writer, so that a load and a store do; readers see whole words.
template <typename T>
void add(std::atomic<T>& value, T by, std::memory_order order = std::memory_order_relaxed) noexcept {
  value.store(value.load(std::memory_order_relaxed) + by, order);
}

void raise(std::atomic<int64_t>& peak, int64_t candidate) noexcept {
  int64_t seen = peak.load(std::memory_order_relaxed);
  while (seen < candidate && !peak.compare_exchange_weak(seen, candidate, std::memory_order_relaxed)) {
  }
}

void change(std::atomic<int64_t>& delta, std::atomic<int64_t>& high, std::atomic<int64_t>& live,
            std::atomic<int64_t>& peak, int64_t by, int64_t slack) noexcept {
  const int64_t now = delta.load(std::memory_order_relaxed) + by;
  int64_t top = high.load(std::memory_order_relaxed);
  if (now > top) top = now;
  if (now < slack && now > -slack) {
    delta.store(now, std::memory_order_relaxed);
    high.store(top, std::memory_order_relaxed);
    return;
  }
  raise(peak, live.fetch_add(now, std::memory_order_relaxed) + top);
  delta.store(0, std::memory_order_relaxed);
  high.store(0, std::memory_order_relaxed);
}

void change_bytes(Counters* counters, int64_t by) noexcept {
  if (counters != nullptr) {
    change(counters->delta_bytes, counters->high_bytes, totals.live_bytes, totals.peak_bytes, by, total_slack);
  } else {
    raise(totals.peak_bytes, totals.live_bytes.fetch_add(by, std::memory_order_relaxed) + by);
  }
}

void change_class(Counters* counters, unsigned size_class, int64_t by) noexcept {
  const int64_t size = class_sizes[size_class];
  std::atomic<int64_t>& live = totals.live_blocks[size_class];
  if (counters != nullptr) {
    ClassCounters& c = counters->classes[size_class];
    const int64_t slack = size < class_slack ? class_slack / size : 1;
    change(c.delta, c.high, live, totals.peak_blocks[size_class], by, slack);
  } else {
    raise(totals.peak_blocks[size_class], live.fetch_add(by, std::memory_order_relaxed) + by);
  }
  change_bytes(counters, by * size);
}

}  // namespace

void count_malloc(Counters* counters, unsigned size_class, size_t requested) noexcept {
  if (counters != nullptr) {
    add(counters->classes[size_class].mallocs, uint64_t{1});
    add(counters->classes[size_class].requested_bytes, uint64_t{requested});
  } else {
    bump(totals.shared[size_class].mallocs);
    bump(totals.shared[size_class].requested_bytes, requested);
  }
  change_class(counters, size_class, 1);
}

void count_free(Counters* counters, unsigned size_class) noexcept {
  if (counters != nullptr)
    add(counters->classes[size_class].frees, uint64_t{1}, of_frees);
  else
    bump(totals.shared[size_class].frees, 1, of_frees);
  change_class(counters, size_class, -1);
}

void count_large_malloc(Counters* counters, size_t requested, size_t bytes) noexcept {
  bump(totals.large.mallocs);
  bump(totals.large.requested_bytes, requested);
  bump(totals.large.allocated_bytes, bytes);
  const auto by = static_cast<int64_t>(bytes);
  raise(totals.large_peak_bytes, totals.large_live_bytes.fetch_add(by, std::memory_order_relaxed) + by);
  change_bytes(counters, by);
}

void count_large_free(Counters* counters, size_t bytes) noexcept {
  bump(totals.large.frees, 1, of_frees);
  bump(totals.large.freed_bytes, bytes, of_frees);
  const auto by = static_cast<int64_t>(bytes);
  totals.large_live_bytes.fetch_sub(by, std::memory_order_relaxed);
  change_bytes(counters, -by);
}

void count_large_resize(Counters* counters, size_t requested, size_t old_bytes, size_t new_bytes) noexcept {
  if (new_bytes == old_bytes) return;
  const auto by = static_cast<int64_t>(new_bytes) - static_cast<int64_t>(old_bytes);
  if (by > 0) {
    bump(totals.large.requested_bytes, requested > old_bytes ? requested - old_bytes : 0);
    bump(totals.large.allocated_bytes, static_cast<uint64_t>(by));
  } else {
    bump(totals.large.freed_bytes, static_cast<uint64_t>(-by), of_frees);
  }
  raise(totals.large_peak_bytes, totals.large_live_bytes.fetch_add(by, std::memory_order_relaxed) + by);
  change_bytes(counters, by);
}

void count_arena_malloc(Counters* counters, size_t requested, size_t bytes) noexcept {
  ArenaCounters& arena = counters != nullptr ? counters->arena : totals.arena;
  bump(arena.objects);
  bump(arena.requested_bytes, requested);
  bump(arena.bytes, bytes);
  change_bytes(counters, static_cast<int64_t>(bytes));
}

void count_arena_free(Counters* counters, ArenaFree how, size_t bytes) noexcept {
  ArenaCounters& arena = counters != nullptr ? counters->arena : totals.arena;
  bump(how == ArenaFree::Lifo         ? arena.lifo_frees
       : how == ArenaFree::OutOfOrder ? arena.out_of_order_frees
                                      : arena.remote_frees,
       1, of_frees);
  bump(arena.freed_bytes, bytes, of_frees);
  change_bytes(counters, -static_cast<int64_t>(bytes));
}

void count_arena_resize(Counters* counters, size_t requested, size_t old_bytes, size_t new_bytes) noexcept {
  ArenaCounters& arena = counters != nullptr ? counters->arena : totals.arena;
  if (new_bytes > old_bytes) {
    bump(arena.grown_in_place);
    bump(arena.requested_bytes, requested > old_bytes ? requested - old_bytes : 0);
    bump(arena.bytes, new_bytes - old_bytes);
  } else {
    bump(arena.freed_bytes, old_bytes - new_bytes, of_frees);
  }
  change_bytes(counters, static_cast<int64_t>(new_bytes) - static_cast<int64_t>(old_bytes));
}

Counters* create() noexcept {
  return static_cast<Counters*>(spans::allocate_metadata(sizeof(Counters)));
}

}  // namespace sluice::counters
