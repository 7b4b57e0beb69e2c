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

// What both kinds of mutex know about forks. A fork takes every lock; handlers of other libraries then run on the same
// thread and may allocate: they find everything in order, and pass. A fork in a signal handler may come upon locks that
// its own thread holds already: they stay as they are, and what they guard may not be touched.
class ForkState {
 public:
  bool passes() const noexcept { return for_fork_; }  // requires: this thread holds the lock
  bool leave() noexcept {                             // says whether an inner unlock has been dealt with
    if (inner_ == 0) [[likely]]
      return false;
    --inner_;
    return true;
  }
  void enter() noexcept { ++inner_; }
  void keep() noexcept { ++held_before_; }
  void begin() noexcept { for_fork_ = true; }
  bool end() noexcept {  // says whether the lock is to be given back
    if (held_before_ != 0) {
      --held_before_;
      return false;
    }
    for_fork_ = false;
    return true;
  }

 private:
  uint32_t inner_ = 0;        // locks taken by this thread while it holds the lock for a fork
  uint32_t held_before_ = 0;  // forks that found the lock held by their own thread
  bool for_fork_ = false;
};

// For data that several threads use. Who waits long sleeps and is woken; the lowest bit says that somebody may sleep.
class Mutex {
 public:
  constexpr Mutex() noexcept = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  bool try_lock() noexcept { return take() || pass(); }

  void lock() noexcept {
    if (!try_lock()) [[unlikely]]
      lock_contended();
  }

  void unlock() noexcept {
    if (fork_.leave()) return;
    if ((state_.exchange(0, std::memory_order_release) & sleepers) != 0) os::wake_one(state_);
  }

  // Whether this thread is in the middle of changing what the lock guards.
  bool held_by_this_thread() const noexcept { return is_mine() && !fork_.passes(); }

  // Around a fork. unlock_after_fork() serves the parent and the child.
  void lock_for_fork() noexcept {
    if (is_mine()) return fork_.keep();
    lock();
    fork_.begin();
  }
  void unlock_after_fork() noexcept {
    if (fork_.end()) unlock();
  }

 private:
  static constexpr uintptr_t sleepers = 1;

  bool is_mine() const noexcept { return (state_.load(std::memory_order_relaxed) & ~sleepers) == thread_token(); }

  bool take() noexcept {
    uintptr_t free = 0;
    return state_.compare_exchange_strong(free, thread_token(), std::memory_order_acquire, std::memory_order_relaxed);
  }
  bool pass() noexcept {
    if (!is_mine() || !fork_.passes()) return false;
    fork_.enter();
    return true;
  }

  __attribute__((noinline)) void lock_contended() noexcept {
    for (int spin = 0; spin < 100; ++spin) {
      cpu_relax();
      if (state_.load(std::memory_order_relaxed) == 0 && take()) return;
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
  ForkState fork_;
};

// For data that one thread uses all the time and others hardly ever: giving it back is a plain store, which halves what
// it costs the owner. Who waits is not woken but looks again, soon and then now and then.
class OwnerMutex {
 public:
  constexpr OwnerMutex() noexcept = default;
  OwnerMutex(const OwnerMutex&) = delete;
  OwnerMutex& operator=(const OwnerMutex&) = delete;

  bool try_lock() noexcept { return take() || pass(); }

  void lock() noexcept {
    if (!try_lock()) [[unlikely]]
      lock_contended();
  }

  void unlock() noexcept {
    if (!fork_.leave()) state_.store(0, std::memory_order_release);
  }

  // As unlock(), and what this thread reads next is read after the lock is free for others.
  void unlock_before_reading() noexcept {
    if (!fork_.leave()) (void)state_.exchange(0, std::memory_order_seq_cst);
  }

  // As those of Mutex.
  bool held_by_this_thread() const noexcept { return is_mine() && !fork_.passes(); }
  void lock_for_fork() noexcept {
    if (is_mine()) return fork_.keep();
    lock();
    fork_.begin();
  }
  void unlock_after_fork() noexcept {
    if (fork_.end()) unlock();
  }

 private:
  bool is_mine() const noexcept { return state_.load(std::memory_order_relaxed) == thread_token(); }

  bool take() noexcept {
    uintptr_t free = 0;
    return state_.compare_exchange_strong(free, thread_token(), std::memory_order_acquire, std::memory_order_relaxed);
  }
  bool pass() noexcept {
    if (!is_mine() || !fork_.passes()) return false;
    fork_.enter();
    return true;
  }

  __attribute__((noinline)) void lock_contended() noexcept {
    for (int spin = 0;; ++spin) {
      const uintptr_t seen = state_.load(std::memory_order_relaxed);
      if (seen == 0 && take()) return;
      if (spin < 100)
        cpu_relax();
      else if (seen != 0)
        os::wait_briefly(state_, seen);
    }
  }

  std::atomic<uintptr_t> state_{0};
  ForkState fork_;
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
