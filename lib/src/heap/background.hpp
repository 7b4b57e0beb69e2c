// A thread of the heap's own, which gives memory back while the program rests: nobody calls then, so that nothing else
// would. Open it when memory stays up at rest, when the thread runs where it should not, or when a process does not
// end.
//
//            second thread of the program             nothing is dirty         pages become dirty, or a remote free
//            comes
//   (none) ──────────────────────────────▶ looks ──────────────────────▶ asleep for good ────────────────────▶ looks
//      ▲                                   │    ▲
//      │ the last thread that has a cache  └────┘ sleeps until the oldest dirty span is old enough
//      └── ends, or a fork: the child has none
//
// There is none in a program of one thread. It holds no cache, allocates nothing, and holds locks only as a thread of
// the program does in its slow paths, so that a fork, a snapshot and the end of the process need not stop it.
// Decision: lib/docs/decisions/022-background-thread.md.
#pragma once

#include <cstdint>

namespace sluice::background {

// Effects: starts the thread, unless it runs or the options forbid it; where the system refuses, the heap goes on
// without. libc allocates on this thread. Requires: this thread holds no lock of the heap and is in no signal handler.
void start() noexcept;

// Effects: from now on the thread starts when a second thread gets its cache. For a library that does not stand before
// pthread_create, where start() is called before the second thread is made, and before any sandbox of its own.
void start_with_caches() noexcept;
bool starts_with_caches() noexcept;

// Effects: ends the thread and waits until libc does not count it any more. Called by the last thread with a cache at
// its end: a process whose threads have all ended must end.
void stop() noexcept;

// Effects: from now on stop() ends another thread of the allocator's own, too, by `end`, which returns whether it ran.
void stops_also(bool (*end)() noexcept) noexcept;

// Effects: as stop(), and the thread does not start again in this process. Returns: whether it or the other one ran.
bool stop_for_good() noexcept;

// In the child of a fork, which has no such thread.
void forget() noexcept;

// Effects: takes in for threads that sleep what others freed into their slabs, and gives back what is old enough.
// Returns: after how many milliseconds to look again, or what purge_at_rest (pages/region.hpp) returns. What the thread
// does when it wakes up.
uint64_t look() noexcept;

// Effects: looks and sleeps until region::rest::word is ending. What the thread does.
void run() noexcept;

}  // namespace sluice::background
