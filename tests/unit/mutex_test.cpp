// Mutex and OwnerMutex: one holder at a time, and nobody sleeps for ever.
#include "base/mutex.hpp"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace {

template <typename>
class MutexTest : public testing::Test {};

class AnyMutex : public sluice::Mutex {
 public:
  AnyMutex() noexcept : Mutex(sluice::LockRank::Region) {}
};

using Mutexes = testing::Types<AnyMutex, sluice::OwnerMutex>;
TYPED_TEST_SUITE(MutexTest, Mutexes, );

std::atomic<uintptr_t> sleeping_place{0};  // for os::wait_briefly, which nobody wakes

TYPED_TEST(MutexTest, holders_exclude_each_other) {
  constexpr int threads = 4;
  constexpr int rounds = 20'000;
  TypeParam mutex;
  long count = 0;  // plain: increments get lost when two threads are inside
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&] {
      for (int i = 0; i < rounds; ++i) {
        const sluice::MutexLock held(mutex);
        count = count + 1;
      }
    });
  }
  for (std::thread& thread : running)
    thread.join();
  EXPECT_EQ(count, long{threads} * rounds);
}

TYPED_TEST(MutexTest, try_lock_fails_while_it_is_held_and_succeeds_after) {
  TypeParam mutex;
  ASSERT_TRUE(mutex.try_lock());
  std::thread([&] { EXPECT_FALSE(mutex.try_lock()); }).join();
  mutex.unlock();
  std::thread([&] {
    EXPECT_TRUE(mutex.try_lock());
    mutex.unlock();
  }).join();
}

TYPED_TEST(MutexTest, a_failed_try_lock_leaves_the_lock_with_its_holder) {
  TypeParam mutex;
  mutex.lock();
  EXPECT_FALSE(mutex.try_lock());
  EXPECT_FALSE(mutex.try_lock());
  mutex.unlock();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

// Every waiter gets the lock though it is asleep when the holder lets go.
TYPED_TEST(MutexTest, those_who_wait_get_the_lock_in_the_end) {
  constexpr int threads = 8;
  TypeParam mutex;
  int inside = 0;
  mutex.lock();
  std::atomic<int> arrived{0};
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&] {
      arrived.fetch_add(1);
      const sluice::MutexLock held(mutex);
      ++inside;
      std::this_thread::yield();
    });
  }
  while (arrived.load() != threads)
    std::this_thread::yield();
  for (int i = 0; i < 1000; ++i)
    std::this_thread::yield();
  EXPECT_EQ(inside, 0);
  mutex.unlock();
  for (std::thread& thread : running)
    thread.join();
  EXPECT_EQ(inside, threads);
}

TYPED_TEST(MutexTest, a_lock_knows_whether_the_calling_thread_holds_it) {
  TypeParam mutex;
  EXPECT_FALSE(mutex.held_by_this_thread());
  mutex.lock();
  EXPECT_TRUE(mutex.held_by_this_thread());
  std::thread([&] { EXPECT_FALSE(mutex.held_by_this_thread()); }).join();
  mutex.unlock();
  EXPECT_FALSE(mutex.held_by_this_thread());
}

// The holder stays known while others wait for it.
TYPED_TEST(MutexTest, a_lock_that_others_wait_for_still_knows_its_holder) {
  TypeParam mutex;
  mutex.lock();
  std::atomic<bool> arrived{false};
  std::thread other([&] {
    arrived = true;
    const sluice::MutexLock held(mutex);
  });
  while (!arrived)
    std::this_thread::yield();
  for (int i = 0; i < 1000; ++i) {
    EXPECT_TRUE(mutex.held_by_this_thread());
    std::this_thread::yield();
  }
  mutex.unlock();
  other.join();
}

TEST(OwnerMutexTest, a_holder_sees_that_somebody_waits_and_lets_them_in) {
  sluice::OwnerMutex mutex;
  mutex.lock();
  EXPECT_FALSE(mutex.is_wanted());
  std::atomic<bool> is_in{false};
  std::thread other([&] {
    const sluice::MutexLock held(mutex);
    is_in = true;
  });
  while (!mutex.is_wanted())
    std::this_thread::yield();
  EXPECT_FALSE(is_in);
  mutex.unlock();
  mutex.let_in();
  other.join();
  mutex.lock();
  EXPECT_FALSE(mutex.is_wanted()) << "nobody waits any more";
  mutex.unlock();
}

TEST(OwnerMutexTest, who_is_patient_gets_a_lock_that_is_given_back_meanwhile_and_gives_up_otherwise) {
  sluice::OwnerMutex mutex;
  mutex.lock();
  std::atomic<bool> has_given_up{false};
  std::thread other([&] {
    EXPECT_FALSE(mutex.try_lock_patiently(3));
    has_given_up = true;
    while (!mutex.try_lock_patiently(3)) {
    }
    mutex.unlock();
  });
  while (!has_given_up)
    std::this_thread::yield();
  mutex.unlock();
  other.join();
}

