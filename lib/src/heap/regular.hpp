// Work that comes again at intervals: statistics that are written now and then. Open it when such a file is not
// renewed.
//
// There is no thread for it. Slow paths of malloc and free look whether it is time, and so does the background thread
// where it runs (heap/background.hpp). A program that rests, or whose calls all end in its threads' caches while
// nothing counts them, does no such work.
#pragma once

#include <atomic>
#include <cstdint>

namespace sluice::regular {

// Returns: false when it could not be done now; it comes again soon.
using Work = bool (*)() noexcept;

inline constexpr uint64_t never = UINT64_MAX;
extern constinit std::atomic<uint64_t> due_ms;  // of os::clock_ms; never: there is no work

// Effects: `work` is done from now on, first after the interval; delay_never (base/options.hpp): never. Called once.
void start(Work work, uint64_t interval_ms) noexcept;

// Effects: in the child of a fork, whose parent may have been at it, the work begins anew, or ends. Signal-safe.
void start_in_child(bool goes_on) noexcept;

// Effects: does the work if it is time and no other thread does it. errno stays. The work waits for no lock, so that a
// signal handler that interrupted the heap may come here.
void look() noexcept;
inline void look_if_any() noexcept {
  if (due_ms.load(std::memory_order_relaxed) != never) [[unlikely]]
    look();
}

// After how many milliseconds it is time; never, where there is no work.
uint64_t until_due() noexcept;

}  // namespace sluice::regular
