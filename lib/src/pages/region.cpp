// See region.hpp. What is free is in free_spans.hpp, where address space comes from in reservation.hpp, when pages go
// back in purge.hpp.
#include "pages/region.hpp"

#include "base/options.hpp"
#include "os/memory.hpp"
#include "pages/huge_pages.hpp"
#include "pages/lost_spans.hpp"
#include "pages/mappings.hpp"
#include "pages/nodes.hpp"
#include "pages/purge.hpp"
#include "pages/recycle.hpp"
#include "pages/region_state.hpp"
#include "pages/reservation.hpp"

namespace sluice::region {
namespace {

constinit std::atomic<uint32_t> deferred{unit_index_none};  // spans that await their end, linked by `next_unused`
constexpr size_t reserve_units = 2 * (1 + guard_units);     // two slabs of blocks up to 8 KiB, or one up to 16 KiB
constexpr uint64_t pause_between_failures = 1000;           // ms, from one that gives address space back to the next
constexpr unsigned most_waits = 100;                        // for spans that other threads are at
constexpr unsigned recent_puts_per_look = 16;               // between two looks at how much may stay
constexpr unsigned most_doublings = 2;                      // of what may be recent: 16 MiB…
constexpr size_t many_missed = 4096;                        // …where so many spans are joined and taken again…
constexpr size_t cost_of_other = 2;                  // of these, for a request that more would not have served…
constexpr uint64_t in_which_many_are_missed = 1000;  // …in so many ms: half a thousandth of the time
constinit std::atomic<uint64_t> last_purge_ms{0};    // when purge_aged last looked

// Called after a span was freed, under the same lock as purge_at_rest: either that finds the span, or this finds the
// thread asleep.
void wake_if_asleep() noexcept SLUICE_REQUIRES(state.lock) {
  if (rest::word.load(std::memory_order_relaxed) == rest::asleep) [[unlikely]]
    rest::wake();
}

void free_locked(size_t index, size_t units, bool clean) noexcept SLUICE_REQUIRES(state.lock) {
  state.spans.insert(index, units, clean, clean ? 0 : os::clock_ms());
  if (!clean) wake_if_asleep();
}

// Effects: recent spans are joined, since they would be too many.
void join_surplus() noexcept SLUICE_REQUIRES(state.lock) {
  Passing& p = state.passing;
  for (size_t units = 1; units <= FreeSpans::longest_recent; ++units) {
    p.joined[1][units] = p.joined[0][units];
    p.joined[0][units] = static_cast<uint8_t>(lesser(state.spans.recent_spans(units), UINT8_MAX));
  }
  (void)settle_recent();
}

// Effects: there was no recent span for a request of so many units. Where many would have been there if more had stayed
// so, twice as many may, if SLUICE_RETAIN has room for them, and address space is not limited.
void note_not_recent(size_t units) noexcept SLUICE_REQUIRES(state.lock) {
  Passing& p = state.passing;
  if (units > FreeSpans::longest_recent) return;
  uint8_t* const joined = p.joined[0][units] != 0 ? p.joined[0] : p.joined[1];
  if (joined[units] == 0) {
    p.missed -= lesser(p.missed, cost_of_other);
    return;
  }
  --joined[units];
  if (++p.missed < many_missed) return;
  p.missed = 0;
  const uint64_t now = os::clock_ms();
  const bool often = now - p.since_ms <= in_which_many_are_missed;
  p.since_ms = now;
  const bool has_room = options.retain / unit_size >= 4 * most_passing() && !is_limited();
  if (often && has_room && p.doublings < most_doublings) ++p.doublings;
}

// What is left of a span, whose first units stay in use.
void free_part(size_t span, size_t index, size_t units, bool clean) noexcept SLUICE_REQUIRES(state.lock) {
  nodes::set(index, nodes::of(span));
  free_locked(index, units, clean);
}

// Few and short ones wait for a request of their length, as programs free and take the same again: no neighbours are
// looked at, and seldom the clock. Returns: whether it waits.
bool put_recent(size_t index, size_t units) noexcept SLUICE_REQUIRES(state.lock) {
  if (units > FreeSpans::longest_recent || !keeps_recent()) return false;
  state.spans.put_recent(index, units);
  if (passing_units() > most_passing())
    join_surplus();
  else if (++state.passing.puts % recent_puts_per_look != 0 && !is_below_look())
    return true;
  purge_excess(Change::Freed);
  return true;
}

__attribute__((cold)) void note_if_far(size_t index, size_t units, unsigned node) noexcept {
  if (nodes::of(index) != node) os::call_counts.far_bytes.fetch_add(units * unit_size, std::memory_order_relaxed);
}

inline void note_taken(size_t index, size_t units, bool clean, unsigned node) noexcept SLUICE_REQUIRES(state.lock) {
  if (clean) {
    nodes::set(index, node);
    note_needed(index, units);
  } else if (nodes::are_several()) {
    note_if_far(index, units, node);
  }
  note_use(clean ? units : 0);
}

// Where no dirty span serves: one whose pages come from elsewhere, or which lies in huge pages; or none.
size_t make_span(size_t units, bool* clean, Prefer prefer, unsigned node) noexcept SLUICE_REQUIRES(state.lock) {
  const size_t recycled = recycle(units, {1, 0}, node, prefer == Prefer::Cleared, clean);
  if (recycled != unit_index_none || prefer != Prefer::Huge) return recycled;
  const size_t index = take_from_extent(units, node);
  if (index == unit_index_none) return index;
  *clean = true;
  note_use(units);
  return index;
}

// A dirty span: near, or where dirty ones stay for good of whichever node, lest each node has as many; or none.
size_t find_dirty(size_t units, unsigned node) noexcept SLUICE_REQUIRES(state.lock) {
  size_t index = state.spans.find_dirty(units, node);
  if (index == unit_index_none && settle_recent(node)) index = state.spans.find_dirty(units, node);
  if (index != unit_index_none || !nodes::are_several() || !(keeps_all() || state.purge_refused)) return index;
  return state.spans.find_any_dirty(units);
}

// Pages are moved only with `exactly`: else a part of the span is over for the sake of alignment, and needs none.
size_t take(size_t units, bool* clean, Prefer prefer, bool exactly, unsigned node) noexcept
    SLUICE_REQUIRES(state.lock) {
  const bool dirty_first = prefer != Prefer::Clean;
  size_t index = dirty_first ? find_dirty(units, node) : state.spans.find_clean(units);
  if (index == unit_index_none && dirty_first && exactly) {
    const size_t made = make_span(units, clean, prefer, node);
    if (made != unit_index_none) return made;
  }
  if (index == unit_index_none && dirty_first) index = state.spans.find_clean(units);
  if (index == unit_index_none && (take_hole(units) || grow_commit(units))) index = state.spans.find_clean(units);
  if (index == unit_index_none) index = state.spans.find_any_dirty(units);
  if (index == unit_index_none && state.spans.dirty_units() != 0) {
    (void)purge_down_to(0);  // everything is clean then, and joined, but for what others have freed meanwhile
    index = state.spans.find_clean(units);
    if (index == unit_index_none && (take_hole(units) || grow_commit(units))) index = state.spans.find_clean(units);
  }
  if (index == unit_index_none) index = state.spans.find_clean(units, UINT32_MAX);
  if (index == unit_index_none && state.spans.dirty_units() != 0) {
    join_as_dirty();
    index = state.spans.find_any_dirty(units);
  }
  if (index == unit_index_none) return index;
  *clean = region_units[index].use() == UnitState::FreeClean;
  state.spans.carve(index, units);
  note_taken(index, units, *clean, node);
  return index;
}

// A signal handler that interrupted this thread under the lock leaves its span here; the next to take the lock frees
// it.
void defer(size_t index) noexcept {
  uint32_t head = deferred.load(std::memory_order_relaxed);
  do {
    region_units[index].next_unused.store(head, std::memory_order_relaxed);
  } while (!deferred.compare_exchange_weak(head, static_cast<uint32_t>(index), std::memory_order_release,
                                           std::memory_order_relaxed));
}

// Holds the lock of the region, and frees what handlers have left.
class SLUICE_HOLDS_LOCK RegionLock {
 public:
  RegionLock() noexcept SLUICE_TAKES(state.lock) {
    state.lock.lock();
    if (deferred.load(std::memory_order_relaxed) == unit_index_none) return;
    uint32_t index = deferred.exchange(unit_index_none, std::memory_order_acquire);  // pairs with defer
    while (index != unit_index_none) {
      const uint32_t next = region_units[index].next_unused.load(std::memory_order_relaxed);
      free_locked(index, region_units[index].units, false);
      index = next;
    }
  }
  ~RegionLock() SLUICE_GIVES_BACK() { state.lock.unlock(); }
  RegionLock(const RegionLock&) = delete;
  RegionLock& operator=(const RegionLock&) = delete;
};

}  // namespace

bool initialize() noexcept {
  return reserve_range();
}

void adopt_purging_spans() noexcept {
  if (state.purging_spans == 0 || state.lock.held_by_this_thread()) return;
  size_t own_units = 0;
  size_t own = 0;  // this thread forks in a signal handler; what it was purging comes back by itself
  for (size_t i = first_span(); i < limit() && region_units[i].units != 0;) {
    const size_t units = region_units[i].units;
    if (region_units[i].use() == UnitState::Purging && region_units[i].purging.thread == thread_token()) {
      ++own;
      own_units += units;
    }
    if (region_units[i].use() == UnitState::Purging && region_units[i].purging.thread != thread_token()) {
      // A free span behind joins it, and its descriptor is not to be looked at any more.
      size_t next = i + units;
      if (next < limit() && FreeSpans::is_free(region_units[next].use())) next += region_units[next].units;
      if (has_displaced(i, units) && !os::is_mapped(address_of(i), units * unit_size)) {
        begin_span(i, units, UnitState::Large);
        lost_spans::put(i);
      } else {
        state.spans.insert(i, units, false, os::clock_ms());
      }
      i = next;
      continue;
    }
    i += units;
  }
  state.purging_spans = own;
  state.purging_units = own_units;
}

void abandon_free_spans() noexcept {
  state.spans.forget();
  state.purging_spans = 0;
  state.purging_units = 0;
  for (auto& rest : state.metadata)
    rest.bytes = 0;
  forget_extents();
  state.holes = unit_index_none;
  state.hole_count = 0;
  state.whole_from = limit();
  // None of them is to be joined with what is freed beside it.
  for (size_t i = state.first; i < limit(); i = next_unit(i))
    if (FreeSpans::is_free(region_units[i].use()) || region_units[i].use() == UnitState::Purging)
      region_units[i].set_use(UnitState::None);
}

Mutex& mutex() noexcept {
  return state.lock;
}

UnitState use_of(size_t index) noexcept {
  if (state.lock.held_by_this_thread()) return UnitState::None;
  const MutexLock held(state.lock);
  for (size_t at = first_span(); at < limit() && at <= index; at += unit_at(at)->units) {
    if (index < at + unit_at(at)->units) return unit_at(at)->use();
    if (unit_at(at)->units == 0) break;
  }
  return UnitState::None;
}

namespace {

// Pages that the system does not make accessible are never used again.
void abandon(size_t index, size_t units) noexcept {
  if (state.lock.held_by_this_thread()) return;
  const MutexLock held(state.lock);
  begin_span(index, units, UnitState::Abandoned);
}

// A signal handler that interrupted this thread under the lock gets its units out of the reserve, which the free spans
// do not know. Neither does the code that it interrupted: only this thread and its handlers come here, and a handler
// that interrupts this finds none.
size_t take_reserve(size_t units, size_t align_units, UnitState use) noexcept {
  if (units > reserve_units || align_units != 1) return unit_index_none;
  const size_t index = handler_reserve.exchange(unit_index_none, std::memory_order_acquire);
  if (index == unit_index_none) return index;
  const size_t length = region_units[index].units;
  if (units > length || (guards_spans && !open(index))) {
    handler_reserve.store(static_cast<uint32_t>(index), std::memory_order_release);
    return unit_index_none;
  }
  if (units < length) {
    begin_span(index + units, length - units, UnitState::Meta);
    if (guards_spans) (void)shut(index + units);
    handler_reserve.store(static_cast<uint32_t>(index + units), std::memory_order_release);
  }
  begin_span(index, units, use);
  return index;
}

// The reserve is made of what is free and clean: address space that is touched only when a handler needs it. What a
// handler has left of one goes back, untouched, for a whole one.
void renew_reserve() noexcept SLUICE_REQUIRES(state.lock) {
  const size_t now = handler_reserve.load(std::memory_order_relaxed);
  if (now != unit_index_none && region_units[now].units == reserve_units) return;
  const size_t left = handler_reserve.exchange(unit_index_none, std::memory_order_acquire);
  if (left != unit_index_none && guards_spans && !open(left))
    begin_span(left, region_units[left].units, UnitState::Abandoned);
  else if (left != unit_index_none)
    free_locked(left, region_units[left].units, true);
  const size_t index = state.spans.find_clean(reserve_units);
  if (index == unit_index_none) return;
  state.spans.carve(index, reserve_units);
  begin_span(index, reserve_units, UnitState::Meta);
  if (guards_spans) (void)shut(index);  // nobody reaches into it from the span behind
  handler_reserve.store(static_cast<uint32_t>(index), std::memory_order_release);
}

FreeSpans::Alignment alignment_of(size_t align_units) noexcept {
  return {align_units, reinterpret_cast<size_t>(address_of(0)) / unit_size % align_units};
}

// Takes the units from a span where they lie aligned, dirty ones first unless clean ones are preferred; or none. To
// look for a span that is long enough wherever it begins finds no block of their like that was freed: it is too short.
size_t take_aligned(size_t units, FreeSpans::Alignment alignment, bool* clean, Prefer prefer, unsigned node) noexcept
    SLUICE_REQUIRES(state.lock) {
  size_t index = unit_index_none;
  if (prefer != Prefer::Clean) {
    index = state.spans.find_aligned_dirty(units, alignment, node);
    if (index == unit_index_none && settle_recent(node)) index = state.spans.find_aligned_dirty(units, alignment, node);
    if (index == unit_index_none) {
      const size_t recycled = recycle(units, alignment, node, prefer == Prefer::Cleared, clean);
      if (recycled != unit_index_none) return recycled;
    }
  }
  if (index == unit_index_none) index = state.spans.find_aligned_clean(units, alignment);
  if (index == unit_index_none) return index;
  const size_t from = index + alignment.skip(index);
  *clean = region_units[index].use() == UnitState::FreeClean;
  state.spans.carve_within(index, from, units);
  note_taken(from, units, *clean, node);
  return from;
}

// As allocate_recent, if the span that was given back last is aligned.
size_t allocate_recent_aligned(size_t units, size_t align_units, UnitState use) noexcept {
  const unsigned node = nodes::own();
  if (!state.spans.may_have_recent(units, node) || state.lock.held_by_this_thread()) return unit_index_none;
  const RegionLock held;
  const size_t last = state.spans.last_recent(units, node);
  if (last == unit_index_none || alignment_of(align_units).skip(last) != 0) return unit_index_none;
  begin_span(state.spans.take_recent(units, node), units, use);
  return last;
}

// Apart, so that the usual case saves few registers.
__attribute__((noinline)) size_t allocate_any(size_t units, size_t align_units, UnitState use, bool* clean,
                                              Prefer prefer) noexcept {
  const size_t padded = units + align_units - 1;
  if (units == 0 || padded < units || padded > state.range_units) return unit_index_none;
  if (state.lock.held_by_this_thread()) {
    *clean = false;
    return take_reserve(units, align_units, use);
  }
  const FreeSpans::Alignment alignment = alignment_of(align_units);
  const RegionLock held;
  const unsigned node = nodes::note_own();
  size_t taken = 0;  // units, of which some may be over
  const auto try_take = [&]() SLUICE_UNCHECKED_LOCKS {
    taken = units;
    const size_t aligned = align_units != 1 ? take_aligned(units, alignment, clean, prefer, node) : unit_index_none;
    if (aligned != unit_index_none) return aligned;
    taken = padded;
    return take(padded, clean, prefer, padded == units, node);
  };
  size_t index = try_take();
  // What others are purging or emptying comes back.
  for (unsigned tries = 0; index == unit_index_none && state.purging_spans != 0 && tries < most_waits; ++tries) {
    state.lock.unlock();
    os::yield();
    state.lock.lock();
    index = try_take();
  }
  if (index == unit_index_none) return index;
  if (use == UnitState::Large && padded == units && prefer != Prefer::Clean) note_not_recent(units);
  const size_t skip = alignment.skip(index);
  // The ends come first: giving back what is over looks at its neighbours.
  begin_span(index + skip, units, use);
  nodes::set(index + skip, nodes::of(index));
  if (skip != 0) free_locked(index, skip, *clean);
  if (taken > skip + units) free_part(index + skip, index + skip + units, taken - skip - units, *clean);
  if (state.keeping.took_fresh)
    purge_excess(Change::Other);  // more pages will be in memory: what stays dirty may be too much
  renew_reserve();
  return index + skip;
}

// No neighbours are looked at, and no use is noted: recent spans count as in use.
inline size_t allocate_recent_of(unsigned node, size_t units, UnitState use) noexcept {
  if (!state.spans.may_have_recent(units, node) || state.lock.held_by_this_thread()) return unit_index_none;
  const RegionLock held;
  const size_t index = state.spans.take_recent(units, node);
  if (index != unit_index_none) begin_span(index, units, use);
  return index;
}

__attribute__((cold)) size_t allocate_recent_of_own(size_t units, UnitState use) noexcept {
  return allocate_recent_of(nodes::own(), units, use);
}

}  // namespace

size_t allocate_recent(size_t units, UnitState use) noexcept {
  return nodes::are_several() ? allocate_recent_of_own(units, use) : allocate_recent_of(0, units, use);
}

bool grant_recent(size_t units) noexcept {
  if (state.lock.held_by_this_thread()) return false;
  const RegionLock held;
  const size_t most = has_several_threads.load(std::memory_order_relaxed) ? FreeSpans::most_granted : most_passing();
  if (!keeps_recent() || state.passing.granted + units > most) return false;
  state.passing.granted += units;
  if (passing_units() > most_passing()) join_surplus();
  return true;
}

void end_grant(size_t units) noexcept {
  const RegionLock held;
  state.passing.granted -= lesser(units, state.passing.granted);
}

void renew_grants(size_t units) noexcept {
  const RegionLock held;
  state.passing.granted = units;
}

size_t allocate(size_t units, size_t align_units, UnitState use, bool* clean, Prefer prefer) noexcept {
  if (prefer != Prefer::Clean) {
    *clean = false;
    const size_t recent =
        align_units == 1 ? allocate_recent(units, use) : allocate_recent_aligned(units, align_units, use);
    if (recent != unit_index_none) return recent;
  }
  return allocate_any(units, align_units, use, clean, prefer);
}

void give_back(size_t index, size_t units, bool clean) noexcept {
  if (guards_spans && !open(index)) return abandon(index, units);
  if (state.lock.held_by_this_thread()) return defer(index);
  const RegionLock held;
  if (!clean && put_recent(index, units)) return wake_if_asleep();
  free_locked(index, units, clean);
  purge_excess(Change::Freed);
}

namespace {

// Of units that lie side by side: how many are clean, and the longest part of them.
struct Parts {
  size_t units;
  size_t longest, longest_units;
};

// Takes so many units from `index` on out of the free spans that begin there, clean and dirty ones. False if some of
// them are not free.
bool take_behind(size_t index, size_t units, Parts* clean) noexcept SLUICE_REQUIRES(state.lock) {
  size_t end = index;
  while (end < index + units) {
    if (end == limit()) {
      if (!grow_commit(index + units - end)) return false;
      end = index;  // what came may have been joined with what lies before it
    }
    if (region_units[end].use() == UnitState::FreeRecent) {
      (void)settle_recent();
      end = index;
    }
    if (!FreeSpans::is_free(region_units[end].use())) return false;
    end += region_units[end].units;
  }
  for (size_t at = index; at < end;) {
    const size_t length = region_units[at].units;
    const size_t part = lesser(length, index + units - at);
    if (region_units[at].use() == UnitState::FreeClean) {
      clean->units += part;
      if (part > clean->longest_units) {
        clean->longest = at;
        clean->longest_units = part;
      }
    }
    state.spans.carve(at, part);
    at += length;
  }
  return true;
}

// Effects: pages come from elsewhere to the longest clean part of what a span has got behind its first `have` units.
// False if those units cannot be used: then the span has its first ones again.
bool fill_grown(size_t index, size_t have, Parts clean) noexcept SLUICE_REQUIRES(state.lock) {
  const size_t units = region_units[index].units;
  if (clean.longest_units == 0) {
    note_use(0);
    return true;
  }
  const size_t had = guards_spans ? 0 : have;  // who has guards takes more than is needed, and shuts the rest
  const size_t fresh = fill(clean.longest, clean.longest_units, had, nodes::of(index));
  if (fresh <= clean.longest_units) {
    note_use(clean.units - clean.longest_units + fresh);
    return true;
  }
  const size_t lost_end = clean.longest + clean.longest_units;
  set_ends(index, have, UnitState::Large);
  begin_span(clean.longest, clean.longest_units, UnitState::Large);
  if (clean.longest > index + have) free_part(index, index + have, clean.longest - index - have, false);
  if (lost_end < index + units) free_part(index, lost_end, index + units - lost_end, false);
  lost_spans::put(clean.longest);
  return false;
}

}  // namespace

void touch_huge(size_t index) noexcept {
  touch_extent(index);
}

void note_forking() noexcept {
  end_huge_pages();
}

bool lies_in_huge_page(size_t index) noexcept {
  return is_whole_huge_page(index);
}

void split_page_of(size_t index, void* address, size_t bytes) noexcept {
  split_huge_page(address, bytes);
  if (state.lock.held_by_this_thread()) return;
  const RegionLock held;
  note_split(index);
}

void note_pages_gone(size_t index, size_t bytes) noexcept {
  if (bytes == 0 || advice_of(index) != PageAdvice::Huge || state.lock.held_by_this_thread()) return;
  const RegionLock held;
  note_gone(index, bytes);
}

bool resize(size_t index, size_t units) noexcept {
  if (state.lock.held_by_this_thread()) return false;
  const RegionLock held;
  const size_t have = region_units[index].units;
  Parts clean{};
  if (units > have && (units > state.range_units || !take_behind(index + have, units - have, &clean))) return false;
  set_ends(index, units, UnitState::Large);
  if (units > have) return fill_grown(index, have, clean);
  if (units < have) {
    free_part(index, index + units, have - units, false);
    purge_excess(Change::Other);  // its program goes on with it
  }
  return true;
}

bool fill_end(size_t index, size_t units, size_t had) noexcept {
  if (state.lock.held_by_this_thread()) return true;
  const RegionLock held;
  return fill(index, units, had, nodes::own()) <= units;
}

void give_back_renewed(size_t index, size_t units) noexcept {
  if (state.lock.held_by_this_thread()) return defer(index);
  const RegionLock held;
  note_renewed(index, units);
  free_locked(index, units, true);
}

void give_back_emptied(size_t index, size_t units) noexcept {
  const Dropped dropped = join_emptied(index, units);
  if (dropped == Dropped::Lost) return lost_spans::put(index);
  if (dropped == Dropped::Renewed) return give_back_renewed(index, units);
  give_back(index, units, true);
}

Moved move_pages(size_t from, size_t to, size_t units, bool clean) noexcept {
  const size_t room = region_units[to].units;
  if (!clean && !renew(to, room)) return Moved::Not;
  const bool all = move_units(from, to, units) == units;
  const RegionLock held;
  if (!clean) note_renewed(to, room);
  if (all) note_moved(from, to, units);
  if (all) nodes::set(to, nodes::of(from));
  return all ? Moved::All : Moved::Partly;
}

void split(size_t index, size_t units) noexcept {
  const RegionLock held;
  const UnitState use = region_units[index].use();
  const size_t rest = region_units[index].units - units;
  set_ends(index, units, use);
  begin_span(index + units, rest, use);
  nodes::set(index + units, nodes::of(index));
}

void change_use(size_t index, UnitState use) noexcept {
  const RegionLock held;
  begin_span(index, region_units[index].units, use);
}

void purge_aged() noexcept {
  if (state.spans.dirty_units() == 0 || kept_free.load(std::memory_order_relaxed) != as_options_say) return;
  lost_spans::recover();
  const uint64_t now = os::clock_ms();
  if (now - last_purge_ms.load(std::memory_order_relaxed) < early_delay() / 2 + 1) return;
  if (!state.lock.try_lock()) return;
  last_purge_ms.store(now, std::memory_order_relaxed);
  if (may_purge(now)) purge_older(now);
  state.lock.unlock();
}

void purge_at_thread_end() noexcept {
  if (state.spans.dirty_units() == 0 || !state.lock.try_lock()) return;
  (void)purge_some(Rest::IsLittle);
  state.lock.unlock();
}

constinit std::atomic<bool> has_shrunk{false};

bool would_be_over(size_t unused) noexcept {
  const RegionLock held;
  return would_be_over_locked(unused);
}

bool may_be_over(size_t unused) noexcept {
  const RegionLock held;
  return may_be_over_locked(unused);
}

void purge_if_over() noexcept {
  const RegionLock held;
  purge_if_over_locked();
}

constinit std::atomic<uintptr_t> rest::word{rest::awake};

void rest::wake() noexcept {
  uintptr_t seen = asleep;
  if (word.compare_exchange_strong(seen, awake, std::memory_order_relaxed)) os::wake_one(word);
}

uint64_t purge_at_rest() noexcept {
  if (kept_free.load(std::memory_order_relaxed) != as_options_say) return never_due;
  lost_spans::recover();
  const RegionLock held;
  const uint64_t now = os::clock_ms();
  if (may_purge(now)) os::call_counts.purged_bytes_at_rest.fetch_add(purge_older(now), std::memory_order_relaxed);
  const uint64_t due = next_purge(os::clock_ms());
  uintptr_t seen = rest::awake;
  // Sequentially consistent: pairs with what background::look reads next.
  if (due == nothing_dirty) (void)rest::word.compare_exchange_strong(seen, rest::asleep, std::memory_order_seq_cst);
  return due;
}

void keep_free(size_t bytes) noexcept {
  kept_free.store(bytes < as_options_say ? bytes : as_options_say - 1, std::memory_order_relaxed);
}

bool keeps_all() noexcept {
  return all_stay();
}

size_t free_bound() noexcept {
  static_assert(no_bound == as_options_say);
  return kept_free.load(std::memory_order_relaxed);
}

size_t purge_all(size_t keep) noexcept {
  if (state.lock.held_by_this_thread()) return 0;
  lost_spans::recover();
  const RegionLock held;
  const size_t bytes = purge_down_to(keep);
  follow_purge();
  give_back_address_space();
  return bytes;
}

size_t free_dirty_bytes() noexcept {
  if (state.lock.held_by_this_thread()) return 0;
  const RegionLock held;
  return state.spans.dirty_units() * unit_size;
}

namespace {

// Whether so many units are more than the limit leaves beside what is in use.
bool is_hopeless(size_t units) noexcept SLUICE_REQUIRES(state.lock) {
  const size_t free_units =
      state.gap_units + state.spans.clean_units() + state.spans.dirty_units() + units_in_extents();
  const size_t used = limit() - state.first - free_units - state.purging_units;
  const size_t most = state.address_limit / unit_size;
  return units > most - lesser(used, most);
}

}  // namespace

void make_room(size_t bytes) noexcept {
  const size_t units = bytes / unit_size + 1 + guard_units;
  if (units > state.range_units || state.lock.held_by_this_thread()) return;
  const RegionLock held;
  (void)purge_down_to(0);
  if (is_hopeless(units)) return;
  while (take_hole(1, true))  // what lies beside one may be joined with it
    continue;
  if (state.spans.find_clean(units, UINT32_MAX) != unit_index_none || grow_commit(units)) return;
  give_up_spans(units);
  const uint64_t now = os::clock_ms();
  if (grow_commit(units) || now - state.made_room_ms < pause_between_failures) return;
  state.made_room_ms = now;  // who fails again and again takes no holes back in between
  give_back_address_space();
}

void* allocate_metadata(size_t bytes) noexcept {
  bytes = round_up(bytes, alignof(Unit));
  if (state.lock.held_by_this_thread()) return nullptr;
  const RegionLock held;
  const unsigned node = nodes::note_own();
  auto& rest = state.metadata[node];
  if (rest.bytes < bytes) {
    bool clean = false;
    const size_t index = take(1 + guard_units, &clean, Prefer::Dirty, true, node);
    if (index == unit_index_none) return nullptr;
    rest = {address_of(index), unit_size};
    begin_span(index, 1 + guard_units, UnitState::Meta);
    state.metadata_units += 1 + guard_units;
    if (!clean) __builtin_memset(rest.next, 0, unit_size);
    if (guards_spans) region::guard(index, unit_size);
  }
  void* memory = rest.next;
  rest.next += bytes;
  rest.bytes -= bytes;
  return memory;
}

Figures figures() noexcept {
  Figures f{};
  f.reserved_bytes = (state.reserved_units - state.first) * unit_size;
  f.gap_bytes = state.gap_units * unit_size;
  f.has_holes = state.hole_count != 0;
  f.committed_bytes = (limit() - state.first - state.gap_units) * unit_size;
  const size_t per_unit =
      sizeof(Unit) + 2 * bitmap_words * sizeof(uint64_t) + states_per_unit * sizeof(uint16_t) + sizeof(uint8_t);
  const size_t own_units = state.metadata_units + units_in_reserve();
  f.metadata_bytes = (state.described[0] - state.described_from) * per_unit + own_units * unit_size -
                     state.bare_units * (per_unit - sizeof(Unit) - sizeof(uint8_t));
  f.free_clean_bytes = (state.spans.clean_units() + units_in_extents()) * unit_size;
  f.free_dirty_bytes = state.spans.dirty_units() * unit_size;
  return f;
}

const char* validate() noexcept {
  return state.spans.validate();
}

}  // namespace sluice::region
