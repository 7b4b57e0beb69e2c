// Free spans that a thread keeps for itself: who takes and frees blocks of more than 64 KiB and up to 1 MiB of the same
// lengths again and again takes no lock then. Open it when such blocks are slow, or when their spans stay in threads.
//
//   requests that recent spans serve (pages/free_spans.hpp), more often than not ──▶ the region grants the thread some
//                                                                                   of the units that may be recent
//   free ──▶ kept, if the grant has room ──▶ serves the next request of its length
//   not taken for a quarter of the purge delay ──▶ goes back
//   requests that neither serves; a trim; the end of a phase or of the thread ──▶ all goes back, and the grant
//   more than several threads may have: any other request for a span; the making of a thread ──▶ likewise
//
// So no more is kept than may be recent without this: three quarters of what that is at first by several threads
// together, and all of it by one that is alone. To the region a kept span is in use: its state is Large, and no block
// lives in it. A span is kept or not at every step, so that a fork may stop the thread anywhere: only the count of
// units may be wrong then. A signal handler that interrupts a step uses the region. All is for the calling thread's
// cache, but for give_back and renew. Decisions: lib/docs/decisions/024-short-spans-wait-for-their-like.md and
// 046-who-is-alone-keeps-all-that-may-wait.md.
#pragma once

#include <cstddef>

#include "base/layout.hpp"
#include "heap/large.hpp"
#include "heap/link.hpp"
#include "pages/free_spans.hpp"
#include "pages/nodes.hpp"
#include "pages/region.hpp"
#include "profile/records.hpp"

namespace sluice::own_spans {

inline constexpr int16_t most_worth = 32;      // OwnSpans::worth rises to this
inline constexpr int16_t cost_of_other = 2;    // requests that recent spans served, for one that they did not
inline constexpr int16_t least_worth = -8;     // when all goes back
inline constexpr uint16_t puts_per_look = 32;  // so often a free looks what has waited, and after others
inline constexpr uint32_t has_waited = uint32_t{1} << 31;  // in next_own: the span was kept when its thread last looked

inline uint32_t next_own(const Unit& span) noexcept {
  return span.large.next_own & ~has_waited;
}

// While it lives, signal handlers of this thread leave alone what the thread keeps.
class Change {
 public:
  explicit Change(ThreadCache& c) noexcept : cache_(c) {
    c.own_spans.busy = true;
    keep_order();
  }
  ~Change() {
    keep_order();
    cache_.own_spans.busy = false;
  }
  Change(const Change&) = delete;
  Change& operator=(const Change&) = delete;

 private:
  ThreadCache& cache_;
};

// Effects: gives back what has waited for a quarter of the purge delay, and all if nothing is left then, or nothing may
// be recent any more. Seldom, and not where it would have to wait: else nothing.
void look(ThreadCache& c) noexcept;

// Returns: a block of `bytes` with any contents, aligned to no more than a unit, or null: no span of its length is
// kept.
inline void* take(ThreadCache& c, size_t bytes, size_t alignment) noexcept {
  auto& own = c.own_spans;
  const size_t units = large::units_for(bytes);  // 0 where that is beyond all numbers
  if (own.granted == 0 || units > longest_own || own.busy) return nullptr;
  const Change change(c);
  const uint32_t index = own.heads[units];
  if (index == unit_index_none) return nullptr;
  Unit* const span = region::unit_at(index);
  own.heads[units] = next_own(*span);
  keep_order();  // a fork finds it kept until here, and nobody's from here on
  own.units.store(static_cast<uint16_t>(own.units.load(std::memory_order_relaxed) - units), std::memory_order_relaxed);
  if (own.worth < most_worth) ++own.worth;
  return large::begin_block(index, bytes, alignment);
}

// Effects: keeps the span of a claimed block, the one at `index`. Returns: whether it does; else the caller calls
// look_in_turn() and tries again, or gives it back.
inline bool put(ThreadCache& c, size_t index, Unit* span) noexcept {
  auto& own = c.own_spans;
  if (own.granted == 0 || own.busy) return false;
  if (++own.puts % puts_per_look == 0) return false;
  const Change change(c);
  const size_t units = span->units;
  const size_t all = own.units.load(std::memory_order_relaxed) + units;
  if (all > own.granted || units > longest_own || span->large.record != profile::no_record) return false;
  if (large::is_dropped(*span)) return false;
  if (nodes::are_several() && region::node_mark_of(index) != own.node) return false;  // as is_far, without a call
  span->large.next_own = own.heads[units];
  keep_order();
  own.heads[units] = static_cast<uint32_t>(index);
  own.units.store(static_cast<uint16_t>(all), std::memory_order_relaxed);
  return true;
}

// Effects: looks, if the last put failed for it. Returns: whether it did, so that another may succeed.
inline bool look_in_turn(ThreadCache& c) noexcept {
  if (c.own_spans.granted == 0 || c.own_spans.puts % puts_per_look != 0) return false;
  look(c);
  return true;
}

// Whether the thread was granted more than several together are: it keeps that only while it asks for nothing else.
inline bool has_more_than_several(const ThreadCache& c) noexcept {
  return c.own_spans.granted > FreeSpans::most_granted;
}

// Effects: takes note that a request of up to longest_own units was served by a recent span, or had to be by another;
// and that there is one for a span of any other kind.
void note_recent(ThreadCache& c) noexcept;
void give_back_as_worthless(ThreadCache& c) noexcept;
inline void note_other(ThreadCache& c) noexcept {
  auto& own = c.own_spans;
  if (own.worth > least_worth && !has_more_than_several(c))
    own.worth = static_cast<int16_t>(own.worth - cost_of_other);
  else if (own.granted != 0)
    give_back_as_worthless(c);
}

inline void note_other_kind(ThreadCache& c) noexcept {
  if (has_more_than_several(c)) give_back_as_worthless(c);
}

// Effects: gives back all that a cache keeps, and its grant. Its thread calls it, or who has it since that ended.
void give_back_granted(ThreadCache& c) noexcept SLUICE_REQUIRES(c.lock);
inline void give_back(ThreadCache& c) noexcept SLUICE_REQUIRES(c.lock) {
  if (c.own_spans.granted != 0) give_back_granted(c);  // most have none, and do not touch the code
}

// Effects: as give_back, for a cache whose thread is no more, in whatever step that was.
inline void renew(ThreadCache& c) noexcept SLUICE_REQUIRES(c.lock) {
  if (quarantines_spans) return;  // what stands for a thread's own is every thread's then
  c.own_spans.busy = false;
  give_back(c);
}

// Returns nullptr, or what is wrong. Requires: as give_back, or all locks.
const char* validate(const ThreadCache& c) noexcept;

}  // namespace sluice::own_spans
