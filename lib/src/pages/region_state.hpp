// What the region knows: how far its address space and tables reach, its free spans, gaps and holes. For the sources of
// the region alone; open it to add to that.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/layout.hpp"
#include "base/mutex.hpp"
#include "base/thread_safety.hpp"
#include "pages/free_spans.hpp"
#include "pages/units.hpp"

namespace sluice::region {

inline constexpr size_t least_reserved = 16;  // units by which a reservation grows at least
inline constexpr unsigned most_bare_gaps = 16;

// Of a wide gap only descriptors and class bytes are laid out: the other tables are larger by far, and nobody looks
// there, since nothing ever lies in it.
struct BareGap {
  size_t from;
  size_t end;
};

// Units of a block that programs may touch little of.
inline constexpr size_t may_stay_untouched = (size_t{32} << 20) / unit_size;

// What decides how many free pages are kept: see purge.cpp. In units and ms.
struct Keeping {
  uint64_t epoch_ms;      // when the epoch began; it is as long as the delay
  size_t peak[2];         // most units in use, in this epoch and in the one before
  size_t purged[2];       // units that went because they were too many, and were not needed since; likewise
  size_t purged_at_end;   // likewise, but since a phase ended, as long as ends come soon one after the other…
  uint64_t ended_ms;      // …when one last ended…
  uint64_t purged_ms;     // …and when such units last went…
  size_t missed_at_end;   // …and how much was needed again soon after, until as much got old: so much stays then
  size_t aged[2];         // units that went because of their age; likewise
  size_t early[2];        // units that went before they had that age; likewise
  size_t look_below;      // when so few units are in use, somebody should look at what caches hold; 0: not yet…
  size_t needed_at_look;  // …and how many of those in use were needed when somebody did
  size_t early_left;      // so many units may go early now…
  uint64_t early_ms;      // …as of then; later than now while more went than may
  size_t gone_at_look;    // units that went early when somebody last looked at a cache, and were not needed since…
  uint64_t looked_ms;     // …and when that was
  uint64_t settled_ms;    // when recent spans last became dirty ones because of their age
  ptrdiff_t learnt;       // how many more units are kept than at first, or fewer: what was missed, less what got old
  std::atomic<int> delay_shift;  // the delay is the option's, doubled so often; halved if negative
  bool doubled;                  // the delay, in this epoch
  bool took_fresh;               // the last span that was taken had pages that were not in memory
  unsigned calm_epochs;          // in which pages went because of their age, since such pages were last needed again
};

// How many units may be recent or granted to threads: FreeSpans::most_recent, and more where that costs time for good.
// Decision: lib/docs/decisions/045-lists-change-places-at-once.md.
struct Passing {
  size_t granted;      // units that threads may keep in place of recent ones (heap/own_spans.hpp)
  unsigned puts;       // how many spans became recent
  unsigned doublings;  // of most_recent
  // Spans of each length that were joined since there were too many, the last time and the time before, and which
  // nobody asked for since…
  uint8_t joined[2][FreeSpans::longest_recent + 1];
  size_t missed;      // …and for how many somebody did, less twice the requests for others, since…
  uint64_t since_ms;  // …then
};

struct State {
  Mutex lock{LockRank::Region};
  FreeSpans spans;
  Passing passing;
  Keeping keeping;
  size_t range_units;        // the range ends here, and with it the class bytes and descriptors
  size_t reserved_units;     // the reservation of units ends here
  size_t address_limit;      // bytes of address space that the process may have, as far as is known; SIZE_MAX: no limit
  size_t first;              // units below hold class bytes and descriptors
  size_t described_from;     // descriptors and bitmaps are committed from here…
  size_t described[4];       // …up to here: descriptors, free bitmaps, remote bitmaps, block states…
  size_t laid_out[4];        // …whose address space is reserved up to here
  size_t classed_units;      // class bytes can be written up to here
  size_t readable_units;     // class bytes can be read up to here; whole units of them…
  size_t readable_laid_out;  // …whose address space is reserved up to here
  size_t metadata_units;     // units that allocate_metadata has used
  bool piecewise;            // the range is reserved as the heap grows, not at once
  size_t gap_units;          // of the range that others use, and of holes
  BareGap bare_gaps[most_bare_gaps];
  unsigned bare_gap_count;
  size_t bare_units;         // units without bitmaps and block states
  uint32_t holes;            // free spans whose address space was given back, linked by `gap.next`…
  uint32_t hole_count;       // …and how many: each costs a mapping
  uint64_t made_room_ms;     // when a request last failed, and address space went back after that
  size_t purging_spans;      // being purged, or emptied, without the lock
  size_t purging_units;      // likewise
  size_t purged_since;       // units that were purged since pages of the bitmaps last went
  bool purge_refused;        // the last purge failed: locked memory, most likely…
  uint64_t refused_ms;       // …at this time
  bool move_refused;         // likewise the last move of pages that are free…
  uint64_t move_refused_ms;  // …at this time
  struct {
    size_t left;
    uint64_t counted_ms;
  } short_moves;      // so many short pieces may be moved now; as of then
  size_t whole_from;  // units below are not known to be spans side by side; 0: all are
  struct {
    char* next;
    size_t bytes;
  } metadata[most_nodes];  // what is left of the last units that allocate_metadata has used, by memory node
};
extern constinit State state __attribute__((visibility("hidden")));
// Whether the process may have so much address space and no more: then what is free of it goes back.
inline bool is_limited() noexcept SLUICE_REQUIRES(state.lock) {
  return state.address_limit != SIZE_MAX;
}
// Written under the lock; relaxed, see limit().
extern constinit std::atomic<size_t> committed_limit __attribute__((visibility("hidden")));
// What signal handlers that interrupt the region get: the first unit of a span that the free ones do not know.
extern constinit std::atomic<uint32_t> handler_reserve __attribute__((visibility("hidden")));
inline size_t units_in_reserve() noexcept {
  const size_t index = handler_reserve.load(std::memory_order_relaxed);
  return index != unit_index_none ? region_units[index].units : 0;
}

// See keep_free().
inline constexpr size_t as_options_say = SIZE_MAX;
extern constinit std::atomic<size_t> kept_free __attribute__((visibility("hidden")));
// Whether free pages stay for good.
inline bool all_stay() noexcept {
  return kept_free.load(std::memory_order_relaxed) == as_options_say - 1;
}

constexpr size_t round_up(size_t value, size_t multiple) noexcept {
  return (value + multiple - 1) / multiple * multiple;
}

constexpr size_t greater(size_t a, size_t b) noexcept {
  return a > b ? a : b;
}

constexpr size_t lesser(size_t a, size_t b) noexcept {
  return a < b ? a : b;
}

// What threads may keep for themselves, as far as it counts: what one had been granted when others came does not keep
// theirs from being recent.
inline size_t granted_units() noexcept SLUICE_REQUIRES(state.lock) {
  const size_t all = state.passing.granted;
  return has_several_threads.load(std::memory_order_relaxed) ? lesser(all, FreeSpans::most_granted) : all;
}

// These, and units of recent spans: most of them serve again in a moment.
inline size_t passing_units() noexcept SLUICE_REQUIRES(state.lock) {
  return state.spans.recent_units() + granted_units();
}

// How many these may be now.
inline size_t most_passing() noexcept SLUICE_REQUIRES(state.lock) {
  return FreeSpans::most_recent << state.passing.doublings;
}

// Writes what a span serves for and how long it is.
inline void set_ends(size_t index, size_t units, UnitState use) noexcept {
  Unit* head = region_units + index;
  head[units - 1].set_use(use == UnitState::Large ? UnitState::LargeTail : use);
  head->set_use(use);
  head->units = static_cast<uint32_t>(units);
}

// The span takes up another life: what the head of its first unit has stays, the fields of that life are zero.
inline void begin_span(size_t index, size_t units, UnitState use) noexcept {
  set_ends(index, units, use);
  Unit& unit = region_units[index];
  if (use == UnitState::Slab) unit.slab = {};
  if (use == UnitState::Large) unit.large = {};
  if (use == UnitState::Arena) unit.chunk = {};
  if (use == UnitState::Gap) unit.gap = {};
}

}  // namespace sluice::region
