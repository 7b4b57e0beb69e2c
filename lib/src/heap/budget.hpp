// How much a thread's cache may hold: the room of each bin, and one budget for all that the classes keep for nothing.
// Open it to change how far caches grow, and what makes them smaller. What is evicted, heap/thread_cache.cpp flushes.
// Decision: lib/docs/decisions/026-one-budget-for-a-threads-cache.md.
//
// A class whose blocks the program has all freed keeps all that is carved of its slabs: a few cached blocks keep whole
// slabs in memory. While the budget allows, that much is counted for every class, and nothing else happens.
//
// Beyond it a class in use counts for what its lists hold, but for as much as a bin may hold at first, and its bin has
// room for all but one of the blocks that the program has: the free of the last one is seen (put_back_late). When all
// together keep more than the budget, the classes used least recently are evicted: their lists are flushed, and empty
// slabs are destroyed.
//
// The budget grows where it costs time for good: a class that comes back soon was evicted too early, and one whose last
// block comes back again and again takes a slow call each time. Of what had 48 KiB that may happen 64 times at once and
// 250 times a second before anything grows, of less more often; up to four times that in each
// of eight threads or more, and 16,000 times in all: so much is cheaper than memory in each of many threads. It shrinks
// by what lies idle, and begins anew when the thread is asked to flush.
//
// What other threads allocated comes to a bin by free alone, and is seen when the bin is full. Of larger blocks that is
// too late: two of 30 KiB in each of 30 classes are 1.8 MiB in each thread. A bin of these has no room until a slow
// call has counted what it may hold, and none again when its class was evicted. The second list of such a class may
// hold as much again, uncounted until the next slow call. Decision:
// lib/docs/decisions/051-room-for-larger-blocks-is-counted.md.
//
// One class may have lists beside the budget (heap/long_lists.hpp).
//
// Secure builds bound no other bins: there the last free is not seen, since blocks wait before they come to a bin, and
// count as the program's while they do. Larger ones wait in few places (heap/reuse.hpp).
//
// All of it is for the cache's own thread, or for who looks after a cache without one.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/layout.hpp"

