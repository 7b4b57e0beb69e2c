// How the region gets address space and tables, and gives address space up: the range, what is reserved and committed
// of it, gaps that others use, holes. Open it when the heap cannot grow, or when address space is limited.
//
// All but the first need the region's lock.
#pragma once

#include <cstddef>

#include "pages/region_state.hpp"

namespace sluice::region {

// Reserves the range. False when even the smallest could not be had. Called once.
bool reserve_range() noexcept;

// Effects: commits units at the end of the heap, until a clean span of at least `units` lies there; the more the heap
// holds, the more at once. False when the system has nothing to give.
bool grow_commit(size_t units) noexcept SLUICE_REQUIRES(state.lock);

// Effects: reserves and commits a hole of at least `units` again, as a clean span: with `all` the whole hole, else
// `units` of it, or a few more. False when no hole is so long, others use those that are, or the system has nothing to
// give.
bool take_hole(size_t units, bool all = false) noexcept SLUICE_REQUIRES(state.lock);

// Effects: gives up address space for `units` at the end of the heap: of the longest free spans first, but for the one
// that lies there already.
void give_up_spans(size_t units) noexcept SLUICE_REQUIRES(state.lock);

// Effects: where address space is limited, gives up that of long clean spans, and what is reserved ahead: others need
// it, for the stacks of threads first of all. take_hole has it again when it is needed.
void give_back_address_space() noexcept SLUICE_REQUIRES(state.lock);

}  // namespace sluice::region
