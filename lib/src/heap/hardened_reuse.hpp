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

// The generation that was being filled is complete: the one before, at `blocks`, is ready, in random order each four
// that were freed one after the other. Where no stack serves requests none is put there: while the gate is shut or
// allocations are sampled, and with SLUICE_ZERO_ON_FREE, where all bytes of a block are looked at when it comes from
// its bin.
//
// They leave the queue before they are on the stack: a fork that stops the thread loses some, and finds none twice.
void turn(ThreadCache* c, Reuse& reuse, const ClassRow& row, void** blocks) noexcept;

// Puts a block that has been cleared into its queue. Requires: the cache is attached.
inline __attribute__((always_inline)) void set_aside(void* block, unsigned byte, ThreadCache* c) noexcept {
  const ClassRow& row = row_of(byte);
  Reuse& reuse = reuse_at(c, byte);
  void** const queue = c->secure_part.slots + row.first_queued;
  unsigned next = reuse.next.load(std::memory_order_relaxed);
  keep_order();
  queue[next] = block;
  next = (next + 1) & row.queue_mask;
  reuse.next.store(static_cast<uint8_t>(next), std::memory_order_release);
  if ((next & row.queue_mask / 2) == 0) [[unlikely]]
    turn(c, reuse, row, queue + next);
}

// Effects: reports what waits to be used again and is not as it was left.
void check_kept(const ThreadCache& c) noexcept;

}  // namespace sluice::hardened
