// Thread caches: they fill and empty in batches, grow with use, leave nothing behind when their thread ends, and are
// handed from thread to thread.
#include "heap/thread_cache.hpp"

#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <pthread.h>

#include "base/options.hpp"
#include "heap/heap.hpp"
#include "heap/slab.hpp"
#include "heap_calls.hpp"
#include "random_blocks.hpp"

namespace {

using namespace sluice;
using test::Random;

constexpr unsigned class_of_64 = size_class_of(64);

cache::ThreadCounts counts() {
  cache::lock_all();
  const cache::ThreadCounts result = cache::thread_counts();
  cache::unlock_all();
  return result;
}

// Blocks of all slabs that are with the program, in caches, or freed by other threads but not taken in.
size_t used_blocks(unsigned k) {
  size_t used = 0;
  cache::lock_all();
  for (size_t i = region::first_index(); i < region::limit(); i += region::unit_at(i)->units) {
    const Unit* unit = region::unit_at(i);
    if (unit->state == UnitState::Slab && unit->size_class == k) used += unit->used;
  }
  cache::unlock_all();
  return used;
}

std::vector<void*> allocate_many(size_t count, size_t size) {
  std::vector<void*> blocks(count);
  for (void*& block : blocks) {
    block = test::allocate(size);
    std::memset(block, 0xab, size);
  }
  return blocks;
}

void free_many(const std::vector<void*>& blocks) {
  for (void* block : blocks)
    heap::free(block);
}

void shuffle(std::vector<void*>& blocks, uint64_t seed) {
  Random random(seed);
  for (size_t i = blocks.size(); i > 1; --i)
    std::swap(blocks[i - 1], blocks[random.below(i)]);
}

class ThreadCacheTest : public testing::Test {
 protected:
  void SetUp() override {
    heap::free(test::allocate(1));
    (void)heap::trim(0);
  }
  void TearDown() override {
    const char* wrong = heap::validate();
    EXPECT_EQ(wrong, nullptr) << wrong;
  }
};

TEST_F(ThreadCacheTest, blocks_that_lie_idle_in_a_cache_do_not_keep_their_slabs) {
  constexpr size_t count = 60'000;
  std::vector<void*> small = allocate_many(count, 64);
  shuffle(small, 1);
  free_many(small);  // the cache's blocks are of slabs all over the place
  ASSERT_GT(cache::held_blocks(*thread_cache, class_of_64), 0u);
  const size_t held = used_blocks(class_of_64);
  ASSERT_GT(held, 0u);
  // Another size goes through refills and flushes, often enough for all bins to be looked at twice.
  for (int round = 0; round < 400; ++round)
    free_many(allocate_many(2'000, 1'000));
  EXPECT_EQ(cache::held_blocks(*thread_cache, class_of_64), 0u);
  EXPECT_EQ(used_blocks(class_of_64), 0u);
}

TEST_F(ThreadCacheTest, the_bin_that_a_call_has_just_filled_is_not_taken_for_idle) {
  ThreadCache& c = *thread_cache;
  for (int look = 0; look < 3; ++look) {  // it looks alike each time
    (void)heap::trim(0);
    c.next_seen = class_of_64 - 1;
    c.slow_calls = c.slow_calls / 16 * 16 + 15;
    void* const block = test::allocate(64);
    ASSERT_NE(block, nullptr);
    heap::free(block);
  }
}

TEST_F(ThreadCacheTest, an_address_inside_a_block_that_was_freed_is_named_when_it_is_flushed) {
  const auto free_inside = [] {
    char* const block = static_cast<char*>(test::allocate(96));
    heap::free(block + 16);
    (void)heap::trim(0);
  };
  EXPECT_EXIT(free_inside(), testing::KilledBySignal(SIGABRT), "sluice: invalid free, no block begins at 0x");
}

TEST_F(ThreadCacheTest, a_thread_without_calls_has_no_cache_and_the_first_call_makes_one) {
  std::thread([] {
    EXPECT_EQ(thread_cache, &cache_not_started);
    heap::free(test::allocate(64));
    EXPECT_NE(thread_cache, &cache_not_started);
    EXPECT_TRUE(thread_cache->attached);
  }).join();
}

TEST_F(ThreadCacheTest, a_refill_brings_a_batch_and_the_next_blocks_come_from_it) {
  void* first = test::allocate(64);
  const uint32_t held = cache::held_blocks(*thread_cache, class_of_64);
  EXPECT_GT(held, 8u);
  const uint32_t slow_calls = thread_cache->slow_calls;
  const std::vector<void*> blocks = allocate_many(held, 64);
  EXPECT_EQ(thread_cache->slow_calls, slow_calls);
  EXPECT_EQ(cache::held_blocks(*thread_cache, class_of_64), 0u);
  free_many(blocks);
  heap::free(first);
}

TEST_F(ThreadCacheTest, blocks_freed_last_are_handed_out_first) {
  const std::vector<void*> blocks = allocate_many(8, 64);
  free_many(blocks);
  for (size_t i = blocks.size(); i-- > 0;)
    EXPECT_EQ(test::allocate(64), blocks[i]);
  free_many(blocks);
}

TEST_F(ThreadCacheTest, a_cache_holds_no_more_than_the_option_allows) {
  for (const size_t size : {size_t{16}, size_t{64}, size_t{1024}, size_t{8192}, max_small_size}) {
    const unsigned k = size_class_of(size);
    for (int round = 0; round < 12; ++round) {
      free_many(allocate_many(4 * options.cache / size + 4, size));
      const size_t held = cache::held_blocks(*thread_cache, k) * size;
      // A list and a spare one, of a block each at least, and what is set aside.
      EXPECT_LE(held, std::max<size_t>(options.cache, 2 * size) + scattered_capacity * size);
    }
    EXPECT_EQ(heap::validate(), nullptr);
  }
}

TEST_F(ThreadCacheTest, a_bin_grows_with_demand_up_to_its_bound) {
  constexpr size_t size = 112;  // a class that no other test makes grow
  const int32_t before = thread_cache->bins[size_class_of(size)].cap;
  for (int round = 0; round < 20; ++round)
    free_many(allocate_many(4000, size));
  const int32_t after = thread_cache->bins[size_class_of(size)].cap;
  EXPECT_GT(after, before);
  EXPECT_LE(static_cast<size_t>(after) * size, options.cache / 2);
}

TEST_F(ThreadCacheTest, blocks_that_come_back_scattered_are_set_aside_untouched_and_not_lost) {
  std::vector<void*> blocks = allocate_many(60'000, 64);
  shuffle(blocks, 7);
  bool set_aside = false;
  for (void* block : blocks) {
    const uint32_t before = thread_cache->scattered_count;
    heap::free(block);
    if (thread_cache->scattered_count <= before) continue;
    set_aside = true;
    ASSERT_EQ(static_cast<unsigned char*>(block)[0], 0xab) << "a block set aside was written to";
  }
  EXPECT_TRUE(set_aside);
  EXPECT_EQ(heap::validate(), nullptr);
  cache::flush_idle();
  EXPECT_EQ(used_blocks(class_of_64), 0u);
}

TEST_F(ThreadCacheTest, flush_idle_empties_the_cache_and_its_slabs) {
  free_many(allocate_many(1000, 64));
  free_many(allocate_many(100, 3000));
  cache::flush_idle();
  for (unsigned k = 1; k < size_class_count; ++k) {
    EXPECT_EQ(cache::held_blocks(*thread_cache, k), 0u);
    EXPECT_EQ(used_blocks(k), 0u);
  }
  EXPECT_EQ(thread_cache->slab_count, 0u);
}

TEST_F(ThreadCacheTest, every_class_survives_random_frees_and_hands_no_block_out_twice) {
  for (unsigned k = 1; k < size_class_count; ++k) {
    const size_t count = std::max<size_t>(20, (size_t{1} << 20) / class_sizes[k]);
    std::vector<void*> blocks = allocate_many(count, class_sizes[k]);
    EXPECT_EQ(std::set<void*>(blocks.begin(), blocks.end()).size(), count) << k;
    shuffle(blocks, k);
    const std::vector<void*> half(blocks.begin(), blocks.begin() + static_cast<long>(count / 2));
    std::vector<void*> rest(blocks.begin() + static_cast<long>(count / 2), blocks.end());
    free_many(half);
    const std::vector<void*> again = allocate_many(half.size(), class_sizes[k]);
    rest.insert(rest.end(), again.begin(), again.end());
    EXPECT_EQ(std::set<void*>(rest.begin(), rest.end()).size(), count) << k;
    free_many(rest);
  }
}

TEST_F(ThreadCacheTest, a_shut_gate_leads_every_call_through_the_slow_path_and_loses_nothing) {
  cache::set_counting(true);
  std::thread([] {
    const std::vector<void*> blocks = allocate_many(1000, 64);
    EXPECT_TRUE(thread_cache->gated);
    EXPECT_EQ(thread_cache->small_limit, 0u);
    for (unsigned k = 1; k < size_class_count; ++k)
      ASSERT_EQ(thread_cache->bins[k].room, 0);
    EXPECT_EQ(heap::validate(), nullptr);
    EXPECT_EQ(std::set<void*>(blocks.begin(), blocks.end()).size(), blocks.size());
    free_many(blocks);
    EXPECT_EQ(heap::validate(), nullptr);
    cache::set_counting(false);
    EXPECT_FALSE(thread_cache->gated);
    EXPECT_GT(thread_cache->small_limit, max_direct_size);
    EXPECT_EQ(heap::validate(), nullptr);
    free_many(allocate_many(1000, 64));
    EXPECT_EQ(heap::validate(), nullptr);
  }).join();
  cache::set_counting(false);
}

TEST_F(ThreadCacheTest, the_next_thread_adopts_what_an_ended_one_left) {
  ThreadCache* left = nullptr;
  std::thread([&] {
    free_many(allocate_many(10, 64));
    left = thread_cache;
  }).join();
  EXPECT_TRUE(left->orphan.load());
  std::thread([&] {
    heap::free(test::allocate(64));
    EXPECT_EQ(thread_cache, left);
    EXPECT_FALSE(left->orphan.load());
  }).join();
}

size_t held_bytes(const ThreadCache& c) {
  size_t held = 0;
  for (unsigned k = 1; k < size_class_count; ++k)
    held += size_t{cache::held_blocks(c, k)} * class_sizes[k];
  return held;
}

TEST_F(ThreadCacheTest, an_ended_thread_keeps_its_cache_only_if_it_is_small) {
  constexpr size_t most_kept = 192 * 1024;
  ThreadCache* left = nullptr;
  size_t before = 0;
  std::thread([&] {
    for (int round = 0; round < 20; ++round)
      for (size_t size = 1024; size <= 16384; size += size / 8)
        free_many(allocate_many(200, size));
    left = thread_cache;
    before = held_bytes(*left);
  }).join();
  EXPECT_GT(before, most_kept) << "the thread was to hold more than it may keep";
  EXPECT_EQ(held_bytes(*left), 0u);
  std::thread([&] {
    free_many(allocate_many(200, 100));
    left = thread_cache;
  }).join();
  EXPECT_GT(held_bytes(*left), 0u) << "the next thread was to find something";
  EXPECT_LE(held_bytes(*left), most_kept);
  cache::flush_idle();
  EXPECT_EQ(held_bytes(*left), 0u);
  EXPECT_EQ(left->slab_count, 0u);
}

TEST_F(ThreadCacheTest, slabs_of_an_ended_thread_serve_others_before_new_memory_does) {
  constexpr size_t size = 640;
  std::vector<void*> kept;
  std::thread([&] {
    std::vector<void*> blocks = allocate_many(4000, size);
    for (size_t i = 0; i < blocks.size(); ++i) {
      if (i % 4 == 0)
        kept.push_back(blocks[i]);
      else
        heap::free(blocks[i]);
    }
  }).join();
  std::set<size_t> units;
  for (void* block : kept)
    units.insert(region::index_of(slab::of(block)));
  // This thread has a cache already, so that it does not adopt the orphan: it takes its slabs.
  const std::vector<void*> blocks = allocate_many(1000, size);
  const auto in_old_slab = [&](void* block) { return units.count(region::index_of(slab::of(block))) != 0; };
  EXPECT_GT(std::count_if(blocks.begin(), blocks.end(), in_old_slab), 900);
  free_many(blocks);
  free_many(kept);
}

TEST_F(ThreadCacheTest, remote_frees_after_the_owner_ended_are_taken_in) {
  std::vector<void*> blocks;
  std::thread([&] { blocks = allocate_many(5000, 64); }).join();
  free_many(blocks);
  cache::flush_idle();
  EXPECT_EQ(used_blocks(class_of_64), 0u);
}

TEST_F(ThreadCacheTest, remote_frees_reach_a_living_owner_with_its_next_refill) {
  const std::vector<void*> blocks = allocate_many(5000, 64);
  const size_t used = used_blocks(class_of_64);
  EXPECT_GE(used, 5000u);
  std::thread([&] {
    free_many(blocks);
    cache::flush_idle();
  }).join();
  free_many(allocate_many(1000, 64));
  cache::flush_idle();
  EXPECT_EQ(used_blocks(class_of_64), 0u);
}

TEST_F(ThreadCacheTest, thousands_of_short_threads_make_no_more_caches_than_live_at_once) {
  constexpr size_t at_once = 8;
  const cache::ThreadCounts before = counts();
  for (int round = 0; round < 250; ++round) {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < at_once; ++i)
      threads.emplace_back([] { free_many(allocate_many(20, 100)); });
    for (std::thread& thread : threads)
      thread.join();
  }
  const cache::ThreadCounts after = counts();
  EXPECT_EQ(after.started - before.started, 250 * at_once);
  EXPECT_EQ(after.live, before.live);
  EXPECT_LE(after.caches, std::max(before.caches, before.live + at_once));
  EXPECT_LE(after.peak, std::max(before.peak, before.live + at_once));
}

// A destructor of thread-specific data that sets its value again runs once more, after the cache's own destructor too.
pthread_key_t late_key;
std::atomic<int> late_calls;

void call_late(void* value) {
  void* block = test::allocate(100);
  ASSERT_NE(block, nullptr);
  std::memset(block, 1, 100);
  heap::free(block);
  void* large = test::allocate(200'000);
  ASSERT_NE(large, nullptr);
  heap::free(large);
  if (thread_cache == &cache_torn_down)
    late_calls.fetch_add(1);
  else
    ASSERT_EQ(pthread_setspecific(late_key, value), 0);
}

TEST_F(ThreadCacheTest, calls_after_the_end_of_a_threads_cache_work_and_build_none) {
  const cache::ThreadCounts before = counts();
  late_calls = 0;
  ASSERT_EQ(pthread_key_create(&late_key, call_late), 0);
  std::thread([] {
    heap::free(test::allocate(100));
    ASSERT_EQ(pthread_setspecific(late_key, &late_calls), 0);
  }).join();
  pthread_key_delete(late_key);
  EXPECT_GT(late_calls.load(), 0);
  const cache::ThreadCounts after = counts();
  EXPECT_LE(after.caches, before.caches + 1);
  EXPECT_EQ(after.live, before.live);
}

TEST_F(ThreadCacheTest, blocks_without_a_cache_are_served_one_by_one) {
  std::vector<void*> blocks;
  for (unsigned k = 1; k < size_class_count; ++k) {
    void* block = cache::take_shared(k);
    ASSERT_NE(block, nullptr);
    std::memset(block, 1, class_sizes[k]);
    blocks.push_back(block);
  }
  EXPECT_EQ(std::set<void*>(blocks.begin(), blocks.end()).size(), blocks.size());
  for (void* block : blocks)
    cache::put_shared(block);
}

}  // namespace
