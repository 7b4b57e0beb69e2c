// The region: address space in units of 64 KiB. It hands out spans of units, takes them back, joins neighbours, and
// returns pages to the system. Open it when memory is not given back, or when address space runs out.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/layout.hpp"
#include "pages/access.hpp"
#include "pages/units.hpp"

namespace sluice::region {

// Figures of the region, under its lock.
struct Figures {
  size_t reserved_bytes;   // of units, gaps included…
  size_t gap_bytes;        // …and what of it is not the heap's,
  bool has_holes;          // some of which was given back where address space is limited
  size_t committed_bytes;  // of units, without gaps
  size_t metadata_bytes;   // of the tables' committed parts, and of the units that allocate_metadata has used
  size_t free_clean_bytes;
  size_t free_dirty_bytes;
};

// Reserves the range. False when even the smallest could not be had. Called once.
bool initialize() noexcept;

// Which pages allocate() looks for first: those in memory, or those that read as zero and cost nothing until touched.
// Cleared: the former, for who wants zeroes; where they do not lie side by side, what is given reads as zero. Huge: the
// former, and where there are none, huge ones, for who will write to all of them (huge_pages.hpp).
enum class Prefer : uint8_t { Dirty, Clean, Cleared, Huge };

// Returns: what the span serves for in which a unit lies; None where this thread is in the region already. For reports:
// it goes through all spans.
UnitState use_of(size_t index) noexcept;

// Effects: takes a span of `units`. Its ends get the state `use`; its class bytes are 0. `align_units` is a power of
// two: the first unit's address is a multiple of align_units * unit_size. Returns: the first unit's index;
// unit_index_none when there is no more memory. *clean: it reads as zero.
size_t allocate(size_t units, size_t align_units, UnitState use, bool* clean, Prefer prefer = Prefer::Dirty) noexcept;

// Effects: as allocate, with no alignment, if a span of this length was given back lately. Returns: likewise.
size_t allocate_recent(size_t units, UnitState use) noexcept;

// Effects: from now on the caller may keep so many units, and so many fewer may be recent. False where there would be
// too many, or nothing may be recent: FreeSpans::most_granted are granted to several threads together, and all that may
// be recent to one that is alone. The caller gives the grant back by end_grant, which requires that this thread is not
// in the region.
bool grant_recent(size_t units) noexcept;
void end_grant(size_t units) noexcept;

// Effects: so many units are granted in all, whatever was. For the child of a fork.
void renew_grants(size_t units) noexcept;

// Effects: touches a span that was taken with Prefer::Huge, where it begins a huge page. Requires: nobody else has it.
void touch_huge(size_t index) noexcept;

// Effects: huge pages are not asked for any more, if any were. Before a fork.
void note_forking() noexcept;

// Whether the caller's unit lies in a huge page that is whole, as far as the system made one.
bool lies_in_huge_page(size_t index) noexcept;

// Effects: has the huge page of the caller's unit split, where so many bytes at `address` are about to be dropped of
// it.
void split_page_of(size_t index, void* address, size_t bytes) noexcept;

// Effects: notes that pages of the caller's slab went back to the system, so many bytes.
void note_pages_gone(size_t index, size_t bytes) noexcept;

// Effects: gives a span back. `clean`: it reads as zero. May return pages to the system.
// Requires: the span's class bytes are 0 already.
void give_back(size_t index, size_t units, bool clean) noexcept;

// Effects: makes a large span `units` long, in place. False when the units that it needs are not free.
bool resize(size_t index, size_t units) noexcept;

// Effects: makes two spans of one, whose first has so many units and stays what it is; the second serves for the same.
// Requires: there are more units than that, and this thread is not in the region.
void split(size_t index, size_t units) noexcept;

// Effects: gives back a span whose mapping is new and reads as zero.
void give_back_renewed(size_t index, size_t units) noexcept;

// Effects: moves free pages to `units` from `index` on, the end of a large span that the caller has just got and that
// reads as zero, as far as there are some and that pays for a block that had `had` units. False if the units have lost
// their mapping.
bool fill_end(size_t index, size_t units, size_t had) noexcept;

// Effects: gives back a span whose pages were moved away: it reads as zero.
void give_back_emptied(size_t index, size_t units) noexcept;

// Effects: moves the pages of `units` units from one span to the front of another, which is `clean` or is cleared
// first; what they leave reads as zero. `Partly`: some are at the other place, which reads as zero where none are, and
// may have lost its mapping.
enum class Moved : uint8_t { Not, Partly, All };
Moved move_pages(size_t from, size_t to, size_t units, bool clean) noexcept;

// Effects: returns the pages of free spans that are older than the purge delay, at most once in a while. Cheap when
// there is nothing to do.
void purge_aged() noexcept;

// Effects: returns a little of what is free, whatever its age: a thread has ended, and may have been the last to call.
void purge_at_thread_end() noexcept;

// Set when much less is in use than a short while ago: who reads it looks at what its cache holds, which counts as in
// use, and clears it. Relaxed: it is a hint.
extern constinit std::atomic<bool> has_shrunk __attribute__((visibility("hidden")));

// Whether a phase of the program is over but for units that are in use and not needed. Effects: where it is almost
// over, a little goes early (see purge.hpp); has_shrunk is set again when what is needed has become less by a quarter.
bool would_be_over(size_t unused) noexcept;

// Whether it may be, where so many units or fewer are unused. If not, nothing goes.
bool may_be_over(size_t unused) noexcept;

// Effects: returns what may not stay where a phase is over, if it is.
void purge_if_over() noexcept;

// What the heap's own thread sleeps on (heap/background.hpp). It writes asleep; whoever has new work for it then (pages
// made dirty, a remote free, a span retained) writes awake and wakes it. ending: it is to end.
namespace rest {
inline constexpr uintptr_t awake = 0, asleep = 1, ending = 2;
extern constinit std::atomic<uintptr_t> word;

// Effects: wakes the thread that is asleep, if there is one.
void wake() noexcept;
}  // namespace rest

// Effects: as purge_aged, whenever it looked last. Returns: after how many milliseconds the next pages are old enough;
// nothing_dirty where there are none: rest::word is asleep then, unless it was ending or more was freed since; and
// never_due where pages do not age.
inline constexpr uint64_t nothing_dirty = UINT64_MAX;
inline constexpr uint64_t never_due = INT64_MAX;
uint64_t purge_at_rest() noexcept;

// Effects: from now on free pages up to `bytes` are kept, for as long as the process runs, and more go back at once;
// SIZE_MAX: all are kept, unless a request finds nothing else. For a program that says so itself.
void keep_free(size_t bytes) noexcept;
bool keeps_all() noexcept;

// What keep_free was last told; no_bound: it was not called.
inline constexpr size_t no_bound = SIZE_MAX;
size_t free_bound() noexcept;

// Effects: returns all free pages but the `keep` bytes freed last. Returns how many bytes went.
size_t purge_all(size_t keep) noexcept;

// Free pages in memory, in bytes.
size_t free_dirty_bytes() noexcept;

// Whether they may all stay there, as those of a program that rests, or because it said so. Takes no lock.
bool dirty_may_stay() noexcept;

// Effects: where the system has no more address space, gives up that of free spans, so that there is room for a span of
// `bytes`. take_hole has it again when it is needed. For requests that found nothing.
void make_room(size_t bytes) noexcept;

// Effects: a span that is in use serves for something else from now on; the fields of that life are zero.
void change_use(size_t index, UnitState use) noexcept;
// Effects: memory for the heap's own structures, zeroed, in a cache line of its own, never given back; nullptr when
// there is none. Requires: bytes <= unit_size.
void* allocate_metadata(size_t bytes) noexcept;

// In the child of a fork: takes back the spans that other threads were purging. Requires the lock.
void adopt_purging_spans() noexcept;

// Likewise, when a thread that is no more was in the middle of a change: what is free now is never used again, and the
// heap goes on behind it. Blocks are not affected.
void abandon_free_spans() noexcept;

Figures figures() noexcept;  // requires the lock
Mutex& mutex() noexcept;

// Walks the free lists and compares them with the descriptors. Requires the lock. Returns nullptr, or what is wrong.
const char* validate() noexcept;

}  // namespace sluice::region