TYPED_TEST(MutexTest, a_fork_takes_a_free_lock_and_gives_it_back) {
  TypeParam mutex;
  mutex.lock_for_fork();
  std::thread([&] { EXPECT_FALSE(mutex.try_lock()); }).join();
  mutex.unlock_after_fork();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

TYPED_TEST(MutexTest, a_fork_inside_of_the_lock_leaves_it_with_its_holder) {
  TypeParam mutex;
  mutex.lock();
  mutex.lock_for_fork();
  mutex.unlock_after_fork();
  EXPECT_TRUE(mutex.held_by_this_thread());
  mutex.unlock();
  mutex.lock_for_fork();
  mutex.unlock_after_fork();
  EXPECT_FALSE(mutex.held_by_this_thread());
}

// The fork is somewhere in libc, which may wait for this very thread.
TYPED_TEST(MutexTest, who_waits_long_for_a_fork_takes_the_lock_over) {
  TypeParam mutex;
  mutex.lock_for_fork();
  std::thread([&] {
    mutex.lock();
    EXPECT_TRUE(mutex.held_by_this_thread());
    mutex.unlock();
  }).join();
  mutex.unlock_after_fork();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

TYPED_TEST(MutexTest, a_fork_leaves_a_lock_alone_that_was_taken_over) {
  TypeParam mutex;
  mutex.lock_for_fork();
  std::atomic<bool> taken{false}, forked{false};
  std::thread other([&] {
    mutex.lock();
    taken = true;
    while (!forked)
      std::this_thread::yield();
    EXPECT_TRUE(mutex.held_by_this_thread());
    mutex.unlock();
  });
  while (!taken)
    std::this_thread::yield();
  mutex.unlock_after_fork();
  EXPECT_FALSE(mutex.try_lock());
  forked = true;
  other.join();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

// Handlers of other libraries allocate on the thread that forks, and may take longer than anybody waits.
TYPED_TEST(MutexTest, the_thread_that_forks_keeps_the_lock_while_it_is_at_work_itself) {
  TypeParam mutex;
  mutex.lock_for_fork();
  ASSERT_TRUE(mutex.try_lock());
  EXPECT_TRUE(mutex.held_by_this_thread());
  std::atomic<bool> taken{false};
  std::thread other([&] {
    mutex.lock();
    taken = true;
    mutex.unlock();
  });
  for (uint32_t i = 0; i < 3 * sluice::least_fork_patience; ++i) {
    sluice::os::wait_briefly(sleeping_place, 0);
    ASSERT_FALSE(taken);
  }
  mutex.unlock();
  while (!taken)  // the fork goes on, and so does the other
    std::this_thread::yield();
  other.join();
  mutex.unlock_after_fork();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

TYPED_TEST(MutexTest, a_look_is_not_disturbed_however_long_it_takes) {
  TypeParam mutex;
  mutex.lock_to_look();
  std::atomic<bool> taken{false};
  std::thread other([&] {
    mutex.lock();
    taken = true;
    mutex.unlock();
  });
  for (uint32_t i = 0; i < 3 * sluice::least_fork_patience; ++i) {
    sluice::os::wait_briefly(sleeping_place, 0);
    EXPECT_FALSE(taken);
  }
  mutex.unlock_after_look();
  other.join();
  EXPECT_TRUE(taken);
}

TYPED_TEST(MutexTest, a_child_finds_what_was_held_for_a_fork_whole) {
  TypeParam mutex;
  mutex.lock_for_fork();
  EXPECT_EQ(mutex.unlock_in_child(), sluice::AfterFork::Whole);
  EXPECT_EQ(mutex.unlock_in_child(), sluice::AfterFork::Whole) << "free";
  std::thread([&] { mutex.lock_for_fork(); }).join();  // two threads fork at once
  EXPECT_EQ(mutex.unlock_in_child(), sluice::AfterFork::Whole);
  std::thread([&] { mutex.lock_to_look(); }).join();
  EXPECT_EQ(mutex.unlock_in_child(), sluice::AfterFork::Whole);
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

TYPED_TEST(MutexTest, a_child_finds_out_that_a_thread_that_is_no_more_was_changing_something) {
  TypeParam mutex;
  std::thread([&] { mutex.lock(); }).join();
  EXPECT_EQ(mutex.unlock_in_child(), sluice::AfterFork::Broken);
  EXPECT_TRUE(mutex.try_lock()) << "it is free then";
  EXPECT_EQ(mutex.unlock_in_child(), sluice::AfterFork::Mine);
  EXPECT_TRUE(mutex.held_by_this_thread());
  mutex.unlock();
}

}  // namespace
