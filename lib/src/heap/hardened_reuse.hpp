// How freed blocks of libsluice-secure.so come to be used again: a queue for each class, then a stack (base/layout.hpp,
// Reuse). Open it to change how long they wait, or in which order they serve. Compiled in secure builds alone.
//
// All functions require the cache's thread, or as cache::flush_all where another one works on it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "heap/hardened_block.hpp"

namespace sluice::hardened {

// What was stored before is stored first, as far as the compiler goes: a fork may stop the thread anywhere, and the
// child must not find a live block in a list, nor one that is not cleared yet.
inline __attribute__((always_inline)) void keep_order() noexcept {
  std::atomic_signal_fence(std::memory_order_release);
}

// The generation that was being filled is complete, and `end` is the slot behind it: the one before is ready, in random
// order each four that were freed one after the other. Where no stack serves requests none is put there: while the gate
// is shut or allocations are sampled, and with SLUICE_ZERO_ON_FREE, where all bytes of a block are looked at when it
// comes from its bin.
//
// They leave the queue before they are on the stack: a fork that stops the thread loses some, and finds none twice.
__attribute__((noinline)) void turn(ThreadCache* c, Reuse& reuse, uint32_t end) noexcept;

// Puts a block that has been cleared into its queue. Requires: the cache is attached.
inline __attribute__((always_inline)) void set_aside(void* block, ThreadCache* c, Reuse& reuse) noexcept {
  uint32_t next = reuse.next.load(std::memory_order_relaxed);
  keep_order();
  c->secure_part.slots[next++] = block;
  if ((next & reuse.generation_mask) == 0) [[unlikely]]
    return turn(c, reuse, next);
  reuse.next.store(next, std::memory_order_release);
}

// Takes the uppermost block off a stack; null when there is none. It leaves the stack before it is live: a fork that
// stops the thread finds no live block there.
inline __attribute__((always_inline)) void* take_ready(ThreadCache* c, Reuse& reuse) noexcept {
  const uint32_t top = reuse.top.load(std::memory_order_relaxed);
  void* const block = c->secure_part.slots[size_t{top} - 1];
  if (block != nullptr) [[likely]]
    reuse.top.store(top - 1, std::memory_order_relaxed);
  return block;
}

// Effects: reports what waits to be used again and is not as it was left.
void check_kept(const ThreadCache& c) noexcept;

}  // namespace sluice::hardened
