// See mappings.hpp.
#include "pages/mappings.hpp"

#include <atomic>

#include "base/options.hpp"
#include "os/memory.hpp"

namespace sluice::region {
namespace {

// A huge page, for which programs ask in large blocks alone: of fewer bytes nothing is forgotten, since it costs a
// system call.
constexpr size_t worth_forgetting = size_t{2} << 20;

constinit std::atomic<uint32_t> displaced_mappings{0};
constinit std::atomic<bool> advice_given{false};
constinit bool are_joined = true;  // what is renewed merges with all its neighbours

UnitMapping mapping_of(size_t index) noexcept {
  return static_cast<UnitMapping>(region_units[index].mapping.load(std::memory_order_relaxed) & 3);
}
void set_all(size_t index, UnitMapping mapping, PageAdvice advice, bool whole) noexcept SLUICE_REQUIRES(state.lock) {
  const unsigned all = static_cast<unsigned>(mapping) | static_cast<unsigned>(advice) << 2 | (whole ? 16u : 0u) |
                       node_mark_of(index) << 5;
  region_units[index].mapping.store(static_cast<uint8_t>(all), std::memory_order_relaxed);
}
void set_mapping(size_t index, UnitMapping mapping) noexcept SLUICE_REQUIRES(state.lock) {
  set_all(index, mapping, advice_of(index), is_whole(index));
}

// The mapping that reaches into the unit, if it is displaced, begins there from now on.
void begin_mapping_at(size_t index) noexcept SLUICE_REQUIRES(state.lock) {
  if (index >= limit() || mapping_of(index) != UnitMapping::Displaced) return;
  set_mapping(index, UnitMapping::Begins);
  displaced_mappings.fetch_add(1, std::memory_order_relaxed);
}

void clear_marks(size_t index, size_t units) noexcept SLUICE_REQUIRES(state.lock) {
  uint32_t begun = 0;
  for (size_t i = index; i < index + units; ++i) {
    if (mapping_of(i) == UnitMapping::Usual) continue;
    begun += mapping_of(i) == UnitMapping::Begins ? 1 : 0;
    set_mapping(i, UnitMapping::Usual);
  }
  if (begun != 0) displaced_mappings.fetch_sub(begun, std::memory_order_relaxed);
}

bool is_anew(size_t index) noexcept {
  return index >= state.first && index < limit() && mapping_of(index) == UnitMapping::Anew;
}

// How many mappings of units that were mapped anew begin with one of these, or with the one behind them.
uint32_t begun_anew(size_t index, size_t units) noexcept {
  if (are_joined) return 0;
  uint32_t count = 0;
  for (size_t i = index; i <= index + units; ++i)
    count += is_anew(i) && !is_anew(i - 1) ? 1 : 0;
  return count;
}

bool any_displaced() noexcept {
  return displaced_mappings.load(std::memory_order_relaxed) != 0;
}

}  // namespace

void set_advice(size_t index, PageAdvice advice, bool whole) noexcept {
  advice_given.store(true, std::memory_order_relaxed);
  set_all(index, mapping_of(index), advice, whole);
}

bool any_advice() noexcept {
  return advice_given.load(std::memory_order_relaxed);
}

void forget_advice(size_t index, size_t units) noexcept {
  for (size_t i = index; any_advice() && i < index + units; ++i)
    set_all(i, mapping_of(i), PageAdvice::None, false);
}

void set_node_mark(size_t index, unsigned node) noexcept {
  const unsigned other = region_units[index].mapping.load(std::memory_order_relaxed) & 31;
  region_units[index].mapping.store(static_cast<uint8_t>(other | node << 5), std::memory_order_relaxed);
}

uint32_t mappings_left() noexcept {
  if (!os::can_move_pages) return 0;
  const uint32_t used = displaced_mappings.load(std::memory_order_relaxed);
  return used < most_displaced_mappings ? most_displaced_mappings - used : 0;
}

size_t mapping_length(size_t index, size_t most) noexcept {
  if (!any_displaced() && !any_advice()) return most;
  const UnitMapping first = mapping_of(index);
  const UnitMapping same = first == UnitMapping::Begins ? UnitMapping::Displaced : first;
  size_t length = 1;
  while (length < most && mapping_of(index + length) == same && advice_of(index + length) == advice_of(index))
    ++length;
  return length;
}

size_t mappings_in(size_t index, size_t units) noexcept {
  size_t count = 0;
  for (size_t done = 0; done < units; ++count)
    done += mapping_length(index + done, units - done);
  return count;
}

bool has_displaced(size_t index, size_t units) noexcept {
  if (!any_displaced()) return false;
  for (size_t i = index; i < index + units; ++i)
    if (mapping_of(i) == UnitMapping::Displaced || mapping_of(i) == UnitMapping::Begins) return true;
  return false;
}

void note_displaced(size_t index, size_t units) noexcept {
  const uint32_t were_anew = begun_anew(index, units);
  begin_mapping_at(index + units);
  clear_marks(index, units);
  for (size_t i = index; i < index + units; ++i)
    set_mapping(i, UnitMapping::Displaced);
  begin_mapping_at(index);
  displaced_mappings.fetch_add(begun_anew(index, units) - were_anew, std::memory_order_relaxed);
}

void note_renewed(size_t index, size_t units) noexcept {
  const uint32_t were_anew = begun_anew(index, units);
  begin_mapping_at(index + units);
  clear_marks(index, units);
  for (size_t i = index; !are_joined && i < index + units; ++i)
    set_mapping(i, UnitMapping::Anew);
  displaced_mappings.fetch_add(begun_anew(index, units) - were_anew, std::memory_order_relaxed);
}

void note_fork() noexcept SLUICE_UNCHECKED_LOCKS {  // the lock was taken before the fork
  const bool has_anew = !are_joined && any_displaced();
  are_joined = false;
  if (!has_anew) return;
  // What the parent mapped anew is of the parent's, too: as many mappings as before.
  UnitMapping last = UnitMapping::Usual;
  for (size_t i = state.first; i < limit(); ++i) {
    const UnitMapping now = mapping_of(i);
    if (now == UnitMapping::Anew)
      set_mapping(i, last == UnitMapping::Anew ? UnitMapping::Displaced : UnitMapping::Begins);
    last = now;
  }
}

namespace {

// What the heap itself asked for in a mapping that is new.
void advise(size_t index, size_t units) noexcept {
  if (options.huge_pages) (void)os::advise_huge_pages(address_of(index), units * unit_size);
  if (!any_advice()) return;
  for_each_advice(index, index + units, [](size_t from, size_t length, PageAdvice advice) {
    if (advice == PageAdvice::Huge) (void)os::advise_huge_pages(address_of(from), length * unit_size);
    if (advice == PageAdvice::Small) (void)os::advise_small_pages(address_of(from), length * unit_size);
  });
}

// For units that were purged: what the program asked the system to do with their pages ends with its block.
Dropped forget(size_t index, size_t units) noexcept {
  constexpr uint32_t mappings_it_may_make = 2;
  const size_t bytes = units * unit_size;
  if (mappings_left() < mappings_it_may_make || os::is_memory_locked()) return Dropped::Yes;
  if (!os::renew_purged(address_of(index), bytes))
    return os::is_mapped(address_of(index), bytes) ? Dropped::Yes : Dropped::Lost;
  advise(index, units);
  return Dropped::Renewed;
}

}  // namespace

bool renew(size_t index, size_t units) noexcept {
  if (!os::renew(address_of(index), units * unit_size)) return false;
  advise(index, units);
  return true;
}

Dropped drop(size_t index, size_t units, size_t* present) noexcept {
  char* const start = address_of(index);
  const size_t bytes = units * unit_size;
  *present = bytes;
  if (!has_displaced(index, units)) {
    if (!os::purge(start, bytes, present)) return Dropped::No;
    return bytes < worth_forgetting ? Dropped::Yes : forget(index, units);
  }
  if (os::is_memory_locked()) return Dropped::No;
  if (renew(index, units)) {
    os::call_counts.purged_bytes.fetch_add(bytes, std::memory_order_relaxed);
    return Dropped::Renewed;
  }
  if (!os::is_mapped(start, bytes)) return Dropped::Lost;
  return os::purge(start, bytes) ? Dropped::Yes : Dropped::No;
}

Dropped join_emptied(size_t index, size_t units) noexcept {
  if (!has_displaced(index, units)) return Dropped::Yes;
  if (renew(index, units)) return Dropped::Renewed;
  return os::is_mapped(address_of(index), units * unit_size) ? Dropped::Yes : Dropped::Lost;
}

size_t move_units(size_t from, size_t to, size_t units) noexcept {
  size_t moved = 0;
  while (moved < units) {
    const size_t length = mapping_length(from + moved, units - moved);
    if (!os::move_pages(address_of(from + moved), address_of(to + moved), length * unit_size)) break;
    moved += length;
  }
  return moved;
}

void note_moved(size_t from, size_t to, size_t units) noexcept {
  for (size_t done = 0; done < units;) {
    const size_t length = mapping_length(from + done, units - done);
    note_displaced(to + done, length);
    done += length;
  }
}

}  // namespace sluice::region
