// See gate.hpp.
#include "heap/gate.hpp"

#include <atomic>
#include <utility>

namespace sluice::cache {
namespace {

// Shuts the bins for frees, or opens them. Signal handlers leave rooms alone meanwhile: malloc's fast path is shut
// first, the slow paths find the lock taken, and free finds each bin as it was or as it will be.
void change_rooms(ThreadCache& c, bool shut) noexcept {
  c.small_limit = 0;
  c.sampled_limit = 0;
  c.profile.limit = 0;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  for (unsigned k = 1; k < size_class_count; ++k) {
    if (shut)
      c.gated_room[k] = static_cast<int16_t>(std::exchange(c.bins[k].room, 0));
    else
      c.bins[k].room = c.gated_room[k];
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
}

// Whether a cache that samples counts towards a guarded block: the count of one that does not stays near never_due.
bool guards_blocks(const ThreadCache& c) noexcept {
  return !profiles_blocks || c.until_guarded < never_due / 2;
}

// What set_gate() ends in now and then, so that it needs no frame.
__attribute__((noinline, cold)) void change_counting(ThreadCache& c, CacheMode mode) noexcept {
  change_rooms(c, mode.has(CacheMode::Counting));
  CacheMode::store(c.mode, mode);
  set_gate(c, mode);
}
__attribute__((noinline, cold)) void keep_shut(ThreadCache& c) noexcept {
  c.sampled_limit = 0;
  c.profile.limit = 0;
  c.small_limit = 0;
}
__attribute__((noinline, cold)) void set_gate_again(ThreadCache& c, CacheMode mode) noexcept {
  set_gate(c, mode);
}

}  // namespace

void set_gate(ThreadCache& c, CacheMode mode) noexcept {
  const bool counting = mode.has(CacheMode::Counting);
  if (((c.mode.bits ^ mode.bits) & CacheMode::Counting) != 0) [[unlikely]]
    return change_counting(c, mode);
  CacheMode::store(c.mode, mode);
  StackWindow& window = c.window;
  char* const limit = window.limit;
  const int placing = mode.bits & ~CacheMode::PassingOn;
  window.open_limit = placing == CacheMode::Routing ? limit : nullptr;
  window.open_unit.store(counting ? unit_index_none : window.unit, std::memory_order_relaxed);
  window.open_owner.store(counting ? nullptr : &c, std::memory_order_relaxed);
  char* sampled_end = nullptr;
  size_t sampled = 0;
  c.profile.limit = 0;
  if (mode.has(CacheMode::Sampling)) [[unlikely]] {
    if (placing == (CacheMode::Routing | CacheMode::Sampling)) sampled_end = limit;
    if (mode.bits == CacheMode::Sampling) sampled = max_direct_size + 1;
    if (sampled != 0 && !guards_blocks(c)) c.profile.limit = sampled;
  }
  window.sampled_end = sampled_end;
  // Last: malloc goes past the bins for as long as it may have to.
  c.sampled_limit = sampled;
  c.small_limit = mode.bits == 0 ? size_t{small_limit_when_open} : 0;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (window.limit != limit) [[unlikely]]
    return set_gate_again(c, mode);  // a signal handler has moved the window in between
  if (c.sampling == AskedToLookAgain) [[unlikely]]
    keep_shut(c);  // another thread has just shut what was opened here
}

}  // namespace sluice::cache
