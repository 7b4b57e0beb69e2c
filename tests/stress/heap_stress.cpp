// Randomized runs of many threads over the whole heap: every block is filled and checked, some are freed by other
// threads, threads come and go, and the heap's invariants hold at the end. STRESS_PERCENT scales the number of rounds.
#include <atomic>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/options.hpp"
#include "heap/heap.hpp"
#include "heap_calls.hpp"
#include "heap_program.hpp"
#include "stress_rounds.hpp"
#include "validate_among_others.hpp"

namespace {

using namespace sluice;
using test::Block;
using test::HeapProgram;
using test::Random;
using test::rounds;

constexpr size_t mib = size_t{1} << 20;

// Blocks on their way from one thread to another.
class Queue {
 public:
  void push(const Block& block) {
    const std::lock_guard guard(lock_);
    blocks_.push_back(block);
  }
  bool pop(Block& block) {
    const std::lock_guard guard(lock_);
    if (blocks_.empty()) return false;
    block = blocks_.front();
    blocks_.pop_front();
    return true;
  }

 private:
  std::mutex lock_;
  std::deque<Block> blocks_;
};

void expect_valid() {
  const char* wrong = heap::validate().what;
  ASSERT_EQ(wrong, nullptr) << wrong;
}

class HeapStress : public testing::Test {
 protected:
  void SetUp() override { test::calls::free(test::allocate(1)); }  // the heap starts before the threads do
};

#if defined(SLUICE_CHECKED)
constexpr int steps_per_validation = 2000;
#else
constexpr int steps_per_validation = 20'000;
#endif

// Each thread runs a program of its own and validates the heap now and then, while the others go on.
TEST_F(HeapStress, threads_that_mix_all_calls_keep_their_blocks_whole) {
  constexpr int threads = 4;
  std::vector<std::string> wrong(threads);
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&wrong, t] {
      HeapProgram program(1500, static_cast<uint64_t>(t));
      std::string& result = wrong[static_cast<size_t>(t)];
      for (int i = 0; i < rounds(300'000) && result.empty(); ++i) {
        program.step();
        if (i % steps_per_validation != 0) continue;
        if (const char* invalid = test::validate_among_others()) result = invalid;
      }
      program.release_all();
      if (result.empty()) result = program.wrong();
    });
  }
  for (std::thread& thread : running)
    thread.join();
  for (const std::string& text : wrong)
    EXPECT_EQ(text, "");
  expect_valid();
}

// Blocks travel in a ring: most are freed by a thread that did not allocate them.
TEST_F(HeapStress, blocks_that_other_threads_free_are_neither_lost_nor_handed_out_twice) {
  constexpr size_t threads = 4;
  std::vector<Queue> queues(threads);
  std::vector<std::string> wrong(threads);
  std::vector<std::thread> running;
  for (size_t t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      HeapProgram program(300, 1000 + t, mib);
      for (int i = 0; i < rounds(250'000); ++i) {
        program.step();
        const size_t slot = program.random().below(program.slots());
        if (program.random().chance(40)) queues[(t + 1) % threads].push(program.take(slot));
        Block block;
        for (int n = 0; n < 2 && queues[t].pop(block); ++n)
          program.discard(block);
      }
      program.release_all();
      wrong[t] = program.wrong();
    });
  }
  for (std::thread& thread : running)
    thread.join();
  HeapProgram rest(1, 0);
  for (Queue& queue : queues)
    for (Block block; queue.pop(block);)
      rest.discard(block);
  EXPECT_EQ(rest.wrong(), "");
  for (const std::string& text : wrong)
    EXPECT_EQ(text, "");
  expect_valid();
}

