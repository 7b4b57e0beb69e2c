// See purge.hpp.
#include "pages/purge.hpp"

#include <algorithm>

#include "base/options.hpp"
#include "os/memory.hpp"
#include "pages/early.hpp"
#include "pages/huge_pages.hpp"
#include "pages/lost_spans.hpp"
#include "pages/mappings.hpp"
#include "pages/nodes.hpp"
#include "pages/region.hpp"
#include "pages/reservation.hpp"

namespace sluice::region {
namespace {

constexpr size_t kept_at_first = (size_t{16} << 20) / unit_size;        // units, before anything is learnt…
constexpr size_t kept_for_next_phase = (size_t{64} << 20) / unit_size;  // …or at most, of what was missed after an end
constexpr size_t part_of_gone = 4;      // so much less is kept of what went lately, and was not missed
constexpr size_t part_touched = 3;      // of a block that programs may touch little of: such a part counts as missed
constexpr uint64_t soon_after_end = 8;  // purge delays
constexpr size_t almost_over = 3;       // the need to what is in use, when a little goes whatever its age…
constexpr size_t over = 64;             // …and nothing is left for what else may be freed
constexpr size_t shrunk = 8;            // the need to what is in use, at the end of a phase…
constexpr size_t kept_at_end = (size_t{1} << 20) / unit_size;   // …when so many units stay
constexpr size_t worth_a_look = (size_t{4} << 20) / unit_size;  // no heap that needs less is looked at where it shrinks
constexpr size_t least_step = (size_t{1} << 19) / unit_size;    // by which it shrinks until it is looked at again
constexpr size_t least_allowance = size_t{2} << 20;             // bytes that may stay dirty in any case…
constexpr size_t worth_purging = size_t{1} << 19;  // …and so many more at most, so that not each free is a system call
constexpr int least_delay_shift = -6;              // from a second to 15 ms…
constexpr int most_delay_shift = 3;                // …or 8 s
constexpr uint64_t least_learnt_delay = 15;        // ms
constexpr uint64_t after_refusal = 60'000;         // ms; what is refused stays so: memory that the program has locked
constexpr unsigned calm_enough = 8;                // epochs in which pages went by age and none was missed
constexpr uint64_t part_of_delay = 16;             // after such a part of SLUICE_PURGE_DELAY pages go early
constexpr unsigned purge_batch = 16;               // spans purged for one release of the lock
constexpr size_t tables_are_due = (size_t{64} << 20) / unit_size;   // units purged before pages of bitmaps go…
constexpr size_t space_is_due = tables_are_due / 8;                 // …or less where address space is limited…
constexpr size_t worth_for_tables = (size_t{4} << 20) / unit_size;  // …those of so many free units side by side…
constexpr unsigned tables_at_once = 256;                            // …and of no more spans at a time

// Dirty units without recent ones, which count as in use here: most are in use again in a moment.
size_t settled_dirty_units() noexcept {
  return state.spans.dirty_units() - state.spans.recent_units();
}

// Gives back the pages that hold a part of a table alone. It reads as zero then. The system may refuse it.
void drop_part(const void* first, const void* end) noexcept {
  const size_t page = os::page_size();
  const size_t from = round_up(reinterpret_cast<uintptr_t>(first), page);
  const size_t to = reinterpret_cast<uintptr_t>(end) / page * page;
  if (from < to) (void)os::drop(reinterpret_cast<void*>(from), to - from);
}

// As that, for the block states of a span whose own pages are gone: they read as state_new then, which is 0.
void drop_block_states(size_t index, size_t units) noexcept {
  if (checks_blocks) drop_part(block_states_at(index), block_states_at(index + units));
}

}  // namespace

void follow_purge() noexcept {
  if (state.purged_since < worth_for_tables) return;
  state.purged_since = 0;
  state.spans.make_bare(worth_for_tables, tables_at_once, [](size_t index, size_t units) {
    drop_part(free_bitmap_at(index), free_bitmap_at(index + units));
    drop_part(remote_bitmap_at(index), remote_bitmap_at(index + units));
    drop_block_states(index, units);  // short spans that were joined since may have left what lies on one page
  });
  give_back_address_space();
}

namespace {

Dropped drop_all(size_t index, size_t units, Ends split, size_t* present) noexcept {
  if (split.front != 0) split_huge_page(address_of(index), split.front * unit_size);
  if (split.back != 0) split_huge_page(address_of(index + units - split.back), split.back * unit_size);
  const Dropped dropped = drop(index, units, present);
  if (dropped != Dropped::No) drop_block_states(index, units);
  return dropped;
}

// Effects: a span that was to be purged is free again, or lost. Returns: how many units of it are clean now.
size_t put_purged(size_t index, Dropped dropped) noexcept SLUICE_REQUIRES(state.lock) {
  const size_t units = region_units[index].units;
  if (dropped == Dropped::Renewed) note_renewed(index, units);
  if (dropped == Dropped::Lost) {
    begin_span(index, units, UnitState::Large);
    lost_spans::put(index);
    return 0;
  }
  const bool gone = dropped != Dropped::No;
  if (gone) note_gone(index, units * unit_size);
  state.spans.insert(index, units, gone, os::clock_ms());
  if (gone) return units;
  state.purge_refused = true;
  state.refused_ms = os::clock_ms();
  return 0;
}

struct Gone {
  size_t units;
  size_t present;  // so many of them were in memory at most: what was not teaches nothing
};

// Effects: purges the oldest dirty spans, as many units of each as `wanted(span, dirty units)` says, until that is 0 or
// the system refuses. Lets go of the lock meanwhile.
template <typename Wanted>
Gone purge_while(Wanted wanted) noexcept SLUICE_REQUIRES(state.lock) {
  Gone gone{};
  for (bool more = true; more;) {
    uint32_t batch[purge_batch];
    Ends ends[purge_batch];
    unsigned count = 0;
    size_t taken = 0;  // units
    while (count < purge_batch && state.spans.oldest() != unit_index_none) {
      const uint32_t index = state.spans.oldest();
      const size_t units = lesser(wanted(region_units[index], settled_dirty_units()), region_units[index].units);
      if (units == 0) break;
      state.spans.carve(index, units);
      set_ends(index, units, UnitState::Purging);
      region_units[index].purging = {thread_token()};
      ends[count] = note_ends(index, units);
      batch[count++] = index;
      taken += units;
    }
    more = count == purge_batch;
    if (count == 0) break;
    state.purging_spans += count;
    state.purging_units += taken;
    state.lock.unlock();
    Dropped dropped[purge_batch];
    size_t present[purge_batch];  // bytes
    for (unsigned i = 0; i < count; ++i)
      dropped[i] = drop_all(batch[i], region_units[batch[i]].units, ends[i], &present[i]);
    state.lock.lock();
    state.purging_spans -= lesser(count, state.purging_spans);  // a fork may have given them up
    state.purging_units -= lesser(taken, state.purging_units);
    state.purge_refused = false;
    for (unsigned i = 0; i < count; ++i) {
      const size_t units = put_purged(batch[i], dropped[i]);
      gone.units += units;
      gone.present += lesser(units, (present[i] + unit_size - 1) / unit_size);
      more = more && dropped[i] != Dropped::No;
    }
  }
  state.purged_since += gone.units;
  return gone;
}

size_t units_in_use() noexcept {
  return limit() - state.first - state.gap_units - state.spans.clean_units() - settled_dirty_units() -
         state.purging_units - units_in_reserve() - units_in_extents();
}

// Doubles or halves the delay, within the bounds.
void change_delay(int by) noexcept SLUICE_REQUIRES(state.lock) {
  const int shift = state.keeping.delay_shift.load(std::memory_order_relaxed) + by;
  if (shift >= least_delay_shift && shift <= most_delay_shift)
    state.keeping.delay_shift.store(shift, std::memory_order_relaxed);
}

// Changes how many units are kept, within what SLUICE_RETAIN and a limit of address space allow and none.
void learn(ptrdiff_t units) noexcept SLUICE_REQUIRES(state.lock) {
  constexpr auto least = -static_cast<ptrdiff_t>(kept_at_first);
  const auto most = static_cast<ptrdiff_t>(lesser(options.retain, state.address_limit) / unit_size);
  const ptrdiff_t learnt = state.keeping.learnt + units;
  state.keeping.learnt = learnt < least ? least : learnt > most ? most : learnt;
}

// Begins a new epoch if the last one is over.
void note_time() noexcept SLUICE_REQUIRES(state.lock) {
  Keeping& k = state.keeping;
  const uint64_t now = os::clock_ms();
  const uint64_t passed = now - k.epoch_ms;
  const uint64_t delay = purge_delay();
  if (passed < delay) return;
  const bool both_over = passed >= 2 * delay;
  const bool any_aged = k.aged[0] + k.aged[1] != 0;
  const size_t in_use = units_in_use();
  k.epoch_ms = now;
  k.peak[1] = both_over ? in_use : k.peak[0];
  k.peak[0] = in_use;
  k.purged[1] = both_over ? 0 : k.purged[0];
  k.aged[1] = both_over ? 0 : k.aged[0];
  k.early[1] = both_over ? 0 : k.early[0];
  k.purged[0] = k.aged[0] = k.early[0] = 0;
  k.doubled = false;
  // Nobody missed what had become old: it may go sooner.
  if (any_aged && ++k.calm_epochs >= calm_enough) {
    k.calm_epochs = 0;
    change_delay(-1);
  }
}

// Whether a phase of the program seems to be over: something was just freed, and an eighth of the need is in use; or so
// much of what is in use as the program needs.
bool is_end_of_phase(size_t in_use, size_t peak, Change change) noexcept SLUICE_REQUIRES(state.lock) {
  if (change == Change::Over) return true;
  return change == Change::Freed && in_use - lesser(passing_units(), in_use) <= peak / shrunk;
}

// What went at the end of a phase is missed for longer than what else goes: the next phase may come after a while.
bool is_soon_after_end(uint64_t now) noexcept SLUICE_REQUIRES(state.lock) {
  return now - state.keeping.ended_ms <= soon_after_end * purge_delay();
}

// Where more than an eighth of the need stays in use, no end is seen. But a phase was over if nothing went for longer
// than the epochs in which what is missed is learnt.
bool is_soon_after_pause(uint64_t now) noexcept SLUICE_REQUIRES(state.lock) {
  const uint64_t passed = now - state.keeping.purged_ms;
  return passed > 2 * purge_delay() && passed <= soon_after_end * purge_delay();
}

// What was missed is forgotten by half each time that an end comes later.
void note_end() noexcept SLUICE_REQUIRES(state.lock) {
  Keeping& k = state.keeping;
  const uint64_t now = os::clock_ms();
  if (!is_soon_after_end(now)) {
    k.purged_at_end = 0;
    k.missed_at_end /= 2;
  }
  k.ended_ms = now;
}

// Of a block that takes no pages of others no more than what went, however often blocks like it come: what is kept for
// them does not keep them from faulting.
void note_missed_at_end(size_t fresh_units, bool untouched) noexcept SLUICE_REQUIRES(state.lock) {
  Keeping& k = state.keeping;
  const uint64_t now = os::clock_ms();
  if (!is_soon_after_end(now) && !is_soon_after_pause(now)) {
    k.purged_at_end = 0;
    return;
  }
  const size_t part = lesser(k.purged_at_end, fresh_units);
  const size_t most = untouched ? greater(k.missed_at_end, k.purged_at_end) : SIZE_MAX;
  k.purged_at_end -= part;
  k.missed_at_end = lesser(lesser(k.missed_at_end + part, most), greater(k.peak[0], k.peak[1]));
}

// How many units are kept of what the heap needed a short while ago: 16 MiB, and more or less as was learnt, and a
// quarter less of what went in that while and was not missed: who purged a lot pays little more for the rest. Up to
// 64 MiB of what was missed after the end of a phase are kept before the next end, too. At the end itself it is 1 MiB,
// or what is in use, and what was missed: to fill the pages cost several times as much as to give them back.
size_t kept_of_need(size_t lasting, bool is_end) noexcept SLUICE_REQUIRES(state.lock) {
  const Keeping& k = state.keeping;
  const size_t gone = (k.purged[0] + k.purged[1]) / part_of_gone;
  const auto as_learnt = [learnt = static_cast<size_t>(k.learnt), gone](size_t at_first) {
    const size_t kept = at_first + learnt;  // learnt is no less than -kept_at_first
    return kept - lesser(gone, kept);
  };
  const size_t of_phases = as_learnt(kept_for_next_phase);
  if (is_end) return lesser(of_phases, greater(kept_at_end, lasting) + k.missed_at_end);
  return greater(as_learnt(kept_at_first), lesser(of_phases, k.missed_at_end));
}

struct Allowance {
  size_t bytes;
  bool is_end;  // of a phase
};

// How many bytes may stay dirty, recent spans not counted. No more than the heap needed a short while ago, so that
// keeping pages never makes it larger than it was; of that what kept_of_need says; least_allowance beside that; and no
// more than SLUICE_RETAIN leaves beside recent spans. Where address space is limited, what is in use and what is
// retained are three eighths of it together, but for an eighth that may be retained in any case, and for what was
// learnt: of that an eighth of the limit is left alone.
Allowance dirty_allowance(Change change) noexcept SLUICE_REQUIRES(state.lock) {
  const size_t asked = kept_free.load(std::memory_order_relaxed);
  if (asked != as_options_say) return {asked, false};
  note_time();
  const Keeping& k = state.keeping;
  const size_t in_use = units_in_use();
  const size_t peak = greater(greater(k.peak[0], k.peak[1]), in_use);
  const bool is_end = is_end_of_phase(in_use, peak, change);
  if (is_end) note_end();
  const size_t lasting = in_use - lesser(passing_units(), in_use);
  const size_t share = lesser(peak - in_use, kept_of_need(lasting, is_end)) * unit_size + least_allowance;
  const size_t used = in_use * unit_size;
  const size_t eighth = state.address_limit / 8;
  const size_t left = 7 * eighth - lesser(used, 7 * eighth);
  const size_t missed = k.learnt > 0 ? lesser(static_cast<size_t>(k.learnt) * unit_size, left) : 0;
  const size_t bound = greater(eighth, lesser(greater(eighth, 3 * eighth - lesser(used, 3 * eighth)) + missed, left));
  const size_t retained = lesser(options.retain, bound);
  const size_t most = retained - lesser(passing_units() * unit_size, retained);
  return {lesser(share, most), is_end};
}

}  // namespace

bool dirty_may_stay() noexcept {
  return keeps_all() || state.spans.dirty_units() * unit_size <= lesser(least_allowance, options.retain);
}

uint64_t purge_delay() noexcept {
  const int shift = state.keeping.delay_shift.load(std::memory_order_relaxed);
  if (shift >= 0) return options.purge_delay << shift;
  return greater(options.purge_delay >> -shift, lesser(options.purge_delay, least_learnt_delay));
}

uint64_t early_delay() noexcept {
  return lesser(options.purge_delay / part_of_delay, purge_delay());
}

bool keeps_recent() noexcept {
  return kept_free.load(std::memory_order_relaxed) == as_options_say && options.purge_delay != 0 &&
         options.retain >= 2 * FreeSpans::most_recent * unit_size;
}

bool settle_recent() noexcept {
  return state.spans.recent_units() != 0 && state.spans.settle(os::clock_ms());
}

bool settle_recent(unsigned node) noexcept {
  return state.spans.recent_units() != 0 && state.spans.settle(os::clock_ms(), node);
}

namespace {

// Not where a request waits for what was purged.
void follow_purge_if_due() noexcept SLUICE_REQUIRES(state.lock) {
  if (state.purged_since >= (is_limited() ? space_is_due : tables_are_due)) follow_purge();
}

}  // namespace

bool may_purge(uint64_t now) noexcept {
  return !state.purge_refused || now - state.refused_ms >= lesser(options.purge_delay, after_refusal);
}

namespace {

Gone purge_units_down_to(size_t bytes) noexcept SLUICE_REQUIRES(state.lock) {
  const size_t kept = bytes / unit_size;
  (void)settle_recent();
  close_extents();
  const Gone gone = purge_while([kept](Unit&, size_t dirty) { return dirty > kept ? dirty - kept : 0; });
  state.keeping.purged[0] += gone.present;
  return gone;
}

}  // namespace

size_t purge_down_to(size_t bytes) noexcept {
  return purge_units_down_to(bytes).units * unit_size;
}

namespace {

// What got old and was not needed meanwhile need not be kept another time.
void note_aged(size_t units) noexcept SLUICE_REQUIRES(state.lock) {
  Keeping& k = state.keeping;
  k.aged[0] += units;
  learn(-static_cast<ptrdiff_t>(units));
  k.missed_at_end -= lesser(units, k.missed_at_end);
  os::call_counts.unneeded_bytes.fetch_add(units * unit_size, std::memory_order_relaxed);
}

// Effects: purges the oldest dirty spans, as many units of each as `wanted(span, left)` says, of which it takes off
// `*left` what goes before it is as old as the delay. *early: of what went, so many units early.
template <typename Wanted>
Gone purge_early(uint64_t now, size_t* early, Wanted wanted) noexcept SLUICE_REQUIRES(state.lock) {
  const size_t allowed = early::take_all(now);
  size_t left = allowed;
  const Gone gone = purge_while([&left, wanted](Unit& span, size_t) { return wanted(span, &left); });
  *early = lesser(allowed - left, gone.units);
  early::put_back(left);
  state.keeping.early[0] += lesser(*early, gone.present);
  return gone;
}

// Effects: half as many units may pass, unless more of them are granted: what is not used of these goes back by age,
// too. Who needs more says so again.
void narrow_passing() noexcept SLUICE_REQUIRES(state.lock) {
  if (state.passing.doublings != 0 && granted_units() <= most_passing() / 2) --state.passing.doublings;
}

size_t take_off(size_t units, size_t* left) noexcept {
  const size_t taken = lesser(units, *left);
  *left -= taken;
  return taken;
}

}  // namespace

size_t purge_older(uint64_t now) noexcept {
  Keeping& k = state.keeping;
  const uint64_t delay = purge_delay();
  const uint64_t short_delay = early_delay();
  size_t early;
  const Gone gone = purge_early(now, &early, [now, delay, short_delay](Unit& span, size_t* left) {
    if (span.free.freed_at + delay <= now) return size_t{span.units};
    return span.free.freed_at + short_delay <= now ? take_off(span.units, left) : 0;
  });
  if (now - k.settled_ms > delay / 4) {
    k.settled_ms = now;
    (void)settle_recent();  // not before: what they join would be as young as they are
    narrow_passing();
    close_extents();
  }
  if (gone.present > early) note_aged(gone.present - early);
  if (gone.units != 0) follow_purge_if_due();
  return gone.units * unit_size;
}

size_t purge_some(Rest rest) noexcept {
  const size_t least = worth_purging / unit_size;
  const size_t reserve = rest == Rest::MayCome ? early::most() / 2 : 0;
  if (state.spans.dirty_units() < least || kept_free.load(std::memory_order_relaxed) != as_options_say) return 0;
  const uint64_t now = os::clock_ms();
  if (!may_purge(now) || early::allowed(now) < reserve + least) return 0;
  (void)settle_recent();
  close_extents();
  size_t gone = 0;
  const auto some = [reserve](Unit& span, size_t* left) {
    return *left > reserve ? take_off(lesser(span.units, *left - reserve), left) : 0;
  };
  if (purge_early(now, &gone, some).units != 0) follow_purge_if_due();
  return gone;
}

uint64_t next_purge(uint64_t now) noexcept {
  (void)settle_recent();
  close_extents();
  const uint32_t oldest = state.spans.oldest();
  if (oldest == unit_index_none) return UINT64_MAX;
  if (state.purge_refused) return after_refusal;
  const uint64_t due = region_units[oldest].free.freed_at + early_delay();
  return due > now ? due - now : 0;
}

namespace {

void purge_what_may_not_stay(Change change) noexcept SLUICE_REQUIRES(state.lock) {
  // least_allowance may stay in any case, and recent spans (most_passing()) beside it: most calls end here, and read no
  // clock. Where the program said how much stays, that alone may.
  const size_t asked = kept_free.load(std::memory_order_relaxed);
  const size_t least = asked == as_options_say ? lesser(least_allowance, options.retain) : 0;
  if (asked != as_options_say) (void)settle_recent();  // from before the program said so
  if (settled_dirty_units() * unit_size <= least) return;
  if (state.purge_refused && !may_purge(os::clock_ms())) return;
  Allowance allowed = dirty_allowance(change);
  const size_t dirty = (allowed.is_end ? state.spans.dirty_units() : settled_dirty_units()) * unit_size;
  if (dirty <= allowed.bytes || dirty - allowed.bytes <= lesser(worth_purging, allowed.bytes / 2)) return;
  if (settle_recent()) allowed = dirty_allowance(change);
  const size_t gone = purge_units_down_to(allowed.bytes).present;
  if (change != Change::Other && gone != 0) {  // also what goes before its end is seen
    state.keeping.purged_at_end += gone;
    state.keeping.purged_ms = os::clock_ms();
  }
  follow_purge_if_due();
}

}  // namespace

namespace {

// What caches hold counts as in use, so that no end of a phase is seen where they hold much.
void note_shrinking(size_t in_use, size_t peak) noexcept SLUICE_REQUIRES(state.lock) {
  Keeping& k = state.keeping;
  if (in_use > peak / 4 * 3) {
    k.look_below = peak > worth_a_look ? peak / 4 * 3 : 0;
  } else if (in_use < k.look_below && kept_free.load(std::memory_order_relaxed) == as_options_say) {
    k.look_below = 0;  // whoever looks says when it is worth looking again
    has_shrunk.store(true, std::memory_order_relaxed);
  }
}

// Of the units in use, those that will most likely stay so for longer than a moment.
size_t lasting_units() noexcept SLUICE_REQUIRES(state.lock) {
  const size_t in_use = units_in_use();
  return in_use - lesser(passing_units(), in_use);
}

}  // namespace

void purge_excess(Change change) noexcept {
  purge_what_may_not_stay(change);
  // What is known of the need without a look at the clock.
  const size_t in_use = lasting_units();
  const size_t peak = greater(state.keeping.peak[0], state.keeping.peak[1]);
  if (in_use <= peak / almost_over) (void)purge_some(in_use <= peak / over ? Rest::IsLittle : Rest::MayCome);
  note_shrinking(in_use, peak);
}

bool is_below_look() noexcept {
  return lasting_units() < state.keeping.look_below;
}

namespace {

// Takes note of a look at the need. Returns: how many units are needed, of those that were a short while ago.
struct Need {
  size_t now, peak;
};
Need look_at_need(size_t unused) noexcept SLUICE_REQUIRES(state.lock) {
  Keeping& k = state.keeping;
  const size_t in_use = lasting_units();
  const size_t needed = in_use - lesser(unused, in_use);
  k.needed_at_look = needed;
  k.look_below = in_use - lesser(greater(needed / 4, least_step), in_use);
  return {needed, greater(k.peak[0], k.peak[1])};
}

}  // namespace

bool may_be_over_locked(size_t unused) noexcept {
  const Need need = look_at_need(unused);
  return need.now <= need.peak / almost_over;
}

bool would_be_over_locked(size_t unused) noexcept {
  const Need need = look_at_need(unused);
  if (need.now <= need.peak / shrunk) return true;
  if (need.now > need.peak / almost_over) return false;
  early::note_gone_at_look(purge_some(Rest::MayCome), os::clock_ms());
  return false;
}

void purge_if_over_locked() noexcept {
  Keeping& k = state.keeping;
  const size_t in_use = lasting_units();
  k.look_below = in_use - lesser(greater(k.needed_at_look / 2, least_step), in_use);
  purge_excess(Change::Over);
}

void join_as_dirty() noexcept {
  (void)settle_recent();
  state.spans.forget_nodes();
  for (size_t index; (index = state.spans.find_clean(1)) != unit_index_none;) {
    const size_t units = region_units[index].units;
    state.spans.remove(index);
    nodes::set(index, 0);
    state.spans.insert(index, units, false, os::clock_ms());
  }
}

void note_use(size_t fresh_units) noexcept {
  Keeping& k = state.keeping;
  if (const size_t in_use = units_in_use(); in_use > k.peak[0]) k.peak[0] = in_use;
  k.took_fresh = fresh_units != 0;
  const bool untouched = fresh_units >= may_stay_untouched;
  if (untouched) fresh_units /= part_touched;
  if (k.took_fresh && k.purged_at_end != 0) note_missed_at_end(fresh_units, untouched);
  const size_t early = k.early[0] + k.early[1];
  if (!k.took_fresh || early + k.purged[0] + k.purged[1] + k.aged[0] + k.aged[1] == 0) return;
  note_time();
  size_t needed = 0;  // that had gone early: it was cheap, and teaches nothing
  for (size_t* gone : {&k.early[0], &k.early[1]}) {
    const size_t part = lesser(*gone, fresh_units - needed);
    *gone -= part;
    needed += part;
  }
  if (needed != 0) {
    early::note_needed(needed, early_delay());
    os::call_counts.regretted_bytes.fetch_add(needed * unit_size, std::memory_order_relaxed);
  }
  fresh_units -= needed;
  size_t missed = 0;
  const size_t had_aged = k.aged[0] + k.aged[1];
  const size_t went = k.purged[0] + k.purged[1] + had_aged;
  for (size_t* gone : {&k.purged[0], &k.purged[1], &k.aged[0], &k.aged[1]}) {
    const size_t part = lesser(*gone, fresh_units - missed);
    *gone -= part;
    missed += part;
  }
  if (missed == 0) return;
  if (k.aged[0] + k.aged[1] != had_aged) {
    k.calm_epochs = 0;
    if (!k.doubled) change_delay(1);
    k.doubled = true;
  }
  if (const auto more = static_cast<ptrdiff_t>(missed); untouched)
    learn(std::clamp(static_cast<ptrdiff_t>(went) - k.learnt, ptrdiff_t{0}, more));  // as note_missed_at_end
  else
    learn(more);
  os::call_counts.regretted_bytes.fetch_add(missed * unit_size, std::memory_order_relaxed);
}

}  // namespace sluice::region
