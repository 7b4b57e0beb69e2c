// Large spans that were freed in a secure build: they wait before they are used again, those of more than 1 MiB at
// pages that cannot be touched. Open it to change how long, or how much memory that may take.
//
// Small blocks wait in their thread's cache (base/layout.hpp, SecureCache). All functions are thread-safe and
// lock-free, but for the region's lock when a span goes back to it.
#pragma once

#include <cstddef>

#include "base/layout.hpp"

namespace sluice::quarantine {

// Effects: takes in a span that no block uses any more, by its first unit.
void put(size_t index) noexcept;

// Returns: a guarded span of exactly so many units that has waited long enough; unit_index_none when there is none.
// What it holds is unspecified.
size_t take(size_t units) noexcept;

// Effects: all spans go back to the region. Returns: whether there were any.
bool release_all() noexcept;

}  // namespace sluice::quarantine