namespace sluice::budget {

// How many blocks a list of the class holds at first, and at most.
int32_t first_cap(unsigned size_class) noexcept;
int32_t most_cap(unsigned size_class) noexcept;

// Whether what a bin of the class may hold counts before it holds anything.
inline constexpr unsigned last_not_counted_by_room = size_class_of(8 * 1024);
constexpr bool counts_room(unsigned size_class) noexcept {
  return size_class > last_not_counted_by_room;
}

// How much room the class's bin has before its first refill or flush, in blocks.
inline int32_t first_room(unsigned size_class) noexcept {
  return counts_room(size_class) ? 0 : first_cap(size_class);
}

// What all classes of a thread may keep at first, in KiB.
uint32_t at_first() noexcept;

// Effects: so many threads have caches now.
void note_live(size_t threads) noexcept;

// Effects: the budget is as at first.
void begin_anew(ThreadCache& c) noexcept;

// Effects: another thread begins with this cache. It may need as much again, and half of that teaches it quickly; of
// threads that come one after the other and need little, the budget falls soon.
void renew(ThreadCache& c) noexcept;

// Effects: the budget is so much larger, in KiB, or has no bound where that is more than SLUICE_CACHE allows.
void grow(ThreadCache& c, uint32_t more) noexcept;

// How many more blocks the class's bin takes. While calls are counted the bin itself has no room.
inline int32_t room_of(const ThreadCache& c, unsigned k) noexcept {
  return c.mode.has(CacheMode::Counting) ? c.gated_room[k] : c.bins[k].room;
}
inline void change_room(ThreadCache& c, unsigned k, int32_t by) noexcept {
  if (c.mode.has(CacheMode::Counting))
    c.gated_room[k] = static_cast<int16_t>(c.gated_room[k] + by);
  else
    c.bins[k].room += by;
}

// Of smaller blocks so many come that they are passed on as lists. They may also be set aside one by one when they come
// to a full bin; no larger ones are.
constexpr bool may_be_shared(unsigned size_class) noexcept {
  return size_class > size_class_of(2048);
}

// Whether the thread keeps no lists of the class: other threads' blocks of it come back here, and are large, so that
// all of its blocks lie in transfer lists (heap/transfer.hpp).
inline bool is_shared(const ThreadCache& c, unsigned k) noexcept {
  return may_be_shared(k) && c.uses[k].from_others;
}

// Effects: the bin has the room that it has earned, but for so many blocks that lie in it; none if the class is shared.
inline void renew_room(ThreadCache& c, unsigned k, int32_t length) noexcept {
  c.bins[k].cap = is_shared(c, k) ? length : c.uses[k].earned;
  change_room(c, k, c.bins[k].cap - length - room_of(c, k));
}
inline void set_cap(ThreadCache& c, unsigned k, int32_t cap) noexcept {
  if (is_shared(c, k)) cap = c.bins[k].cap - room_of(c, k);  // what a signal handler freed into it
  change_room(c, k, cap - c.bins[k].cap);
  c.bins[k].cap = cap;
  c.uses[k].unseen = 0;
}

// Effects: a list of the class may hold twice as much from its next refill or flush on, up to most_cap; where the
// thread flushes hardly any other class, up to sixteen blocks, as far as the budget allows, or more beside it
// (heap/long_lists.hpp). `flushed` blocks of the class have just gone back to their slabs. Returns: whether its lists
// should be such ones but for another class that has them, which is to be flushed.
bool earn(ThreadCache& c, unsigned k, int32_t flushed) noexcept;

// Whether a list of the class is so short that it may take the room of both where that keeps calls off the slow paths.
bool is_short(const ThreadCache& c, unsigned k) noexcept;

// Effects: such a list may hold twice as much from its next refill or flush on, eight blocks at most, beyond most_cap,
// too.
void lengthen(ThreadCache& c, unsigned k) noexcept;

// Effects: the lists of the class hold nothing any more; its bin is bounded if the program has blocks of it, and has no
// room if that counts.
void note_flushed(ThreadCache& c, unsigned k) noexcept SLUICE_REQUIRES(c.lock);

// Effects: finds out what the class keeps, and bounds its bin. `at_hand` blocks of it, 0 or 1, are about to be put
// back. Returns: whether the program has no others. Requires the cache's thread.
bool weigh(ThreadCache& c, unsigned k, int32_t at_hand) noexcept SLUICE_REQUIRES(c.lock);

// Effects: as weigh, after a refill or a flush, unless the class keeps all, or there will be another flush before the
// last free. Its lists hold so many blocks. Requires also: the bin has the room that it has earned.
void weigh_in_use(ThreadCache& c, unsigned k, int32_t held, int32_t at_hand) noexcept SLUICE_REQUIRES(c.lock);

// Whether the budget allows a class in use to keep all that is carved of its slabs. It counts then.
bool keeps_all(ThreadCache& c, unsigned k) noexcept;

// Whether nothing is to be done when the last block of the class that the program has comes back.
inline bool counts_all(const ThreadCache& c, unsigned k) noexcept {
  return c.uses[k].keeps_all && c.kept_kib <= c.budget_kib;
}

// What so many blocks of the class take, in KiB.
inline uint32_t to_kib(uint32_t blocks, unsigned k) noexcept {
  return static_cast<uint32_t>((size_t{blocks} * class_sizes[k] + 1023) >> 10);
}

// As counts_all, and nothing was carved or given back since: weigh_in_use leaves such a class as it is. Not so one that
// counts for more than is carved, since its room does.
inline bool counts_carved(const ThreadCache& c, unsigned k) noexcept {
  return counts_all(c, k) && (k == c.long_class || c.uses[k].kept_kib == to_kib(c.uses[k].carved, k));
}

// Effects: the class is about to be evicted, in favour of others; or since it lies idle: then the budget shrinks by
// what it keeps, as far as it is more than at first, and its bin is as small again.
void note_evicted(ThreadCache& c, unsigned k) noexcept SLUICE_REQUIRES(c.lock);
void note_idle(ThreadCache& c, unsigned k) noexcept SLUICE_REQUIRES(c.lock);

// Effects: a class is needed again after it was evicted; of note_passed_on, and others had blocks of it: for that no
// budget grows that is four times as large as at first.
void note_return(ThreadCache& c, unsigned k) noexcept;
void note_passed_on(ThreadCache& c, unsigned k) noexcept;

// Whether what comes back too early, and had so many KiB, does so often enough to cost more than a larger budget does;
// if not, it is paid for.
bool is_too_often(ThreadCache& c, uint32_t kib) noexcept;

// Effects: the last block of a class that the program has comes back, and was seen for want of budget. Larger blocks of
// other threads make no budget grow that is four times as large as at first.
void note_last_free(ThreadCache& c, unsigned k) noexcept;

}  // namespace sluice::budget
