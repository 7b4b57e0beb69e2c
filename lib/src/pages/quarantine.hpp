// Spans of a secure build that nothing uses any more. Those of large blocks wait before they serve again, closed or
// watched (fence.hpp). Those of up to 1 MiB, of slabs too, are then retained with their guard, since taking a guard
// away and setting up another one costs two system calls. Open it to change how long they wait, or how much memory is
// retained.
//
// Small blocks wait in their thread's cache (base/layout.hpp, Reuse). All functions are thread-safe; they take no lock
// but the region's, when a span changes its use or goes back.
#pragma once

#include <cstddef>

#include "base/layout.hpp"

namespace sluice::quarantine {

// Effects: takes in the span of a large block, by its first unit.
void put(size_t index) noexcept;

// Effects: takes in a span of another kind, which need not wait.
void put_unused(size_t index) noexcept;

// Returns: a guarded span of so many units, for the use given, or up to a quarter more for a large block, of which
// `needed` bytes can be touched; unit_index_none when there is none. What it holds is unspecified, unless *clean.
size_t take(size_t units, UnitState use, size_t needed, bool* clean) noexcept;
// The same for other uses, which need all but the guard.
size_t take(size_t units, UnitState use) noexcept;

// Effects: spans that were kept during the whole of the last purge delay go back to the region. Called now and then.
void purge_aged() noexcept;

// Whether a span is kept that purge_aged may give back. Who finds none after it has written rest::asleep (region.hpp)
// is woken when one is.
bool retains_any() noexcept;

// Effects: all spans go back to the region. Returns: whether there were any.
bool release_all() noexcept;

}  // namespace sluice::quarantine
