// Signals that arrive while a program is inside malloc and free, and handlers that allocate. Open it when a
// program with a timer or a profiler hangs or loses data.
//
// A handler that calls malloc while it interrupts malloc itself is undefined by POSIX and not tested.
#include <gtest/gtest.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

#include <atomic>
#include <thread>
#include <vector>

#include "subject.hpp"

namespace {

using namespace subject;

std::atomic<long> handled{0};
volatile size_t scribble[64];

void install(int signal_number, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(signal_number, &action, nullptr);
}

// Sends the signal to the thread until it has been handled `count` times.
std::thread bombard(pthread_t target, int signal_number, long count, std::atomic<bool>& done) {
  return std::thread([target, signal_number, count, &done] {
    while (handled < count) {
      const long before = handled;
      pthread_kill(target, signal_number);
      while (handled == before)
        sched_yield();
    }
    done = true;
  });
}

// Allocates, grows and frees blocks of known payload. Returns: whether each still held its own.
bool work(Sequence& random) {
  static void* blocks[200];
  static size_t sizes[200];
  bool good = true;
  for (int i = 0; i < 200; ++i) {
    const size_t slot = random.below(200);
    if (blocks[slot] != nullptr) good = good && holds(blocks[slot], sizes[slot], slot);
    sizes[slot] = random.below(random.below(50) == 0 ? 300000 : 1500) + 1;
    if (random.below(3) == 0) {
      blocks[slot] = realloc(blocks[slot], sizes[slot]);
    } else {
      free(blocks[slot]);
      blocks[slot] = malloc(sizes[slot]);
    }
    fill(blocks[slot], sizes[slot], slot);
  }
  return good;
}

TEST(Signal, InsideMallocWithAHandlerThatDoesNotAllocate) {
  handled = 0;
  install(SIGUSR1, [](int) {
    for (volatile size_t& word : scribble)
      word = word + 1;
    ++handled;
  });
  std::atomic<bool> done{false};
  std::thread sender = bombard(pthread_self(), SIGUSR1, scaled(5000), done);
  Sequence random(3);
  while (!done)
    ASSERT_TRUE(work(random));
  sender.join();
}

TEST(Signal, TimerInsideMalloc) {
  handled = 0;
  install(SIGALRM, [](int) { ++handled; });
  itimerval every_millisecond = {{0, 1000}, {0, 1000}};
  ASSERT_EQ(setitimer(ITIMER_REAL, &every_millisecond, nullptr), 0);
  Sequence random(4);
  while (handled < 100)
    ASSERT_TRUE(work(random));
  every_millisecond = {};
  setitimer(ITIMER_REAL, &every_millisecond, nullptr);
}

TEST(Signal, OutsideMallocWithAHandlerThatAllocates) {
  handled = 0;
  install(SIGUSR1, [](int) {
    void* blocks[30];
    for (size_t i = 0; i < 30; ++i)
      blocks[i] = calloc(1, i * i * 20);
    for (void* const block : blocks)
      free(block);
    ++handled;
  });
  std::atomic<bool> done{false};
  Sequence random(5);
  ASSERT_TRUE(work(random));
  std::thread sender = bombard(pthread_self(), SIGUSR1, scaled(2000), done);
  uint64_t sum = 0;
  while (!done)
    sum = hide(sum * 31 + 7);
  sender.join();
  ASSERT_TRUE(work(random));
}

TEST(Signal, OnAThreadThatNeverAllocated) {
  handled = 0;
  install(SIGUSR1, [](int) {
    free(hide(malloc(1000)));
    ++handled;
  });
  for (long i = 0; i < 50; ++i) {
    pthread_t thread;
    static std::atomic<long> until{0};
    until = i + 1;
    const auto body = [](void*) -> void* {
      while (handled < until)
        sched_yield();
      return nullptr;
    };
    ASSERT_EQ(pthread_create(&thread, nullptr, body, nullptr), 0);
    pthread_kill(thread, SIGUSR1);
    pthread_join(thread, nullptr);
  }
}

TEST(Signal, OnAnAlternateStack) {
  handled = 0;
  stack_t stack = {};
  stack.ss_size = 64 * KiB;
  stack.ss_sp = malloc(stack.ss_size);
  ASSERT_EQ(sigaltstack(&stack, nullptr), 0);
  struct sigaction action = {};
  action.sa_handler = [](int) {
    free(hide(memalign(4096, 100000)));
    free(hide(malloc(100)));
    ++handled;
  };
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR2, &action, nullptr);
  for (int i = 0; i < 100; ++i)
    raise(SIGUSR2);
  EXPECT_EQ(handled, 100);
  stack.ss_flags = SS_DISABLE;
  sigaltstack(&stack, nullptr);
  free(stack.ss_sp);
}

}  // namespace
