// Large spans: blocks of more than 64 KiB, each a span of whole units. Open it to see how they grow, shrink and move.
//
// All functions are thread-safe; sizes are in bytes.
#pragma once

#include <cstddef>

#include "base/layout.hpp"

namespace sluice::large {

// Effects: a block of `size` bytes at a multiple of `alignment` (a power of two). With `zeroed` it reads as zero.
// Returns nullptr when there is no memory.
void* allocate(size_t size, size_t alignment, bool zeroed) noexcept;

// How many units such a block takes; 0 where that is beyond all numbers.
inline size_t units_for(size_t size) noexcept {
  return ((size + unit_size - 1) >> unit_shift) + guard_units;
}

// Effects: begins the life of a block of `size` bytes in a span of units_for(size). Returns: the block. Requires: the
// span is the caller's alone, and not sampled.
void* begin_block(Unit& span, size_t size) noexcept;

// Effects: as allocate, at a multiple of unit_size and with any contents, if a block of about this size was given back
// lately; else nullptr.
void* allocate_recent(size_t size) noexcept;

// The span that `block` begins; nullptr when it is not the first byte of a live large span.
Unit* find(const void* block) noexcept;

// Whether a block lives in the span, whose state is Large: it may have been freed and wait for its end.
bool is_live(const Unit& span) noexcept;

// What was asked for.
size_t requested_bytes(const Unit& span) noexcept;

// Bytes that may be written: what was asked for, rounded up to whole pages.
size_t usable_size(const Unit& span) noexcept;

// Effects: ends the life of the block of a span. Returns: whether the span is the caller's alone now, and to be given
// to give_back(): of several threads that free the block at once, one gets it.
bool claim(const Unit& span) noexcept;

// The same for the large block that begins at `block`. Returns: its span, or nullptr: there is no such block, or
// another thread was faster.
Unit* claim(const void* block) noexcept;

// Effects: gives the span of a claimed block back.
void give_back(Unit* span) noexcept;

// Whether its pages go back at once then: see drop_freed.
bool is_dropped(const Unit& span) noexcept;

// Effects: from now on the pages of freed blocks of `bytes` and more go back at once; SIZE_MAX: as any others. For a
// program that says so itself. Builds that keep freed blocks for checks do as they did.
void drop_freed(size_t bytes) noexcept;

// Effects: gives the block at `span` room for `size` bytes without moving it. False when that is not possible.
// Requires: size > max_small_size.
bool resize_in_place(Unit* span, size_t size) noexcept;

// Effects: moves the pages of `span` into a new, larger one and ends the old; nothing is copied. Returns the new block,
// or nullptr when the system cannot, and then nothing has changed.
void* move(Unit* span, size_t size) noexcept;

}  // namespace sluice::large
