// See snapshot.hpp.
#include "stats/snapshot.hpp"

#include <algorithm>

#include "heap/counters.hpp"
#include "heap/heap.hpp"
#include "heap/large.hpp"
#include "heap/slab.hpp"
#include "os/memory.hpp"

namespace sluice::stats {
namespace {

using counters::totals;

template <typename T>
uint64_t value(const std::atomic<T>& count) noexcept {
  const T seen = count.load(std::memory_order_acquire);
  return seen > 0 ? static_cast<uint64_t>(seen) : 0;
}

void add_span(Snapshot& s, const Unit& unit) noexcept {
  const size_t bytes = unit.units * unit_size;
  if (unit.state == UnitState::Slab) {
    ClassFigures& figures = s.classes[unit.size_class];
    ++figures.slabs;
    figures.slab_bytes += bytes;
    figures.carved_blocks += unit.carved;
    figures.live_blocks += unit.used;  // those in caches are taken off later
    const uint64_t remote = slab::remote_count(&unit);
    figures.live_blocks -= std::min(figures.live_blocks, remote);
    s.active_bytes += bytes;
  } else if (unit.state == UnitState::Large) {
    ++s.large.live_spans;
    s.large.live_bytes += large::usable_size(unit);
    s.active_bytes += bytes;
  }
}

void add_heap(Snapshot& s) noexcept {
  for (size_t i = region::first_index(); i < region::limit();) {
    const Unit& unit = *region::unit_at(i);
    add_span(s, unit);
    i += std::max<size_t>(unit.units, 1);
  }
  for (const ThreadCache* c = cache::first(); c != nullptr; c = c->next_cache) {
    if (!c->attached) continue;
    for (unsigned k = 1; k < size_class_count; ++k)
      s.classes[k].cached_blocks += cache::held_blocks(*c, k);
  }
  for (unsigned k = 1; k < size_class_count; ++k) {
    ClassFigures& figures = s.classes[k];
    figures.live_blocks -= std::min(figures.live_blocks, figures.cached_blocks);
    s.cached_bytes += figures.cached_blocks * figures.block_size;
    s.live_bytes += figures.live_blocks * figures.block_size;
  }
  s.live_bytes += s.large.live_bytes;
  const region::Figures region = region::figures();
  s.reserved_bytes = region.reserved_bytes;
  s.mapped_bytes = region.committed_bytes + region.metadata_bytes;
  s.metadata_bytes = region.metadata_bytes;
  s.retained_bytes = region.free_dirty_bytes;
  const cache::ThreadCounts threads = cache::thread_counts();
  s.threads = {threads.live, threads.peak, threads.started, threads.caches};
}

// Sums one counter over all caches and the threads without one.
template <typename Get>
void sum_counters(const Get& get) noexcept {
  get(totals.shared);
  for (const ThreadCache* c = cache::first(); c != nullptr; c = c->next_cache)
    if (c->counters != nullptr) get(c->counters->classes);
}

// The highest that any cache has seen: its own high mark on top of what all have handed over.
uint64_t peak(const std::atomic<int64_t>& handed_over, const std::atomic<int64_t>& so_far, int64_t highest_delta,
              uint64_t live) noexcept {
  const int64_t candidate = handed_over.load(std::memory_order_relaxed) + highest_delta;
  return std::max({value(so_far), candidate > 0 ? static_cast<uint64_t>(candidate) : 0, live});
}

// Replaces what the walk found by what was counted.
void add_counts(Snapshot& s) noexcept {
  int64_t high[size_class_count]{};
  int64_t high_bytes = 0;
  // Frees before mallocs (the loads of frees acquire): while other threads go on, no block then seems to be freed that
  // was never handed out.
  s.large.frees = value(totals.large_frees);
  s.large.freed_bytes = value(totals.large_freed);
  sum_counters([&s](const ClassCounters* counts) {
    for (unsigned k = 1; k < size_class_count; ++k)
      s.classes[k].frees += value(counts[k].frees);
  });
  sum_counters([&s](const ClassCounters* counts) {
    for (unsigned k = 1; k < size_class_count; ++k) {
      s.classes[k].mallocs += value(counts[k].mallocs);
      s.classes[k].requested_bytes += value(counts[k].requested_bytes);
    }
  });
  for (const ThreadCache* c = cache::first(); c != nullptr; c = c->next_cache) {
    if (c->counters == nullptr) continue;
    for (unsigned k = 1; k < size_class_count; ++k)
      high[k] = std::max(high[k], c->counters->classes[k].high.load(std::memory_order_relaxed));
    high_bytes = std::max(high_bytes, c->counters->high_bytes.load(std::memory_order_relaxed));
  }
  s.large.mallocs = value(totals.large_mallocs);
  s.large.requested_bytes = value(totals.large_requested);
  s.large.allocated_bytes = value(totals.large_allocated);
  s.large.live_bytes = s.large.allocated_bytes - s.large.freed_bytes;
  s.large.live_spans = s.large.mallocs - s.large.frees;
  s.large.peak_live_bytes = std::max(value(totals.large_peak_bytes), s.large.live_bytes);
  s.mallocs = s.large.mallocs;
  s.frees = s.large.frees;
  s.requested_bytes = s.large.requested_bytes;
  s.allocated_bytes = s.large.allocated_bytes;
  s.freed_bytes = s.large.freed_bytes;
  for (unsigned k = 1; k < size_class_count; ++k) {
    ClassFigures& figures = s.classes[k];
    figures.live_blocks = figures.mallocs - figures.frees;
    figures.peak_live_blocks = peak(totals.live_blocks[k], totals.peak_blocks[k], high[k], figures.live_blocks);
    s.mallocs += figures.mallocs;
    s.frees += figures.frees;
    s.requested_bytes += figures.requested_bytes;
    s.allocated_bytes += figures.mallocs * figures.block_size;
    s.freed_bytes += figures.frees * figures.block_size;
  }
  s.live_bytes = s.allocated_bytes - s.freed_bytes;
  s.peak_live_bytes = peak(totals.live_bytes, totals.peak_bytes, high_bytes, s.live_bytes);
}

void fill(Snapshot& s) noexcept {
  __builtin_memset(&s, 0, sizeof s);
  for (unsigned k = 1; k < size_class_count; ++k)
    s.classes[k].block_size = class_sizes[k];
  s.counting = cache::counting();
  add_heap(s);
  if (s.counting) add_counts(s);
  s.os = {value(os::call_counts.mmap),        value(os::call_counts.munmap),  value(os::call_counts.mremap),
          value(os::call_counts.mprotect),    value(os::call_counts.madvise), value(os::call_counts.failed),
          value(os::call_counts.purged_bytes)};
  s.foreign = {value(totals.foreign_frees), value(totals.foreign_reallocs), value(totals.foreign_usable_sizes),
               value(totals.foreign_passed), value(totals.late_calls)};
}

// Outside of the locks: it asks about every page.
void add_resident(Snapshot& s) noexcept {
  const size_t first = region::first_index();
  s.resident_bytes = os::resident_bytes(region::address_of(first), (region::limit() - first) * unit_size);
}

}  // namespace

void take_snapshot(Snapshot* out) noexcept {
  if (region_base == nullptr) (void)cache::attach();
  cache::lock_all();
  fill(*out);
  cache::unlock_all();
  add_resident(*out);
}

bool try_take_snapshot(Snapshot* out) noexcept {
  if (region_base == nullptr || !cache::try_lock_all()) return false;
  fill(*out);
  cache::unlock_all();
  add_resident(*out);
  return true;
}

}  // namespace sluice::stats
