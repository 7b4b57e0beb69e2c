// When the vacant pages (heap/vacant.hpp) of a cache's slabs go back to the system: when a program asks for it, when
// they are old, and when the slabs hold so little that most pages will not be needed soon. Open it when memory between
// blocks that stay is not given back, or is given back too often.
//
//   slabs ── freed: an eighth of what is used, or a MiB ──▶ look ── most is in use ──────────────────▶ nothing
//                                                             │
//              2/3 of the slabs free for a purge delay, or 16/17 and 64 MiB ──▶ count the vacant pages
//                                                                                 │
//           a quarter of what is used, and more than was given back for nothing ──┴▶ all vacant pages go
//
// What goes and is needed again within eight purge delays, or whose slab is empty then, went for nothing: so much more
// is kept the next time. Half of that is forgotten every eight delays.
//
// Pages get old where nothing more is freed, too. So a look leaves word when the next one is due by time alone; whoever
// comes by then looks (heap/upkeep.hpp), the background thread if nobody else does.
//
// Counting and giving back walk over the slabs in portions, one a look, so that nobody waits for long; they look at
// those alone into which something was freed since. A look that does not count costs a few instructions. It counts when
// more is free than at the last count, and else the more seldom the more often that was fruitless: a program whose heap
// stays sparse, with blocks on all pages, pays next to nothing. Decision:
// lib/docs/decisions/027-pages-between-blocks-go-back.md.
#pragma once

#include "heap/vacant.hpp"

namespace sluice::sparse {

// Whether so much was freed that look() is due, or a walk is to go on. Any thread may ask.
inline bool is_due(const ThreadCache& c) noexcept {
  return vacant::gives_back && c.vacancy.until_look.load(std::memory_order_relaxed) < 0;
}

// Effects: gives vacant pages of the cache's slabs back if it is time, a portion of them: it is due again until all
// have gone.
void look(ThreadCache& c) noexcept SLUICE_REQUIRES(c.lock);

// When the next look at any cache is due by time, in ms of the clock; never: none is.
inline constexpr uint64_t never = UINT64_MAX;
extern constinit std::atomic<uint64_t> next_due;

// Effects: next_due is no later than `ms`; wakes the background thread if it is asleep for good. Any thread may call
// it.
void expect(uint64_t ms) noexcept;

// Effects: the caller alone looks at the caches that are due now, and calls expect for those that are due later. False
// where none is due.
bool claim_due(uint64_t now) noexcept;

// When a look at the cache is due by time; never: it is not. Any thread may ask.
inline uint64_t due(const ThreadCache& c) noexcept {
  const uint64_t ms = c.vacancy.due_ms.load(std::memory_order_seq_cst);  // pairs with look; see expect
  return ms != 0 ? ms : never;
}

// Effects: what is free gets old from now on: another thread has taken the cache over, and may need it.
void begin_anew(ThreadCache& c) noexcept SLUICE_REQUIRES(c.lock);

// Effects: begins to give all vacant pages back but `keep` bytes, also where the system refused to take some. False
// where there is nothing to do: what the last walk left and what was freed since is no more than `freed` bytes, or than
// `keep`.
bool begin(ThreadCache& c, size_t keep, size_t freed) noexcept SLUICE_REQUIRES(c.lock);

// Effects: goes on with a walk for a portion, a millisecond or so, or until somebody waits for the lock. Returns: how
// many bytes went.
size_t go_on(ThreadCache& c) noexcept SLUICE_REQUIRES(c.lock);

// Vacant bytes in memory, at most: what the last walk that the program asked for left, and what was freed since.
inline size_t left(const ThreadCache& c) noexcept SLUICE_REQUIRES(c.lock) {
  return c.vacancy.left + c.vacancy.freed_since;
}

// Effects: the owner goes on with a walk that the program asked for at its next slow call, if it does not free just
// now; else when it has freed much. Any thread may call it.
inline void leave_to_owner(ThreadCache& c) noexcept {
  c.vacancy.until_look.store(-1, std::memory_order_relaxed);
}

// Whether a walk that the program asked for is not over yet.
inline bool is_asked(const ThreadCache& c) noexcept SLUICE_REQUIRES(c.lock) {
  return c.vacancy.walk != Walk::None && c.vacancy.is_asked;
}

// What may be freed before a cache that rests is worth another walk, in bytes.
size_t little(const ThreadCache& c) noexcept SLUICE_REQUIRES(c.lock);

}  // namespace sluice::sparse
