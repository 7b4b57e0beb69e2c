// Free spans that a thread keeps for itself: who takes and frees blocks of more than 64 KiB and up to 1 MiB of the same
// lengths again and again takes no lock then. Open it when such blocks are slow, or when their spans stay in threads.
//
//   requests that recent spans serve (pages/free_spans.hpp), more often than not ──▶ the region grants the thread some
//                                                                                   of the units that may be recent
//   free ──▶ kept, if the grant has room ──▶ serves the next request of its length
//   requests that neither serves; a trim; the end of a phase or of the thread ──▶ all goes back, and the grant
//
// So no more is kept than may be recent without this. To the region a kept span is in use: its state is Large, and no
// block lives in it. A span is kept or not at every step, so that a fork may stop the thread anywhere: only the count
// of units may be wrong then. All is for the calling thread's cache, but for give_back. Decision:
// lib/docs/decisions/024-short-spans-wait-for-their-like.md.
#pragma once

#include <cstddef>

#include "base/layout.hpp"
#include "heap/large.hpp"
#include "heap/link.hpp"
#include "pages/region.hpp"
#include "profile/records.hpp"

namespace sluice::own_spans {

inline constexpr int16_t most_worth = 32;
inline constexpr uint16_t puts_per_look = 32;  // so often a free takes the long way, where others are looked after

// Returns: a block of `bytes` with any contents, or null: no span of its length is kept.
inline void* take(ThreadCache& c, size_t bytes) noexcept {
  auto& own = c.own_spans;
  const size_t units = large::units_for(bytes);  // 0 where that is beyond all numbers
  if (units > longest_own) return nullptr;
  const uint32_t index = own.heads[units];
  if (index == unit_index_none) return nullptr;
  Unit* const span = region::unit_at(index);
  own.heads[units] = span->large.next_own;
  keep_order();  // a fork finds it kept until here, and nobody's from here on
  own.units.store(static_cast<uint16_t>(own.units.load(std::memory_order_relaxed) - units), std::memory_order_relaxed);
  if (own.worth < most_worth) ++own.worth;
  return large::begin_block(*span, bytes);
}

// Effects: keeps the span of a claimed block. Returns: whether it does; else the caller gives it back.
inline bool put(ThreadCache& c, Unit* span) noexcept {
  auto& own = c.own_spans;
  const size_t units = span->units;
  const size_t all = own.units.load(std::memory_order_relaxed) + units;
  if (all > own.granted || units > longest_own || span->large.record != profile::no_record) return false;
  if (++own.puts % puts_per_look == 0 || large::is_dropped(*span)) return false;
  span->large.next_own = own.heads[units];
  keep_order();
  own.heads[units] = static_cast<uint32_t>(region::index_of(span));
  own.units.store(static_cast<uint16_t>(all), std::memory_order_relaxed);
  return true;
}

// Effects: takes note that a request of up to longest_own units was served by a recent span, or had to be by another.
// Requires: no lock of the heap.
void note_recent(ThreadCache& c) noexcept;
void note_other(ThreadCache& c) noexcept SLUICE_EXCLUDES(c.lock);

// Effects: gives back all that a cache keeps, and its grant. Its thread calls it, or who has it since that ended.
void give_back(ThreadCache& c) noexcept SLUICE_REQUIRES(c.lock);

// Returns nullptr, or what is wrong. Requires: as give_back, or all locks.
const char* validate(const ThreadCache& c) noexcept;

}  // namespace sluice::own_spans
