// The order of the heap's locks: which one a thread that holds others may wait for, and that checked builds find out.
#include "base/lock_order.hpp"

#include <csignal>

#include <gtest/gtest.h>

#include "base/mutex.hpp"

namespace {

using namespace sluice;

constexpr LockRank in_order[] = {LockRank::Registry, LockRank::Cache, LockRank::Guarded, LockRank::Region,
                                 LockRank::Reports};

TEST(LockOrder, a_thread_without_locks_may_wait_for_any) {
  for (const LockRank rank : in_order)
    EXPECT_TRUE(HeldLocks().may_wait_for(rank));
}

TEST(LockOrder, a_thread_may_wait_for_locks_of_higher_rank_alone) {
  for (const LockRank rank : in_order) {
    HeldLocks held;
    held.add(rank);
    for (const LockRank other : in_order)
      EXPECT_EQ(held.may_wait_for(other), other > rank);
  }
}

TEST(LockOrder, a_lock_below_binds_though_one_of_lower_rank_was_taken_after_it) {
  HeldLocks held;
  held.add(LockRank::Region);
  held.add(LockRank::Registry);  // by try_lock
  EXPECT_FALSE(held.may_wait_for(LockRank::Cache));
  held.remove(LockRank::Region);
  EXPECT_TRUE(held.may_wait_for(LockRank::Cache));
}

TEST(LockOrder, several_caches_are_for_the_holder_of_the_registry) {
  HeldLocks held;
  held.add(LockRank::Cache);
  EXPECT_FALSE(held.may_wait_for(LockRank::Cache));
  held.add(LockRank::Registry);
  EXPECT_TRUE(held.may_wait_for(LockRank::Cache));
  EXPECT_FALSE(held.may_wait_for(LockRank::Registry)) << "held already";
}

TEST(LockOrder, what_was_given_back_binds_no_more) {
  HeldLocks held;
  held.add(LockRank::Cache);
  held.add(LockRank::Cache);
  held.remove(LockRank::Cache);
  EXPECT_FALSE(held.may_wait_for(LockRank::Registry));
  held.remove(LockRank::Cache);
  EXPECT_TRUE(held.may_wait_for(LockRank::Registry));
}

// What the mutexes tell of themselves, in builds that check it.
class CheckedLocks : public testing::Test {
 protected:
  void SetUp() override {
    if (!checked) GTEST_SKIP() << "a build without assertions";
    testing::FLAGS_gtest_death_test_style = "threadsafe";
  }
  Mutex registry{LockRank::Registry};
  OwnerMutex cache, other_cache;
  Mutex region{LockRank::Region};
};
using CheckedLocksDeathTest = CheckedLocks;

constexpr const char* message = "sluice: locks are taken out of order";

TEST_F(CheckedLocksDeathTest, the_order_of_the_heap_passes) {
  EXPECT_EXIT(
      {
        for (int round = 0; round < 2; ++round) {
          const MutexLock first(registry);
          const MutexLock second(cache);
          const MutexLock third(other_cache);
          const MutexLock fourth(region);
        }
        std::_Exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(CheckedLocksDeathTest, a_lock_of_lower_rank_stops_the_process) {
  EXPECT_EXIT(
      {
        const MutexLock first(region);
        const MutexLock second(registry);
      },
      testing::KilledBySignal(SIGABRT), message);
}

TEST_F(CheckedLocksDeathTest, a_second_cache_stops_the_process) {
  EXPECT_EXIT(
      {
        const MutexLock first(cache);
        const MutexLock second(other_cache);
      },
      testing::KilledBySignal(SIGABRT), message);
}

TEST_F(CheckedLocksDeathTest, a_lock_that_the_thread_holds_already_stops_the_process) {
  EXPECT_EXIT(
      {
        region.lock();
        region.lock();
      },
      testing::KilledBySignal(SIGABRT), message);
}

TEST_F(CheckedLocksDeathTest, what_is_tried_may_be_out_of_order_and_binds_as_any_other) {
  EXPECT_EXIT(
      {
        const MutexLock first(cache);
        if (!registry.try_lock() || !other_cache.try_lock()) std::_Exit(1);
        other_cache.unlock();
        registry.unlock();
        if (!region.try_lock()) std::_Exit(1);
        registry.lock();
      },
      testing::KilledBySignal(SIGABRT), message);
}

TEST_F(CheckedLocksDeathTest, a_lock_that_was_tried_in_vain_does_not_bind) {
  EXPECT_EXIT(
      {
        region.lock_for_fork();
        region.unlock_after_fork();
        region.close();
        if (region.try_lock()) std::_Exit(1);
        const MutexLock first(registry);
        std::_Exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(CheckedLocksDeathTest, locks_that_are_held_for_a_fork_do_not_bind_their_thread) {
  EXPECT_EXIT(
      {
        registry.lock_for_fork();
        cache.lock_for_fork();
        region.lock_for_fork();
        for (int round = 0; round < 2; ++round) {
          const MutexLock first(cache);  // a handler of another library allocates
          const MutexLock second(region);
        }
        const MutexLock last(registry);
        std::_Exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(CheckedLocksDeathTest, what_passes_a_fork_is_bound_by_the_order) {
  EXPECT_EXIT(
      {
        region.lock_for_fork();
        const MutexLock passed(region);
        const MutexLock wrong(registry);
      },
      testing::KilledBySignal(SIGABRT), message);
}

}  // namespace
