// A mutex of four bytes that needs no initialisation and never allocates. Open it when a lock of the heap is in
// question.
//
// States: 0 free, 1 held, 2 held and somebody may be asleep. Acquiring pairs with releasing: what was written under the
// lock is seen by the next holder.
#pragma once

#include <atomic>
#include <cstdint>

#include "os/memory.hpp"

namespace sluice {

inline void cpu_relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

class Mutex {
 public:
  constexpr Mutex() noexcept = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  bool try_lock() noexcept {
    uint32_t free = 0;
    return state_.compare_exchange_strong(free, 1, std::memory_order_acquire, std::memory_order_relaxed);
  }

  void lock() noexcept {
    if (!try_lock()) [[unlikely]]
      lock_contended();
  }

  void unlock() noexcept {
    if (state_.exchange(0, std::memory_order_release) == 2) os::wake_one(state_);
  }

  // In the child of a fork, where the sleepers do not exist any more. Requires: this thread holds the lock.
  void unlock_after_fork() noexcept { state_.store(0, std::memory_order_release); }

 private:
  __attribute__((noinline)) void lock_contended() noexcept {
    for (int spin = 0; spin < 100; ++spin) {
      cpu_relax();
      if (state_.load(std::memory_order_relaxed) == 0 && try_lock()) return;
    }
    while (state_.exchange(2, std::memory_order_acquire) != 0)
      os::wait(state_, 2);
  }

  std::atomic<uint32_t> state_{0};
};

// A mutex for data that one thread uses all the time and others hardly ever: giving it back is a plain store, which
// halves what it costs the owner. Who waits is not woken but looks again, soon and then now and then.
class OwnerMutex {
 public:
  constexpr OwnerMutex() noexcept = default;
  OwnerMutex(const OwnerMutex&) = delete;
  OwnerMutex& operator=(const OwnerMutex&) = delete;

  bool try_lock() noexcept { return state_.exchange(1, std::memory_order_acquire) == 0; }

  void lock() noexcept {
    if (!try_lock()) [[unlikely]]
      lock_contended();
  }

  void unlock() noexcept { state_.store(0, std::memory_order_release); }
  void unlock_after_fork() noexcept { unlock(); }

 private:
  __attribute__((noinline)) void lock_contended() noexcept {
    for (int spin = 0;; ++spin) {
      if (spin < 100)
        cpu_relax();
      else
        os::wait_briefly(state_, 1);
      if (state_.load(std::memory_order_relaxed) == 0 && try_lock()) return;
    }
  }

  std::atomic<uint32_t> state_{0};
};

// Holds a mutex for a block of code.
template <typename AnyMutex>
class MutexGuard {
 public:
  explicit MutexGuard(AnyMutex& mutex) noexcept : mutex_(mutex) { mutex_.lock(); }
  ~MutexGuard() { mutex_.unlock(); }
  MutexGuard(const MutexGuard&) = delete;
  MutexGuard& operator=(const MutexGuard&) = delete;

 private:
  AnyMutex& mutex_;
};

}  // namespace sluice
