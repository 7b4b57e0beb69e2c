// The order of the heap's locks, and its check in builds with assertions. Open it to add a lock, or when a checked
// build stops with "locks are taken out of order".
//
//   registry → caches → guarded blocks → profile → region → reports
//
// Who holds a lock waits only for locks further to the right. Several caches' locks are held only by who holds the
// registry's, so that no two threads wait for each other's. try_lock waits for nothing: it may be used in any order,
// and who has taken a lock so is bound by it as by any other.
//
// Locks that are held for a fork or a look are not bound by the order. They are taken all at once, in this order.
// Another thread may take over one that is held for a fork; the thread that forks or looks may lock all of them again
// meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/policy.hpp"

namespace sluice {

enum class LockRank : uint8_t { Registry, Cache, Guarded, Profile, Region, Reports };
inline constexpr size_t lock_ranks = 6;

// The rank of a lock, stored only in builds that ask for it.
template <bool stored>
class StoredRank {
 public:
  constexpr explicit StoredRank(LockRank rank) noexcept : rank_(rank) {}
  LockRank get() const noexcept { return rank_; }

 private:
  LockRank rank_;
};
template <>
class StoredRank<false> {
 public:
  constexpr explicit StoredRank(LockRank) noexcept {}
  static LockRank get() noexcept { return LockRank::Registry; }
};

// The locks that a thread holds in the middle of a change, by rank.
class HeldLocks {
 public:
  constexpr HeldLocks() noexcept = default;

  void add(LockRank rank) noexcept { ++counts_[static_cast<size_t>(rank)]; }
  void remove(LockRank rank) noexcept { --counts_[static_cast<size_t>(rank)]; }

  // Whether the thread may wait for a lock of this rank.
  bool may_wait_for(LockRank rank) const noexcept {
    const auto first = static_cast<size_t>(rank);
    for (size_t i = first + 1; i < lock_ranks; ++i)
      if (counts_[i] != 0) return false;
    return counts_[first] == 0 || (rank == LockRank::Cache && counts_[static_cast<size_t>(LockRank::Registry)] != 0);
  }

 private:
  uint8_t counts_[lock_ranks]{};
};

namespace lock_order {

// Notes of who holds what, in checked builds; nothing in others. A signal handler may come between a lock and its note:
// a note is made after the lock is taken and removed before it is given back, so that a lock may be missed but none is
// invented.
#if defined(SLUICE_CHECKED)
void taken(LockRank rank) noexcept;
void given_back(LockRank rank) noexcept;
void require(LockRank rank, const void* lock) noexcept;      // stops the process where the thread must not wait for it
[[noreturn]] void fail_not_held(const void* lock) noexcept;  // stops the process
#else
inline void taken(LockRank) noexcept {}
inline void given_back(LockRank) noexcept {}
inline void require(LockRank, const void*) noexcept {}
inline void fail_not_held(const void*) noexcept {}
#endif

}  // namespace lock_order
}  // namespace sluice
