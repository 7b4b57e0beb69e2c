// Mutex and OwnerMutex: one holder at a time, and nobody sleeps for ever.
#include "base/mutex.hpp"

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

TYPED_TEST(MutexTest, a_child_gives_a_lock_with_sleepers_back) {
  TypeParam mutex;
  mutex.lock();
  mutex.unlock_after_fork();
  EXPECT_TRUE(mutex.try_lock());
  mutex.unlock();
}

}  // namespace
