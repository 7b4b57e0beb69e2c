// Signal handlers that free objects of scopes while the thread is in the middle of the heap: nothing waits for a lock
// that the interrupted call holds. A handler should not allocate or free; if it does, the process must not hang.
#include <sys/time.h>

#include <csignal>
#include <vector>

#include <gtest/gtest.h>

#include "sluice/sluice.h"
#include "subject.hpp"

namespace {

constexpr size_t objects = 200'000;
constexpr size_t object_size = 100;
constexpr size_t freed_by_one_signal = 100;

void* placed[objects];
volatile size_t next_to_free = 0;

void free_some(int) {
  for (size_t i = 0; i < freed_by_one_signal && next_to_free < objects; ++i) {
    const size_t k = next_to_free;
    next_to_free = k + 1;
    free(placed[k]);
  }
}

void set_timer(suseconds_t microseconds) {
  const itimerval timer = {{0, microseconds}, {0, microseconds}};
  ASSERT_EQ(setitimer(ITIMER_REAL, &timer, nullptr), 0);
}

TEST(ScopeSignal, handlers_that_free_objects_do_not_wait_for_what_they_interrupt) {
  sluice_scope scope;
  ASSERT_EQ(sluice_scope_enter(&scope, SLUICE_ROUTE), 0);
  for (size_t k = 0; k < objects; ++k) {
    placed[k] = malloc(object_size);
    ASSERT_NE(placed[k], nullptr);
    subject::fill(placed[k], object_size, k);
  }
  sluice_scope_leave(&scope);
  struct sigaction action {};
  action.sa_handler = free_some;
  ASSERT_EQ(sigaction(SIGALRM, &action, nullptr), 0);
  set_timer(100);
  std::vector<void*> blocks(20'000);
  // Blocks of the pools, enough of them to be in a refill or a flush most of the time.
  while (next_to_free < objects) {
    for (void*& block : blocks)
      block = malloc(1000);
    for (void* const block : blocks)
      free(block);
  }
  set_timer(0);
  signal(SIGALRM, SIG_DFL);
  // The arena is whole: new objects keep what is written to them.
  ASSERT_EQ(sluice_scope_enter(&scope, SLUICE_ROUTE), 0);
  for (size_t k = 0; k < objects; ++k) {
    placed[k] = malloc(object_size);
    subject::fill(placed[k], object_size, k);
  }
  sluice_scope_leave(&scope);
  for (size_t k = 0; k < objects; ++k) {
    ASSERT_TRUE(subject::holds(placed[k], object_size, k)) << k;
    free(placed[k]);
  }
}

}  // namespace
