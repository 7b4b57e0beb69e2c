// The walk over the whole heap that compares it with the invariants of base/layout.hpp. Open it when a checked build
// stops.
#pragma once

namespace sluice::heap {

// Returns nullptr, or what is wrong. Takes every lock of the heap for the time of the walk; other threads may go on
// after. Gives up, and returns nullptr, when it cannot have them.
const char* validate() noexcept;

}  // namespace sluice::heap
