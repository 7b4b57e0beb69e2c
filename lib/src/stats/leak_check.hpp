// The check for leaks when a profile is written at exit: a copy of the process looks for pointers to the sampled blocks
// and writes the file, while the process waits for it. Open it when a profile says that reachability is unknown.
//
//   process                                       copy (os/roots.hpp): this thread alone, all signals blocked
//   takes all locks, copies itself, gives back    gives the locks back, marks (reachability.hpp), write(), ends
//   waits, for a bounded time                     what faults there ends the copy, not the process
//   the copy has not written: goes on without
#pragma once

#include <cstdint>
#include <string_view>

#include "stats/reachability.hpp"

namespace sluice::stats {

struct LeakCheck {
  enum class Outcome : uint8_t {
    Done,    // the copy has written
    Busy,    // a lock of the heap is held, and nothing was done
    Failed,  // there was no copy, or it ended before it had written
  };
  Outcome outcome;
  std::string_view unknown;  // why it failed
};

// Effects: in a copy of this process, calls write(context, found, unknown): `found` is null where the marks could not
// be set, and `unknown` says why. Returns what became of it. Without `wait` it gives up where a lock of the heap is
// held, and does not wait for long.
using WriteInCopy = bool (*)(void* context, const Reachability* found, std::string_view unknown) noexcept;
LeakCheck check_leaks(bool wait, WriteInCopy write, void* context) noexcept;

}  // namespace sluice::stats
