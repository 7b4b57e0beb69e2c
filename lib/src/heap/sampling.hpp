// Sampling: which allocations become guarded blocks (guarded/pool.hpp), and which the profile samples
// (profile/profile.hpp). Open it to see what either costs, and when guarding gives way.
//
// While it is on, the gate of each thread's cache is shut for malloc (ThreadCache::small_limit), free keeps its fast
// path. In its slow entry malloc counts allocations down to the next guarded one, and bytes down to the next one of the
// profile; all others are taken from the cache's bins there, as on the fast path. Where the profile alone is on, it
// counts bytes before that entry (ProfileThread::limit). The intervals are random, on average as long as
// SLUICE_GUARD_RATE and SLUICE_PROFILE_RATE say, so that a program whose allocations repeat in a pattern has all of
// them sampled.
//
// A sampled block of up to 64 KiB lies where sampled blocks alone lie, so that free comes to its slow path with it
// (profile/blocks.hpp). A large block and a guarded one know their record. A block that realloc moves, or a large one
// that it makes larger or smaller, counts as freed and allocated: it is sampled anew. Where both are samples, the new
// one keeps the stack of the old one, so that a growing block shows where it began.
//
// A guarded block costs system calls and back traces. From a rate of bounded_rate on, guarding uses no more than a
// fraction of the time, and blocks of more than 64 KiB are left alone: when it is used up, allocations whose turn it
// would be are ordinary ones. Lower rates are kept to, whatever the cost; at 1 nothing is left to chance.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/layout.hpp"
#include "profile/estimate.hpp"
#include "profile/profile.hpp"

namespace sluice::sampling {

inline constexpr uint64_t bounded_rate = 100;
inline constexpr size_t most_bounded_bytes = 64 * 1024;  // larger blocks grow in place, and their pages cost time

// Effects: samples one in `rate` allocations of the calling thread, also in a scope that is open, and of threads that
// start from now on.
void start(uint64_t rate) noexcept;

// Effects: samples for the profile likewise. Requires: profile::start().
void start_profile() noexcept;

// Effects: all threads look again whether they sample, and at which rate: with the next call of malloc that is not
// served by an open scope's window, and there with the next one that opens or leaves a scope or fills the window.
// Called after profile::start() and profile::stop(), by any thread.
//
// Their gates are shut from here (ThreadCache::small_limit), and stay so until they have looked: set_gate() finds that
// its thread is asked. Sleeps for a millisecond. Not for signal handlers.
void ask_all() noexcept;

// In the child of a fork, which may have stopped the thread that asks: the child's own thread is asked where it must
// be.
void ask_in_child() noexcept;

// Effects: looks again. Requires: `c` is the calling thread's.
__attribute__((noinline, cold)) void look_again(ThreadCache& c) noexcept;

// Effects: makes the cache of a thread that begins ready to sample. Returns: whether it does. Called before the gate is
// set.
bool attach(ThreadCache& c) noexcept;

// The allocation whose turn it is: a guarded block, a sampled one, or null.
__attribute__((noinline, cold)) void* allocate_due(ThreadCache& c, size_t size, size_t alignment, bool zeroed) noexcept;

// What next_sample() says of an allocation.
enum class Turn : uint8_t {
  Ordinary,   // it is counted
  Due,        // it is counted, and is the guarded one or a sample of the profile: allocate_due()
  NotCounted  // the cache does not sample, or the allocation interrupts one that has taken a count down
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

// Takes an allocation's bytes off a count; says whether it is below 0 then.
inline __attribute__((always_inline)) bool count_bytes_down(int64_t& count, size_t bytes) noexcept {
#if defined(__x86_64__)
  bool below;
  asm("subq %2, %0" : "+m"(count), "=@ccs"(below) : "r"(bytes));
  return below;
#else
  return (count -= static_cast<int64_t>(bytes)) < 0;
#endif
}

// Below, `bytes` are profile::counted_bytes() of an allocation.

// Takes back what next_sample() has done: whoever serves the allocation counts it.
inline void uncount(ThreadCache* c, size_t bytes, Turn turn) noexcept {
  if (turn == Turn::NotCounted) return;
  ++c->until_guarded;
  if (profiles_blocks) c->profile.until += static_cast<int64_t>(bytes);
}

// Counts an allocation. Beside heap::take_profiled(), which counts bytes alone, the one place where the counts go down.
// Signal handlers that interrupt it find one less, or a count that has come to its end, which they leave as it is.
inline __attribute__((always_inline)) Turn next_sample(ThreadCache* c, size_t bytes) noexcept {
  if (!count_down(c->until_guarded)) [[likely]] {  // apart, so that each count's branch follows it at once
    if (!profiles_blocks || !count_bytes_down(c->profile.until, bytes)) [[likely]]
      return Turn::Ordinary;
  } else if (profiles_blocks) {
    (void)count_bytes_down(c->profile.until, bytes);
  }
  if (c->until_guarded >= 0 && (!profiles_blocks || c->profile.until >= -static_cast<int64_t>(bytes))) return Turn::Due;
  uncount(c, bytes, Turn::Ordinary);
  return Turn::NotCounted;
}

// Whether a cache samples, or is asked to look. What follows then is one call, so that the others need no frame.
inline bool may_sample(const ThreadCache* c) noexcept {
  return __builtin_expect(c->sampling != NotSampling, false);
}

// Counts an allocation. Requires: may_sample(c), as for the two that follow. is_due: whether it is due.
bool is_due(ThreadCache* c, size_t size) noexcept;
__attribute__((noinline, cold)) Turn turn_while_sampling(ThreadCache* c, size_t size) noexcept;
__attribute__((noinline)) void* sample_if_due(ThreadCache* c, size_t size, size_t alignment, bool zeroed) noexcept;

// Counts an allocation that somebody else can place, who takes the count back with uncount() where he does not. Where
// it is due it is not counted: the heap does.
inline Turn turn_of(ThreadCache* c, size_t size) noexcept {
  if (!may_sample(c)) return Turn::NotCounted;
  if (c->sampling != IsSampling) [[unlikely]]
    return turn_while_sampling(c, size);
  const size_t bytes = profile::counted_bytes(size);
  const Turn turn = next_sample(c, bytes);
  if (turn == Turn::Due) uncount(c, bytes, turn);
  return turn;
}

// Counts an allocation. Returns a guarded or a sampled block if it is time for one and it can be had; else null.
inline void* sample(ThreadCache* c, size_t size, size_t alignment, bool zeroed) noexcept {
  return may_sample(c) ? sample_if_due(c, size, alignment, zeroed) : nullptr;
}

// When and where, for the profile. `c` may be null: a thread without a cache.
profile::Moment moment_of(const ThreadCache* c) noexcept;

// Effects: ends the record of a large or guarded block that is about to be given back.
__attribute__((noinline, cold)) void end_record(uint32_t record) noexcept;

// Effects: the large block of a span has another size, and perhaps another place: it is sampled anew. `record` is the
// one that it had, or 0.
void sample_resized(ThreadCache* c, Unit& span, uint32_t record, size_t size) noexcept;

// While it lives, samples of `size` bytes that the calling thread takes are ones of the site of a block that is being
// moved, if that is one. A signal handler that allocates meanwhile asks for another size.
class Moving {
 public:
  Moving(uint32_t record, size_t size) noexcept;
  ~Moving();
  Moving(const Moving&) = delete;
  Moving& operator=(const Moving&) = delete;

 private:
  ThreadCache* const cache_;
};

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
