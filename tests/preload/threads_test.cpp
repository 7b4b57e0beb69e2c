// Threads that come and go: destructors that allocate after the heap's own tear-down, memory of dead threads,
// small stacks, frees on other threads. Open it when a program dies, or grows, as its threads exit.
#include <gtest/gtest.h>
#include <malloc.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <string>
#include <thread>
#include <vector>

#include "subject.hpp"

namespace {

using namespace subject;

// Each round of a key's destructor frees what the thread holds and allocates again, as often as pthreads
// allows; the rounds after the first run when the heap has already let go of the thread.
pthread_key_t early_key, late_key;
std::atomic<long> destructor_rounds{0};
std::atomic<long> destructor_damage{0};

struct Held {
  int rounds;
  void* block;
};

void replace_block(pthread_key_t key, void* value) {
  auto* const held = static_cast<Held*>(value);
  ++destructor_rounds;
  if (!holds(held->block, 777, static_cast<uint64_t>(held->rounds))) ++destructor_damage;
  free(held->block);
  for (const size_t size : {10u, 300u, 5000u, 70000u, 2000000u})
    free(hide(malloc(size)));
  if (++held->rounds < PTHREAD_DESTRUCTOR_ITERATIONS) {
    held->block = malloc(777);
    fill(held->block, 777, static_cast<uint64_t>(held->rounds));
    pthread_setspecific(key, held);
  } else {
    free(held);
  }
}

void* hold_in_both_keys(void*) {
  for (const pthread_key_t key : {early_key, late_key}) {
    auto* const held = static_cast<Held*>(malloc(sizeof(Held)));
    held->rounds = 0;
    held->block = malloc(777);
    fill(held->block, 777, 0);
    pthread_setspecific(key, held);
  }
  return nullptr;
}

TEST(ThreadExit, KeyDestructorsMayAllocateAndFreeInEveryRound) {
  ASSERT_EQ(pthread_key_create(&early_key, [](void* value) { replace_block(early_key, value); }), 0);
  ASSERT_EQ(pthread_key_create(&late_key, [](void* value) { replace_block(late_key, value); }), 0);
  const long threads = scaled(500);
  for (long i = 0; i < threads; ++i) {
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, nullptr, hold_in_both_keys, nullptr), 0);
    ASSERT_EQ(pthread_join(thread, nullptr), 0);
  }
  EXPECT_EQ(destructor_rounds, 2 * threads * PTHREAD_DESTRUCTOR_ITERATIONS);
  EXPECT_EQ(destructor_damage, 0);
}

struct Leaving {
  std::vector<std::string> words;
  ~Leaving() {
    words.clear();
    for (int i = 0; i < 50; ++i)
      words.push_back(std::string(static_cast<size_t>(i) * 20, 'z'));
    void* const block = realloc(malloc(100), 10000);
    free(block);
  }
};
thread_local Leaving leaving;

TEST(ThreadExit, ThreadLocalDestructorsMayAllocateAndFree) {
  for (long i = 0; i < scaled(1000); ++i) {
    std::thread([] { leaving.words.assign(100, std::string(60, 'a')); }).join();
  }
}

TEST(ThreadExit, ThreadLocalDestructorsOfManyThreadsAtOnce) {
  for (long round = 0; round < scaled(20); ++round) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 32; ++i)
      threads.emplace_back([] { leaving.words.assign(100, std::string(60, 'a')); });
    for (std::thread& thread : threads)
      thread.join();
  }
}

void live_briefly(long count) {
  std::vector<void*> inherited;
  for (long i = 0; i < count; ++i) {
    void* handed_over[20] = {};
    std::thread([&handed_over, i] {
      void* own[60];
      for (size_t k = 0; k < 60; ++k)
        own[k] = malloc(16 + (k * 97 + static_cast<size_t>(i)) % 2000);
      for (size_t k = 0; k < 60; ++k)
        free(own[k]);
      for (void*& block : handed_over) {
        block = malloc(400);
        fill(block, 400, static_cast<uint64_t>(i));
      }
    }).join();
    for (void* const block : handed_over) {
      ASSERT_TRUE(holds(block, 400, static_cast<uint64_t>(i)));
      free(block);
    }
  }
}

TEST(ThreadExit, ShortThreadsLeaveNothingBehind) {
  live_briefly(2000);
  const size_t before = resident_bytes();
  live_briefly(scaled(20000));
  EXPECT_LT(resident_bytes(), before + 4 * MiB);
}

