// Transfer lists: free blocks between threads. What a thread frees that others allocated is passed on to whoever needs
// such blocks next, and does not go back to its slabs. Open it for what blocks cost that one thread allocates and
// another frees. Decision: lib/docs/decisions/059-blocks-of-others-are-passed-on.md.
//
//   a thread that frees ── list of blocks that are not its own ──▶ ┌─ four words a class: head and length ─┐
//   a thread that needs ◀── before any slab is looked at ───────── └───────────────────────────────────────┘
//                                                     no room, or nobody came for a while │ flush
//                                                                                         ▼ slabs of their owners
//
// A list is taken and put as a whole, with one atomic instruction: nobody waits, and who is stopped in between holds up
// no one. All lists of a class hold as much as SLUICE_CACHE at most.
//
// Blocks of more than 8 KiB lie there one by one: twice as much of a class, or two blocks. A thread to which such
// blocks of others come back keeps no lists of that class itself, since what many threads keep of each is much: the
// class is *shared* there (budget::is_shared), until the thread turns out to be the only one that comes to its list. So
// are classes of more than 2 KiB, of which its budget allows no lists. What is needed beyond the lists comes from the
// slabs of a *common cache*, which no thread has: few slabs, and full ones.
//
// Which word a thread looks at first differs from thread to thread. Where memory has several nodes a list is marked
// with the node of its first block, and serves threads of that node.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/layout.hpp"
#include "heap/budget.hpp"
#include "heap/slab.hpp"

namespace sluice::cache::transfer {

inline constexpr bool is_on = !delays_reuse && !checks_blocks;  // secure builds choose when a block serves again
inline constexpr size_t least_size = 64;                        // bytes; of smaller blocks many are one bit each

constexpr bool passes_on(unsigned size_class) noexcept {
  return is_on && class_sizes[size_class] >= least_size;
}
// Whether blocks of the class are passed on one by one.
constexpr bool shares(unsigned size_class) noexcept {
  return is_on && budget::may_be_shared(size_class);
}

// Effects: passes on a list of blocks of the class. Returns: false if the first one is of a slab of
// `own`, or of a thread that has ended, whose slabs are to get empty, or there is no room: it is the caller's still.
bool give_of_others(ThreadCache& own, unsigned size_class, void* list) noexcept SLUICE_REQUIRES(own.lock);
inline bool give(ThreadCache& own, unsigned size_class, void* list) noexcept SLUICE_REQUIRES(own.lock) {
  return passes_on(size_class) && list != nullptr && slab::of(list)->owner.load(std::memory_order_relaxed) != &own &&
         give_of_others(own, size_class, list);
}

// Returns: up to `most` blocks that others passed on, or none. Requires: most > 0.
slab::BlockList take(ThreadCache& own, unsigned size_class, uint32_t most) noexcept SLUICE_REQUIRES(own.lock);

// Whether another thread came to this thread's list of the class since this one last did.
bool others_came(const ThreadCache& own, unsigned size_class) noexcept;

// Effects: as give and take, of one block, where the class is shared; what finds no room goes back to its slab. Where
// nobody else came to this thread's list for 64 to 128 ms in which it took some, the class is shared no more.
void give_one(ThreadCache& own, unsigned size_class, void* block) noexcept SLUICE_REQUIRES(own.lock);
void* take_one(ThreadCache& own, unsigned size_class) noexcept SLUICE_REQUIRES(own.lock);

// Returns: a block of the slabs that threads share for such classes, which are few and full; or of the thread's own as
// long as there is one. Null where there is no memory, and where somebody else takes one at this moment.
void* take_from_common(ThreadCache& own, unsigned size_class) noexcept SLUICE_REQUIRES(own.lock);

// Own the slabs of shared classes, of each memory node; null until a thread needs one.
extern constinit std::atomic<ThreadCache*> common_caches[most_nodes] __attribute__((visibility("hidden")));

// Calls act(cache) under its lock for those that nobody uses at this moment.
template <typename Act>
void for_each_common(Act act) noexcept SLUICE_UNCHECKED_LOCKS {
  for (const std::atomic<ThreadCache*>& each : common_caches) {
    ThreadCache* const c = each.load(std::memory_order_acquire);  // pairs with the store of one that is made
    if (c == nullptr || c->lock.held_by_this_thread() || !c->lock.try_lock()) continue;
    act(*c);
    c->lock.unlock();
  }
}

// Whether the program has more threads than one: to a thread that is alone nothing is passed on.
extern constinit std::atomic<bool> has_others __attribute__((visibility("hidden")));

// Lists, or common caches: both may hold blocks.
extern constinit std::atomic<bool> were_used __attribute__((visibility("hidden")));

// Effects: the blocks of all lists go back to their slabs. Nothing where the caller interrupted its cache.
__attribute__((cold)) void flush_lists() noexcept;
inline void flush() noexcept {
  if (is_on && were_used.load(std::memory_order_relaxed)) [[unlikely]]
    flush_lists();
}

// Effects: takes in what was freed into the slabs of the common caches, and gives back those that are empty then.
__attribute__((cold)) void collect_for_common() noexcept;
inline void look_at_common() noexcept {
  if (is_on && were_used.load(std::memory_order_relaxed)) [[unlikely]]
    collect_for_common();
}

// Effects: as flush, for lists that lie there since the last look, which is due now and then.
__attribute__((cold)) void look_if_due() noexcept;
inline void look() noexcept {
  if (is_on && were_used.load(std::memory_order_relaxed)) [[unlikely]]
    look_if_due();
}

// Whether a list has blocks.
__attribute__((cold)) bool hold_any() noexcept;

// How many blocks of the class lie there. Exact under the locks of all caches.
uint32_t held_blocks(unsigned size_class) noexcept;

// Returns: null, or what is wrong with the lists of the class. Requires: the locks of all caches.
const char* validate(unsigned size_class) noexcept;

}  // namespace sluice::cache::transfer
