// Exact counts: what is counted agrees with what was done, for one thread and for many, and peaks are peaks. Counting
// is on before the first call, as a program with SLUICE_STATS has it.
#include "heap/counters.hpp"

#include <algorithm>
#include <cstdlib>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <pthread.h>

#include "cache_test.hpp"
#include "heap/heap.hpp"
#include "heap_calls.hpp"
#include "heap_program.hpp"
#include "stats/snapshot.hpp"
#include "without_stand_ins.hpp"

namespace {

using namespace sluice;
using stats::Snapshot;

const bool counting_from_the_start = setenv("SLUICE_STATS", "1", 1) == 0;

Snapshot snapshot() {
  Snapshot s;
  stats::take_snapshot(&s);
  return s;
}

// What always holds, whatever other tests did before.
void expect_totals_add_up(const Snapshot& s) {
  ASSERT_TRUE(s.counting);
  uint64_t mallocs = s.large.mallocs, frees = s.large.frees, live = s.large.live_bytes;
  uint64_t allocated = s.large.allocated_bytes, freed = s.large.freed_bytes;
  for (unsigned k = 1; k < size_class_count; ++k) {
    const stats::ClassFigures& f = s.classes[k];
    ASSERT_GE(f.mallocs, f.frees) << k;
    EXPECT_EQ(f.mallocs - f.frees, f.live_blocks) << k;
    EXPECT_GE(f.peak_live_blocks, f.live_blocks) << k;
    EXPECT_LE(f.peak_live_blocks, f.mallocs) << k;
    EXPECT_LE(f.requested_bytes, f.mallocs * f.block_size) << k;
    mallocs += f.mallocs;
    frees += f.frees;
    allocated += f.mallocs * f.block_size;
    freed += f.frees * f.block_size;
    live += f.live_blocks * f.block_size;
  }
  EXPECT_EQ(s.large.allocated_bytes - s.large.freed_bytes, s.large.live_bytes);
  EXPECT_EQ(s.large.mallocs - s.large.frees, s.large.live_spans);
  EXPECT_GE(s.large.peak_live_bytes, s.large.live_bytes);
  EXPECT_EQ(s.mallocs, mallocs);
  EXPECT_EQ(s.frees, frees);
  EXPECT_EQ(s.allocated_bytes, allocated);
  EXPECT_EQ(s.freed_bytes, freed);
  EXPECT_EQ(s.live_bytes, live);
  EXPECT_EQ(s.allocated_bytes - s.freed_bytes, s.live_bytes);
  EXPECT_GE(s.peak_live_bytes, s.live_bytes);
}

// Every block that is live by the counts is live by the heap's own structures, class by class. Requires: no other
// thread is in the heap. The snapshot of a heap that does not count is made of its structures alone.
void expect_structure_agrees(const Snapshot& counted) {
  Snapshot found;
  std::thread([&found] {  // a thread without a cache: no gate opens
    cache::set_counting(false);
    stats::take_snapshot(&found);
    cache::set_counting(true);
  })
      .join();
  ASSERT_FALSE(found.counting);
  for (unsigned k = 1; k < size_class_count; ++k)
    EXPECT_EQ(found.classes[k].live_blocks, counted.classes[k].live_blocks) << class_sizes[k] << " bytes";
  EXPECT_EQ(found.large.live_spans, counted.large.live_spans);
  EXPECT_EQ(found.large.live_bytes, counted.large.live_bytes);
  EXPECT_EQ(found.live_bytes, counted.live_bytes);
}

TEST(Counters, one_thread_is_counted_exactly) {
  const Snapshot before = snapshot();
  const unsigned k = size_class_of(100);
  std::vector<void*> blocks;
  for (int i = 0; i < 1000; ++i)
    blocks.push_back(test::allocate(100));
  for (int i = 0; i < 400; ++i) {
    heap::free(blocks.back());
    blocks.pop_back();
  }
  const Snapshot after = snapshot();
  EXPECT_EQ(after.classes[k].mallocs - before.classes[k].mallocs, 1000u);
  EXPECT_EQ(after.classes[k].frees - before.classes[k].frees, 400u);
  EXPECT_EQ(after.classes[k].requested_bytes - before.classes[k].requested_bytes, 100'000u);
  EXPECT_EQ(after.classes[k].live_blocks - before.classes[k].live_blocks, 600u);
  EXPECT_EQ(after.mallocs - before.mallocs, 1000u);
  EXPECT_EQ(after.frees - before.frees, 400u);
  EXPECT_EQ(after.live_bytes - before.live_bytes, 600u * class_sizes[k]);
  expect_totals_add_up(after);
  for (void* block : blocks)
    heap::free(block);
  expect_totals_add_up(snapshot());
}

TEST(Counters, the_peak_of_one_thread_is_exact) {
  const unsigned k = size_class_of(5000);
  const Snapshot before = snapshot();
  std::vector<void*> blocks;
  // More than anything before, so that the peak is reached here.
  const uint64_t count = before.peak_live_bytes / class_sizes[k] + 777;
  for (uint64_t i = 0; i < count; ++i)
    blocks.push_back(test::allocate(5000));
  for (void* block : blocks)
    heap::free(block);
  for (int i = 0; i < 100; ++i)
    heap::free(test::allocate(5000));
  const Snapshot after = snapshot();
  EXPECT_EQ(after.classes[k].peak_live_blocks, before.classes[k].live_blocks + count);
  EXPECT_EQ(after.peak_live_bytes, before.live_bytes + count * class_sizes[k]);
}

TEST(Counters, large_blocks_that_a_thread_keeps_for_itself_are_counted_exactly) {
  const Snapshot before = snapshot();
  constexpr uint64_t rounds = 1000;
  for (uint64_t i = 0; i < rounds; ++i) {
    void* const one = test::allocate(100'000);
    void* const other = test::allocate(100'000);
    heap::free(one);
    heap::free(other);
  }
  EXPECT_NE(thread_cache->own_spans.granted, 0);
  const Snapshot after = snapshot();
  EXPECT_EQ(after.large.mallocs - before.large.mallocs, 2 * rounds);
  EXPECT_EQ(after.large.frees - before.large.frees, 2 * rounds);
  EXPECT_EQ(after.large.requested_bytes - before.large.requested_bytes, 2 * rounds * 100'000);
  EXPECT_EQ(after.large.live_bytes, before.large.live_bytes);
  EXPECT_GE(after.large.peak_live_bytes, before.large.live_bytes + 200'000);
  expect_totals_add_up(after);
  expect_structure_agrees(after);
}

// What several threads may withhold: 16 KiB each, or a thousandth of the total.
uint64_t withheld(const Snapshot& s, uint64_t threads) {
  return threads * std::max<uint64_t>(16 * 1024, s.peak_live_bytes / 1024);
}

void have_for_a_moment(size_t count, size_t size) {
  test::free_many(test::allocate_many(count, size));
}

// The first thread rests at the peak, and never counts again while the second is there.
TEST(Counters, what_a_thread_had_while_it_was_alone_is_in_the_peak_of_several) {
  const unsigned k = size_class_of(5000);
  const uint64_t before = snapshot().live_bytes;
  const std::vector<void*> blocks = test::allocate_many(2000, 5000);
  heap::prepare_for_threads();
  std::thread(have_for_a_moment, 1000, 5000).join();
  test::free_many(blocks);
  const Snapshot after = snapshot();
  EXPECT_GE(after.peak_live_bytes + withheld(after, 2), before + 3000 * class_sizes[k]);
  EXPECT_GE(after.classes[k].peak_live_blocks + 2 * (8192 / class_sizes[k] + 3), 3000u);
  expect_totals_add_up(after);
}

// Nobody says that a second thread is made, and the first rests: the second adds for it what it has.
TEST(Counters, what_a_thread_has_not_told_is_added_for_it) {
  const unsigned k = size_class_of(5000);
  const uint64_t before = snapshot().live_bytes;
  const std::vector<void*> blocks = test::allocate_many(2000, 5000);
  std::thread(have_for_a_moment, 1000, 5000).join();
  const Snapshot between = snapshot();
  EXPECT_GE(between.peak_live_bytes + withheld(between, 2), before + 3000 * class_sizes[k]);
  test::free_many(blocks);
  for (int i = 0; i < 100; ++i)
    heap::free(test::allocate(5000));
  const Snapshot after = snapshot();
  EXPECT_EQ(after.peak_live_bytes, between.peak_live_bytes);
  expect_totals_add_up(after);
  expect_structure_agrees(after);
}

// What the first had is gone when the second has as much, and the first goes on.
TEST(Counters, a_peak_is_not_the_sum_of_what_was_there_one_after_the_other) {
  const unsigned k = size_class_of(5000);
  const Snapshot before = snapshot();
  const size_t count = before.peak_live_bytes / class_sizes[k] + 2000;
  have_for_a_moment(count, 5000);
  std::vector<void*> blocks;
  std::thread([&] { blocks = test::allocate_many(count, 5000); }).join();
  have_for_a_moment(100, 5000);
  test::free_many(blocks);
  const Snapshot after = snapshot();
  const size_t most = count + 100;
  EXPECT_GE(after.peak_live_bytes + withheld(after, 2), before.live_bytes + most * class_sizes[k]);
  EXPECT_LE(after.peak_live_bytes, before.live_bytes + most * class_sizes[k] + withheld(after, 2));
  EXPECT_LE(after.classes[k].peak_live_blocks, before.classes[k].live_blocks + most + 2 * (most / 1024 + 2));
}

TEST(Counters, every_entry_point_counts_one_malloc_and_every_free_one) {
  const Snapshot before = snapshot();
  std::vector<void*> blocks = {
      test::allocate(10),           heap::allocate_zeroed(3, 10),     heap::allocate_aligned(256, 10),
      test::allocate(100'000),      heap::allocate_zeroed(100, 1000), heap::allocate_aligned(1 << 20, 10),
      heap::reallocate(nullptr, 10)};
  const Snapshot between = snapshot();
  EXPECT_EQ(between.mallocs - before.mallocs, blocks.size());
  EXPECT_EQ(between.frees, before.frees);
  EXPECT_EQ(between.large.live_spans - before.large.live_spans, 3u);
  for (void* block : blocks)
    heap::free(block);
  heap::free(nullptr);
  const Snapshot after = snapshot();
  EXPECT_EQ(after.frees - before.frees, blocks.size());
  EXPECT_EQ(after.live_bytes, before.live_bytes);
  expect_totals_add_up(after);
}

TEST(Counters, realloc_keeps_the_totals_true_whether_it_moves_or_not) {
  void* block = test::allocate(10);
  for (const size_t size :
       {20ul, 15ul, 3000ul, 100ul, 70'000ul, 71'000ul, 600'000ul, 9'000'000ul, 80'000ul, 50ul, 65'536ul, 65'537ul}) {
    block = heap::reallocate(block, size);
    ASSERT_NE(block, nullptr);
    const Snapshot s = snapshot();
    expect_totals_add_up(s);
    expect_structure_agrees(s);
  }
  heap::free(block);
  expect_structure_agrees(snapshot());
}

TEST(Counters, failures_count_nothing) {
  const Snapshot before = snapshot();
  EXPECT_EQ(test::allocate(SIZE_MAX), nullptr);
  EXPECT_EQ(heap::allocate_zeroed(SIZE_MAX, 2), nullptr);
  EXPECT_EQ(heap::allocate_aligned(4096, size_t{1} << 60), nullptr);
  const Snapshot after = snapshot();
  EXPECT_EQ(after.mallocs, before.mallocs);
  EXPECT_EQ(after.allocated_bytes, before.allocated_bytes);
}

// A destructor of thread-specific data that runs after the cache's own allocates without a cache.
pthread_key_t late_key;
std::vector<void*> late;

void allocate_late(void* value) {
  if (thread_cache != &cache_torn_down) {
    pthread_setspecific(late_key, value);  // once more, later
    return;
  }
  for (int i = 0; i < 3; ++i)
    late.push_back(test::allocate(64));
}

TEST(Counters, blocks_without_a_cache_are_counted_too) {
  const Snapshot before = snapshot();
  ASSERT_EQ(pthread_key_create(&late_key, allocate_late), 0);
  std::thread([] {
    heap::free(test::allocate(64));
    pthread_setspecific(late_key, &late);
  }).join();
  pthread_key_delete(late_key);
  ASSERT_EQ(late.size(), 3u);
  const Snapshot between = snapshot();
  EXPECT_EQ(between.mallocs - before.mallocs, late.size() + 1);
  expect_totals_add_up(between);
  expect_structure_agrees(between);
  for (void* block : late)
    heap::free(block);
  late.clear();
  expect_structure_agrees(snapshot());
}

// Threads that allocate, free their own and each other's blocks, and end with some left over.
TEST(Counters, allocated_less_freed_is_live_for_each_class_and_in_total_in_a_threaded_program) {
  constexpr int threads = 4;
  std::vector<std::vector<test::Block>> left(threads);
  for (int round = 0; round < 4; ++round) {
    std::vector<std::thread> running;
    for (int t = 0; t < threads; ++t) {
      running.emplace_back([&, t] {
        test::HeapProgram program(200, static_cast<uint64_t>(round * threads + t), 1 << 20);
        for (const test::Block& block : left[static_cast<size_t>(t)])
          program.discard(block);
        left[static_cast<size_t>(t)].clear();
        for (int i = 0; i < 3000; ++i)
          program.step();
        for (size_t slot = 0; slot < program.slots(); slot += 2)
          left[static_cast<size_t>(t)].push_back(program.take(slot));
        program.release_all();
        EXPECT_EQ(program.wrong(), "");
      });
    }
    for (std::thread& thread : running)
      thread.join();
    // The next round's threads free what these have left.
    std::rotate(left.begin(), left.begin() + 1, left.end());
    const Snapshot s = snapshot();
    expect_totals_add_up(s);
    expect_structure_agrees(s);
  }
  test::HeapProgram rest(1, 0);
  for (const std::vector<test::Block>& blocks : left)
    for (const test::Block& block : blocks)
      rest.discard(block);
  const Snapshot s = snapshot();
  expect_totals_add_up(s);
  expect_structure_agrees(s);
}

TEST(Counters, the_peak_of_many_threads_is_exceeded_by_what_each_may_withhold_at_most) {
  constexpr size_t threads = 4;
  constexpr size_t count = 3000;
  const unsigned k = size_class_of(2000);
  const Snapshot before = snapshot();
  std::vector<std::vector<void*>> blocks(threads);
  std::vector<std::thread> running;
  for (std::vector<void*>& own : blocks) {
    running.emplace_back([&own] {
      for (size_t i = 0; i < count; ++i)
        own.push_back(test::allocate(2000));
    });
  }
  for (std::thread& thread : running)
    thread.join();
  const Snapshot after = snapshot();
  EXPECT_EQ(after.classes[k].mallocs - before.classes[k].mallocs, threads * count);
  EXPECT_GE(after.classes[k].peak_live_blocks, after.classes[k].live_blocks);
  EXPECT_LE(after.classes[k].peak_live_blocks,
            std::max(before.classes[k].peak_live_blocks, after.classes[k].live_blocks + (threads + 1) * 8192 / 2000));
  EXPECT_LE(after.peak_live_bytes, std::max(before.peak_live_bytes, after.live_bytes + (threads + 1) * 16384));
  for (const std::vector<void*>& own : blocks)
    for (void* block : own)
      heap::free(block);
}

}  // namespace
