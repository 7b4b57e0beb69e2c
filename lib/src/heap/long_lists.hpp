// Lists of the class that a thread flushes most, as long as the program needs: both together hold what it takes and
// frees at a time, and more, so that hardly any of its calls leaves the fast path. Open it to change how long they
// become, how much all of them may hold, and what ends them. Decision:
// lib/docs/decisions/057-one-class-has-lists-as-long-as-it-needs.md.
//
// One class of a thread has such lists, ThreadCache::long_class, beside its budget (heap/budget.hpp). They are learnt
// where the class is flushed and refilled all the time, and flushed as a whole when other memory is needed, when they
// lie unused, when more threads share what all may hold, and with the rest of the cache. Not in secure builds.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/layout.hpp"

namespace sluice::long_lists {

// Effects: so many threads have caches now: what each may have depends on it.
void note_live(size_t threads) noexcept;

// Effects: in the child of a fork, what all caches may hold in such lists are so many KiB.
void note_fork(uint32_t kib) noexcept;

// How many blocks a list of the class should hold of which the program has `used`, blocks in caches included: with the
// other list that many and a quarter more, as far as the thread's part allows. No less than `least`; and that if two
// such lists are enough.
int32_t wanted(unsigned size_class, int32_t least, size_t used) noexcept;

// Effects: takes note of a flush of lists that are shorter. Returns: whether there were so many at once, and refills
// among them, that longer ones are worth it.
bool are_worth_it(ThreadCache& c) noexcept;

// Effects: the class has lists of so many blocks, more than before, if all threads together may have so much. Returns:
// whether it has. Requires: no other class of the thread has such lists.
bool lengthen(ThreadCache& c, unsigned size_class, int32_t blocks) noexcept;

// Effects: long_class is none any more, and its bin earns `usual` blocks at most. Requires: it is one, and its lists
// are empty.
void end(ThreadCache& c, int32_t usual) noexcept;

// Effects: takes note that the class is in use.
inline void note_in_use(ThreadCache& c, unsigned k) noexcept {
  c.uses[k].used_at = c.slow_calls;
  if (c.long_class == k) c.others_units = 0;
}

// Effects: takes note that so many units are needed for another class than long_class, or for a large block. Returns:
// whether as much as its lists may hold was, or a quarter by more requests than one, since it was last seen in use:
// then they are to be flushed. Requires: there is such a class.
bool are_in_the_way(ThreadCache& c, size_t units) noexcept;

// Whether they lie unused for half a purge delay, or the thread has twice its part. Requires: as before.
bool are_over(ThreadCache& c) noexcept;

// Whether they may hold more than those of one of two threads.
bool are_more_than_shared(const ThreadCache& c) noexcept;

}  // namespace sluice::long_lists
