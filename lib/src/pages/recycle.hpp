// Large spans of pages that are in memory already: to move 16 MiB of pages takes 0.05 ms, to fault them in 7 ms and
// more. Open it to see what becomes of dirty spans that are too short for a request.
#pragma once

#include <cstddef>

#include "pages/region_state.hpp"

namespace sluice::region {

inline constexpr size_t worth_moving = (size_t{1} << 20) / unit_size;  // units

// Effects: takes a span of `units` whose pages are in memory as far as free ones are: a dirty span with its clean
// neighbours, filled up with pages that are moved there from other dirty spans. Lets go of the lock meanwhile. Returns:
// its index, or unit_index_none when that does not pay or the system refuses. *clean: it reads as zero, always if it is
// to be `cleared`: only what is in memory is written then.
size_t recycle(size_t units, bool cleared, bool* clean) noexcept SLUICE_REQUIRES(state.lock);

}  // namespace sluice::region
