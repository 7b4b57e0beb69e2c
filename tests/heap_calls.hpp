// malloc and free as a program reaches them: the compiler knows nothing of the size, so that it cannot judge the fast
// path by a constant.
#pragma once

#include "heap/heap.hpp"

namespace sluice::test {

inline void* allocate(size_t size) noexcept {
  heap::hide(size);
  return heap::allocate(size);
}

}  // namespace sluice::test
