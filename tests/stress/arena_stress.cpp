// Randomized runs of many threads with scopes and frames: every block is filled and checked, many are freed or resized
// by other threads, threads come and go, processes fork, and the heap's invariants hold. STRESS_PERCENT scales the
// number of rounds.
#include <atomic>
#include <memory>
#include <mutex>
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
using test::discard_all;
using test::Queue;
using test::Random;
using test::rounds;

class ArenaStress : public testing::Test {
 protected:
  void SetUp() override { test::scoped_free(test::scoped_allocate(1)); }  // the heap starts before the threads do
  void TearDown() override { test::expect_valid(); }
};

#if defined(SLUICE_CHECKED)
constexpr int steps_per_validation = 3000;
#else
constexpr int steps_per_validation = 30'000;
#endif

TEST_F(ArenaStress, threads_that_mix_all_calls_and_scopes_keep_their_blocks_whole) {
  constexpr size_t threads = 4;
  std::vector<std::string> wrong(threads);
  std::vector<std::thread> running;
  for (size_t t = 0; t < threads; ++t) {
    running.emplace_back([&wrong, t] {
      ArenaProgram program(1500, t);
      for (int i = 0; i < rounds(400'000) && program.wrong().empty(); ++i) {
        program.step();
        if (i % steps_per_validation != 0) continue;
        if (const char* invalid = test::validate_among_others()) {
          wrong[t] = invalid;
          return;
        }
      }
      program.leave_all();
      program.release_all();
      wrong[t] = program.wrong();
    });
  }
  for (std::thread& thread : running)
    thread.join();
  for (const std::string& text : wrong)
    EXPECT_EQ(text, "");
}

// Objects travel in a ring: most are freed or resized by a thread that did not place them, while the one that did frees
// their neighbours, joins holes and resizes.
TEST_F(ArenaStress, objects_that_other_threads_free_and_resize_are_neither_lost_nor_handed_out_twice) {
  constexpr size_t threads = 4;
  std::vector<Queue> queues(threads);
  std::vector<std::string> wrong(threads);
  std::vector<std::thread> running;
  for (size_t t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      ArenaProgram program(300, 1000 + t);
      program.enter(SLUICE_ROUTE);
      for (int i = 0; i < rounds(250'000) && program.wrong().empty(); ++i) {
        program.step();
        if (program.open_scopes() == 0) program.enter(SLUICE_ROUTE);
        const size_t slot = program.random().below(program.slots());
        if (program.random().chance(40)) program.discard(queues[(t + 1) % threads].push(program.take(slot)));
        Block block;
        if (program.random().chance(60) && queues[t].pop(block)) program.discard(block);
        if (program.random().chance(10) && queues[t].pop(block)) {
          program.give(slot, block);
          program.reallocate(slot, 1 + program.random().below(400));
        }
      }
      program.leave_all();
      program.release_all();
      wrong[t] = program.wrong();
    });
  }
  for (std::thread& thread : running)
    thread.join();
  for (Queue& queue : queues)
    discard_all(queue);
  for (const std::string& text : wrong)
    EXPECT_EQ(text, "");
}

