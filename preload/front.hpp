// What the interposed symbols call: the heap with the stack arena before it, or the heap alone in a build without arena
// (SLUICE_ARENA=OFF), which exists to measure that the arena costs nothing where it is not used; in libsluice-secure.so
// the hardened front, with frames and without scopes.
#pragma once

#include "heap/heap.hpp"
#include "secure/hardened.hpp"
#if defined(SLUICE_FRAMES)
#include "arena/frame.hpp"
#endif
#if defined(SLUICE_ARENA)
#include "arena/arena.hpp"
#include "arena/scope.hpp"
#endif

namespace sluice::front {

#if defined(SLUICE_SECURE)
using hardened::allocate_aligned;
using hardened::allocate_zeroed;
using hardened::free;
using hardened::free_sized;
using hardened::reallocate;
using hardened::usable_size;

inline void* allocate_slow(size_t, ThreadCache*) noexcept {
  return nullptr;
}
inline void* allocate_rest(size_t size, ThreadCache*) noexcept {
  return hardened::allocate(size);
}
template <typename Policy>
inline __attribute__((always_inline)) void* allocate_slow_with(size_t size, ThreadCache* cache, Policy policy) {
  return policy.template finish<allocate_rest>(size, cache);
}

// `slow` is called when there is no memory; there is one such function, whatever heap::allocate distinguishes.
template <auto slow = allocate_slow, auto = slow>
inline __attribute__((always_inline)) void* allocate(size_t size) {
  void* const block = hardened::allocate(size);
  return block != nullptr ? block : slow(size, thread_cache);
}

#else
#if defined(SLUICE_ARENA)
using arena::allocate_aligned;
using arena::allocate_slow;
using arena::allocate_zeroed;
using arena::free_slow;
using arena::reallocate;
using arena::usable_size;

template <typename Policy>
inline __attribute__((always_inline)) void* allocate_slow_with(size_t size, ThreadCache* cache, Policy policy) {
  if (cache->mode.has(CacheMode::Routing)) return arena::allocate_routed_with(size, cache, policy);
  return heap::allocate_slow_with(size, cache, policy);
}
#else
using heap::allocate_aligned;
using heap::allocate_slow;
using heap::allocate_slow_with;
using heap::allocate_zeroed;
using heap::free_slow;
using heap::reallocate;
using heap::usable_size;
#endif

template <auto beyond = allocate_slow, auto empty = heap::allocate_slow>
inline __attribute__((always_inline)) void* allocate(size_t size) {
  return heap::allocate<beyond, empty>(size);
}

inline __attribute__((always_inline)) void free(void* block) noexcept {
  heap::free<free_slow>(block);
}
// The class of a block comes from its address; a size that the caller gets wrong does no harm.
inline __attribute__((always_inline)) void free_sized(void* block, size_t) noexcept {
  free(block);
}
#endif

using heap::trim;

}  // namespace sluice::front
