// Which units have mappings of their own because pages were moved there. Linux gives pages that move (mremap) a mapping
// apart from its neighbours, moves one mapping at a time (before 6.17), and lets a process have some 65,000. Open it to
// see how many there may be, and when they are joined again.
//
// Unit::mapping says it of each unit, whatever the unit serves for, and two things more: what the system was told of
// the pages there, and a memory node. It changes under the region's lock. Who has a span
// may read it without: all that another thread may change is that a mapping begins at the span's first unit, and it
// began there anyway.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pages/region_state.hpp"

namespace sluice::region {

// What the unit's mapping was told, and whether it lies in a huge page that nothing was dropped of. Setting it tells
// the system nothing. Requires, for reading: the lock, or the unit is the caller's.
inline PageAdvice advice_of(size_t index) noexcept {
  return static_cast<PageAdvice>(region_units[index].mapping.load(std::memory_order_relaxed) >> 2 & 3);
}
inline bool is_whole(size_t index) noexcept {
  return (region_units[index].mapping.load(std::memory_order_relaxed) >> 4 & 1) != 0;
}
void set_advice(size_t index, PageAdvice advice, bool whole) noexcept SLUICE_REQUIRES(state.lock);

// Whether any unit was told anything.
bool any_advice() noexcept;

// The memory node that a unit is marked with (nodes.hpp); 0 at first.
inline unsigned node_mark_of(size_t index) noexcept {
  static_assert(most_nodes == 8);
  return region_units[index].mapping.load(std::memory_order_relaxed) >> 5;
}
void set_node_mark(size_t index, unsigned node) noexcept SLUICE_REQUIRES(state.lock);

// Effects: notes that the units have no mapping any more.
void forget_advice(size_t index, size_t units) noexcept SLUICE_REQUIRES(state.lock);

// Effects: calls act(from, units, advice) for each part of [index, end) that was told the same.
template <typename Act>
void for_each_advice(size_t index, size_t end, Act act) noexcept {
  for (size_t from = index, to; from < end; from = to) {
    const PageAdvice advice = advice_of(from);
    for (to = from + 1; to < end && advice_of(to) == advice;)
      ++to;
    act(from, to - from, advice);
  }
}

// Each costs two of the process's mappings at most.
inline constexpr uint32_t most_displaced_mappings = 4000;

// Returns: how many more mappings may be made by moving pages.
uint32_t mappings_left() noexcept;

// Returns: the length in units of the mapping that a unit lies in, from there on; `most` at most. What was told another
// thing counts as another one, also where pages were moved there together.
size_t mapping_length(size_t index, size_t most) noexcept;

// Returns: how many mappings a span lies in, as far as moved pages make them.
size_t mappings_in(size_t index, size_t units) noexcept;

// Returns: whether any unit of a span is displaced.
bool has_displaced(size_t index, size_t units) noexcept;

// Effects: notes that the pages of one mapping were moved to these units, or that they are mapped anew as their
// neighbours are.
void note_displaced(size_t index, size_t units) noexcept SLUICE_REQUIRES(state.lock);
void note_renewed(size_t index, size_t units) noexcept SLUICE_REQUIRES(state.lock);

// Effects: in the child of a fork: what is renewed counts as a mapping of its own from now on, together with what lies
// beside it and is renewed, too: the system does not join the mappings that the child has from its parent with new
// ones. Requires the lock.
void note_fork() noexcept;

// Effects: maps the units anew, so that they read as zero; note_renewed() is due then. False when the system refuses:
// then they may have lost their mapping. Requires: the units are the caller's; not the lock.
bool renew(size_t index, size_t units) noexcept;

// What became of pages that were to be dropped.
enum class Dropped : uint8_t {
  No,       // some of them may have been
  Yes,      // they read as zero
  Renewed,  // likewise, and note_renewed() is due
  Lost,     // they have no mapping any more: see lost_spans.hpp
};

// Effects: drops what is in the units' pages, and joins their mappings with their neighbours' as far as the system
// does. Of 2 MiB and more, what a program asked of the pages is forgotten: they have a new mapping. *present: so many
// of the bytes were in memory at most. Requires: the units are the caller's; not the lock.
Dropped drop(size_t index, size_t units, size_t* present) noexcept;

// Likewise, for units whose pages were moved away: there is nothing to drop.
Dropped join_emptied(size_t index, size_t units) noexcept;

// Effects: moves the pages of units to other units that are mapped, mapping by mapping, in order; what they leave reads
// as zero. Returns: how many units were moved before the system refused. Behind them pages may have moved, too, and
// what they were to replace may have lost its mapping. Requires: the units are the caller's; not the lock.
size_t move_units(size_t from, size_t to, size_t units) noexcept;

// Effects: notes that move_units() has moved so many units. Calls note_displaced for each mapping.
void note_moved(size_t from, size_t to, size_t units) noexcept SLUICE_REQUIRES(state.lock);

}  // namespace sluice::region
