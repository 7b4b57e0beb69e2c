// malloc and its relatives as a program reaches them: the hardened front in tests of the secure core, else the heap.
// The compiler knows nothing of the size, so that it cannot judge the fast path by a constant.
#pragma once

#include "heap/heap.hpp"
#include "secure/hardened.hpp"

namespace sluice::test {

#if defined(SLUICE_SECURE)
namespace calls = hardened;
#else
namespace calls = heap;
#endif

inline void* allocate(size_t size) noexcept {
  heap::hide(size);
  return calls::allocate(size);
}

}  // namespace sluice::test
