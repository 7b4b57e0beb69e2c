// malloc and free as the model sees them: compiled as the heap is, so that the fast paths, which lie here, are followed
// too.
#include "calls.hpp"

#include "heap_calls.hpp"

namespace sluice::contention {

void* allocate(size_t size) noexcept {
  return test::allocate(size);
}

void release(void* block) noexcept {
  test::calls::free(block);
}

}  // namespace sluice::contention
