// Start and end of the heap in a process of macOS.
#pragma once

#include <atomic>

namespace sluice::macho {

extern constinit std::atomic<bool> has_started;

// Effects: once, makes the heap's zone the default one and begins what the options ask for. A constructor calls it; so
// does what may come earlier, where the heap is linked into a program whose own constructors run first.
void start() noexcept;

}  // namespace sluice::macho