TEST(ThreadExit, SlabsOfDeadThreadsAreUsedAgain) {
  const auto leave_much_behind = [](std::vector<void*>& left) {
    std::thread([&left] {
      for (int i = 0; i < 40000; ++i) {
        left.push_back(malloc(200));
        memset(left.back(), i, 200);
      }
    }).join();
  };
  std::vector<void*> left;
  left.reserve(40000);
  leave_much_behind(left);
  const size_t before = resident_bytes();
  for (long round = 0; round < scaled(20); ++round) {
    for (void* const block : left)
      free(block);
    left.clear();
    leave_much_behind(left);
  }
  for (void* const block : left)
    free(block);
  EXPECT_LT(resident_bytes(), before + 16 * MiB) << "20 rounds of 8 MB each";
}

TEST(RemoteFree, AfterTheOwnerExited) {
  for (long round = 0; round < scaled(30); ++round) {
    std::vector<void*> blocks;
    std::thread([&blocks] {
      for (size_t i = 0; i < 3000; ++i) {
        blocks.push_back(malloc(i % 3000 + 1));
        fill(blocks.back(), i % 3000 + 1, i);
      }
    }).join();
    std::vector<std::thread> freeing;
    std::atomic<int> damaged{0};
    for (size_t part = 0; part < 4; ++part) {
      freeing.emplace_back([&blocks, &damaged, part] {
        for (size_t i = part; i < blocks.size(); i += 4) {
          if (!holds(blocks[i], i % 3000 + 1, i)) ++damaged;
          free(blocks[i]);
        }
      });
    }
    for (std::thread& thread : freeing)
      thread.join();
    ASSERT_EQ(damaged, 0);
  }
}

TEST(RemoteFree, WhileTheOwnerAllocates) {
  constexpr size_t slots = 4096;
  static std::atomic<void*> exchange[slots];
  std::atomic<int> damaged{0};
  std::vector<std::thread> threads;
  const long steps = scaled(200000);
  for (uint64_t id = 1; id <= 4; ++id) {
    threads.emplace_back([&damaged, id, steps] {
      Sequence random(id);
      for (long i = 0; i < steps; ++i) {
        const size_t size = 16 + random.below(1500);
        auto* const block = static_cast<size_t*>(random.below(16) == 0 ? memalign(128, size) : malloc(size));
        block[0] = size;
        fill(block + 1, size - sizeof(size_t), size);
        auto* const old = static_cast<size_t*>(exchange[random.below(slots)].exchange(block));
        if (old == nullptr) continue;
        if (!holds(old + 1, old[0] - sizeof(size_t), old[0])) ++damaged;
        free(old);
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  for (std::atomic<void*>& slot : exchange)
    free(slot.exchange(nullptr));
  EXPECT_EQ(damaged, 0);
}

// Touches every kind of block from a stack of 64 KiB.
void* work_on_a_small_stack(void* result) {
  bool good = true;
  for (const size_t size : {10u, 500u, 5000u, 60000u, 70000u, 3000000u}) {
    void* block = malloc(size);
    fill(block, size, size);
    block = realloc(block, size * 2);
    good = good && block != nullptr && holds(block, size, size);
    free(block);
    free(hide(calloc(3, size)));
    free(hide(memalign(4096, size)));
  }
  delete hide(new std::string(1000, 'x'));
  *static_cast<bool*>(result) = good;
  return nullptr;
}

// Of 128 KiB on aarch64, where none may be smaller.
TEST(SmallStack, Of64KiBIsEnough) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, std::max(64 * KiB, static_cast<size_t>(PTHREAD_STACK_MIN))), 0);
  for (int i = 0; i < 50; ++i) {
    bool good = false;
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, &attributes, work_on_a_small_stack, &good), 0);
    ASSERT_EQ(pthread_join(thread, nullptr), 0);
    EXPECT_TRUE(good);
  }
  pthread_attr_destroy(&attributes);
}

TEST(ManyThreads, AtOnceHoldLittle) {
  const size_t before = resident_bytes();
  constexpr int count = 500;
  std::atomic<int> ready{0};
  std::atomic<bool> leave{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&ready, &leave] {
      for (const size_t size : {20u, 60u, 100u, 200u})
        free(hide(malloc(size)));
      ++ready;
      ready.notify_one();
      leave.wait(false);
    });
  }
  for (int seen = ready; seen < count; seen = ready)
    ready.wait(seen);
  // A stack, a cache and a slab for each of four classes, and its states; rings and states of blocks are some 25 KiB in
  // a secure build.
  const size_t larger_pages = 12 * (static_cast<size_t>(sysconf(_SC_PAGESIZE)) - 4 * KiB);
  const size_t most = (is_secure_build() ? 64 : 48) * KiB + larger_pages;
  EXPECT_LT(resident_bytes(), before + count * most);
  leave = true;
  leave.notify_all();
  for (std::thread& thread : threads)
    thread.join();
}

}  // namespace
