// Mutexes that need no initialisation, never allocate, and know who holds them: a signal handler, or a fork in one,
// finds out that it interrupted its own thread and must not wait. Open it when a lock of the heap is in question.
//
// A mutex holds the token of its holder, 0 while it is free. Acquiring pairs with releasing: what was written under the
// lock is seen by the next holder.
//
// Forks. A fork takes every lock of the heap, so that the child finds the heap whole. While it holds them, code of
// others runs: handlers of libraries, and libc, which takes its own locks (of the list of streams, of NSS) and may wait
// there for a thread that waits for the heap. So a thread that has waited for longer than forks take (fork_patience)
// takes such a lock over, works as ever, and gives it back. The fork leaves alone a lock that was taken over; its child
// finds out whether the other thread was in the middle of a change.
//
//          lock                    lock_for_fork
//   free ────────▶ held by a thread ────────▶ idle for a fork ── another thread has waited long ──▶ held by that one
//    ▲   ◀──────── unlock             ◀──────── pass: the same thread locks      unlock: free
//    └──────────────────────────────────────── unlock_after_fork, if it is idle still
//
// Order. Each mutex has a rank (lock_order.hpp); in builds with assertions lock() stops the process when its thread
// holds one of the same rank or a higher one.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/lock_order.hpp"
#include "base/policy.hpp"
#include "base/thread_safety.hpp"
#include "os/memory.hpp"
#include "os/thread_word.hpp"

namespace sluice {

inline void cpu_relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// What tells threads apart; a multiple of 8, so that the three lowest bits of a token are free.
#if defined(SLUICE_THREAD_SLOTS)
inline uintptr_t thread_token() noexcept {
  return os::own_address();
}
#else
struct alignas(8) ThreadAnchor {
  char unused;
};
extern constinit thread_local ThreadAnchor thread_anchor
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

inline uintptr_t thread_token() noexcept {
  return reinterpret_cast<uintptr_t>(&thread_anchor);
}
#endif

// How long a thread waits for a lock that is held for a fork before it takes it over, in calls of os::wait_briefly (a
// tenth of a millisecond each). A fork takes some 10 ms for each GiB that is to be shared with the child, and a child
// is whole if nothing was taken over. Grows with the heap (pages/reservation.cpp).
inline constexpr uint32_t least_fork_patience = 30;
extern constinit std::atomic<uint32_t> fork_patience;

// The state in which the child of a fork finds what a lock protects.
enum class AfterFork {
  Whole,
  Mine,    // the child's own thread is in the middle of a change: a signal handler made the fork
  Broken,  // a thread that the child does not have was in the middle of a change
};

// What both kinds of mutex share: all but how a holder gives it back and how a thread that waits sleeps. A kind has
// unlock(), rank(), sleep(seen) (until the word is likely another than `seen`, or for a while), wake() (somebody may
// sleep), and after_sleep: the bits that the word gets when one who has slept takes the lock.
template <typename Kind>
class SLUICE_LOCK ForkableMutex {
 public:
  constexpr ForkableMutex() noexcept = default;
  ForkableMutex(const ForkableMutex&) = delete;
  ForkableMutex& operator=(const ForkableMutex&) = delete;

  bool try_lock() noexcept SLUICE_TAKES_IF_TRUE() {
    if (!take(0) && !pass()) return false;
    lock_order::taken(kind().rank());
    return true;
  }

  // Requires: the thread holds no lock of this rank or a higher one; see lock_order.hpp.
  void lock() noexcept SLUICE_TAKES() {
    if (checked && !is_own_idle(state_.load(std::memory_order_relaxed))) lock_order::require(kind().rank(), this);
    lock_at_once_or_later();
  }

  // Whether this thread is in the middle of changing what the lock protects. A free lock is told at once: those who ask
  // find one nearly always.
  bool held_by_this_thread() const noexcept {
    const uintptr_t now = word();
    return __builtin_expect(now != 0, false) && (now & ~firm) == thread_token();
  }

  // Whether somebody holds it now. Relaxed: a hint.
  bool is_taken() const noexcept { return word() != 0; }

  // Tells the analysis, which cannot know whose lock it is, that this thread holds it; checked builds look.
  void expect_held() const noexcept SLUICE_TELLS_HELD() {
    if (checked && !held_by_this_thread()) lock_order::fail_not_held(this);
  }

