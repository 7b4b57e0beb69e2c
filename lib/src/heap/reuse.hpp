// How freed blocks of libsluice-secure.so come to be used again: a queue for each class, then a stack (base/layout.hpp,
// Reuse). Open it to change how long they wait, or in which order they serve. Compiled in secure builds alone.
//
// All functions require the cache's thread, or as cache::flush_all where another one works on it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/layout.hpp"
#include "heap/link.hpp"

namespace sluice::hardened {

// The generation that was being filled is complete, and `end` is the slot behind it: the one before is ready, in random
// order each four that were freed one after the other. Where no stack serves requests none is put there: while the gate
// is shut or allocations are sampled, and with SLUICE_ZERO_ON_FREE, where all bytes of a block are looked at when it
// comes from its bin.
//
// They leave the queue before they are on the stack: a fork that stops the thread loses some, and finds none twice.
__attribute__((noinline)) void turn(ThreadCache* c, Reuse& reuse, uint32_t end) noexcept;

// Puts a block that has been cleared into its queue. Requires: the cache is attached. (A template, since in other
// builds a cache has no such slots.)
template <typename Cache>
inline __attribute__((always_inline)) void set_aside(void* block, Cache* c, Reuse& reuse) noexcept {
  uint32_t next = reuse.next.load(std::memory_order_relaxed);
  keep_order();
  c->secure_part.slots[next++] = block;
  if ((next & reuse.generation_mask) == 0) [[unlikely]]
    return turn(c, reuse, next);
  reuse.next.store(next, std::memory_order_release);
}

// Whether blocks of a class have no queue of their own, but wait together.
constexpr bool waits_with_others(unsigned size_class) noexcept {
  return queue_slots_of(class_sizes[size_class]) == 0;
}

// Effects: as set_aside, for a block of such a class.
void set_aside_larger(ThreadCache& c, unsigned size_class, void* block) noexcept;

// Takes the uppermost block off a stack; null when there is none. It leaves the stack before it is live: a fork that
// stops the thread finds no live block there.
template <typename Cache>
inline __attribute__((always_inline)) void* take_ready(Cache* c, Reuse& reuse) noexcept {
  const uint32_t top = reuse.top.load(std::memory_order_relaxed);
  void* const block = c->secure_part.slots[size_t{top} - 1];
  if (block != nullptr) [[likely]]
    reuse.top.store(top - 1, std::memory_order_relaxed);
  return block;
}

// For threads' caches. Effects: prepares a new one; forgets, in the child of a fork, what waits in one whose thread was
// in the middle of a change.
void prepare(ThreadCache& c) noexcept;
void abandon(ThreadCache& c) noexcept;

// Blocks of a class that wait to be used again. Returns: one of them, which is no more there, or null when there is
// none.
void* take_delayed(ThreadCache& c, unsigned size_class) noexcept;
// How many; of another thread's cache about as many.
size_t delayed_blocks(const ThreadCache& c, unsigned size_class) noexcept;
// Most likely another number when any of them has come or gone, and 0 when there are none.
uint32_t delayed_mark(const ThreadCache& c, unsigned size_class) noexcept;

// Effects: checks what the calling thread has freed, what waits for that and what waits to be used again. Called when
// the thread or the process ends.
void check_waiting() noexcept;

}  // namespace sluice::hardened
