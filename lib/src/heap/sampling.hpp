// Sampling: which allocations become guarded blocks (guarded/pool.hpp). Open it to see what guarding costs, and when it
// gives way.
//
// While it is on, the gate of each thread's cache is shut for malloc (ThreadCache::small_limit), free keeps its fast
// path. In its slow entry malloc counts down to the next guarded allocation; all others are taken from the cache's bins
// there, as on the fast path. The intervals are random, on average as long as SLUICE_GUARD_RATE says, so that a program
// whose allocations repeat in a pattern has all of them sampled.
//
// A guarded block costs system calls and back traces. From a rate of bounded_rate on, guarding uses no more than a
// fraction of the time, and blocks of more than 64 KiB are left alone: when it is used up, allocations whose turn it
// would be are ordinary ones. Lower rates are kept to, whatever the cost; at 1 nothing is left to chance.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/layout.hpp"

namespace sluice::sampling {

inline constexpr uint64_t bounded_rate = 100;
inline constexpr size_t most_bounded_bytes = 64 * 1024;  // larger blocks grow in place, and their pages cost time

// Effects: samples one in `rate` allocations of the calling thread, also in a scope that is open, and of threads that
// start from now on.
void start(uint64_t rate) noexcept;

// Effects: makes a cache that a thread has just taken sample, or not. Called before the gate is set.
void attach(ThreadCache& c) noexcept;

// The allocation whose turn it is: a guarded block, or null.
__attribute__((noinline, cold)) void* allocate_due(ThreadCache& c, size_t size, size_t alignment, bool zeroed) noexcept;

// Counts an allocation. Returns a guarded block if it is time for one and it can be had; else null.
inline void* sample(ThreadCache* c, size_t size, size_t alignment, bool zeroed) noexcept {
  if (c->until_guarded <= 0 || --c->until_guarded != 0) [[likely]]
    return nullptr;
  return allocate_due(*c, size, alignment, zeroed);
}

// Counts an allocation that somebody else can place. False when it is time for a guarded block: sample() is to be
// asked.
inline bool passes(ThreadCache* c) noexcept {
  if (c->until_guarded <= 1) [[likely]]
    return c->until_guarded <= 0;
  --c->until_guarded;
  return true;
}

// Charges guarding with the time of its life.
class Charge {
 public:
  Charge() noexcept;
  ~Charge();
  Charge(const Charge&) = delete;
  Charge& operator=(const Charge&) = delete;

 private:
  const uint64_t since_;
};

}  // namespace sluice::sampling
