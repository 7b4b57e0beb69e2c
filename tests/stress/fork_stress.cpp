// fork() while other threads allocate and free: every child finds a heap that is whole, gets and frees blocks of its
// own, frees those that it inherited, and validates. STRESS_PERCENT scales the number of forks.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heap/heap.hpp"
#include "heap_calls.hpp"
#include "heap_program.hpp"
#include "stress_rounds.hpp"

namespace {

using namespace sluice;
using test::HeapProgram;
using test::rounds;

enum ChildResult { Well = 0, Invalid = 10, BlockChanged = 11 };

// What a child does; it ends without running anything of the parent's.
[[noreturn]] void live_as_child(HeapProgram& inherited, uint64_t seed) {
  if (heap::validate().what != nullptr) _exit(Invalid);
  {
    HeapProgram own(100, seed, 300'000);
    // More than the caches of the threads that stayed behind hold: they are taken over, with all that is in them.
    for (int i = 0; i < 1500; ++i)
      own.step();
    inherited.release_all();
    for (int i = 0; i < 200; ++i)
      own.step();
    own.release_all();
    if (!own.wrong().empty() || !inherited.wrong().empty()) _exit(BlockChanged);
  }
  cache::flush_idle();
  _exit(heap::validate().what == nullptr ? Well : Invalid);
}

TEST(ForkStress, children_of_a_busy_program_have_a_whole_heap) {
  constexpr size_t threads = 3;
  std::atomic<bool> stop{false};
  std::vector<std::string> wrong(threads);
  std::vector<std::thread> running;
  for (size_t t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      // Small blocks, so that the thread is inside the heap most of the time.
      HeapProgram program(400, t, 2000);
      while (!stop.load(std::memory_order_relaxed))
        program.step();
      program.release_all();
      wrong[t] = program.wrong();
    });
  }
  HeapProgram own(200, 99, 100'000);
  int failed = 0;
  for (int i = 0; i < rounds(300) && failed == 0; ++i) {
    for (int n = 0; n < 50; ++n)
      own.step();
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) live_as_child(own, static_cast<uint64_t>(i));
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_FALSE(WIFSIGNALED(status)) << "child " << i << " died of signal " << WTERMSIG(status);
    EXPECT_EQ(WEXITSTATUS(status), Well) << "child " << i;
    if (status != 0) ++failed;
  }
  stop = true;
  for (std::thread& thread : running)
    thread.join();
  for (const std::string& text : wrong)
    EXPECT_EQ(text, "");
  own.release_all();
  EXPECT_EQ(own.wrong(), "");
  EXPECT_EQ(heap::validate().what, nullptr);
}

// A child that forks again, as shells and daemons do.
TEST(ForkStress, grandchildren_have_a_whole_heap_too) {
  HeapProgram own(100, 5, 100'000);
  for (int n = 0; n < 500; ++n)
    own.step();
  std::atomic<bool> stop{false};
  std::thread other([&] {
    HeapProgram program(100, 6, 2000);
    while (!stop.load(std::memory_order_relaxed))
      program.step();
  });
  for (int i = 0; i < rounds(30); ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int n = 0; n < 100; ++n)
        own.step();
      const pid_t grandchild = fork();
      if (grandchild == 0) live_as_child(own, static_cast<uint64_t>(i));
      int status = 0;
      if (grandchild < 0 || waitpid(grandchild, &status, 0) != grandchild || status != 0) _exit(Invalid);
      live_as_child(own, static_cast<uint64_t>(i) + 1000);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << "child " << i;
  }
  stop = true;
  other.join();
}

}  // namespace
