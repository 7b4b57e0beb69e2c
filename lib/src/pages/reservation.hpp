// How the region gets address space and tables, and gives address space up: the range, what is reserved and committed
// of it, gaps that others use, holes. Open it when the heap cannot grow, or when address space is limited.
//
// All but the first need the region's lock. Units of 64 KiB.
#pragma once

#include <cstddef>

#include "pages/region_state.hpp"

namespace sluice::region {

// Reserves the range. False when even the smallest could not be had. Called once.
bool reserve_range() noexcept;

// Effects: commits at least `units` more at the end of the heap, a clean span; the more the heap holds, the more at
// once.
bool grow_commit(size_t units) noexcept SLUICE_REQUIRES(state.lock);

// Effects: has address space of a hole again, as a clean span: of all of a hole that has at least `units`, or of so
// many. False when no hole is so long, or the system has nothing to give.
bool take_hole(size_t units, bool all = false) noexcept SLUICE_REQUIRES(state.lock);

// Effects: gives up address space for `units` at the end of the heap: of the longest free spans first, but for the one
// that lies there already.
void give_up_spans(size_t units) noexcept SLUICE_REQUIRES(state.lock);

}  // namespace sluice::region
