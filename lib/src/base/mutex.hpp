// Mutexes that need no initialisation, never allocate, and know who holds them: a signal handler, or a fork in one,
// finds out that it interrupted its own thread and must not wait. Open it when a lock of the heap is in question.
//
// A mutex holds the token of its holder, 0 while it is free. Acquiring pairs with releasing: what was written under the
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

// Its address tells threads apart; it is a multiple of 2, so that the lowest bit of a token is free.
struct alignas(2) ThreadAnchor {
  char unused;
};
extern constinit thread_local ThreadAnchor thread_anchor
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

inline uintptr_t thread_token() noexcept {
  return reinterpret_cast<uintptr_t>(&thread_anchor);
}

// For data that several threads use. Who waits long sleeps and is woken; the lowest bit says that somebody may sleep.
class Mutex {
 public:
  constexpr Mutex() noexcept = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  bool try_lock() noexcept {
    uintptr_t free = 0;
    return state_.compare_exchange_strong(free, thread_token(), std::memory_order_acquire, std::memory_order_relaxed);
  }

  void lock() noexcept {
    if (!try_lock()) [[unlikely]]
      lock_contended();
  }

  void unlock() noexcept {
    if ((state_.exchange(0, std::memory_order_release) & sleepers) != 0) os::wake_one(state_);
  }

  bool held_by_this_thread() const noexcept {
    return (state_.load(std::memory_order_relaxed) & ~sleepers) == thread_token();
  }

  // Around a fork, which may come from a signal handler that interrupted the holder: as lock() and unlock(), but a lock
  // that this thread holds already stays as it is.
  void lock_for_fork() noexcept {
    if (held_by_this_thread())
      held_before_fork_ = true;
    else
      lock();
  }
  void unlock_after_fork() noexcept {
    if (held_before_fork_)
      held_before_fork_ = false;
    else
      unlock();
  }

 private:
  static constexpr uintptr_t sleepers = 1;

  __attribute__((noinline)) void lock_contended() noexcept {
    for (int spin = 0; spin < 100; ++spin) {
      cpu_relax();
      if (state_.load(std::memory_order_relaxed) == 0 && try_lock()) return;
    }
    for (;;) {
      uintptr_t seen = state_.load(std::memory_order_relaxed);
      if (seen == 0) {  // others may still sleep: whoever has slept takes the lock with the bit set
        if (state_.compare_exchange_weak(seen, thread_token() | sleepers, std::memory_order_acquire,
                                         std::memory_order_relaxed))
          return;
      } else if ((seen & sleepers) != 0 ||
                 state_.compare_exchange_weak(seen, seen | sleepers, std::memory_order_relaxed)) {
        os::wait(state_, seen | sleepers);
      }
    }
  }

  std::atomic<uintptr_t> state_{0};
  bool held_before_fork_ = false;
};

// For data that one thread uses all the time and others hardly ever: giving it back is a plain store, which halves what
// it costs the owner. Who waits is not woken but looks again, soon and then now and then.
class OwnerMutex {
 public:
  constexpr OwnerMutex() noexcept = default;
  OwnerMutex(const OwnerMutex&) = delete;
  OwnerMutex& operator=(const OwnerMutex&) = delete;

  bool try_lock() noexcept {
    uintptr_t free = 0;
    return state_.compare_exchange_strong(free, thread_token(), std::memory_order_acquire, std::memory_order_relaxed);
  }

  void lock() noexcept {
    if (!try_lock()) [[unlikely]]
      lock_contended();
  }

  void unlock() noexcept { state_.store(0, std::memory_order_release); }

  bool held_by_this_thread() const noexcept { return state_.load(std::memory_order_relaxed) == thread_token(); }

  // As those of Mutex.
  void lock_for_fork() noexcept {
    if (held_by_this_thread())
      held_before_fork_ = true;
    else
      lock();
  }
  void unlock_after_fork() noexcept {
    if (held_before_fork_)
      held_before_fork_ = false;
    else
      unlock();
  }

 private:
  __attribute__((noinline)) void lock_contended() noexcept {
    for (int spin = 0;; ++spin) {
      const uintptr_t seen = state_.load(std::memory_order_relaxed);
      if (seen == 0 && try_lock()) return;
      if (spin < 100)
        cpu_relax();
      else if (seen != 0)
        os::wait_briefly(state_, seen);
    }
  }

  std::atomic<uintptr_t> state_{0};
  bool held_before_fork_ = false;
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
