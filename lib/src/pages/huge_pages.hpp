// Huge pages for the slabs of threads that have many. Open it to see which memory asks the system for huge pages, and
// when it asks no more. Decision: lib/docs/decisions/043-slabs-of-large-heaps-lie-in-huge-pages.md.
//
// An extent is as much address space as a huge page takes, at a multiple of it. One at a time is open, or one for each
// memory node (nodes.hpp): it serves slabs of threads that have enough of them to fill it (heap/slab.cpp), from its
// front to its end. Large blocks never lie in an open extent: a program may write to a small part of one alone, and
// would have all of it in memory.
//
// Who takes the first slab of an extent touches it, and times that: the system may have to move the memory of others
// out of the way first. Where that took too long in all, no more is asked for, for a while that doubles each time.
// Where much of what lies side by side went back to the system, it is told not to make huge pages there by itself.
//
// Linux keeps the memory of a huge page of which a part is dropped until it needs some. So who drops the first part
// has it split first: that memory goes at once then. It splits none that a fork's other process has, too: who forks
// opens no more extents.
#pragma once

#include <cstddef>

#include "pages/region_state.hpp"

namespace sluice::region {

inline constexpr size_t extent_bytes = size_t{2} << 20;
inline constexpr size_t extent_units = extent_bytes / unit_size;

// Units of open extents that no slab has taken yet: they are free and clean, and in no list.
size_t units_in_extents() noexcept;

// Effects: takes a span of `units` from the node's open extent, or from a new one; it is clean, and in no list.
// Returns: its index; unit_index_none where there is a shorter clean span that serves, or huge pages are not asked for.
size_t take_from_extent(size_t units, unsigned node) noexcept SLUICE_REQUIRES(state.lock);

// Effects: what open extents have left becomes dirty spans: all of a huge page is in memory.
void close_extents() noexcept SLUICE_REQUIRES(state.lock);

// Effects: forgets the open extents; nobody uses them any more. For the child of a fork.
void forget_extents() noexcept;

// Effects: no extent is opened any more, if any was. Before a fork.
void end_huge_pages() noexcept;

// Effects: where the span is the first of an extent, touches that and notes how long the system took. Requires: the
// span is the caller's, and not the lock.
void touch_extent(size_t index) noexcept;

// Whether the unit lies in a huge page that is whole, as far as the system made one. Requires: it is the caller's.
bool is_whole_huge_page(size_t index) noexcept;

// Effects: splits the huge page that a unit lies in, a part of which is about to be dropped. Requires: `bytes` at
// `address` there are of that part, and the caller's; not the lock, for the former.
void split_huge_page(void* address, size_t bytes) noexcept;
void note_split(size_t index) noexcept SLUICE_REQUIRES(state.lock);

// The parts of a span, which is about to be dropped, that lie in huge pages whose other parts stay: so many units at
// its front and at its back; 0 where there are none. Effects: notes that these pages are split.
struct Ends {
  size_t front, back;
};
Ends note_ends(size_t index, size_t units) noexcept SLUICE_REQUIRES(state.lock);

// Effects: notes that so many bytes of a span, or of some pages in a slab, went back to the system; or that a clean
// span is in use again.
void note_gone(size_t index, size_t bytes) noexcept SLUICE_REQUIRES(state.lock);
void note_needed(size_t index, size_t units) noexcept SLUICE_REQUIRES(state.lock);

}  // namespace sluice::region