// One size, one producer, one consumer: the path of remote frees and nothing else.
TEST_F(HeapStress, a_producer_and_a_consumer_use_no_more_memory_than_is_on_its_way) {
  constexpr size_t on_its_way = 10'000;
  std::atomic<size_t> produced{0}, consumed{0};
  std::vector<std::atomic<uint64_t*>> ring(on_its_way);
  const size_t total = static_cast<size_t>(rounds(3'000'000));
  std::thread consumer([&] {
    for (size_t i = 0; i < total; ++i) {
      while (produced.load(std::memory_order_acquire) <= i)
        std::this_thread::yield();
      uint64_t* block = ring[i % on_its_way].load(std::memory_order_relaxed);
      ASSERT_EQ(*block, i);
      ASSERT_EQ(block[11], ~i);
      test::calls::free(block);
      consumed.store(i + 1, std::memory_order_release);
    }
  });
  for (size_t i = 0; i < total; ++i) {
    while (consumed.load(std::memory_order_acquire) + on_its_way <= i)
      std::this_thread::yield();
    auto* block = static_cast<uint64_t*>(test::allocate(96));
    block[0] = i;
    block[11] = ~i;
    ring[i % on_its_way].store(block, std::memory_order_relaxed);
    produced.store(i + 1, std::memory_order_release);
  }
  consumer.join();
  expect_valid();
  size_t slab_bytes = 0;
  cache::lock_all();
  for (size_t i = region::first_index(); i < region::limit(); i += region::unit_at(i)->units)
    if (region::unit_at(i)->use() == UnitState::Slab && region::unit_at(i)->slab.size_class == size_class_of(96))
      slab_bytes += region::unit_at(i)->units * unit_size;
  cache::unlock_all();
  EXPECT_LE(slab_bytes, 8 * on_its_way * 96 + 64 * unit_size);
}

// Threads that live for a moment, allocate little, and leave blocks for others.
TEST_F(HeapStress, threads_that_come_and_go_leave_nothing_behind) {
  constexpr size_t at_once = 6;
  Queue left;
  std::atomic<bool> intact{true};
  for (int round = 0; round < rounds(400); ++round) {
    std::vector<std::thread> running;
    for (size_t t = 0; t < at_once; ++t) {
      running.emplace_back([&, seed = static_cast<uint64_t>(round) * at_once + t] {
        HeapProgram program(30, seed, 200'000);
        Block block;
        for (int n = 0; n < 12 && left.pop(block); ++n)
          program.discard(block);
        for (int i = 0; i < 120; ++i)
          program.step();
        for (size_t slot = 0; slot < program.slots(); slot += 3)
          left.push(program.take(slot));
        program.release_all();
        if (!program.wrong().empty()) intact = false;
      });
    }
    for (std::thread& thread : running)
      thread.join();
  }
  HeapProgram rest(1, 0);
  for (Block block; left.pop(block);)
    rest.discard(block);
  EXPECT_EQ(rest.wrong(), "");
  EXPECT_TRUE(intact);
  expect_valid();
  cache::flush_idle();
  for (const ThreadCache* c = cache::first(); c != nullptr; c = c->next_cache)
    EXPECT_EQ(c->slab_count, 0u) << "a slab of a thread that is gone still holds blocks";
}

// Large spans that grow, shrink and move while other threads do the same.
TEST_F(HeapStress, large_blocks_that_grow_and_shrink_side_by_side_stay_apart) {
  constexpr int threads = 3;
  std::vector<std::string> wrong(threads);
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&wrong, t] {
      HeapProgram program(12, 77 + static_cast<uint64_t>(t));
      for (int i = 0; i < rounds(6000); ++i) {
        const size_t slot = program.random().below(program.slots());
        const size_t size = 1 + program.random().below(program.random().chance(10) ? 8 * mib : 500'000);
        if (program.random().chance(70))
          program.reallocate(slot, size);
        else
          program.release(slot);
        if (i % 500 == 0) (void)heap::trim(program.random().below(4) * mib);
      }
      program.release_all();
      wrong[static_cast<size_t>(t)] = program.wrong();
    });
  }
  for (std::thread& thread : running)
    thread.join();
  for (const std::string& text : wrong)
    EXPECT_EQ(text, "");
  expect_valid();
}

// The gate opens and shuts, and statistics are read, while all goes on.
TEST_F(HeapStress, counting_threads_and_threads_that_do_not_count_share_the_heap) {
  cache::set_counting(true);
  std::vector<std::thread> running;
  std::vector<std::string> wrong(4);
  for (size_t t = 0; t < wrong.size(); ++t) {
    running.emplace_back([&wrong, t] {
      HeapProgram program(300, 500 + t, mib);
      for (int i = 0; i < rounds(30'000); ++i) {
        program.step();
        if (t == 0 && i == rounds(15'000)) cache::set_counting(false);
      }
      program.release_all();
      wrong[t] = program.wrong();
    });
  }
  for (std::thread& thread : running)
    thread.join();
  cache::set_counting(false);
  for (const std::string& text : wrong)
    EXPECT_EQ(text, "");
  expect_valid();
}

}  // namespace
