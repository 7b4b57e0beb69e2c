// Mutex and OwnerMutex: one holder at a time, and nobody sleeps for ever.
#include "base/mutex.hpp"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace {

template <typename AnyMutex>
class MutexTest : public testing::Test {};

using Mutexes = testing::Types<sluice::Mutex, sluice::OwnerMutex>;
TYPED_TEST_SUITE(MutexTest, Mutexes, );

TYPED_TEST(MutexTest, holders_exclude_each_other) {
  constexpr int threads = 4;
  constexpr int rounds = 20'000;
  TypeParam mutex;
  long count = 0;  // plain: increments get lost when two threads are inside
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&] {
      for (int i = 0; i < rounds; ++i) {
        const sluice::MutexGuard guard(mutex);
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
      const sluice::MutexGuard guard(mutex);
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
    const sluice::MutexGuard guard(mutex);
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

}  // namespace
