// Everything that begins and ends, at once: threads that end inside scopes and with frames open, processes that fork
// meanwhile and go on in scopes, and others that give memory back. STRESS_PERCENT scales the number of forks.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "arena_program.hpp"
#include "frame_chunks.hpp"
#include "queue.hpp"
#include "stress_rounds.hpp"
#include "validate_among_others.hpp"

namespace {

using namespace sluice;
using test::ArenaProgram;
using test::Block;
using test::Queue;
using test::rounds;

// Ends inside a scope and with a frame that is never rewound; leaves every third block to others.
void live_briefly(uint64_t seed, Queue& left, std::atomic<int>& damaged) {
  sluice_scope never_left;
  {
    ArenaProgram program(60, seed);
    program.enter(SLUICE_ROUTE);
    Block block;
    for (int n = 0; n < 15 && left.pop(block); ++n)
      program.discard(block);
    for (int i = 0; i < 120; ++i)
      program.step();
    for (size_t slot = 0; slot < program.slots(); slot += 3)
      program.discard(left.push(program.take(slot)));
    program.leave_all();
    program.release_all();
    if (!program.wrong().empty()) ++damaged;
  }
  (void)arena::enter(&never_left, SLUICE_ROUTE);
  for (size_t size = 100; size < 100'000; size *= 4)
    if (sluice_frame_alloc(size, 16) == nullptr) ++damaged;
  test::scoped_free(test::filled(500, 1));
}

// A thread that starts short threads, and one that takes back what they leave, until told to stop.
class Comings {
 public:
  explicit Comings(uint64_t seed) {
    threads_.emplace_back([this, seed] {
      for (uint64_t round = 0; !stop_; ++round) {
        std::vector<std::thread> short_ones;
        for (uint64_t n = 0; n < 3; ++n)
          short_ones.emplace_back([this, seed, round, n] { live_briefly(seed + 3 * round + n, left, damaged_); });
        for (std::thread& thread : short_ones)
          thread.join();
        ++ended_rounds;
      }
    });
    threads_.emplace_back([this] {
      for (unsigned round = 0; !stop_; ++round) {
        cache::flush_idle();
        if (round % 16 == 0) (void)heap::trim(0);
        if (round % 64 == 0 && test::validate_among_others() != nullptr) ++damaged_;
      }
    });
  }
  int end() {
    stop_ = true;
    for (std::thread& thread : threads_)
      thread.join();
    discard_all(left);
    return damaged_;
  }

  Queue left;
  std::atomic<int> ended_rounds{0};

 private:
  std::atomic<bool> stop_{false};
  std::atomic<int> damaged_{0};
  std::vector<std::thread> threads_;
};

enum ChildResult { Well = 0, Invalid = 10, BlockChanged = 11 };

// In the scopes and frames that were open when it was forked.
[[noreturn]] void live_as_child(ArenaProgram& inherited, unsigned char* framed, uint64_t seed) {
  if (heap::validate().what != nullptr) _exit(Invalid);
  {
    ArenaProgram own(100, seed);
    own.enter(SLUICE_ROUTE);
    for (int i = 0; i < 400; ++i)
      own.step();
    for (int i = 0; i < 200; ++i)
      inherited.step();
    const sluice_mark mark = sluice_frame_mark();
    for (int i = 0; i < 20; ++i)
      (void)sluice_frame_alloc(10'000, 64);
    sluice_frame_rewind(mark);
    inherited.leave_all();
    inherited.release_all();
    if (!own.wrong().empty() || !inherited.wrong().empty()) _exit(BlockChanged);
  }
  if (!test::all_bytes(framed, 3000, 0x3c)) _exit(BlockChanged);
  cache::flush_idle();
  _exit(heap::validate().what == nullptr ? Well : Invalid);
}

TEST(LifetimesStress, a_fork_in_scopes_and_frames_while_threads_end_in_theirs_leaves_both_heaps_whole) {
  test::scoped_free(test::scoped_allocate(1));  // the heap starts before the threads do
  Comings comings(1000);
  ArenaProgram own(200, 7);
  const sluice_mark mark = sluice_frame_mark();
  auto* const framed = static_cast<unsigned char*>(sluice_frame_alloc(3000, 16));
  ASSERT_NE(framed, nullptr);
  std::memset(framed, 0x3c, 3000);
  int failed = 0;
  for (int i = 0; i < rounds(200) && failed == 0; ++i) {
    if (own.open_scopes() == 0) own.enter(SLUICE_ROUTE);
    for (int n = 0; n < 60; ++n)
      own.step();
    Block block;  // objects of threads that have ended, for the child to free
    for (int n = 0; n < 10 && comings.left.pop(block); ++n)
      own.give(own.random().below(own.slots()), block);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) live_as_child(own, framed, static_cast<uint64_t>(i));
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, Well) << "wait status of child " << i;
    if (status != Well) ++failed;
  }
  EXPECT_EQ(comings.end(), 0);
  EXPECT_TRUE(test::all_bytes(framed, 3000, 0x3c));
  sluice_frame_rewind(mark);
  own.leave_all();
  own.release_all();
  EXPECT_EQ(own.wrong(), "");
  test::expect_valid();
}

TEST(LifetimesStress, frames_and_chunks_of_ended_threads_are_all_given_back) {
  test::scoped_free(test::scoped_allocate(1));
  const size_t frames_before = test::units_in_use(UnitState::Frame);
  {
    Comings comings(5000);
    for (uint64_t seed = 0; comings.ended_rounds < rounds(300); ++seed) {
      ArenaProgram program(100, seed);
      program.enter(SLUICE_ROUTE);
      Block block;
      for (int n = 0; n < 40 && comings.left.pop(block); ++n)
        program.discard(block);
      for (int n = 0; n < 200; ++n)
        program.step();
      program.release_all();
      ASSERT_EQ(program.wrong(), "");
    }
    EXPECT_EQ(comings.end(), 0);
  }
  test::settle();
  cache::flush_idle();
  test::expect_valid();
  test::on_another_thread([] { cache::flush_idle(); });
  EXPECT_EQ(test::units_in_use(UnitState::Frame), frames_before);
  EXPECT_LE(test::chunks_in_use(), 2u) << "the window of this thread, and one that is kept";
}

}  // namespace
