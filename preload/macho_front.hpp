// The front of the heap as programs of macOS see it. Open it for what malloc(0) and realloc(block, 0) give there.
//
// libmalloc finds the owner of a block by asking each zone for its size: a block without bytes would be nobody's.
// Blocks of the secure build have exactly the bytes that were asked for, and so at least one.
#pragma once

#include <cstddef>

#include "base/policy.hpp"
#include "front.hpp"

namespace sluice::macho {

constexpr size_t at_least_one(size_t size) noexcept {
  return checks_blocks && size == 0 ? 1 : size;
}

inline void* allocate(size_t size) noexcept {
  return front::allocate(at_least_one(size));
}

inline void* allocate_zeroed(size_t count, size_t size) noexcept {
  return checks_blocks && (count == 0 || size == 0) ? front::allocate_zeroed(1, 1)
                                                    : front::allocate_zeroed(count, size);
}

inline void* allocate_aligned(size_t alignment, size_t size) noexcept {
  return front::allocate_aligned(alignment, at_least_one(size));
}

// As libSystem's: of no bytes ends the block and returns a new one of the least size.
inline void* reallocate(void* block, size_t size) noexcept {
  return front::reallocate(block, at_least_one(size));
}

}  // namespace sluice::macho
