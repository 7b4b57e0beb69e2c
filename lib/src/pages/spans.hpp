// Taking and giving back a span of units, with what a secure build adds: a guard behind it, the quarantine, which keeps
// spans for their like, and another try when that has let go of what it keeps. Open it when a request for units fails,
// or to see what becomes of a span that is given back. What the region does without that: region.hpp.
//
// All functions are thread-safe. Indices are of spans' first units.
#pragma once

#include <cstddef>

#include "base/layout.hpp"
#include "pages/region.hpp"

namespace sluice::spans {

// Effects: takes a span with `units` that can be written, for the use given, which is not Large. What they hold is
// unspecified. Returns: its index, or unit_index_none when there is no memory. With `huge` it may lie in huge pages.
// *clean, where it is asked for: most likely no page of it is in memory.
size_t take(size_t units, UnitState use, bool huge = false, bool* clean = nullptr) noexcept;

// Effects: takes the span of a large block that is asked of the heap with `bytes`: so many units, the guard included,
// or a quarter more, at a multiple of `align_units`. *clean: it reads as zero.
size_t take_large(size_t units, size_t align_units, size_t bytes, region::Prefer prefer, bool* clean) noexcept;

// Effects: gives back a span of any use but Large; it serves again at once. `clean`: it reads as zero.
void give_back(size_t index, bool clean = false) noexcept;

// Effects: gives back the span of a large block; in a secure build it waits, and cannot be touched meanwhile. `clean`:
// it reads as zero; never in a secure build.
void give_back_large(size_t index, bool clean) noexcept;

// Effects: as region::allocate_metadata.
void* allocate_metadata(size_t bytes) noexcept;

}  // namespace sluice::spans
