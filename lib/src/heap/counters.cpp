// See counters.hpp.
#include "heap/counters.hpp"

#include "os/seldom_touched.hpp"
#include "pages/spans.hpp"
#include "pages/units.hpp"

namespace sluice::counters {

SLUICE_SELDOM_TOUCHED constinit Totals totals{};

namespace {

static_assert(sizeof(Counters) <= unit_size);

void raise(std::atomic<int64_t>& peak, int64_t candidate) noexcept {
  int64_t seen = peak.load(std::memory_order_relaxed);
  while (seen < candidate && !peak.compare_exchange_weak(seen, candidate, std::memory_order_relaxed)) {
  }
}

constexpr int64_t class_slack = 8 * 1024;   // bytes of one class that a cache may keep to itself
constexpr int64_t total_slack = 16 * 1024;  // bytes in all…
constexpr int64_t part_of_total = 1024;     // …or such a part
constexpr int64_t no_end = INT64_MAX / 2;   // of a thread that is alone

int64_t slack_of_class(unsigned size_class) noexcept {
  const int64_t size = class_sizes[size_class];
  return size < class_slack ? class_slack / size : 1;
}

// A thread that is alone may keep everything to itself. Where note_several() comes at the same moment, its bound stays.
void set_slack(UntoldChange& change, int64_t slack) noexcept {
  if (!has_several_threads.load(std::memory_order_relaxed)) {
    change.slack.store(no_end, std::memory_order_seq_cst);
    if (!has_several_threads.load(std::memory_order_seq_cst)) return;
  }
  change.slack.store(slack, std::memory_order_relaxed);
}

// A snapshot that looks in between finds less than there is, never more.
void tell_total(UntoldChange& change, std::atomic<int64_t>& live, std::atomic<int64_t>& peak, int64_t slack) noexcept {
  const int64_t told = change.told.exchange(0, std::memory_order_relaxed);
  const int64_t high = change.high.exchange(0, std::memory_order_relaxed) - told;
  const int64_t by = change.delta.exchange(0, std::memory_order_relaxed) - told;
  const int64_t before = live.fetch_add(by, std::memory_order_relaxed);
  raise(peak, before + high);
  const int64_t part = (before + by) / part_of_total;
  set_slack(change, part > slack ? part : slack);
}

// Adds for a thread what it has not told. It may tell meanwhile: what is added here it takes off the next time.
void tell_for(UntoldChange& change, std::atomic<int64_t>& live, std::atomic<int64_t>& peak, int64_t slack) noexcept {
  const int64_t by = change.delta.load(std::memory_order_relaxed);
  const int64_t high = change.high.load(std::memory_order_relaxed);
  change.told.fetch_add(by, std::memory_order_relaxed);
  change.high.store(by, std::memory_order_relaxed);
  raise(peak, live.fetch_add(by, std::memory_order_relaxed) + high);
  change.slack.store(slack, std::memory_order_seq_cst);
}

// Calls tell(change, live, peak, slack) with what a thread has not told of a class, of all bytes, and of large blocks.
template <typename Tell>
void tell_blocks(Counters& own, unsigned size_class, Tell tell) noexcept {
  tell(own.classes[size_class].live, totals.live_blocks[size_class], totals.peak_blocks[size_class],
       slack_of_class(size_class));
}
template <typename Tell>
void tell_bytes(Counters& own, Tell tell) noexcept {
  tell(own.live_bytes, totals.live_bytes, totals.peak_bytes, total_slack);
}
template <typename Tell>
void tell_large(Counters& own, Tell tell) noexcept {
  tell(own.live_large_bytes, totals.large_live_bytes, totals.large_peak_bytes, total_slack);
}

bool is_due(const UntoldChange& change) noexcept {
  const int64_t delta = change.delta.load(std::memory_order_relaxed);
  const int64_t slack = change.slack.load(std::memory_order_relaxed);
  return delta >= slack || delta <= -slack;
}

// Of a thread without a cache.
void tell(std::atomic<int64_t>& live, std::atomic<int64_t>& peak, int64_t by) noexcept {
  raise(peak, live.fetch_add(by, std::memory_order_relaxed) + by);
}

bool change(UntoldChange& change, int64_t by) noexcept {
  return by > 0 ? detail::grow(change, by) : detail::shrink(change, -by);
}
void change_bytes(Counters* counters, int64_t by) noexcept {
  if (counters == nullptr) return tell(totals.live_bytes, totals.peak_bytes, by);
  if (change(counters->live_bytes, by)) tell_bytes(*counters, tell_total);
}
void change_large(Counters* counters, int64_t by) noexcept {
  if (counters == nullptr)
    tell(totals.large_live_bytes, totals.large_peak_bytes, by);
  else if (change(counters->live_large_bytes, by))
    tell_large(*counters, tell_total);
  change_bytes(counters, by);
}

// Adds to a count of the calling thread, or of all that have none of their own.
void add_to(const Counters* own, std::atomic<uint64_t>& count, uint64_t by,
            std::memory_order order = std::memory_order_relaxed) noexcept {
  if (own != nullptr && adds_at_once)
    add(count, by, order);
  else
    bump(count, by, order);  // large blocks and objects of scopes are live by these alone
}

}  // namespace

void hand_over(Counters& own, unsigned size_class) noexcept {
  if (is_due(own.classes[size_class].live)) tell_blocks(own, size_class, tell_total);
  if (is_due(own.live_bytes)) tell_bytes(own, tell_total);
}

void note_several(Counters& counters) noexcept {
  for (unsigned k = 1; k < size_class_count; ++k)
    tell_blocks(counters, k, tell_for);
  tell_large(counters, tell_for);
  tell_bytes(counters, tell_for);
}

int64_t untold_high(const UntoldChange& change) noexcept {
  return change.high.load(std::memory_order_relaxed) - change.told.load(std::memory_order_relaxed);
}

void count_malloc(Counters* counters, unsigned size_class, size_t requested) noexcept {
  if (counters != nullptr) {
    if (count_own_malloc(*counters, size_class, requested)) hand_over(*counters, size_class);
    return;
  }
  bump(totals.shared[size_class].mallocs);
  bump(totals.shared[size_class].requested_bytes, requested);
  tell(totals.live_blocks[size_class], totals.peak_blocks[size_class], 1);
  change_bytes(nullptr, class_sizes[size_class]);
}

void count_free(Counters* counters, unsigned size_class) noexcept {
  if (counters != nullptr) {
    if (count_own_free(*counters, size_class)) hand_over(*counters, size_class);
    return;
  }
  bump(totals.shared[size_class].frees, 1, of_frees);
  tell(totals.live_blocks[size_class], totals.peak_blocks[size_class], -1);
  change_bytes(nullptr, -int64_t{class_sizes[size_class]});
}

void count_large_malloc(Counters* counters, size_t requested, size_t bytes) noexcept {
  LargeCounters& large = counters != nullptr ? counters->large : totals.large;
  add_to(counters, large.mallocs, 1);
  add_to(counters, large.requested_bytes, requested);
  add_to(counters, large.allocated_bytes, bytes);
  change_large(counters, static_cast<int64_t>(bytes));
}

void count_large_free(Counters* counters, size_t bytes) noexcept {
  LargeCounters& large = counters != nullptr ? counters->large : totals.large;
  add_to(counters, large.frees, 1, of_frees);
  add_to(counters, large.freed_bytes, bytes, of_frees);
  change_large(counters, -static_cast<int64_t>(bytes));
}

void count_large_resize(Counters* counters, size_t requested, size_t old_bytes, size_t new_bytes) noexcept {
  if (new_bytes == old_bytes) return;
  LargeCounters& large = counters != nullptr ? counters->large : totals.large;
  const auto by = static_cast<int64_t>(new_bytes) - static_cast<int64_t>(old_bytes);
  if (by > 0) {
    add_to(counters, large.requested_bytes, requested > old_bytes ? requested - old_bytes : 0);
    add_to(counters, large.allocated_bytes, static_cast<uint64_t>(by));
  } else {
    add_to(counters, large.freed_bytes, static_cast<uint64_t>(-by), of_frees);
  }
  change_large(counters, by);
}

void count_arena_malloc(Counters* counters, size_t requested, size_t bytes) noexcept {
  ArenaCounters& arena = counters != nullptr ? counters->arena : totals.arena;
  add_to(counters, arena.objects, 1);
  add_to(counters, arena.requested_bytes, requested);
  add_to(counters, arena.bytes, bytes);
  change_bytes(counters, static_cast<int64_t>(bytes));
}

void count_arena_free(Counters* counters, ArenaFree how, size_t bytes) noexcept {
  ArenaCounters& arena = counters != nullptr ? counters->arena : totals.arena;
  add_to(counters,
         how == ArenaFree::Lifo         ? arena.lifo_frees
         : how == ArenaFree::OutOfOrder ? arena.out_of_order_frees
                                        : arena.remote_frees,
         1, of_frees);
  add_to(counters, arena.freed_bytes, bytes, of_frees);
  change_bytes(counters, -static_cast<int64_t>(bytes));
}

void count_arena_resize(Counters* counters, size_t requested, size_t old_bytes, size_t new_bytes) noexcept {
  ArenaCounters& arena = counters != nullptr ? counters->arena : totals.arena;
  if (new_bytes > old_bytes) {
    add_to(counters, arena.grown_in_place, 1);
    add_to(counters, arena.requested_bytes, requested > old_bytes ? requested - old_bytes : 0);
    add_to(counters, arena.bytes, new_bytes - old_bytes);
  } else {
    add_to(counters, arena.freed_bytes, old_bytes - new_bytes, of_frees);
  }
  change_bytes(counters, static_cast<int64_t>(new_bytes) - static_cast<int64_t>(old_bytes));
}

Counters* create() noexcept {
  return static_cast<Counters*>(spans::allocate_metadata(sizeof(Counters)));
}

}  // namespace sluice::counters
