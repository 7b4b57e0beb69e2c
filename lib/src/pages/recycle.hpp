// Large spans of pages that are in memory already: to move 16 MiB of pages takes 0.05 ms, to fault them in 7 ms and
// more. Open it to see what becomes of dirty spans that are too short for a request.
#pragma once

#include <cstddef>

#include "pages/region_state.hpp"

namespace sluice::region {

// Requests and pieces of so many units are worth it. A thread that is alone, for which nobody waits at the lock of the
// process's mappings, moves pieces of any length for requests from worth_moving_alone on, but not for zeroes, which
// programs may never look at, and for blocks that grow: so many a second that it takes no more than a fiftieth of the
// time.
inline constexpr size_t worth_moving = (size_t{1} << 20) / unit_size;
inline constexpr size_t worth_moving_alone = (size_t{1} << 18) / unit_size;

// Effects: takes a span of `units`, as many of them in memory as can be had: a dirty span with its clean neighbours, or
// a clean one where it is to be aligned, filled up with pages that are moved there from other dirty spans; all of the
// memory node, as is the span then. With
// `cleared` it clears what is in memory. Lets go of the lock meanwhile. Returns: its index, or unit_index_none when
// that does not pay or the system refuses. *clean: it reads as zero, which `cleared` does not ensure where the system
// refuses a part.
size_t recycle(size_t units, FreeSpans::Alignment alignment, unsigned node, bool cleared, bool* clean) noexcept
    SLUICE_REQUIRES(state.lock);

// Effects: moves pages of dirty spans to `units` clean ones by which a span in use grows, from `index` on, as far as
// there are some and that pays. Lets go of the lock meanwhile. Returns: how many of the units are not in memory;
// `units` + 1 when they have lost their mapping.
//
// It pays where the span had as many units, and has no more than a few MiB: each piece makes a mapping, which costs
// time when the block moves.
size_t fill(size_t index, size_t units, size_t had, unsigned node) noexcept SLUICE_REQUIRES(state.lock);

}  // namespace sluice::region
