// The walk over the heap while other threads use it, and hold its locks now and then. Open it to validate in a stress
// test.
#pragma once

#include "heap/validate.hpp"
#include "os/memory.hpp"

namespace sluice::test {

// Returns: null, or what is wrong. Tries until it could look.
inline const char* validate_among_others() {
  for (;; os::yield()) {
    const heap::Validation found = heap::validate();
    if (found.outcome != heap::Validation::DidNotLook) return found.what;
  }
}

}  // namespace sluice::test
