// See snapshot.hpp.
#include "stats/snapshot.hpp"

#include <algorithm>
#include <cstddef>

#include "arena/arena.hpp"
#include "guarded/pool.hpp"
#include "heap/counters.hpp"
#include "heap/large.hpp"
#include "heap/slab.hpp"
#include "heap/transfer.hpp"
#include "os/memory.hpp"
#include "profile/profile.hpp"
#include "stats/unit_parts.hpp"

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
  if (unit.use() == UnitState::Slab) {
    // What a fork's child has lost may be half made.
    const ThreadCache* const owner = unit.owner.load(std::memory_order_relaxed);
    if (owner == nullptr || cache::is_lost(owner)) return;
    ClassFigures& figures = s.classes[unit.slab.size_class];
    ++figures.slabs;
    figures.slab_bytes += bytes;
    figures.carved_blocks += unit.slab.carved;
    figures.live_blocks += slab::used_of(&unit);  // those in caches are taken off later
    const uint64_t remote = slab::remote_count(&unit);
    figures.live_blocks -= std::min(figures.live_blocks, remote);
    s.active_bytes += bytes;
  } else if (unit.use() == UnitState::Large && large::is_live(unit)) {
    ++s.large.live_spans;
    s.large.live_bytes += large::usable_size(unit);
    s.active_bytes += bytes;
  } else if (unit.use() == UnitState::Arena) {
    const arena::ChunkFigures chunk = arena::figures_of(unit);
    ++s.arena.chunks;
    s.arena.hot_chunks += chunk.hot ? 1 : 0;
    s.arena.pinned_chunks += chunk.retired ? 1 : 0;
    s.arena.pinned_bytes += chunk.retired ? chunk.free_bytes : 0;
    s.arena.live_bytes += chunk.live_bytes;
    s.active_bytes += bytes;
  } else if (unit.use() == UnitState::Frame) {
    ++s.arena.frame_chunks;
    s.arena.frame_bytes += bytes;
    s.active_bytes += bytes;
  }
}

void add_arenas(Snapshot& s) noexcept {
  const arena::Figures figures = arena::figures();
#define SLUICE_FIGURE_ARENA(name, source, ...) SLUICE_IF_THREAD(source, s.arena.name = figures.name;)
#include "os/statistics.def"
  s.live_bytes += s.arena.live_bytes;
}

// Blocks that the program has freed and that wait in threads' caches, by class. In secure builds alone there are any.
struct WaitingBlocks {
  uint32_t blocks[size_class_count]{};

  WaitingBlocks() noexcept {
    for (const ThreadCache* c = cache::first(); c != nullptr; c = c->next_cache)
      if (c->attached) cache::add_delayed_blocks(*c, blocks);
  }
};

void add_heap(Snapshot& s) noexcept {
  for (size_t i = region::first_span(); i < region::limit();) {
    const Unit& unit = *region::unit_at(i);
    add_span(s, unit);
    i += std::max<size_t>(unit.units, 1);
  }
  // A guarded block is a span of its own, as a large one is.
  const guarded::Figures guarded = guarded::figures();
  s.large.live_spans += guarded.live_blocks;
  s.large.live_bytes += guarded.live_bytes;
  s.guarded_blocks = guarded.live_blocks;
  s.guarded_bytes = guarded.live_bytes;
  s.active_bytes += guarded.slot_bytes;
  size_t own_bytes = 0;  // of spans that threads keep
  for (const ThreadCache* c = cache::first(); c != nullptr; c = c->next_cache) {
    for (unsigned k = 1; k < size_class_count; ++k)
      s.classes[k].cached_blocks += cache::held_blocks(*c, k);
    own_bytes += c->own_spans.units.load(std::memory_order_relaxed) * unit_size;
  }
  for (unsigned k = 1; k < size_class_count; ++k)
    s.classes[k].cached_blocks += cache::transfer::held_blocks(k);
  const WaitingBlocks waiting;
  for (unsigned k = 1; k < size_class_count; ++k) {
    ClassFigures& figures = s.classes[k];
    const profile::ClassFigures sampled = profile::figures(k);
    s.active_bytes += sampled.units * unit_size;
    figures.cached_blocks += waiting.blocks[k];
    figures.live_blocks -= std::min(figures.live_blocks, figures.cached_blocks);
    figures.live_blocks += sampled.live_blocks;
    s.cached_bytes += figures.cached_blocks * figures.block_size;
    s.live_bytes += figures.live_blocks * figures.block_size;
  }
  s.live_bytes += s.large.live_bytes;
  add_arenas(s);
  const region::Figures region = region::figures();
  s.reserved_bytes = region.reserved_bytes - region.gap_bytes + region.metadata_bytes;
  s.mapped_bytes = region.committed_bytes + region.metadata_bytes;
  s.metadata_bytes = region.metadata_bytes;
  s.retained_bytes = region.free_dirty_bytes + own_bytes;
  const cache::ThreadCounts threads = cache::thread_counts();
  s.threads = {threads.live, threads.peak, threads.started, threads.caches};
}

// Add the counters of frees.
void add_freed(ClassFigures& sum, const ClassCounters& counters) noexcept {
#define SLUICE_FIGURE_CLASS(name, source, ...) SLUICE_IF_FREED(source, sum.name += value(counters.name);)
#include "os/statistics.def"
}
void add_freed(LargeFigures& sum, const LargeCounters& counters) noexcept {
#define SLUICE_FIGURE_LARGE(name, source, ...) SLUICE_IF_FREED(source, sum.name += value(counters.name);)
#include "os/statistics.def"
}
void add_freed(ArenaFigures& sum, const ArenaCounters& counters) noexcept {
#define SLUICE_FIGURE_ARENA(name, source, ...) SLUICE_IF_FREED(source, sum.name += value(counters.name);)
#include "os/statistics.def"
}