  // Around a fork, in the parent, and around a look at the whole heap; one may come inside of the other. A lock that
  // this thread holds already in the middle of a change stays as it is. Who looks is not disturbed by others that wait.
  void lock_for_fork() noexcept { lock_idle(idle); }
  void unlock_after_fork() noexcept { unlock_idle(); }
  void lock_to_look() noexcept { lock_idle(idle | firm); }
  void unlock_after_look() noexcept { unlock_idle(); }

  // Effects: nobody can take the lock any more, and nobody holds it. Requires: it is free, and will not be waited for.
  void close() noexcept { state_.store(idle | firm, std::memory_order_relaxed); }

  // The child's part of a fork: the lock is free again, unless this thread is in the middle of a change.
  AfterFork unlock_in_child() noexcept {
    if (held_by_this_thread()) return AfterFork::Mine;
    const bool whole = word() == 0 || (word() & idle) != 0;
    passed_ = false;
    depth_ = firm_from_ = 0;
    state_.store(0, std::memory_order_release);
    return whole ? AfterFork::Whole : AfterFork::Broken;
  }

 protected:
  static constexpr uintptr_t sleepers = 1;  // somebody may sleep; of an OwnerMutex only while it is held
  static constexpr uintptr_t idle = 2;      // held for a fork or a look, and its thread is not changing anything
  static constexpr uintptr_t firm = 4;      // not to be taken over

  // What unlock() leaves in the word. Called by the holder.
  uintptr_t word_after() noexcept {
    lock_order::given_back(kind().rank());
    if (!passed_) [[likely]]
      return 0;
    passed_ = false;
    return word() | idle;
  }

  std::atomic<uintptr_t> state_{0};
  // Written by the holder.
  bool passed_ = false;    // it came by pass(); never while the lock is idle
  uint8_t depth_ = 0;      // forks and looks inside of the one that the lock is held for
  uint8_t firm_from_ = 0;  // the outermost of these that made the lock firm; 0: none, or the outermost of all

 private:
  Kind& kind() noexcept { return static_cast<Kind&>(*this); }

  uintptr_t word() const noexcept { return state_.load(std::memory_order_relaxed) & ~sleepers; }

  static bool is_own_idle(uintptr_t seen) noexcept { return (seen & ~(sleepers | firm)) == (thread_token() | idle); }
  static bool can_be_taken_over(uintptr_t seen) noexcept { return (seen & (idle | firm)) == idle; }

  // Makes the word this thread's, with further bits, if it is as `seen`.
  bool take_from(uintptr_t seen, uintptr_t bits) noexcept {
    return state_.compare_exchange_strong(seen, thread_token() | bits, std::memory_order_acquire,
                                          std::memory_order_relaxed);
  }
  bool take(uintptr_t bits) noexcept { return take_from(0, bits); }

  void lock_at_once_or_later() noexcept {
    if (!take(0) && !pass()) [[unlikely]]
      lock_contended();
    lock_order::taken(kind().rank());
  }

  __attribute__((noinline)) void lock_contended() noexcept {
    for (int spin = 0; spin < 100; ++spin) {
      cpu_relax();
      if (state_.load(std::memory_order_relaxed) == 0 && take(0)) return;
    }
    for (uint32_t waited = 0;;) {
      const uintptr_t seen = state_.load(std::memory_order_relaxed);
      if (seen == 0) {  // others may still sleep
        if (take(Kind::after_sleep)) return;
      } else if (can_be_taken_over(seen)) {
        if (waited >= fork_patience.load(std::memory_order_relaxed) && take_from(seen, Kind::after_sleep)) return;
        os::wait_briefly(state_, seen);
        ++waited;
      } else {
        kind().sleep(seen);
      }
    }
  }

  // Not bound by the order of locks, since a signal handler that interrupted a holder may fork: those who call this for
  // all locks keep it.
  void lock_idle(uintptr_t bits) noexcept {
    if (held_by_this_thread()) return;
    if (pass()) {  // inside of a fork or a look: counted while nobody else can take the lock over
      lock_order::taken(kind().rank());
      ++depth_;
      if ((bits & firm & ~word()) != 0) {
        firm_from_ = depth_;
        state_.fetch_or(firm, std::memory_order_relaxed);
      }
      return give_back(word_after());
    }
    lock_at_once_or_later();
    lock_order::given_back(kind().rank());
    depth_ = firm_from_ = 0;
    state_.fetch_or(bits, std::memory_order_release);  // who takes the lock over sees what this thread wrote
  }
  void unlock_idle() noexcept {
    if (!pass()) return;  // another thread has taken it over
    passed_ = false;
    uintptr_t left = 0;
    if (depth_ != 0) {
      left = word() | idle;
      if (firm_from_ == depth_) {
        left &= ~firm;
        firm_from_ = 0;
      }
      --depth_;
    }
    give_back(left);
  }
  void give_back(uintptr_t left) noexcept {
    if ((state_.exchange(left, std::memory_order_release) & sleepers) != 0) kind().wake();
  }

