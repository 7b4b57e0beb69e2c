// The walk over the whole heap that compares it with the invariants of base/layout.hpp. Open it when a checked build
// stops.
#pragma once

#include <cstdint>

namespace sluice::heap {

struct Validation {
  enum Outcome : uint8_t { Well, Wrong, DidNotLook };
  Outcome outcome;
  const char* what;  // what is wrong, or why nobody looked; null when all is well
};

// Effects: takes every lock of the heap for the time of the walk, and gives up when it cannot have them: another thread
// keeps one for long, or the caller is a signal handler that interrupted the heap.
Validation validate() noexcept;

}  // namespace sluice::heap
