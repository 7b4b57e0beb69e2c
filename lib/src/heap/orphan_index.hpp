// Finds slabs of ended threads that have free blocks: for each class a stack of the orphans with such slabs, so that a
// refill need not walk all orphans. Open it when memory of ended threads is not found.
//
// A cache is noted when its thread ends, and when one of its slabs gets free blocks after that. A search takes it from
// the stack when it has none, or belongs to a new thread; so each step of a search is paid for by one note.
//
//   cache is an orphan, its lock is free, and it has a partial slab of class k  =>  noted[k]
//   noted[k]  =>  it is in the stack of class k, or in the hands of the thread that searches
//
// Notes are made under the orphan's lock and no other. Stacks are taken apart under the registry's lock, so that
// nothing returns to a stack while a search takes it apart (the ABA problem).
//
// One more stack holds orphans on which a slab was queued while their lock was held. The holder of the lock need not
// know of that (it may be a fork or a snapshot): the next search looks.
#pragma once

#include "base/layout.hpp"

namespace sluice::orphan_index {

inline constexpr unsigned to_look_at = 0;  // no slab has this class: caches whose pending slabs nobody has taken in

// Effects: notes the cache for the class, unless it is. Lock-free. Requires the cache's lock, but for to_look_at; in
// the child of a fork, that there is one thread.
void note(ThreadCache& orphan, unsigned size_class) noexcept;

// Effects: as note, for each class that the cache has partial slabs of.
void note_all(ThreadCache& orphan) noexcept SLUICE_REQUIRES(orphan.lock);

// Whether no cache is noted for the class.
bool empty(unsigned size_class) noexcept;

// Effects: takes the cache that was noted last off the stack, for put_back() or forget(); null when there is none.
// Requires the registry's lock.
ThreadCache* take(unsigned size_class) noexcept;
void put_back(ThreadCache& orphan, unsigned size_class) noexcept;

// Effects: takes all caches of the stack, linked by next_noted. Requires the registry's lock.
ThreadCache* take_all(unsigned size_class) noexcept;

// Effects: ends a note. Requires the registry's lock, and the cache's if it is an orphan, but for to_look_at: what was
// queued before somebody found the note there is seen after this.
void forget(ThreadCache& cache, unsigned size_class) noexcept;

}  // namespace sluice::orphan_index
