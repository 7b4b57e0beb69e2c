// See recycle.hpp.
#include "pages/recycle.hpp"

#include "base/options.hpp"
#include "os/memory.hpp"
#include "pages/lost_spans.hpp"
#include "pages/mappings.hpp"
#include "pages/nodes.hpp"
#include "pages/purge.hpp"
#include "pages/reservation.hpp"

namespace sluice::region {
namespace {

constexpr unsigned most_candidates = 32;    // dirty spans looked at
constexpr unsigned most_moves = 32;         // for one request
constexpr uint64_t short_moves_a_ms = 2;    // come for pieces below worth_moving: a fiftieth of the time…
constexpr uint64_t most_short_moves = 256;  // …and so many are saved up
constexpr uint32_t left_for_long = most_displaced_mappings / 2;  // mappings left by such pieces and by blocks that grow
constexpr size_t longest_of_short =
    (size_t{4} << 20) / unit_size;  // units of a block that grows, for pieces of any length…
constexpr size_t longest_filled = (size_t{64} << 20) / unit_size;  // …and for longer ones

// Pages that go from a dirty span to the place where they are needed: those of one mapping.
struct Move {
  uint32_t from, to;
  uint32_t units;
  bool done;
  Dropped left;  // what became of the place that they left
};

// A dirty span that gives some of its pages; it is in no list meanwhile.
struct Source {
  uint32_t index, units;
  uint64_t freed_at;
  unsigned first_move, end_move;
};

struct Plan {
  Plan() noexcept : move_count(0), source_count(0), source_units(0) {}  // the arrays are written as they are needed
  Move moves[most_moves];
  Source sources[most_candidates];
  unsigned move_count, source_count;
  size_t source_units;
};

bool is(size_t index, UnitState state) noexcept {
  return region_units[index].use() == state;
}

// Returns: of the oldest dirty spans of the node the longest one that has `units` together with its clean neighbours.
size_t find_mixed(size_t units, unsigned node, size_t* clean_before) noexcept SLUICE_REQUIRES(state.lock) {
  size_t best = unit_index_none;
  unsigned looked = 0;
  for (uint32_t at = state.spans.oldest(); at != unit_index_none && looked < most_candidates;
       at = region_units[at].free.newer, ++looked) {
    if (nodes::of(at) != node) continue;
    const size_t length = region_units[at].units;
    const size_t end = at + length;
    const size_t before = at > state.first && is(at - 1, UnitState::FreeClean) ? region_units[at - 1].units : 0;
    const size_t behind = end < limit() && is(end, UnitState::FreeClean) ? region_units[end].units : 0;
    if (before + length + behind < units || (best != unit_index_none && region_units[best].units >= length)) continue;
    best = at;
    *clean_before = before;
  }
  return best;
}

// Takes the units for the request out of the lists: those from *dirty_from to *dirty_end are dirty, the others clean.
// Where they are to be aligned, all are clean.
size_t take_place(size_t units, FreeSpans::Alignment alignment, unsigned node, bool may_move, size_t* dirty_from,
                  size_t* dirty_end) noexcept SLUICE_REQUIRES(state.lock) {
  size_t before = 0;
  const size_t dirty = alignment.units == 1 ? find_mixed(units, node, &before) : unit_index_none;
  if (dirty != unit_index_none) {
    const size_t end = dirty + region_units[dirty].units;
    const bool clean_behind = end < limit() && is(end, UnitState::FreeClean);
    const size_t all_end = clean_behind ? end + region_units[end].units : end;
    const size_t start = dirty + units <= all_end ? dirty : all_end - units;
    const uint64_t freed_at = region_units[dirty].free.freed_at;
    state.spans.remove(dirty);
    if (start < dirty) state.spans.remove(dirty - before);
    if (start + units > end) state.spans.remove(end);
    set_ends(start, units, UnitState::Large);  // what is over looks at its neighbours
    if (start < dirty && dirty - before < start) state.spans.insert(dirty - before, start - (dirty - before), true, 0);
    if (start + units > end && start + units < all_end)
      state.spans.insert(start + units, all_end - start - units, true, 0);
    // It may be longer than what is wanted: lists of mixed lengths are not searched to their ends.
    if (start + units < end) {
      nodes::set(start + units, node);
      state.spans.insert(start + units, end - start - units, false, freed_at);
    }
    *dirty_from = dirty;
    *dirty_end = lesser(end, start + units);
    return start;
  }
  if (!may_move) return unit_index_none;
  const size_t padded = units + alignment.units - 1;
  size_t clean = state.spans.find_aligned_clean(units, alignment);
  if (clean == unit_index_none && (take_hole(padded) || grow_commit(padded)))
    clean = state.spans.find_aligned_clean(units, alignment);
  if (clean == unit_index_none) return clean;
  const size_t from = clean + alignment.skip(clean);
  state.spans.carve_within(clean, from, units);
  *dirty_from = *dirty_end = from;
  return from;
}

// How many pieces below worth_moving may be moved now.
size_t short_moves_left() noexcept SLUICE_REQUIRES(state.lock) {
  if (has_several_threads.load(std::memory_order_relaxed) || mappings_left() <= left_for_long || options.huge_pages)
    return 0;
  const uint64_t now = os::clock_ms();
  const uint64_t passed = lesser(now - state.short_moves.counted_ms, most_short_moves);
  if (passed != 0) {
    state.short_moves.left = lesser(state.short_moves.left + passed * short_moves_a_ms, most_short_moves);
    state.short_moves.counted_ms = now;
  }
  return state.short_moves.left;
}

// Takes dirty spans of the node, the oldest first, for the pages that the units from `to` to `end` lack.
void plan_moves(Plan& plan, size_t to, size_t end, unsigned node, bool any_length) noexcept
    SLUICE_REQUIRES(state.lock) {
  size_t short_left = any_length ? short_moves_left() : 0;
  unsigned looked = 0;
  for (uint32_t at = state.spans.oldest(), newer; at != unit_index_none && to < end && looked < most_candidates;
       at = newer, ++looked) {
    Unit& span = region_units[at];
    newer = span.free.newer;
    if ((span.units < worth_moving && short_left == 0) || plan.source_count == most_candidates || nodes::of(at) != node)
      continue;
    Source source{at, span.units, span.free.freed_at, plan.move_count, plan.move_count};
    for (size_t i = at; i < at + source.units && to < end && plan.move_count < most_moves;) {
      const size_t length = mapping_length(i, at + source.units - i);
      const size_t taken = lesser(length, end - to);
      const bool is_short = taken < worth_moving;
      if (!is_short || (short_left != 0 && advice_of(i) != PageAdvice::Huge)) {  // a huge page would be split for it
        short_left -= is_short ? 1 : 0;
        plan.moves[plan.move_count++] = {static_cast<uint32_t>(i), static_cast<uint32_t>(to),
                                         static_cast<uint32_t>(taken), false, Dropped::No};
        to += taken;
      }
      i += length;
    }
    if (plan.move_count == source.first_move) continue;
    source.end_move = plan.move_count;
    state.spans.remove(at);
    set_ends(at, source.units, UnitState::Purging);
    span.purging = {thread_token()};
    plan.sources[plan.source_count++] = source;
    plan.source_units += source.units;
  }
  if (any_length) state.short_moves.left = lesser(state.short_moves.left, short_left);
}

// Whether the program locked pages that it has freed since: if they moved, the system would unlock their neighbours
// too. The question drops what is in the first and the last page.
bool is_locked(const Move& move) noexcept {
  char* const start = address_of(move.from);
  return os::is_locked(start) || os::is_locked(start + move.units * unit_size - os::page_size());
}

// Moves the pages, and maps anew what they leave if that had a mapping of its own. Without the lock. Returns: whether
// the system did all of it.
bool carry_out(Plan& plan) noexcept {
  if (plan.move_count == 0) return true;
  if (os::is_memory_locked()) return false;  // what is left behind would not be locked any more
  for (unsigned i = 0; i < plan.move_count; ++i) {
    Move& move = plan.moves[i];
    if (is_locked(move)) return false;
    move.done = move_units(move.from, move.to, move.units) == move.units;
    if (!move.done) return false;
    move.left = join_emptied(move.from, move.units);
  }
  return true;
}

// Clears what of the place is in memory: its own dirty units, and the pages that came. Without the lock.
void clear(const Plan& plan, size_t dirty_from, size_t dirty_end) noexcept {
  __builtin_memset(address_of(dirty_from), 0, (dirty_end - dirty_from) * unit_size);
  for (unsigned i = 0; i < plan.move_count && plan.moves[i].done; ++i)
    __builtin_memset(address_of(plan.moves[i].to), 0, plan.moves[i].units * unit_size);
}

void put_lost(size_t index, size_t units) noexcept SLUICE_REQUIRES(state.lock) {
  begin_span(index, units, UnitState::Large);
  lost_spans::put(index);
}

// Calls `part(index, units, move)` for each part of a source: what a move has emptied, and the dirty rest, without one.
template <typename Part>
void for_each_part(const Plan& plan, const Source& source, Part part) noexcept {
  uint32_t at = source.index;
  for (unsigned i = source.first_move; i < source.end_move && plan.moves[i].done; ++i) {
    const Move& move = plan.moves[i];
    if (move.from > at) part(at, move.from - at, nullptr);
    part(move.from, move.units, &move);
    at = move.from + move.units;
  }
  const uint32_t end = source.index + source.units;
  if (end > at) part(at, end - at, nullptr);
}

// Gives a source back to the lists.
void settle(const Plan& plan, const Source& source) noexcept SLUICE_REQUIRES(state.lock) {
  // The ends come first: each part looks at its neighbours.
  for_each_part(plan, source,
                [](uint32_t at, uint32_t units, const Move*) { set_ends(at, units, UnitState::Purging); });
  for_each_part(plan, source, [&source](uint32_t at, uint32_t units, const Move* move) SLUICE_UNCHECKED_LOCKS {
    nodes::set(at, nodes::of(source.index));
    if (move == nullptr) return state.spans.insert(at, units, false, source.freed_at);
    note_moved(at, move->to, units);
    if (move->left == Dropped::Renewed) note_renewed(at, units);
    if (move->left == Dropped::Lost)
      put_lost(at, units);
    else
      state.spans.insert(at, units, true, 0);
  });
}

// What became of units to which pages were to be moved.
struct Filled {
  bool all;      // as was planned; else a part may have been
  bool renewed;  // they read as zero, and note_renewed() is due
  bool lost;     // they have no mapping any more
  size_t came;   // so many units came with their pages
};

bool may_move_now() noexcept SLUICE_REQUIRES(state.lock) {
  return mappings_left() >= most_moves &&
         (!state.move_refused || os::clock_ms() - state.move_refused_ms >= purge_delay());
}

// Moves what is planned to units of the span [index, index + units), of which [dirty_from, dirty_end) was in memory;
// with `cleared` it clears what is. Lets go of the lock meanwhile.
Filled carry_out_unlocked(Plan& plan, size_t index, size_t units, bool cleared, size_t dirty_from,
                          size_t dirty_end) noexcept SLUICE_REQUIRES(state.lock) {
  state.purging_spans += plan.source_count;
  state.purging_units += plan.source_units;
  state.lock.unlock();
  const bool all = carry_out(plan);
  const bool mapped = all || os::is_mapped(address_of(index), units * unit_size);
  const bool renewed = !mapped && renew(index, units);
  if (all && cleared) clear(plan, dirty_from, dirty_end);
  state.lock.lock();
  state.purging_spans -= lesser(plan.source_count, state.purging_spans);  // a fork may have given them up
  state.purging_units -= lesser(plan.source_units, state.purging_units);
  if (plan.move_count != 0) state.move_refused = !all;
  if (!all) state.move_refused_ms = os::clock_ms();
  for (unsigned i = 0; i < plan.source_count; ++i)
    settle(plan, plan.sources[i]);
  size_t came = 0;
  for (unsigned i = 0; i < plan.move_count && plan.moves[i].done && !renewed; ++i) {
    came += plan.moves[i].units;
    os::call_counts.recycled_bytes.fetch_add(plan.moves[i].units * unit_size, std::memory_order_relaxed);
  }
  if (renewed) note_renewed(index, units);
  return {all, renewed, !mapped && !renewed, came};
}

// Apart, since most spans are shorter than is worth it.
__attribute__((noinline)) size_t recycle_worthy(size_t units, FreeSpans::Alignment alignment, unsigned node,
                                                bool cleared, bool* clean) noexcept SLUICE_REQUIRES(state.lock) {
  const bool may_move = may_move_now();
  size_t dirty_from = 0;
  size_t dirty_end = 0;
  const size_t index = take_place(units, alignment, node, may_move, &dirty_from, &dirty_end);
  if (index == unit_index_none) return index;
  begin_span(index, units, UnitState::Large);
  nodes::set(index, node);
  Plan plan;
  if (may_move) {
    plan_moves(plan, index, dirty_from, node, !cleared);
    plan_moves(plan, dirty_end, index + units, node, !cleared);
  }
  const Filled filled = carry_out_unlocked(plan, index, units, cleared, dirty_from, dirty_end);
  if (filled.lost) {
    put_lost(index, units);
    return unit_index_none;
  }
  const size_t fresh = units - (dirty_end - dirty_from) - filled.came;
  // What the system refused may have been done in part.
  *clean = filled.all ? cleared || fresh == units : filled.renewed;
  note_use(fresh);
  return index;
}

// Of blocks as large as that programs may touch little: tables of hash maps, buffers for the worst case. Pages under
// what is not touched would stay in memory with them, while others fault. Where as much as half of the
// block is free in memory, blocks like it most likely come and go, and are written to.
inline bool may_stay_clean(size_t units) noexcept SLUICE_REQUIRES(state.lock) {
  return units >= may_stay_untouched && state.spans.dirty_units() < units / 2 && !all_stay() && !is_limited();
}

}  // namespace

size_t recycle(size_t units, FreeSpans::Alignment alignment, unsigned node, bool cleared, bool* clean) noexcept {
  if (units < (cleared ? worth_moving : worth_moving_alone) || may_stay_clean(units)) return unit_index_none;
  const size_t least = cleared || short_moves_left() == 0 ? worth_moving : worth_moving_alone;
  if (units < least || state.spans.dirty_units() < least) return unit_index_none;
  return recycle_worthy(units, alignment, node, cleared, clean);
}

size_t fill(size_t index, size_t units, size_t had, unsigned node) noexcept {
  if (units > had || had + units > longest_filled || mappings_left() <= left_for_long) return units;
  const bool any_length = had + units <= longest_of_short && short_moves_left() != 0;
  const size_t least = any_length ? 1 : worth_moving;
  if (units < least || state.spans.dirty_units() < least || !may_move_now()) return units;
  (void)settle_recent(node);
  Plan plan;
  plan_moves(plan, index, index + units, node, any_length);
  if (plan.move_count == 0) return units;
  const Filled filled = carry_out_unlocked(plan, index, units, false, index, index);
  return filled.lost ? units + 1 : units - filled.came;
}

}  // namespace sluice::region