// Two neighbours: one is freed by the other thread while this one resizes, frees and joins what lies beside it.
TEST_F(ArenaStress, a_remote_free_races_the_owner_beside_it) {
  std::atomic<unsigned char*> handed{nullptr};
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop.load(std::memory_order_relaxed)) {
      unsigned char* const object = handed.exchange(nullptr, std::memory_order_acquire);
      if (object == nullptr) continue;
      ASSERT_TRUE(test::all_bytes(object, 40, 0x5a));
      std::memset(object, 0xa5, 40);
      test::scoped_free(object);
    }
  });
  {
    const test::Scope scope;
    Random random(3);
    for (int i = 0; i < rounds(400'000); ++i) {
      unsigned char* const before = test::filled(100 + random.below(400), 1);
      unsigned char* const given = test::filled(40, 0x5a);
      unsigned char* const behind = test::filled(100 + random.below(400), 2);
      unsigned char* const last = test::filled(20, 3);
      unsigned char* expected = nullptr;
      if (!handed.compare_exchange_strong(expected, given, std::memory_order_release)) test::scoped_free(given);
      // Shrinking writes into the header behind; joining walks over all of them.
      auto* const shrunk = static_cast<unsigned char*>(arena::reallocate(before, 16));
      ASSERT_TRUE(test::all_bytes(shrunk, 16, 1));
      auto* const grown = static_cast<unsigned char*>(arena::reallocate(last, 600));
      ASSERT_TRUE(test::all_bytes(grown, 20, 3));
      test::scoped_free(behind);
      test::scoped_free(shrunk);
      if (i % 64 == 0) test::scoped_free(test::filled(16'000, 4));
      test::scoped_free(grown);
    }
  }
  while (handed.load() != nullptr)
    std::this_thread::yield();
  stop = true;
  other.join();
}

// Threads that live for a moment and leave objects to each other and to main.
TEST_F(ArenaStress, threads_that_come_and_go_leave_nothing_behind) {
  constexpr size_t at_once = 6;
  Queue left;
  std::atomic<bool> whole{true};
  for (int round = 0; round < rounds(400); ++round) {
    std::vector<std::thread> running;
    for (size_t t = 0; t < at_once; ++t) {
      running.emplace_back([&, seed = static_cast<uint64_t>(round) * at_once + t] {
        ArenaProgram program(60, seed);
        program.enter(SLUICE_ROUTE);
        Block block;
        for (int n = 0; n < 25 && left.pop(block); ++n)
          program.discard(block);
        for (int i = 0; i < 250; ++i)
          program.step();
        for (size_t slot = 0; slot < program.slots(); slot += 3)
          program.discard(left.push(program.take(slot)));
        program.release_all();
        if (!program.wrong().empty()) whole = false;
        sluice_scope never_left;
        (void)arena::enter(&never_left, SLUICE_ROUTE);
      });
    }
    for (std::thread& thread : running)
      thread.join();
  }
  EXPECT_TRUE(whole);
  discard_all(left);
  test::expect_valid();
  cache::flush_idle();
  EXPECT_LE(test::chunks_in_use(), 1u) << "no object lives, and no thread but this one, which keeps its window";
}

// Several threads free objects of one that has ended, while others sweep its chunks.
TEST_F(ArenaStress, frees_for_an_ended_thread_race_those_who_sweep_its_chunks) {
  for (int round = 0; round < rounds(300); ++round) {
    std::vector<unsigned char*> objects;
    test::on_another_thread([&objects] {
      const test::Scope scope;
      for (int i = 0; i < 2000; ++i)
        objects.push_back(test::filled(24, 0x5a));
      test::on_another_thread([&objects] {  // so that there is something to sweep
        for (size_t i = 0; i < objects.size(); i += 10)
          test::scoped_free(objects[i]);
      });
    });
    std::atomic<unsigned> running{2};
    std::vector<std::thread> threads;
    for (unsigned t = 0; t < 2; ++t) {
      threads.emplace_back([&objects, &running, t] {
        for (size_t i = 0; i < objects.size() - 100; ++i)
          if (i % 10 != 0 && i % 2 == t) test::scoped_free(objects[i]);
        --running;
      });
    }
    threads.emplace_back([&running] {
      while (running != 0)
        cache::flush_idle();
    });
    for (std::thread& thread : threads)
      thread.join();
    const char* const wrong = heap::validate().what;
    ASSERT_EQ(wrong, nullptr) << wrong << " in round " << round;
    for (size_t i = objects.size() - 100; i < objects.size(); ++i)
      if (i % 10 != 0) test::scoped_free(objects[i]);
  }
}

// What a child does; it ends without running anything of the parent's.
enum ChildResult { Well = 0, Invalid = 10, BlockChanged = 11 };
[[noreturn]] void live_as_child(ArenaProgram& inherited, uint64_t seed) {
  if (heap::validate().what != nullptr) _exit(Invalid);
  {
    ArenaProgram own(200, seed);
    for (int i = 0; i < 1500; ++i)
      own.step();
    for (int i = 0; i < 500; ++i)
      inherited.step();
    inherited.release_all();
// Sanitizers do not let the child of a threaded process start threads.
#if !defined(SLUICE_TEST_SANITIZER)
    std::thread([seed] {  // takes over what a thread that stayed behind had
      ArenaProgram later(100, seed + 1);
      for (int i = 0; i < 1000; ++i)
        later.step();
      if (!later.wrong().empty()) _exit(BlockChanged);
    })
        .join();
#endif
    own.leave_all();
    own.release_all();
    if (!own.wrong().empty() || !inherited.wrong().empty()) _exit(BlockChanged);
  }
  cache::flush_idle();
  _exit(heap::validate().what == nullptr ? Well : Invalid);
}

TEST_F(ArenaStress, children_of_a_busy_program_have_whole_arenas) {
  constexpr size_t threads = 3;
  std::atomic<bool> stop{false};
  std::vector<std::string> wrong(threads);
  std::vector<std::thread> running;
  Queue escaped;  // objects of the other threads that main takes into its children
  for (size_t t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      ArenaProgram program(400, t);
      program.enter(SLUICE_ROUTE);
      for (int i = 0; !stop.load(std::memory_order_relaxed); ++i) {
        program.step();
        if (i % 1000 == 0) program.discard(escaped.push(program.take(program.random().below(program.slots()))));
      }
      program.leave_all();
      program.release_all();
      wrong[t] = program.wrong();
    });
  }
  ArenaProgram own(300, 99);
  own.enter(SLUICE_ROUTE);
  int failed = 0;
  for (int i = 0; i < rounds(300) && failed == 0; ++i) {
    for (int n = 0; n < 100; ++n)
      own.step();
    Block block;
    for (int n = 0; n < 5 && escaped.pop(block); ++n)
      own.give(own.random().below(own.slots()), block);
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
  own.leave_all();
  own.release_all();
  EXPECT_EQ(own.wrong(), "");
  discard_all(escaped);
}

// Frames and scopes of the same threads share their chunks.
TEST_F(ArenaStress, frames_and_scopes_side_by_side_keep_their_blocks_whole) {
  constexpr size_t threads = 3;
  std::vector<std::string> wrong(threads);
  std::vector<std::thread> running;
  for (size_t t = 0; t < threads; ++t) {
    running.emplace_back([&wrong, t] {
      struct Level {
        sluice_mark mark;
        std::vector<Block> blocks;
      };
      ArenaProgram program(500, 77 + t);
      Random& random = program.random();
      std::vector<Level> levels;
      for (int i = 0; i < rounds(300'000) && program.wrong().empty() && wrong[t].empty(); ++i) {
        if (random.chance(50)) program.step();
        const uint64_t choice = random.below(100);
        if (levels.empty() || choice < 3) {
          levels.push_back({sluice_frame_mark(), {}});
        } else if (choice < 6) {
          const size_t to = random.below(levels.size());
          for (const Level& level : levels)
            for (const Block& block : level.blocks)
              if (!test::intact(block)) wrong[t] = "a frame's block changed";
          sluice_frame_rewind(levels[to].mark);
          levels.resize(to);
        } else if (choice < 20 && !levels.back().blocks.empty()) {
          Block& block = levels.back().blocks.back();
          const size_t size = block.size + random.below(2000);
          auto* const data = static_cast<unsigned char*>(sluice_frame_grow(block.data, block.size, size));
          if (data == nullptr || !test::intact_after_resize({data, block.size, block.seed}, size))
            wrong[t] = "a grown block lost its contents";
          block = {data, size, block.seed};
          test::fill(block);
        } else {
          const size_t size = random.chance(1) ? random.below(300'000) : random.below(600);
          const size_t alignment = size_t{1} << random.below(random.chance(2) ? 18 : 8);
          auto* const data = static_cast<unsigned char*>(sluice_frame_alloc(size, alignment));
          if (data == nullptr || reinterpret_cast<uintptr_t>(data) % alignment != 0) {
            wrong[t] = "no block, or a wrong alignment";
            break;
          }
          levels.back().blocks.push_back({data, size, static_cast<unsigned char>(random.next())});
          test::fill(levels.back().blocks.back());
        }
      }
      program.leave_all();
      program.release_all();
      if (wrong[t].empty()) wrong[t] = program.wrong();
    });
  }
  for (std::thread& thread : running)
    thread.join();
  for (const std::string& text : wrong)
    EXPECT_EQ(text, "");
  EXPECT_EQ(test::units_in_use(UnitState::Frame), 0u) << "frames of threads that have ended";
}

// The gate opens and shuts while objects live.
TEST_F(ArenaStress, counting_threads_and_threads_that_do_not_count_share_the_arenas) {
  cache::set_counting(true);
  constexpr size_t threads = 4;
  std::vector<std::thread> running;
  std::vector<std::string> wrong(threads);
  std::vector<Queue> queues(threads);
  for (size_t t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      ArenaProgram program(300, 500 + t);
      for (int i = 0; i < rounds(60'000); ++i) {
        program.step();
        if (i % 3 == 0)
          program.discard(queues[(t + 1) % threads].push(program.take(program.random().below(program.slots()))));
        Block block;
        if (queues[t].pop(block)) program.discard(block);
        if (t == 0 && i == rounds(30'000)) cache::set_counting(false);
      }
      program.leave_all();
      program.release_all();
      wrong[t] = program.wrong();
    });
  }
  for (std::thread& thread : running)
    thread.join();
  cache::set_counting(false);
  for (Queue& queue : queues)
    discard_all(queue);
  for (const std::string& text : wrong)
    EXPECT_EQ(text, "");
}

}  // namespace
