// See region.hpp. What is free is in free_spans.hpp.
#include "heap/region.hpp"

#include <iterator>

#include "base/options.hpp"
#include "heap/free_spans.hpp"
#include "os/memory.hpp"

namespace sluice {

constinit char* region_base = nullptr;
constinit Unit* region_units = nullptr;
constinit size_t region_window_units = 0;
constinit std::atomic<uint16_t>* region_block_states = nullptr;

namespace region {
namespace {

constexpr size_t described_step = 1024;               // units whose descriptors and bitmaps are committed at once
constexpr size_t smallest_window = size_t{64} << 20;  // bytes; less is not worth starting with
constexpr size_t least_allowance = size_t{2} << 20;   // bytes that a small heap may keep dirty
constexpr size_t most_reserved_ahead = (size_t{1} << 30) / unit_size;  // units
constexpr size_t first_reserved = (size_t{64} << 20) / unit_size;      // units
constexpr unsigned purge_batch = 16;                                   // spans purged for one release of the lock

struct State {
  Mutex lock;
  FreeSpans spans;
  size_t recent_peak;      // most units in use, halved every purge delay…
  uint64_t peak_ms;        // …last at this time
  uint64_t* free_bitmaps;  // likewise of unit 0
  std::atomic<uint64_t>* remote_bitmaps;
  size_t window_units;  // the class bytes and descriptors reach this far
  size_t reserved_units;
  size_t first;           // units below hold class bytes and descriptors
  size_t described_from;  // descriptors and bitmaps are committed from here…
  size_t described[4];    // …up to here, for each table…
  size_t laid_out[4];     // …whose address space is reserved up to here
  size_t classed_units;   // class bytes can be written up to here
  size_t metadata_units;  // units that allocate_metadata has used
  char* metadata_next;    // and what is left of the last one
  size_t metadata_left;
  bool piecewise;       // only what is needed of the window has been reserved
  size_t reserve_step;  // units by which a piecewise reservation grows at least
  size_t gap_units;     // of the window that others use
  size_t busy_spans;    // being purged without the lock
};
constinit State state{};
constinit std::atomic<size_t> committed_limit{0};           // written under the lock; relaxed, see limit()
constinit std::atomic<uint32_t> deferred{unit_index_none};  // spans that await their end, linked by `next`
constinit std::atomic<uint64_t> last_purge_ms{0};           // when purge_aged last looked

// Each guarded span costs two mappings, and a process may have some 65,000: half of them are the program's.
constexpr uint32_t most_guards = 16'000;
constinit std::atomic<uint32_t> guard_count{0};

constexpr size_t round_up(size_t value, size_t multiple) noexcept {
  return (value + multiple - 1) / multiple * multiple;
}

void set_ends(size_t index, size_t units, UnitState use) noexcept {
  Unit* head = region_units + index;
  head[units - 1].state = use == UnitState::Large ? UnitState::LargeTail : use;
  head->state = use;
  head->units = static_cast<uint32_t>(units);
  head->large_bytes = 0;
}

void free_locked(size_t index, size_t units, bool clean) noexcept {
  state.spans.insert(index, units, clean, clean ? 0 : os::clock_ms());
}

// Commits a table's entries up to the unit `to`, a multiple of described_step. A piece that cannot be committed stays
// reserved for the next attempt: giving it back may fail too, and nothing could be reserved there any more.
template <typename Entry>
bool grow_table(Entry* table, size_t entries_per_unit, size_t number, size_t to) noexcept {
  size_t& described = state.described[number];
  size_t& laid_out = state.laid_out[number];
  if (described >= to) return true;
  const auto entry = [&](size_t unit) { return table + unit * entries_per_unit; };
  const auto bytes = [&](size_t from) { return (to - from) * entries_per_unit * sizeof(Entry); };
  if (state.piecewise && laid_out < to) {
    if (os::reserve(entry(laid_out), bytes(laid_out), true) == nullptr) return false;
    laid_out = to;
  }
  if (!os::commit(entry(described), bytes(described))) return false;
  described = to;
  return true;
}

// Makes sure that every unit below `end` has a descriptor, bitmaps and a class byte that can be written.
bool commit_metadata(size_t end) noexcept {
  if (end <= state.classed_units) return true;
  const size_t to = round_up(end, described_step);
  if (!grow_table(region_units, 1, 0, to) || !grow_table(state.free_bitmaps, bitmap_words, 1, to) ||
      !grow_table(state.remote_bitmaps, bitmap_words, 2, to) ||
      (secure && !grow_table(region_block_states, states_per_unit, 3, to)))
    return false;
  const size_t page = os::page_size();
  const size_t first_byte = state.classed_units / page * page;
  if (!os::commit(region_base + first_byte, round_up(to, page) - first_byte)) return false;
  state.classed_units = to;
  return true;
}

// Reserves address space right behind the reservation: little at a time, because a program may limit itself later, and
// what is reserved counts then.
bool grow_reservation(size_t units) noexcept {
  if (!state.piecewise) return false;
  size_t step = (state.reserved_units - state.first) / 4;
  if (step < state.reserve_step) step = state.reserve_step;
  if (step > most_reserved_ahead) step = most_reserved_ahead;
  for (;; step = step / 2) {
    if (step < units) step = units;
    if (state.reserved_units + step <= state.window_units &&
        os::reserve(address_of(state.reserved_units), step * unit_size, true) != nullptr) {
      state.reserved_units += step;
      return true;
    }
    if (step == units) return false;
  }
}

// Somebody has mapped something right behind the reservation: goes on behind it. What is left of the reservation
// becomes a free span, the obstacle a span that is never touched.
bool leave_gap(size_t units) noexcept {
  if (!state.piecewise) return false;
  constexpr size_t widest_gap = (size_t{4} << 30) / unit_size;  // units
  const size_t end = limit();
  const size_t from = state.reserved_units;
  for (size_t gap = 1; gap <= widest_gap && from + gap + units <= state.window_units; gap *= 2) {
    if (os::reserve(address_of(from + gap), units * unit_size, true) == nullptr) continue;
    if (!commit_metadata(from + gap + units) ||
        (from > end && !os::commit(address_of(end), (from - end) * unit_size))) {
      os::release(address_of(from + gap), units * unit_size);
      return false;
    }
    set_ends(from, gap, UnitState::Meta);
    state.gap_units += gap;
    state.reserved_units = from + gap + units;
    committed_limit.store(from + gap, std::memory_order_relaxed);
    if (from > end) state.spans.insert(end, from - end, true, 0);
    return true;
  }
  return false;
}

// Commits at least `units` more at the end of the heap; the more it holds, the more at once.
bool grow_commit(size_t units) noexcept {
  size_t end = limit();
  size_t least = units;  // what is free at the end of the heap already counts
  if (end > state.first && region_units[end - 1].state == UnitState::FreeClean && region_units[end - 1].units < units)
    least = units - region_units[end - 1].units;
  size_t step = (end - state.first) / 8;
  if (step < 16) step = 16;
  if (step > 1024) step = 1024;
  if (step < units) step = units;
  for (;;) {
    if ((end + step <= state.reserved_units || grow_reservation(end + step - state.reserved_units)) &&
        commit_metadata(end + step) && os::commit(address_of(end), step * unit_size)) {
      if (options.huge_pages) os::advise_huge_pages(address_of(end), step * unit_size);
      committed_limit.store(end + step, std::memory_order_relaxed);
      state.spans.insert(end, step, true, 0);
      return true;
    }
    if (step != least) {
      step = least;
    } else if (end + units > state.reserved_units && leave_gap(units)) {
      end = limit();
      step = least = units;
    } else {
      return false;
    }
  }
}

// Returns the pages of the oldest dirty spans while `wanted(span, dirty bytes)` says so. Lets go of the lock meanwhile.
template <typename Wanted>
size_t purge_while(Wanted wanted) noexcept {
  size_t purged = 0;
  for (bool more = true; more;) {
    uint32_t batch[purge_batch];
    unsigned count = 0;
    while (count < purge_batch && state.spans.oldest() != unit_index_none) {
      const uint32_t index = state.spans.oldest();
      if (!wanted(region_units[index], state.spans.dirty_units() * unit_size)) break;
      state.spans.remove(index);
      region_units[index].state = UnitState::Busy;
      region_units[index + region_units[index].units - 1].state = UnitState::Busy;
      region_units[index].busy_thread = thread_token();
      batch[count++] = index;
    }
    more = count == purge_batch;
    if (count == 0) break;
    state.busy_spans += count;
    state.lock.unlock();
    bool gone[purge_batch];
    for (unsigned i = 0; i < count; ++i)
      gone[i] = os::purge(address_of(batch[i]), region_units[batch[i]].units * unit_size);
    state.lock.lock();
    state.busy_spans -= count;
    for (unsigned i = 0; i < count; ++i) {
      const size_t units = region_units[batch[i]].units;
      state.spans.insert(batch[i], units, gone[i], os::clock_ms());
      if (gone[i])
        purged += units * unit_size;
      else
        more = false;
    }
  }
  return purged;
}

size_t units_in_use() noexcept {
  return limit() - state.first - state.gap_units - state.spans.clean_units() - state.spans.dirty_units();
}

// How much may stay dirty: what the heap needed a short while ago and may need again, so that keeping pages never makes
// it larger than it was, by more than a little.
size_t dirty_allowance() noexcept {
  const size_t in_use = units_in_use();
  const uint64_t now = os::clock_ms();
  if (now - state.peak_ms >= options.purge_delay) {
    state.recent_peak /= 2;
    state.peak_ms = now;
  }
  if (state.recent_peak < in_use) state.recent_peak = in_use;
  const size_t share = (state.recent_peak - in_use) * unit_size + least_allowance;
  return share < options.retain ? share : options.retain;
}

void purge_excess() noexcept {
  const size_t allowance = dirty_allowance();
  if (state.spans.dirty_units() * unit_size > allowance)
    purge_while([allowance](Unit&, size_t dirty_bytes) { return dirty_bytes > allowance; });
}

size_t take(size_t units, bool* clean, Prefer prefer = Prefer::Dirty) noexcept {
  const bool dirty_first = prefer == Prefer::Dirty;
  size_t index = dirty_first ? state.spans.find_dirty(units) : state.spans.find_clean(units);
  if (index == unit_index_none && dirty_first) index = state.spans.find_clean(units);
  if (index == unit_index_none && grow_commit(units)) index = state.spans.find_clean(units);
  if (index == unit_index_none && !dirty_first) index = state.spans.find_dirty(units);
  if (index == unit_index_none && state.spans.dirty_units() != 0) {
    purge_while([](Unit&, size_t) { return true; });  // everything is clean then, and joined
    index = state.spans.find_clean(units);
    if (index == unit_index_none && grow_commit(units)) index = state.spans.find_clean(units);
  }
  if (index == unit_index_none) index = state.spans.find_clean(units, UINT32_MAX);
  if (index == unit_index_none) return index;
  *clean = region_units[index].state == UnitState::FreeClean;
  state.spans.carve(index, units);
  if (const size_t in_use = units_in_use(); in_use > state.recent_peak) state.recent_peak = in_use;
  return index;
}

// A signal handler that interrupted this thread under the lock leaves its span here; the next to take the lock frees
// it.
void defer(size_t index) noexcept {
  uint32_t head = deferred.load(std::memory_order_relaxed);
  do {
    region_units[index].next = head;
  } while (!deferred.compare_exchange_weak(head, static_cast<uint32_t>(index), std::memory_order_release,
                                           std::memory_order_relaxed));
}

// Holds the lock of the region, and frees what handlers have left.
class RegionGuard {
 public:
  RegionGuard() noexcept {
    state.lock.lock();
    if (deferred.load(std::memory_order_relaxed) == unit_index_none) return;
    uint32_t index = deferred.exchange(unit_index_none, std::memory_order_acquire);  // pairs with defer
    while (index != unit_index_none) {
      const uint32_t next = region_units[index].next;
      free_locked(index, region_units[index].units, false);
      index = next;
    }
  }
  ~RegionGuard() { state.lock.unlock(); }
  RegionGuard(const RegionGuard&) = delete;
  RegionGuard& operator=(const RegionGuard&) = delete;
};

// Lays out a window at `base`: tables first. In a piecewise window nothing has been reserved yet.
bool adopt_window(char* base, size_t window, bool piecewise) noexcept {
  state.window_units = window / unit_size;
  state.piecewise = piecewise;
  // Tables end at a multiple of described_step units, so that they are committed in whole steps, whatever the page
  // size.
  const size_t entries = round_up(state.window_units, described_step);
  const size_t class_bytes_end = round_up(entries, unit_size);
  const size_t units_end = class_bytes_end + round_up(entries * sizeof(Unit), unit_size);
  const size_t bitmap_bytes = round_up(entries * bitmap_words * sizeof(uint64_t), unit_size);
  const size_t states_bytes = entries * states_per_unit * sizeof(uint16_t);
  state.first = (units_end + 2 * bitmap_bytes + states_bytes) / unit_size + guard_units;
  if (state.first >= state.window_units) return false;
  state.reserved_units = piecewise ? state.first : state.window_units;
  region_units = reinterpret_cast<Unit*>(base + class_bytes_end);
  state.free_bitmaps = reinterpret_cast<uint64_t*>(base + units_end);
  state.remote_bitmaps = reinterpret_cast<std::atomic<uint64_t>*>(base + units_end + bitmap_bytes);
  region_block_states = reinterpret_cast<std::atomic<uint16_t>*>(base + units_end + 2 * bitmap_bytes);
  state.described_from = state.first / described_step * described_step;
  state.classed_units = state.described_from;
  for (size_t number = 0; number < std::size(state.described); ++number)
    state.described[number] = state.laid_out[number] = state.described_from;
  if (piecewise && os::reserve(base, class_bytes_end, true) == nullptr) return false;
  if (!os::make_readable(base, class_bytes_end)) {
    if (piecewise) os::release(base, class_bytes_end);
    return false;
  }
  committed_limit.store(state.first, std::memory_order_relaxed);
  region_base = base;
  region_window_units = state.window_units;
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

bool initialize() noexcept {
  const size_t wanted = options.reserve / unit_size * unit_size;
  const size_t limit = os::address_space_limit();
  const size_t window = (limit < wanted ? limit : wanted) / unit_size * unit_size;
  if (can_choose_addresses) {
    // Under a limit address space is memory: smaller steps leave room for stacks and libraries.
    state.reserve_step = limit / unit_size / 16 < first_reserved ? limit / unit_size / 16 : first_reserved;
    for (uint64_t attempt = 0; attempt < 4; ++attempt)
      if (adopt_window(lonely_address(attempt), window, true)) return true;
  }
  const size_t smallest = smallest_window < wanted ? smallest_window : wanted;
  for (size_t size = window; size >= smallest && size != 0; size /= 2) {
    const size_t bytes = size / unit_size * unit_size;
    char* base = static_cast<char*>(os::reserve(nullptr, bytes + unit_size, false));  // a unit over, to align
    if (base == nullptr) continue;
    char* aligned = reinterpret_cast<char*>(round_up(reinterpret_cast<uintptr_t>(base), unit_size));
    if (aligned != base) os::release(base, static_cast<size_t>(aligned - base));
    const size_t over = unit_size - static_cast<size_t>(aligned - base);
    if (over != 0) os::release(aligned + bytes, over);
    if (adopt_window(aligned, bytes, false)) return true;
    os::release(aligned, bytes);
  }
  return false;
}

void adopt_busy_spans() noexcept {
  if (state.busy_spans == 0 || state.lock.held_by_this_thread()) return;
  for (size_t i = state.first; i < limit();) {
    const size_t units = region_units[i].units;
    if (region_units[i].state == UnitState::Busy && region_units[i].busy_thread != thread_token()) {
      --state.busy_spans;
      // A free span behind joins it, and its descriptor is not to be looked at any more.
      size_t next = i + units;
      if (next < limit() && FreeSpans::is_free(region_units[next].state)) next += region_units[next].units;
      state.spans.insert(i, units, false, os::clock_ms());
      i = next;
      continue;
    }
    i += units;
  }
}

uint64_t* free_bitmap_at(size_t index) noexcept {
  return state.free_bitmaps + index * bitmap_words;
}
std::atomic<uint64_t>* remote_bitmap_at(size_t index) noexcept {
  return state.remote_bitmaps + index * bitmap_words;
}
size_t first_index() noexcept {
  return state.first;
}
size_t limit() noexcept {
  return committed_limit.load(std::memory_order_relaxed);
}
Mutex& mutex() noexcept {
  return state.lock;
}

namespace {

// Pages that the system does not make accessible are never used again.
void abandon(size_t index, size_t units) noexcept {
  if (state.lock.held_by_this_thread()) return;
  const MutexGuard guard(state.lock);
  set_ends(index, units, UnitState::Meta);
}

}  // namespace

size_t allocate(size_t units, size_t align_units, UnitState use, bool* clean, Prefer prefer) noexcept {
  const size_t padded = units + align_units - 1;
  if (units == 0 || padded < units || padded > state.window_units) return unit_index_none;
  if (state.lock.held_by_this_thread()) return unit_index_none;
  const RegionGuard guard;
  const size_t index = take(padded, clean, prefer);
  if (index == unit_index_none) return index;
  size_t skip = 0;
  if (padded != units) {
    const size_t alignment = align_units * unit_size;
    const size_t address = reinterpret_cast<size_t>(address_of(index));
    skip = (round_up(address, alignment) - address) / unit_size;
  }
  // The ends come first: giving back what is over looks at its neighbours.
  set_ends(index + skip, units, use);
  if (skip != 0) free_locked(index, skip, *clean);
  if (padded > skip + units) free_locked(index + skip + units, padded - skip - units, *clean);
  return index + skip;
}

void free(size_t index, size_t units, bool clean) noexcept {
  if (secure && !open(index)) return abandon(index, units);
  if (state.lock.held_by_this_thread()) return defer(index);
  const RegionGuard guard;
  free_locked(index, units, clean);
  purge_excess();
}

bool resize(size_t index, size_t units) noexcept {
  if (state.lock.held_by_this_thread()) return false;
  const RegionGuard guard;
  const size_t have = region_units[index].units;
  if (units > have) {
    const size_t after = index + have;
    if (units > state.window_units) return false;
    if (after == limit() && !grow_commit(units - have)) return false;
    if (!FreeSpans::is_free(region_units[after].state) || region_units[after].units < units - have) return false;
    state.spans.carve(after, units - have);
  }
  set_ends(index, units, UnitState::Large);
  if (units < have) {
    free_locked(index + units, have - units, false);
    purge_excess();
  }
  return true;
}

void guard(size_t index, size_t bytes) noexcept {
  Unit& span = region_units[index];
  const size_t from = round_up(bytes, os::page_size());
  const size_t end = span.units * unit_size;
  if (from >= end || guard_count.load(std::memory_order_relaxed) >= most_guards) return;
  if (!span.guarded) guard_count.fetch_add(1, std::memory_order_relaxed);
  span.guarded = true;  // also where the system refuses: some of the pages may have been protected
  (void)os::protect(address_of(index) + from, end - from);
}

void change_use(size_t index, UnitState use) noexcept {
  const RegionGuard guard;
  set_ends(index, region_units[index].units, use);
}

void shut(size_t index) noexcept {
  guard(index, 0);
}

bool open(size_t index) noexcept {
  Unit& span = region_units[index];
  if (!span.guarded) return true;
  if (!os::commit(address_of(index), span.units * unit_size)) return false;
  span.guarded = false;
  guard_count.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

void purge_aged() noexcept {
  if (state.spans.dirty_units() == 0) return;
  const uint64_t now = os::clock_ms();
  if (now - last_purge_ms.load(std::memory_order_relaxed) < options.purge_delay / 4 + 1) return;
  if (!state.lock.try_lock()) return;
  last_purge_ms.store(now, std::memory_order_relaxed);
  purge_while([now](Unit& span, size_t) { return now - span.freed_at >= options.purge_delay; });
  state.lock.unlock();
}

size_t purge_all(size_t keep) noexcept {
  if (state.lock.held_by_this_thread()) return 0;
  const RegionGuard guard;
  return purge_while([keep](Unit&, size_t dirty_bytes) { return dirty_bytes > keep; });
}

void* allocate_metadata(size_t bytes) noexcept {
  bytes = round_up(bytes, alignof(Unit));
  if (state.lock.held_by_this_thread()) return nullptr;
  const RegionGuard guard;
  if (state.metadata_left < bytes) {
    bool clean = false;
    const size_t index = take(1 + guard_units, &clean);
    if (index == unit_index_none) return nullptr;
    state.metadata_next = address_of(index);
    state.metadata_left = unit_size;
    set_ends(index, 1 + guard_units, UnitState::Meta);
    state.metadata_units += 1 + guard_units;
    if (!clean) __builtin_memset(state.metadata_next, 0, unit_size);
    if (secure) region::guard(index, unit_size);
  }
  void* memory = state.metadata_next;
  state.metadata_next += bytes;
  state.metadata_left -= bytes;
  return memory;
}

Figures figures() noexcept {
  Figures f{};
  f.reserved_bytes = (state.reserved_units - state.first) * unit_size;
  f.committed_bytes = (limit() - state.first - state.gap_units) * unit_size;
  const size_t per_unit =
      sizeof(Unit) + 2 * bitmap_words * sizeof(uint64_t) + states_per_unit * sizeof(uint16_t) + sizeof(uint8_t);
  f.metadata_bytes = (state.described[0] - state.described_from) * per_unit + state.metadata_units * unit_size;
  f.free_clean_bytes = state.spans.clean_units() * unit_size;
  f.free_dirty_bytes = state.spans.dirty_units() * unit_size;
  return f;
}

const char* validate() noexcept {
  return state.spans.validate();
}

}  // namespace region
}  // namespace sluice