  // The thread that forks goes through the heap in a handler of another library.
  bool pass() noexcept {
    uintptr_t seen = state_.load(std::memory_order_relaxed);
    while (is_own_idle(seen)) {
      if (!state_.compare_exchange_weak(seen, seen & ~idle, std::memory_order_acquire, std::memory_order_relaxed))
        continue;
      passed_ = true;
      return true;
    }
    return false;
  }
};

// For data that several threads use. Who waits long sleeps and is woken; the lowest bit says that somebody may sleep.
class SLUICE_LOCK Mutex : public ForkableMutex<Mutex> {
 public:
  constexpr explicit Mutex(LockRank rank) noexcept : rank_(rank) {}

  void unlock() noexcept SLUICE_GIVES_BACK() {
    if ((state_.exchange(word_after(), std::memory_order_release) & sleepers) != 0) wake();
  }

 private:
  friend ForkableMutex;

  LockRank rank() const noexcept { return rank_.get(); }

  static constexpr uintptr_t after_sleep = sleepers;  // others may still sleep
  void wake() noexcept { os::wake_one(state_); }
  void sleep(uintptr_t seen) noexcept {
    if ((seen & sleepers) != 0 || state_.compare_exchange_weak(seen, seen | sleepers, std::memory_order_relaxed))
      os::wait(state_, seen | sleepers);
  }

  [[no_unique_address]] StoredRank<checked> rank_;
};

// For data that one thread uses all the time and others hardly ever, as a thread's cache: giving it back is a plain
// store, which halves what it costs the owner. Who waits is not woken but looks again now and then, and is seen by a
// holder who would take the lock again at once.
class SLUICE_LOCK OwnerMutex : public ForkableMutex<OwnerMutex> {
 public:
  void unlock() noexcept SLUICE_GIVES_BACK() { state_.store(word_after(), std::memory_order_release); }

  // As unlock(), and what this thread reads next is read after the lock is free for others.
  void unlock_before_reading() noexcept SLUICE_GIVES_BACK() {
    (void)state_.exchange(word_after(), std::memory_order_seq_cst);
  }

  // Whether somebody waits. For the holder, who lets them in after giving the lock back: who works in portions, and
  // takes the lock again at once, would keep them out for as long as all portions take.
  bool is_wanted() const noexcept { return (state_.load(std::memory_order_relaxed) & sleepers) != 0; }
  void let_in() noexcept {
    os::wake_one(state_);
    os::wait_briefly(state_, 0);
  }

  // As try_lock(), so often, with a tenth of a millisecond in between: for who must not wait for ever.
  bool try_lock_patiently(unsigned times) noexcept SLUICE_TAKES_IF_TRUE() {
    for (unsigned i = 1; i < times; ++i) {
      if (try_lock()) return true;
      if (const uintptr_t seen = state_.load(std::memory_order_relaxed); seen != 0) os::wait_briefly(state_, seen);
    }
    return try_lock();
  }

 private:
  friend ForkableMutex;

  static constexpr LockRank rank() noexcept { return LockRank::Cache; }
  static constexpr uintptr_t after_sleep = 0;
  static void wake() noexcept {}
  void sleep(uintptr_t seen) noexcept {
    if ((seen & sleepers) != 0 || state_.compare_exchange_weak(seen, seen | sleepers, std::memory_order_relaxed))
      os::wait_briefly(state_, seen | sleepers);
  }
};

// Holds a mutex for a block of code.
template <typename AnyMutex>
class SLUICE_HOLDS_LOCK MutexLock {
 public:
  explicit MutexLock(AnyMutex& mutex) noexcept SLUICE_TAKES(mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() SLUICE_GIVES_BACK() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  AnyMutex& mutex_;
};

}  // namespace sluice
