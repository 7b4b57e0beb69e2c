// Which free pages go back to the system, and when: by age, and what is more than the heap needed a moment ago. Open it
// when memory is not given back. All needs the region's lock, unless said otherwise; what purges lets go of it while
// the system works. Sizes in bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pages/region_state.hpp"

namespace sluice::region {

// Whether a purge may be tried at `now` (ms): what was refused is not tried again at each free.
bool may_purge(uint64_t now) noexcept;

// How long free pages are kept now, in ms: SLUICE_PURGE_DELAY, or more where pages were needed again that had gone, or
// less where nobody missed them. Any thread may ask.
uint64_t purge_delay() noexcept;

// After how many ms they may go already, 32 MiB in each SLUICE_PURGE_DELAY of a second or more: a cost that is small
// enough to be paid for nothing. A 16th of SLUICE_PURGE_DELAY. Any thread may ask.
uint64_t early_delay() noexcept;

// Effects: returns pages of free spans, the oldest first, until no more than `bytes` of them are dirty. Returns: how
// many went.
size_t purge_down_to(size_t bytes) noexcept SLUICE_REQUIRES(state.lock);

// Effects: returns the pages of what has been free for the purge delay at `now` (ms), and some of what has been free
// for the early delay. Returns: how many bytes went.
size_t purge_older(uint64_t now) noexcept SLUICE_REQUIRES(state.lock);

// Effects: settles recent spans. Returns: how many milliseconds after `now` purge_older is due again, a minute where
// the system refused; UINT64_MAX where nothing is dirty.
uint64_t next_purge(uint64_t now) noexcept SLUICE_REQUIRES(state.lock);

// Whether what was just freed may wait for its like: recent spans (most_passing() units, 4 to 16 MiB) stay beside
// what else may stay dirty, unless the program says how much stays, SLUICE_PURGE_DELAY is 0, or SLUICE_RETAIN is below
// 8 MiB. Needs no lock.
bool keeps_recent() noexcept;

// Effects: recent spans become dirty ones, which age and are joined. Returns: whether there were any.
bool settle_recent() noexcept SLUICE_REQUIRES(state.lock);
bool settle_recent(unsigned node) noexcept SLUICE_REQUIRES(state.lock);  // likewise those of a memory node

// Effects: returns as much as may go early, whatever its age: a phase of the program is almost over, or a thread has
// ended. Half of that is spared where much of the rest may be freed soon. Nothing where it would be little. Returns:
// how many units went.
enum class Rest : uint8_t { MayCome, IsLittle };
size_t purge_some(Rest rest) noexcept SLUICE_REQUIRES(state.lock);

// Whether so few units are in use that somebody should look at what caches hold: the next call of purge_excess says so.
bool is_below_look() noexcept SLUICE_REQUIRES(state.lock);

// As region::would_be_over.
bool would_be_over_locked(size_t unused) noexcept SLUICE_REQUIRES(state.lock);
bool may_be_over_locked(size_t unused) noexcept SLUICE_REQUIRES(state.lock);

// As region::purge_if_over.
void purge_if_over_locked() noexcept SLUICE_REQUIRES(state.lock);

// Effects: returns what is more than may stay dirty. That is less where a span was just freed, which may have been the
// last of a phase, and where a phase is over.
enum class Change : uint8_t { Freed, Over, Other };
void purge_excess(Change change) noexcept SLUICE_REQUIRES(state.lock);

// Effects: if much was purged since the last time, gives back the bitmaps of the longest clean spans, a 64th of their
// size, and in secure builds what is left of their block states: no slab lies there. Where address space is limited,
// such spans give up theirs.
void follow_purge() noexcept SLUICE_REQUIRES(state.lock);

// Effects: where pages cannot be dropped, clean spans count as dirty ones, so that all neighbours are joined.
void join_as_dirty() noexcept SLUICE_REQUIRES(state.lock);

// Effects: after a span was taken, takes note of how much is in use, and of what was missed: `fresh_units` of the span
// were not in memory.
void note_use(size_t fresh_units) noexcept SLUICE_REQUIRES(state.lock);

}  // namespace sluice::region
