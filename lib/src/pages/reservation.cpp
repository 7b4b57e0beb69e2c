// See reservation.hpp.
#include "pages/reservation.hpp"

#include <bit>
#include <iterator>

#include "base/options.hpp"
#include "os/atomic_ref.hpp"
#include "os/memory.hpp"
#include "pages/mappings.hpp"

namespace sluice::region {
namespace {

constexpr size_t table_step = 1024;                  // units; the tables of so many end with a page, whatever its size
constexpr size_t smallest_range = size_t{64} << 20;  // bytes; less is not worth starting with
constexpr size_t most_reserved_ahead = (size_t{1} << 30) / unit_size;  // units
constexpr size_t least_committed = 16;  // units by which the heap grows, unless address space is scarce
// So many units add 1 to fork_patience: a tenth of a millisecond for 5 MiB, twice what forks take.
constexpr size_t units_per_patience = (size_t{5} << 20) / unit_size;
constexpr uint32_t most_holes = 8'000;
constexpr size_t worth_a_hole = (size_t{1} << 18) / unit_size;  // units, where nobody waits for address space…
constexpr uint32_t holes_by_purging = 1'000;  // …and so many holes, or twice as many of 4 MiB and more
constexpr size_t reserved_part = 4, reserved_part_if_limited = 8;  // what part of the heap is reserved ahead
constexpr size_t left_alone = 4;  // a heap that has no more than this part of the limit is in nobody's way
constexpr size_t worth_leaving_bare = 4 * table_step;  // units

// Reserves the next piece of a table. In the child of a fork, whose parent had a thread in the middle of that, some of
// it may be reserved already.
bool lay_out(void* piece, size_t bytes) noexcept {
  if (os::reserve(piece, bytes, true) != nullptr) return true;
  if (state.whole_from == 0) return false;
  const size_t page = os::page_size();
  for (char *at = static_cast<char*>(piece), *end = at + bytes; at < end; at += page)
    if (os::reserve(at, page, true) == nullptr && !os::is_mapped(at, page)) return false;
  return true;
}

// Commits a table's entries up to the unit `to`, a whole number of pages. A piece that cannot be committed stays
// reserved for the next attempt: giving it back may fail too, and nothing could be reserved there any more.
template <typename Entry>
bool grow_table(Entry* table, size_t entries_per_unit, size_t number, size_t to) noexcept {
  size_t& described = state.described[number];
  size_t& laid_out = state.laid_out[number];
  if (described >= to) return true;
  const auto entry = [&](size_t unit) { return table + unit * entries_per_unit; };
  const auto bytes = [&](size_t from) { return (to - from) * entries_per_unit * sizeof(Entry); };
  if (state.piecewise && laid_out < to) {
    if (!lay_out(entry(laid_out), bytes(laid_out))) return false;
    laid_out = to;
  }
  if (!os::commit(entry(described), bytes(described))) return false;
  described = to;
  return true;
}

// Makes the class bytes of the units below `to` readable: only as far as the heap reaches, since address space counts
// under a limit. The bound is stored relaxed: a thread that is handed a block of a new unit has seen the new bound, as
// it has seen the unit's class byte.
bool extend_range(size_t to) noexcept {
  to = round_up(to, unit_size);
  if (to <= state.readable_units) return true;
  if (state.readable_laid_out < to) {
    if (!lay_out(region_base + state.readable_laid_out, to - state.readable_laid_out)) return false;
    state.readable_laid_out = to;
  }
  if (!os::make_readable(region_base + state.readable_units, to - state.readable_units)) return false;
  state.readable_units = to;
  atomic_ref<size_t>(region_range_units).store(lesser(to, state.range_units), std::memory_order_relaxed);
  return true;
}

// Where the units end that get their descriptors and bitmaps at once: whole pages of them.
size_t described_end(size_t end, size_t ahead) noexcept {
  return lesser(round_up(end + ahead, os::page_size() / sizeof(Unit)), round_up(state.range_units, table_step));
}

bool commit_metadata_to(size_t to) noexcept {
  if (!extend_range(to)) return false;
  if (!grow_table(region_units, 1, 0, to) || !grow_table(region_free_bitmaps, bitmap_words, 1, to) ||
      !grow_table(region_remote_bitmaps, bitmap_words, 2, to) ||
      (checks_blocks && !grow_table(region_block_states, states_per_unit, 3, to)))
    return false;
  const size_t page = os::page_size();
  const size_t first_byte = state.classed_units / page * page;
  if (!os::commit(region_base + first_byte, round_up(to, page) - first_byte)) return false;
  state.classed_units = to;
  return true;
}

// Makes sure that every unit below `end` has a descriptor, bitmaps and a class byte that can be written: of more units,
// the larger the heap is, or of these alone where the system has no room for more.
bool commit_metadata(size_t end) noexcept {
  if (end <= state.classed_units) return true;
  const size_t ahead = lesser((end - state.first) / 2, table_step);
  return commit_metadata_to(described_end(end, ahead)) || commit_metadata_to(described_end(end, 0));
}

// Where the last wide gap ends. Nothing may lie in it, not even when nobody else uses it any more.
size_t bare_end() noexcept {
  return state.bare_gap_count == 0 ? 0 : state.bare_gaps[state.bare_gap_count - 1].end;
}

// Lets the bitmaps of a wide gap out. It stays left out if what follows fails, also in the child of a fork.
void leave_bare(size_t from, size_t end) noexcept {
  const size_t next = end / (os::page_size() / sizeof(Unit)) * (os::page_size() / sizeof(Unit));
  if (end - from < worth_leaving_bare || end <= bare_end() || state.bare_gap_count == most_bare_gaps) return;
  for (size_t number = 1; number < std::size(state.described); ++number)
    if (state.laid_out[number] >= next) return;
  state.bare_gaps[state.bare_gap_count] = {from, end};
  ++state.bare_gap_count;
  state.bare_units += next - state.described[1];
  for (size_t number = 1; number < std::size(state.described); ++number)
    state.described[number] = state.laid_out[number] = next;
}

// What is reserved for units and is neither a hole nor of others, in bytes.
size_t in_address_space() noexcept {
  return (state.reserved_units - state.first - state.gap_units) * unit_size;
}

// Reserves address space right behind the reservation: little at a time, because a program may limit itself later, and
// what is reserved counts then. With `sparing` it is no more than `units`.
bool grow_reservation(size_t units, bool sparing) noexcept SLUICE_REQUIRES(state.lock) {
  if (!state.piecewise || state.reserved_units < bare_end()) return false;
  size_t step = in_address_space() / unit_size / (is_limited() ? reserved_part_if_limited : reserved_part);
  if (step < least_reserved) step = least_reserved;
  if (step > most_reserved_ahead) step = most_reserved_ahead;
  if (sparing) step = units;
  for (;; step = step / 2) {
    if (step < units) step = units;
    if (state.reserved_units + step <= state.range_units &&
        os::reserve(address_of(state.reserved_units), step * unit_size, true) != nullptr) {
      state.reserved_units += step;
      if (in_address_space() > state.address_limit) state.address_limit = SIZE_MAX;  // it was raised
      return true;
    }
    if (step == units) return false;
  }
}

// Gives back what of the reservation is not used yet. What the system does not take back stays the heap's: it would be
// in its own way.
void give_back_reservation() noexcept {
  const size_t end = limit();
  if (!state.piecewise || state.reserved_units == end) return;
  if (os::release(address_of(end), (state.reserved_units - end) * unit_size)) state.reserved_units = end;
}

// Reserves `units` behind an obstacle at `from`, however wide it is: the narrowest gap that is found by doubling and
// halving. A system that refuses is no obstacle: it may give later what it does not give now, and a wide gap is lost
// for good. Returns: units that are left out; 0 where nothing follows.
size_t reserve_behind(size_t from, size_t units) noexcept {
  using os::Reserved;
  if (from + units >= state.range_units) return 0;
  const size_t widest = state.range_units - units - from;
  const auto reserve = [&](size_t gap) { return os::reserve_at(address_of(from + gap), units * unit_size); };
  size_t gap = bare_end() > from ? bare_end() - from : 1;
  size_t too_narrow = gap - 1;
  if (gap > widest) return 0;
  Reserved last = reserve(gap);
  for (; last == Reserved::Occupied && gap != widest; last = reserve(gap)) {
    too_narrow = gap;
    gap = lesser(2 * gap, widest);
  }
  if (last != Reserved::Yes) return 0;
  while (gap - too_narrow > 1 && last != Reserved::Refused) {
    if (last == Reserved::Yes && !os::release(address_of(from + gap), units * unit_size)) return gap;
    const size_t middle = too_narrow + (gap - too_narrow) / 2;
    last = reserve(middle);
    if (last != Reserved::Refused) (last == Reserved::Yes ? gap : too_narrow) = middle;
  }
  return last == Reserved::Yes || reserve(gap) == Reserved::Yes ? gap : 0;
}

// Somebody has mapped something right behind the reservation: goes on behind it. What is left of the reservation
// becomes a free span, the obstacle a span that is never touched.
bool leave_gap(size_t units) noexcept {
  const size_t end = limit();
  const size_t from = state.reserved_units;
  if (!state.piecewise || !commit_metadata(from)) return false;
  const size_t gap = reserve_behind(from, units);
  if (gap == 0) return false;
  leave_bare(from, from + gap);
  if (!commit_metadata(from + gap + units) || (from > end && !os::commit(address_of(end), (from - end) * unit_size))) {
    (void)os::release(address_of(from + gap), units * unit_size);
    return false;
  }
  begin_span(from, gap, UnitState::Gap);
  state.reserved_units = from + gap + units;
  committed_limit.store(from + gap, std::memory_order_relaxed);
  state.gap_units += gap;  // never more than lies below the limit, also in the child of a fork
  if (from > end) state.spans.insert(end, from - end, true, 0);
  return true;
}

// Commits `least` units at `end`, and up to `most` unless each page of them would cost time and memory now: where the
// program has locked what will come, what becomes accessible is in memory at once. Returns: how many.
size_t commit_ahead(size_t end, size_t least, size_t most) noexcept {
  char* const ahead = address_of(end + least);
  if (!commit_metadata(end + least) || !os::commit(address_of(end), least * unit_size)) return 0;
  if (least == most || os::is_locked(ahead - os::page_size()) || !commit_metadata(end + most) ||
      !os::commit(ahead, (most - least) * unit_size))
    return least;
  return most;
}

}  // namespace

bool grow_commit(size_t units) noexcept {
  size_t end = limit();
  size_t least = units;  // what is free at the end of the heap already counts
  if (end > state.first && region_units[end - 1].use() == UnitState::FreeClean && region_units[end - 1].units < units)
    least = units - region_units[end - 1].units;
  size_t step = (end - state.first - state.gap_units) / 8;
  if (step < least_committed) step = least_committed;
  if (step > 1024) step = 1024;
  if (step < units) step = units;
  for (bool sparing = false;;) {
    const size_t first = sparing || least > least_committed ? least : least_committed;
    const bool reserved =
        end + step <= state.reserved_units || grow_reservation(end + step - state.reserved_units, sparing);
    if (const size_t got = reserved ? commit_ahead(end, first, step) : 0; got != 0) {
      if (options.huge_pages) (void)os::advise_huge_pages(address_of(end), got * unit_size);
      committed_limit.store(end + got, std::memory_order_relaxed);
      fork_patience.store(
          static_cast<uint32_t>(least_fork_patience + (end + got - state.first - state.gap_units) / units_per_patience),
          std::memory_order_relaxed);
      state.spans.insert(end, got, true, 0);
      return true;
    }
    if (!sparing) {
      give_back_reservation();  // where it took what the tables need
      sparing = true;
      step = least;
    } else if (end + units > state.reserved_units && leave_gap(units)) {
      end = limit();
      step = least = units;
    } else {
      return false;
    }
  }
}

namespace {

// Returns: the link to the shortest hole of at least so many units, the lowest of several; or null.
uint32_t* shortest_hole(size_t units) noexcept SLUICE_REQUIRES(state.lock) {
  uint32_t* best = nullptr;
  for (uint32_t* link = &state.holes; *link != unit_index_none; link = &region_units[*link].gap.next) {
    const size_t length = region_units[*link].units;
    if (length < units) continue;
    const size_t shortest = best != nullptr ? region_units[*best].units : SIZE_MAX;
    if (length < shortest || (length == shortest && *link < *best)) best = link;
  }
  return best;
}

}  // namespace

bool take_hole(size_t units, bool all) noexcept {
  size_t least = units;
  for (unsigned tries = 4; tries != 0; --tries) {  // others may have mapped something there
    uint32_t* const link = shortest_hole(least);
    if (link == nullptr) return false;
    const size_t index = *link;
    const uint32_t next = region_units[index].gap.next;
    const size_t length = region_units[index].units;
    least = length + 1;
    const size_t taken = all ? length : lesser(length, units < least_reserved ? least_reserved : units);
    if (os::reserve(address_of(index), taken * unit_size, true) == nullptr) continue;
    if (!os::commit(address_of(index), taken * unit_size)) {
      (void)os::release(address_of(index), taken * unit_size);
      return false;
    }
    if (taken < length) {
      begin_span(index + taken, length - taken, UnitState::Gap);
      region_units[index + taken].gap.next = next;
      *link = static_cast<uint32_t>(index + taken);
    } else {
      *link = next;
      --state.hole_count;
    }
    state.gap_units -= taken;
    if (options.huge_pages) (void)os::advise_huge_pages(address_of(index), taken * unit_size);
    state.spans.insert(index, taken, true, 0);
    return true;
  }
  return false;
}

namespace {

// Adds a gap to the holes, as one with those that it lies between.
void add_hole(size_t index, size_t units) noexcept SLUICE_REQUIRES(state.lock) {
  const bool joins = state.hole_count <= holes_by_purging;  // the list is short
  for (uint32_t* link = &state.holes; joins && *link != unit_index_none;) {
    const size_t other = *link;
    const size_t length = region_units[other].units;
    if (other + length != index && index + units != other) {
      link = &region_units[other].gap.next;
      continue;
    }
    *link = region_units[other].gap.next;
    --state.hole_count;
    index = lesser(index, other);
    units += length;
  }
  begin_span(index, units, UnitState::Gap);
  region_units[index].gap.next = state.holes;
  state.holes = static_cast<uint32_t>(index);
  ++state.hole_count;
}

// False when the system does not take the address space back: then the span stays as it is.
bool release_span(size_t index) noexcept SLUICE_REQUIRES(state.lock) {
  const size_t units = region_units[index].units;
  if (!os::release(address_of(index), units * unit_size)) return false;
  state.spans.remove(index);
  note_renewed(index, units);
  forget_advice(index, units);
  state.gap_units += units;
  add_hole(index, units);
  return true;
}

// As that, and for the clean spans that lie beside the hole then, however short: they would keep holes apart for good.
bool make_hole(size_t index) noexcept SLUICE_REQUIRES(state.lock) {
  if (!release_span(index)) return false;
  for (bool more = true; more;) {
    const size_t hole = state.holes;
    const size_t end = hole + region_units[hole].units;
    const bool after = end < limit() && region_units[end].use() == UnitState::FreeClean;
    const bool before = hole > state.first && region_units[hole - 1].use() == UnitState::FreeClean;
    more = (after && release_span(end)) || (before && release_span(hole - region_units[hole - 1].units));
  }
  return true;
}

}  // namespace

void give_up_spans(size_t units) noexcept {
  const size_t had = state.spans.clean_units();
  if (!state.piecewise || units > 2 * had || units > state.range_units - limit()) return;
  const size_t enough = units + units / (checks_blocks ? 4 : 16) + least_reserved;  // and the tables
  const size_t end = limit();
  const bool free_at_end = region_units[end - 1].use() == UnitState::FreeClean;
  const size_t last = free_at_end ? end - region_units[end - 1].units : end;
  if (free_at_end) state.spans.remove(last);
  size_t given = 0;
  size_t least = std::bit_floor(had);
  for (unsigned refusals = 0; refusals < 2 && least != 0 && given < enough && state.hole_count < most_holes;) {
    const size_t index = state.spans.find_clean(least);
    const size_t length = index != unit_index_none ? region_units[index].units : 0;
    if (length == 0)
      least /= 2;
    else if (release_span(index))
      given += length;
    else
      ++refusals;
  }
  if (free_at_end) state.spans.insert(last, end - last, true, 0);
}

void give_back_address_space() noexcept {
  const size_t least_used = state.address_limit / left_alone;
  if (!state.piecewise || in_address_space() <= least_used) return;
  give_back_reservation();
  size_t least = std::bit_floor(state.spans.clean_units());
  const auto shortest = [] { return state.hole_count < holes_by_purging ? worth_a_hole : 16 * worth_a_hole; };
  while (least >= shortest() && state.hole_count < 2 * holes_by_purging && in_address_space() > least_used) {
    const size_t index = state.spans.find_clean(least);
    if (index == unit_index_none)
      least /= 2;
    else if (!make_hole(index))
      return;
  }
}

namespace {

// Lays out a range at `base`, class bytes first. In a piecewise range nothing has been reserved yet, and the other
// tables lie behind it, so that the class bytes of few units, no more than are used, must be there.
bool adopt_range(char* base, size_t range, bool piecewise) noexcept {
  state.range_units = range / unit_size;
  state.piecewise = piecewise;
  const size_t entries = round_up(state.range_units, table_step);
  const size_t class_bytes_end = round_up(entries, unit_size);
  const size_t units_bytes = round_up(entries * sizeof(Unit), unit_size);
  const size_t bitmap_bytes = round_up(entries * bitmap_words * sizeof(uint64_t), unit_size);
  const size_t states_bytes = entries * states_per_unit * sizeof(uint16_t);
  const size_t tables_bytes = units_bytes + 2 * bitmap_bytes + states_bytes;
  state.first = (class_bytes_end + (piecewise ? 0 : tables_bytes)) / unit_size + guard_units;
  if (state.first >= state.range_units) return false;
  state.reserved_units = piecewise ? state.first : state.range_units;
  char* const tables = base + (piecewise ? range : class_bytes_end);
  region_units = reinterpret_cast<Unit*>(tables);
  region_free_bitmaps = reinterpret_cast<uint64_t*>(tables + units_bytes);
  region_remote_bitmaps = reinterpret_cast<AtomicField<uint64_t>*>(tables + units_bytes + bitmap_bytes);
  region_block_states = reinterpret_cast<std::atomic<uint16_t>*>(tables + units_bytes + 2 * bitmap_bytes);
  const size_t page_of_units = os::page_size() / sizeof(Unit);
  state.described_from = state.first / page_of_units * page_of_units;
  state.classed_units = state.described_from;
  for (size_t number = 0; number < std::size(state.described); ++number)
    state.described[number] = state.laid_out[number] = state.described_from;
  state.readable_units = piecewise ? round_up(state.first + 1, unit_size) : class_bytes_end;
  state.readable_laid_out = state.readable_units;
  if (piecewise && os::reserve(base, state.readable_units, true) == nullptr) return false;
  if (!os::make_readable(base, state.readable_units)) {
    if (piecewise) (void)os::release(base, state.readable_units);
    return false;
  }
  committed_limit.store(state.first, std::memory_order_relaxed);
  region_base = base;
  region_range_units = lesser(state.readable_units, state.range_units);
  return true;
}

// A place far from where the system puts anything by itself, and another one in each process.
char* lonely_address(uint64_t attempt) noexcept {
  constexpr uintptr_t from = uintptr_t{32} << 40;
  constexpr uintptr_t places = uintptr_t{1} << 24;
  return reinterpret_cast<char*>(from +
                                 (os::random_bits() + attempt * 0x9e3779b97f4a7c15u) % places * (uintptr_t{1} << 20));
}

}  // namespace

bool reserve_range() noexcept {
  const size_t wanted = options.reserve / unit_size * unit_size;
  state.address_limit = os::address_space_limit();
  // The range is as long under a limit, which may be raised: only what is reserved of it counts.
  for (uint64_t attempt = 0; can_choose_addresses && attempt < 4; ++attempt)
    if (adopt_range(lonely_address(attempt), wanted, true)) return true;
  const size_t range = lesser(state.address_limit, wanted) / unit_size * unit_size;
  const size_t smallest = lesser(smallest_range, wanted);
  for (size_t size = range; size >= smallest && size != 0; size /= 2) {
    const size_t bytes = size / unit_size * unit_size;
    char* base = static_cast<char*>(os::reserve(nullptr, bytes + unit_size, false));  // a unit over, to align
    if (base == nullptr) continue;
    char* aligned = reinterpret_cast<char*>(round_up(reinterpret_cast<uintptr_t>(base), unit_size));
    if (aligned != base) (void)os::release(base, static_cast<size_t>(aligned - base));
    const size_t over = unit_size - static_cast<size_t>(aligned - base);
    if (over != 0) (void)os::release(aligned + bytes, over);
    if (adopt_range(aligned, bytes, false)) return true;
    (void)os::release(aligned, bytes);
  }
  return false;
}

}  // namespace sluice::region
