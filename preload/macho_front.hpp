// The malloc family as programs of macOS see it, whichever way they reach it: interposed (macho.cpp), linked
// (macho_static.cpp) or by the zone (macho_zone.cpp). Open it for what malloc(0) and realloc(block, 0) give there.
//
// libmalloc finds the owner of a block by asking each zone for its size: a block without bytes would be nobody's.
// Blocks of the secure build have exactly the bytes that were asked for, and so at least one.
#pragma once

#include <errno.h>

#include <cstddef>

#include "base/policy.hpp"
#include "front.hpp"
#include "heap/heap.hpp"
#include "macho_zone.hpp"
#include "os/memory.hpp"

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

inline void* resize_or_free(void* block, size_t size) noexcept {
  void* const resized = reallocate(block, size);
  if (resized == nullptr && block != nullptr) front::free(block);
  return resized;
}

inline void end(void* block) noexcept {
  front::free(block);
}

inline void* allocate_pages(size_t size) noexcept {
  return allocate_aligned(os::page_size(), size);
}

inline bool is_power_of_two(size_t value) noexcept {
  return value != 0 && (value & (value - 1)) == 0;
}

// aligned_alloc
inline void* allocate_aligned_by(size_t alignment, size_t size) noexcept {
  if (is_power_of_two(alignment)) return allocate_aligned(alignment, size);
  errno = EINVAL;
  return nullptr;
}

// posix_memalign
inline int allocate_aligned_to(void** out, size_t alignment, size_t size) noexcept {
  if (!is_power_of_two(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  const int saved = errno;
  void* const block = allocate_aligned(alignment, size);
  errno = saved;
  if (block == nullptr) return ENOMEM;
  *out = block;
  return 0;
}

// malloc_size: also of blocks of other zones
inline size_t size_of(const void* block) noexcept {
  return zone::covers(block) ? zone::size_of(block) : heap::usable_size(block);
}

}  // namespace sluice::macho
