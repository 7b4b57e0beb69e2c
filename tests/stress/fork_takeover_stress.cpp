// fork() where a handler of another library, which runs while the heap is held for the fork, waits for threads that
// need the heap: they take it over, and the child finds whatever they were in the middle of. STRESS_PERCENT scales the
// number of forks.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <pthread.h>
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

enum ChildResult { Well = 0, WellAfterLoss = 1, Invalid = 10, BlockChanged = 11 };

// Whether this child of a fork has given up something that was half changed.
bool has_lost() {
  if (region::first_span() != region::first_index()) return true;
  for (size_t i = region::first_index(); i < region::limit(); i += region::unit_at(i)->units)
    if (cache::is_lost(region::unit_at(i)->owner.load(std::memory_order_relaxed))) return true;
  return false;
}

std::atomic<bool> waits_in_handler{false};
std::atomic<uint64_t> trips{0};  // to the region, by the other threads
std::atomic<int> hung{0};

// Until the others have gone to the region some more times, from 1 to 16. That is for ever if they wait for the fork.
void wait_for_others() {
  if (!waits_in_handler) return;
  const uint64_t wanted = trips + 1 + trips % 16;
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (trips < wanted && hung == 0)
    if (std::chrono::steady_clock::now() > deadline) ++hung;
}

// Handlers run in the reverse order of their registration: this one when the heap is locked, since the heap registers
// its own when it is used first.
const bool registered = pthread_atfork(wait_for_others, nullptr, nullptr) == 0;

bool ended_well(int status) {
  return WIFEXITED(status) && (WEXITSTATUS(status) == Well || WEXITSTATUS(status) == WellAfterLoss);
}

[[noreturn]] void end_invalid(const char* wrong) {
  (void)!write(STDERR_FILENO, wrong, std::char_traits<char>::length(wrong));
  _exit(Invalid);
}

// What a child does; it ends without running anything of the parent's.
[[noreturn]] void live_as_child(HeapProgram& inherited, uint64_t seed, bool forks) {
  if (const char* const wrong = heap::validate().what) end_invalid(wrong);
  const ChildResult well = has_lost() ? WellAfterLoss : Well;
  HeapProgram own(100, seed, 300'000);
  for (int i = 0; i < 1500; ++i)
    own.step();
  if (forks) {  // what was given up stays so in the next generation
    const pid_t child = fork();
    if (child == 0) live_as_child(inherited, seed + 1, false);
    int status = 0;
    if (waitpid(child, &status, 0) != child || !ended_well(status)) end_invalid("grandchild failed");
  }
  inherited.release_all();
  for (int i = 0; i < 200; ++i)
    own.step();
  own.release_all();
  if (!own.wrong().empty() || !inherited.wrong().empty()) _exit(BlockChanged);
  cache::flush_idle();
  if (const char* const wrong = heap::validate().what) end_invalid(wrong);
  _exit(well);
}

TEST(ForkTakeoverStress, children_live_on_whatever_the_threads_were_at_that_took_the_heap_over) {
  ASSERT_TRUE(registered);
  constexpr size_t threads = 3;
  std::atomic<bool> stop{false};
  std::vector<std::string> wrong(threads);
  std::vector<std::thread> running;
  for (size_t t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      HeapProgram program(400, t, t == 0 ? 400'000 : 30'000);
      while (!stop.load(std::memory_order_relaxed)) {
        program.step();
        test::calls::free(test::allocate(100'000));
        ++trips;
      }
      program.release_all();
      wrong[t] = program.wrong();
    });
  }
  HeapProgram own(200, 99, 100'000);
  int failed = 0, lost = 0;
  for (int i = 0; i < rounds(200) && failed == 0 && hung == 0; ++i) {
    for (int n = 0; n < 50; ++n)
      own.step();
    waits_in_handler = true;
    const pid_t child = fork();
    waits_in_handler = false;
    ASSERT_GE(child, 0);
    if (child == 0) live_as_child(own, static_cast<uint64_t>(i), i % 4 == 0);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_FALSE(WIFSIGNALED(status)) << "child " << i << " died of signal " << WTERMSIG(status);
    EXPECT_TRUE(ended_well(status)) << "child " << i << " ended with " << WEXITSTATUS(status);
    failed += ended_well(status) ? 0 : 1;
    lost += WEXITSTATUS(status) == WellAfterLoss ? 1 : 0;
  }
  RecordProperty("children_that_lost_something", lost);  // by chance: tests/unit/fork_fault_test.cpp makes it happen
  EXPECT_EQ(hung, 0) << "threads waited for the heap as long as a fork held it";
  stop = true;
  for (std::thread& thread : running)
    thread.join();
  for (const std::string& text : wrong)
    EXPECT_EQ(text, "");
  own.release_all();
  EXPECT_EQ(own.wrong(), "");
  EXPECT_EQ(heap::validate().what, nullptr);
}

}  // namespace
