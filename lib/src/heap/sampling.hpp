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

// Effects: makes a cache ready to sample. Returns: whether it does. Called before the gate is set.
bool attach(ThreadCache& c) noexcept;

// The allocation whose turn it is: a guarded block, or null.
__attribute__((noinline, cold)) void* allocate_due(ThreadCache& c, size_t size, size_t alignment, bool zeroed) noexcept;

// What next_sample() says of an allocation.
enum class Turn : uint8_t {
  Ordinary,   // it is counted
  Guarded,    // it is counted, and is the guarded one: allocate_due()
  NotCounted  // the cache does not sample, or the allocation interrupts one that has taken the count down
};

// Takes one off a count; says whether none is left, or none was there. One instruction, which compilers do not find by
// themselves.
inline __attribute__((always_inline)) bool count_down(int64_t& count) noexcept {
#if defined(__x86_64__)
  bool none;
  asm("subq $1, %0" : "+m"(count), "=@ccle"(none));
  return none;
#else
  return count-- <= 1;
#endif
}

// Counts an allocation: the one place where the count goes down. Signal handlers that interrupt it find one less, or a
// count that is not above 0, which they leave as it is.
inline __attribute__((always_inline)) Turn next_sample(ThreadCache* c) noexcept {
  if (!count_down(c->until_guarded)) [[likely]]
    return Turn::Ordinary;
  if (c->until_guarded == 0) return Turn::Guarded;
  ++c->until_guarded;
  return Turn::NotCounted;
}

// Takes back what next_sample() has done: whoever serves the allocation counts it.
inline void uncount(ThreadCache* c, Turn turn) noexcept {
  if (turn != Turn::NotCounted) ++c->until_guarded;
}

// Counts an allocation. Returns whether it is the guarded one.
inline bool is_due(ThreadCache* c) noexcept {
  return c->mode.has(CacheMode::Sampling) && next_sample(c) == Turn::Guarded;
}

// Counts an allocation that somebody else can place. False when it is to be guarded, and then it is not counted.
inline bool passes(ThreadCache* c) noexcept {
  if (!is_due(c)) [[likely]]
    return true;
  uncount(c, Turn::Guarded);
  return false;
}

// Counts an allocation. Returns a guarded block if it is time for one and it can be had; else null.
inline void* sample(ThreadCache* c, size_t size, size_t alignment, bool zeroed) noexcept {
  return is_due(c) ? allocate_due(*c, size, alignment, zeroed) : nullptr;
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
