// Large spans: blocks of more than 64 KiB, each a span of whole units. Open it to see how they grow, shrink and move.
//
// Blocks begin at different lines of the first page of their spans, as far as that takes no page more. Else the first
// lines of all, which programs use most, would share a few sets of each cache. Secure builds need the ends of blocks.
// Decision: lib/docs/decisions/060-large-blocks-begin-at-different-lines.md.
//
// All functions are thread-safe; sizes are in bytes.
#pragma once

#include <cstddef>

#include "base/layout.hpp"
#include "os/atomic_ref.hpp"
#include "pages/region.hpp"
#include "profile/records.hpp"

namespace sluice::large {

namespace detail {
// Several threads may look at it while one of them ends the block.
inline atomic_ref<uint8_t> class_byte_at(size_t index) noexcept {
  return atomic_ref(class_bytes()[index]);
}
}  // namespace detail

// Effects: a block of `size` bytes at a multiple of `alignment` (a power of two). With `zeroed` it reads as zero.
// Returns nullptr when there is no memory.
void* allocate(size_t size, size_t alignment, bool zeroed) noexcept;

// How many units such a block takes; 0 where that is beyond all numbers.
inline size_t units_for(size_t size) noexcept {
  return ((size + unit_size - 1) >> unit_shift) + guard_units;
}

// Which line of its first page a block of `size` bytes in the span at `index` begins at: another one in each span, and
// one of those that its last 4 KiB have left.
inline constexpr bool has_leads = !quarantines_spans && !guards_spans;
inline constexpr size_t line_size = 64;
inline uint8_t lead_for(size_t index, size_t size, size_t alignment) noexcept {
  if (!has_leads || alignment > line_size) return 0;
  constexpr size_t page = 4096;  // these serve as well where pages are larger
  const size_t lines_left = (0 - size) % page / line_size;
  const uint32_t place = static_cast<uint32_t>(index ^ index >> 4) * 0x9e3779b9u >> 26;  // of 64
  return static_cast<uint8_t>((lines_left + 1) * place / (page / line_size));
}

inline size_t lead_of(const Unit& span) noexcept {
  return has_leads ? span.large.lead.load(std::memory_order_relaxed) * line_size : 0;
}

inline char* block_of(const Unit& span) noexcept {
  return region::address_of(region::index_of(&span)) + lead_of(span);
}

// Effects: begins the life of a block of `size` bytes in the span of units_for(size) at `index`, aligned to no more
// than a unit. Returns: the block. Requires: the span is the caller's alone, and not sampled.
inline void* begin_block(size_t index, size_t size, size_t alignment) noexcept {
  Unit& span = *region::unit_at(index);
  span.large.bytes.store(size, std::memory_order_relaxed);
  const uint8_t lead = lead_for(index, size, alignment);
  span.large.lead.store(lead, std::memory_order_relaxed);
  detail::class_byte_at(index).store(class_byte_large, std::memory_order_relaxed);
  return region::address_of(index) + lead * line_size;
}

// Effects: as allocate, aligned to no more than a unit and with any contents, if a block of about this size was given
// back lately; else nullptr.
void* allocate_recent(size_t size, size_t alignment) noexcept;

// The span that `block` begins; nullptr when it is not the first byte of a live large span. It lies in unit `index`.
inline Unit* find_in(size_t index, const void* block) noexcept {
  if (detail::class_byte_at(index).load(std::memory_order_relaxed) != class_byte_large) return nullptr;
  Unit* const span = region::unit_at(index);
  return region::address_of(index) + lead_of(*span) == block ? span : nullptr;
}
inline Unit* find(const void* block) noexcept {
  const size_t index = unit_index_of(block);
  return index < region_range_units ? find_in(index, block) : nullptr;
}

// Whether a block lives in the span, whose state is Large: it may have been freed and wait for its end.
bool is_live(const Unit& span) noexcept;

// What was asked for.
size_t requested_bytes(const Unit& span) noexcept;

// Bytes that may be written: what was asked for, and what is left of the last page.
size_t usable_size(const Unit& span) noexcept;

// Effects: ends the life of the block of a span. Returns: whether the span is the caller's alone now, and to be given
// to give_back(): of several threads that free the block at once, one gets it.
inline bool claim(const Unit& span) noexcept {
  uint8_t live = class_byte_large;
  // Relaxed: the region's lock orders what is done to the span from here on.
  return detail::class_byte_at(region::index_of(&span))
      .compare_exchange_strong(live, class_byte_none, std::memory_order_relaxed);
}

// The same for the span at `index`, whose block is live or was until a moment ago. The atomic instruction takes a sixth
// of the time of a malloc and a free, and is left out for a thread that is alone.
inline bool claim_in(size_t index) noexcept {
  if (quarantines_spans || has_several_threads.load(std::memory_order_relaxed)) return claim(*region::unit_at(index));
  detail::class_byte_at(index).store(class_byte_none, std::memory_order_relaxed);
  return true;
}

// The same for the large block that begins at `block`. Returns: its span, or nullptr: there is no such block, or
// another thread was faster.
Unit* claim(const void* block) noexcept;

// Effects: gives the span of a claimed block back.
void give_back(Unit* span) noexcept;

// Whether its pages go back at once then: see drop_freed.
extern constinit std::atomic<size_t> dropped_from;
inline bool is_dropped(const Unit& span) noexcept {
  return !quarantines_spans &&
         span.large.bytes.load(std::memory_order_relaxed) >= dropped_from.load(std::memory_order_relaxed);
}

// Effects: from now on the pages of freed blocks of `bytes` and more go back at once; SIZE_MAX: as any others. For a
// program that says so itself. Builds that keep freed blocks for checks do as they did.
void drop_freed(size_t bytes) noexcept;

// Effects: gives the block that begins unit `index` room for `size` bytes, if its span has as many units as that takes,
// and no profile knows the block. Returns: whether it does. Requires: a large block lives there.
inline bool resize_within(size_t index, size_t size) noexcept {
  Unit& span = *region::unit_at(index);
  if (guards_spans || size <= max_small_size || units_for(size + lead_of(span)) != span.units) return false;
  if (span.large.record != profile::no_record) return false;
  span.large.bytes.store(size, std::memory_order_relaxed);
  return true;
}

// Effects: gives the block at `span` room for `size` bytes without moving it. False when that is not possible.
// Requires: size > max_small_size.
bool resize_in_place(Unit* span, size_t size) noexcept;

// Effects: moves the pages of `span` into a new, larger one and ends the old; nothing is copied. Returns the new block,
// or nullptr when the system cannot, and then nothing has changed.
void* move(Unit* span, size_t size) noexcept;

}  // namespace sluice::large