// Add the counters of allocations.
void add_placed(ClassFigures& sum, const ClassCounters& counters) noexcept {
#define SLUICE_FIGURE_CLASS(name, source, ...) SLUICE_IF_PLACED(source, sum.name += value(counters.name);)
#include "os/statistics.def"
}
void add_placed(LargeFigures& sum, const LargeCounters& counters) noexcept {
#define SLUICE_FIGURE_LARGE(name, source, ...) SLUICE_IF_PLACED(source, sum.name += value(counters.name);)
#include "os/statistics.def"
}
void add_placed(ArenaFigures& sum, const ArenaCounters& counters) noexcept {
#define SLUICE_FIGURE_ARENA(name, source, ...) SLUICE_IF_PLACED(source, sum.name += value(counters.name);)
#include "os/statistics.def"
}

// Calls get(classes, arena, large) with the counters of each cache, and of the threads without one.
template <typename Get>
void for_all_counters(const Get& get) noexcept {
  get(totals.shared, totals.arena, totals.large);
  for (const ThreadCache* c = cache::first(); c != nullptr; c = c->next_cache)
    if (c->counters != nullptr) get(c->counters->classes, c->counters->arena, c->counters->large);
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
  int64_t high_bytes = 0, high_large_bytes = 0;
  // Frees before mallocs (the loads of frees acquire, and pair with counters::of_frees): while other threads go on, no
  // block then seems to be freed that was never handed out.
  for_all_counters([&s](const ClassCounters* classes, const ArenaCounters& arena, const LargeCounters& large) {
    add_freed(s.large, large);
    add_freed(s.arena, arena);
    for (unsigned k = 1; k < size_class_count; ++k)
      add_freed(s.classes[k], classes[k]);
  });
  // A block is counted as freed when it leaves the cache. These come after the counts: what leaves meanwhile is
  // then counted in neither.
  const WaitingBlocks waiting;
  for (unsigned k = 1; k < size_class_count; ++k)
    s.classes[k].frees += waiting.blocks[k];
  for_all_counters([&s](const ClassCounters* classes, const ArenaCounters& arena, const LargeCounters& large) {
    for (unsigned k = 1; k < size_class_count; ++k)
      add_placed(s.classes[k], classes[k]);
    add_placed(s.arena, arena);
    add_placed(s.large, large);
  });
  for (const ThreadCache* c = cache::first(); c != nullptr; c = c->next_cache) {
    if (c->counters == nullptr) continue;
    for (unsigned k = 1; k < size_class_count; ++k)
      high[k] = std::max(high[k], counters::untold_high(c->counters->classes[k].live));
    high_bytes = std::max(high_bytes, counters::untold_high(c->counters->live_bytes));
    high_large_bytes = std::max(high_large_bytes, counters::untold_high(c->counters->live_large_bytes));
  }
  s.large.live_bytes = s.large.allocated_bytes - s.large.freed_bytes;
  s.large.live_spans = s.large.mallocs - s.large.frees;
  s.large.peak_live_bytes =
      peak(totals.large_live_bytes, totals.large_peak_bytes, high_large_bytes, s.large.live_bytes);
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

// Requires all locks. Takes note of what each unit serves for, if asked. Returns: whether the heap has holes.
bool fill(Snapshot& s, UnitParts* parts) noexcept {
  __builtin_memset(&s, 0, sizeof s);
  for (unsigned k = 1; k < size_class_count; ++k)
    s.classes[k].block_size = class_sizes[k];
  s.counting = cache::counting();
  add_heap(s);
  if (s.counting) add_counts(s);
#define SLUICE_FIGURE_OS(name, ...) s.os.name = value(os::call_counts.name);
#define SLUICE_FIGURE_FOREIGN(name, ...) s.foreign.name = value(totals.foreign.name);
#include "os/statistics.def"
  if (parts != nullptr) parts->note();
  return region::figures().has_holes;
}

// Outside of the locks: it asks about every page.
void add_resident(Snapshot& s, const UnitParts& parts, bool has_holes) noexcept {
  if (!os::tells_resident()) return;
  constexpr size_t usual_piece = size_t{16} << 20;
  struct Sum {
    const UnitParts& parts;
    ResidentFigures& figures;
  } sum{parts, s.resident};
  const auto add = [](void* context, size_t offset, size_t bytes) noexcept {
    const Sum& to = *static_cast<Sum*>(context);
    to.parts.add(to.figures, offset, bytes);
  };
  const size_t first = region::first_index();
  s.resident_bytes =
      os::resident_bytes(region::address_of(first), (parts ? parts.count() : region::limit() - first) * unit_size,
                         has_holes ? unit_size : usual_piece, parts ? +add : nullptr, &sum);
}

}  // namespace

void take_snapshot(Snapshot* out) noexcept {
  if (region_base == nullptr) (void)cache::attach();
  cache::lock_all();
  UnitParts parts;
  const bool has_holes = fill(*out, &parts);
  cache::unlock_all();
  add_resident(*out, parts, has_holes);
}

void take_figures(Snapshot* out) noexcept {
  if (region_base == nullptr) (void)cache::attach();
  cache::lock_all();
  (void)fill(*out, nullptr);
  cache::unlock_all();
}

bool try_take_snapshot(Snapshot* out) noexcept {
  if (region_base == nullptr || !cache::try_lock_all()) return false;
  UnitParts parts;
  const bool has_holes = fill(*out, &parts);
  cache::unlock_tried();
  add_resident(*out, parts, has_holes);
  return true;
}

}  // namespace sluice::stats
