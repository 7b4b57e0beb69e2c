// A bounded queue of blocks between two threads. Open it to change how a scenario passes blocks from thread to thread.
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

namespace scenario {

/// A ring with one writer and one reader. Both publish their progress once per batch, so that the queue
/// itself moves one cache line between the cores per batch rather than per block.
template <std::uint64_t capacity>
class Ring {
 public:
  void push(void* block) {
    if (written_ - read_seen_ == capacity) wait_for([&] { return refresh(read_seen_, read_) != written_ - capacity; });
    slots_[written_ % capacity] = block;
    if (++written_ % batch == 0) written_published_.store(written_, std::memory_order_release);
  }

  void close() { written_published_.store(written_, std::memory_order_release); }

  void* pop() {
    if (taken_ == written_seen_) wait_for([&] { return refresh(written_seen_, written_published_) != taken_; });
    void* const block = slots_[taken_ % capacity];
    if (++taken_ % batch == 0) read_.store(taken_, std::memory_order_release);
    return block;
  }

 private:
  static constexpr std::uint64_t batch = 64;
  static_assert(capacity % batch == 0, "a full ring has been published");

  static std::uint64_t refresh(std::uint64_t& seen, const std::atomic<std::uint64_t>& published) {
    return seen = published.load(std::memory_order_acquire);
  }

  /// Polls, and yields between polls once the other side is clearly not running.
  template <class Condition>
  static void wait_for(Condition&& holds) {
    for (int polls = 0; !holds(); ++polls) {
      if (polls > 200) sched_yield();
    }
  }

  alignas(64) std::uint64_t written_ = 0;
  std::uint64_t read_seen_ = 0;
  alignas(64) std::uint64_t taken_ = 0;
  std::uint64_t written_seen_ = 0;
  alignas(64) std::atomic<std::uint64_t> written_published_{0};
  alignas(64) std::atomic<std::uint64_t> read_{0};
  alignas(64) void* slots_[capacity] = {};
};

}  // namespace scenario
