// See snapshot.hpp.
#include "stats/snapshot.hpp"

#include <algorithm>

#include "arena/arena.hpp"
#include "heap/counters.hpp"
#include "heap/guarded.hpp"
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
  } else if (unit.state == UnitState::Large && class_bytes()[region::index_of(&unit)] != class_byte_none) {
    ++s.large.live_spans;
    s.large.live_bytes += large::usable_size(unit);
    s.active_bytes += bytes;
  } else if (unit.state == UnitState::Arena) {
    const arena::ChunkFigures chunk = arena::figures_of(unit);
    ++s.arena.chunks;
    s.arena.hot_chunks += chunk.hot ? 1 : 0;
    s.arena.pinned_chunks += chunk.retired ? 1 : 0;
    s.arena.pinned_bytes += chunk.retired ? chunk.free_bytes : 0;
    s.arena.live_bytes += chunk.live_bytes;
    s.active_bytes += bytes;
  } else if (unit.state == UnitState::Frame) {
    ++s.arena.frame_chunks;
    s.arena.frame_bytes += bytes;
    s.active_bytes += bytes;
  }
}

void add_arenas(Snapshot& s) noexcept {
  const arena::Figures figures = arena::figures();
  s.arena.scopes = figures.scopes;
  s.arena.chunks_opened = figures.chunks_opened;
  s.arena.chunks_recycled = figures.holes_opened;
  s.arena.back_offs = figures.back_offs;
  s.arena.stale_leaves = figures.stale_leaves;
  s.arena.abandoned_scopes = figures.abandoned;
  s.arena.depth_overflows = figures.overflows;
  s.arena.frame_chunks_opened = figures.frame_chunks_opened;
  s.live_bytes += s.arena.live_bytes;
}

// Blocks that the program has freed and that wait in threads' caches, by class. In secure builds alone there are any.
struct WaitingBlocks {
  uint32_t blocks[size_class_count]{};

  WaitingBlocks() noexcept {
    for (const ThreadCache* c = cache::first(); c != nullptr; c = c->next_cache)
      if (c->attached) cache::add_kept_blocks(*c, blocks);
  }
};

void add_heap(Snapshot& s) noexcept {
  for (size_t i = region::first_index(); i < region::limit();) {
    const Unit& unit = *region::unit_at(i);
    add_span(s, unit);
    i += std::max<size_t>(unit.units, 1);
  }
  // A guarded block is a span of its own, as a large one is.
  const guarded::Figures guarded = guarded::figures();
  s.large.live_spans += guarded.live_blocks;
  s.large.live_bytes += guarded.live_bytes;
  s.active_bytes += guarded.slot_bytes;
  for (const ThreadCache* c = cache::first(); c != nullptr; c = c->next_cache) {
    if (!c->attached) continue;
    for (unsigned k = 1; k < size_class_count; ++k)
      s.classes[k].cached_blocks += cache::held_blocks(*c, k);
  }
  const WaitingBlocks waiting;
  for (unsigned k = 1; k < size_class_count; ++k) {
    ClassFigures& figures = s.classes[k];
    figures.cached_blocks += waiting.blocks[k];
    figures.live_blocks -= std::min(figures.live_blocks, figures.cached_blocks);
    s.cached_bytes += figures.cached_blocks * figures.block_size;
    s.live_bytes += figures.live_blocks * figures.block_size;
  }
  s.live_bytes += s.large.live_bytes;
  add_arenas(s);
  const region::Figures region = region::figures();
  s.reserved_bytes = region.reserved_bytes + region.metadata_bytes;
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

// Adds the arena counters of one cache, or those of threads without one; `frees`: those of frees alone.
void add_arena_counts(ArenaFigures& arena, const ArenaCounters& counts, bool frees) noexcept {
  if (frees) {
    arena.lifo_frees += value(counts.lifo_frees);
    arena.out_of_order_frees += value(counts.out_of_order_frees);
    arena.remote_frees += value(counts.remote_frees);
    arena.freed_bytes += value(counts.freed_bytes);
  } else {
    arena.objects += value(counts.objects);
    arena.requested_bytes += value(counts.requested_bytes);
    arena.bytes += value(counts.allocated_bytes);
    arena.grown_in_place += value(counts.grown_in_place);
  }
}

void sum_arena_counts(ArenaFigures& arena, bool frees) noexcept {
  add_arena_counts(arena, totals.arena, frees);
  for (const ThreadCache* c = cache::first(); c != nullptr; c = c->next_cache)
    if (c->counters != nullptr) add_arena_counts(arena, c->counters->arena, frees);
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
  sum_arena_counts(s.arena, true);
  sum_counters([&s](const ClassCounters* counts) {
    for (unsigned k = 1; k < size_class_count; ++k)
      s.classes[k].frees += value(counts[k].frees);
  });
  // A block is counted as freed when it leaves the cache. These come after the counts: what leaves meanwhile is
  // then counted in neither.
  const WaitingBlocks waiting;
  for (unsigned k = 1; k < size_class_count; ++k)
    s.classes[k].frees += waiting.blocks[k];
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
  sum_arena_counts(s.arena, false);
  s.large.mallocs = value(totals.large_mallocs);
  s.large.requested_bytes = value(totals.large_requested);
  s.large.allocated_bytes = value(totals.large_allocated);
  s.large.live_bytes = s.large.allocated_bytes - s.large.freed_bytes;
  s.large.live_spans = s.large.mallocs - s.large.frees;
  s.large.peak_live_bytes = std::max(value(totals.large_peak_bytes), s.large.live_bytes);
  s.arena.live_bytes = s.arena.bytes - s.arena.freed_bytes;
  s.mallocs = s.large.mallocs + s.arena.objects;
  s.frees = s.large.frees + s.arena.lifo_frees + s.arena.out_of_order_frees + s.arena.remote_frees;
  s.requested_bytes = s.large.requested_bytes + s.arena.requested_bytes;
  s.allocated_bytes = s.large.allocated_bytes + s.arena.bytes;
  s.freed_bytes = s.large.freed_bytes + s.arena.freed_bytes;
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
