// Thread caches: they fill and empty in batches, grow with use, and take in what other threads free.
// budget_test.cpp has how much they keep, thread_life_test.cpp what happens when their threads end.
#include "heap/thread_cache.hpp"

#include <signal.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/options.hpp"
#include "cache_test.hpp"
#include "heap/heap.hpp"
#include "heap/thread_life.hpp"
#include "heap_calls.hpp"
#include "random_blocks.hpp"
#include "without_stand_ins.hpp"

namespace {

using namespace sluice;
using test::allocate_many;
using test::free_many;
using test::Random;
using test::shuffle;
using test::used_blocks;

constexpr unsigned class_of_64 = size_class_of(64);

class ThreadCacheTest : public test::CacheTest {};

TEST_F(ThreadCacheTest, blocks_that_lie_idle_in_a_cache_do_not_keep_their_slabs) {
  constexpr size_t count = 60'000;
  std::vector<void*> small = allocate_many(count, 64);
  shuffle(small, 1);
  thread_cache->budget_kib = 16'384;
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
    EXPECT_EQ(heap::validate().what, nullptr);
  }
}

// Of two classes that are flushed as often; one alone may have more (budget_fault_test.cpp).
TEST_F(ThreadCacheTest, a_bin_grows_with_demand_up_to_its_bound) {
  constexpr size_t size = 112, other = 96;  // classes that no other test makes grow
  const int32_t before = thread_cache->bins[size_class_of(size)].cap;
  for (int round = 0; round < 20; ++round) {
    const auto blocks = allocate_many(4000, size), others = allocate_many(4000, other);
    for (size_t i = 0; i < blocks.size(); ++i) {
      heap::free(blocks[i]);
      heap::free(others[i]);
    }
  }
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
  EXPECT_EQ(heap::validate().what, nullptr);
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

// Blocks of many classes in the cache of a thread that then waits for its turn.
TEST_F(ThreadCacheTest, a_trim_has_other_threads_flush_their_caches_at_their_next_refill) {
  std::atomic<int> step{0};
  const auto wait_for = [&step](int wanted) {
    for (int seen; (seen = step.load()) != wanted;)
      step.wait(seen);
  };
  const auto go_to = [&step](int next) {
    step = next;
    step.notify_all();
  };
  std::thread other([&] {
    free_many(allocate_many(1000, 64));
    free_many(allocate_many(10, 3000));
    EXPECT_NE(cache::held_blocks(*thread_cache, class_of_64), 0u);
    go_to(1);
    wait_for(2);
    free_many(allocate_many(100, 40));  // a class that it has not used so far
    EXPECT_EQ(cache::held_blocks(*thread_cache, class_of_64), 0u);
    EXPECT_EQ(cache::held_blocks(*thread_cache, size_class_of(3000)), 0u);
  });
  wait_for(1);
  (void)heap::trim(0);
  go_to(2);
  other.join();
}

TEST_F(ThreadCacheTest, a_trim_takes_in_what_was_freed_into_the_slabs_of_a_thread_that_sleeps) {
  std::atomic<int> step{0};
  std::vector<void*> blocks;
  std::thread other([&] {
    blocks = allocate_many(500, 64);
    cache::flush_idle();
    step = 1;
    step.notify_all();
    step.wait(1);
  });
  step.wait(0);
  free_many(blocks);
  (void)heap::trim(0);
  EXPECT_EQ(used_blocks(class_of_64), 0u);
  step = 2;
  step.notify_all();
  other.join();
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
    EXPECT_TRUE(thread_cache->mode.has(CacheMode::Counting));
    EXPECT_EQ(thread_cache->small_limit, 0u);
    for (unsigned k = 1; k < size_class_count; ++k)
      ASSERT_EQ(thread_cache->bins[k].room, 0);
    EXPECT_EQ(heap::validate().what, nullptr);
    EXPECT_EQ(std::set<void*>(blocks.begin(), blocks.end()).size(), blocks.size());
    free_many(blocks);
    EXPECT_EQ(heap::validate().what, nullptr);
    cache::set_counting(false);
    EXPECT_FALSE(thread_cache->mode.has(CacheMode::Counting));
    EXPECT_GT(thread_cache->small_limit, max_direct_size);
    EXPECT_EQ(heap::validate().what, nullptr);
    free_many(allocate_many(1000, 64));
    EXPECT_EQ(heap::validate().what, nullptr);
  }).join();
  cache::set_counting(false);
}

// A signal handler that runs in the middle of a slow call, when its refill or its flush is done: here while it looks
// after the thread's stack arena.
void (*handler)() = nullptr;
cache::ArenaHooks hooks_that_interrupt() {
  cache::ArenaHooks hooks{};
  hooks.tick = [](ThreadCache&) noexcept {
    if (const auto handle = std::exchange(handler, nullptr)) handle();
  };
  hooks.validate = [](const ThreadCache&) noexcept -> const char* { return nullptr; };
  return hooks;
}

// Calls act() with `handle` as the handler of its first slow call.
template <typename Act>
void interrupt_slow_call_of(Act act, void (*handle)()) {
  static const cache::ArenaHooks hooks = hooks_that_interrupt();
  ThreadCache& c = *thread_cache;
  const cache::ArenaHooks* const before = cache::arena_hooks.exchange(&hooks);
  Arena* const arena = std::exchange(c.arena, reinterpret_cast<Arena*>(&c));  // any but null
  handler = handle;
  region::has_shrunk.store(false, std::memory_order_relaxed);  // or the call gives back what it has brought
  c.slow_calls = c.slow_calls / 256 * 256 + 255;
  act();
  EXPECT_EQ(handler, nullptr) << "nothing was interrupted";
  c.arena = arena;
  cache::arena_hooks = before;
}

constexpr size_t handled_size = 448;
constexpr unsigned handled_class = size_class_of(handled_size);
std::vector<void*> handled;

TEST_F(ThreadCacheTest, a_signal_handler_may_take_all_blocks_that_a_refill_has_just_brought) {
  void* block = nullptr;
  std::vector<void*> others;
  do
    others.push_back(test::allocate(handled_size));
  while (thread_cache->bins[handled_class].head != nullptr);
  cache::look_if_due();  // a heap that has shrunk would have the bin flushed
  handled.clear();
  interrupt_slow_call_of(
      [&] { block = test::allocate(handled_size); },
      [] { handled = allocate_many(cache::held_blocks(*thread_cache, handled_class), handled_size); });
  ASSERT_FALSE(handled.empty());
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(std::count(handled.begin(), handled.end(), block), 0);
  heap::free(block);
  free_many(handled);
  free_many(others);
}

TEST_F(ThreadCacheTest, a_signal_handler_may_fill_the_bin_that_a_flush_has_just_emptied) {
  Bin& bin = thread_cache->bins[handled_class];
  void* block = test::allocate(handled_size);
  handled = allocate_many(3 * static_cast<size_t>(bin.cap), handled_size);
  while (bin.room > 0) {
    heap::free(handled.back());
    handled.pop_back();
  }
  interrupt_slow_call_of([&] { heap::free(block); },
                         [] {
                           while (thread_cache->bins[handled_class].room > 0) {
                             heap::free(handled.back());
                             handled.pop_back();
                           }
                         });
  EXPECT_GE(bin.room, 0);
  EXPECT_EQ(heap::validate().what, nullptr);
  free_many(handled);
}

// A handler that comes while the thread changes its lists finds its lock taken.
TEST_F(ThreadCacheTest, a_signal_handler_takes_no_medium_block_from_lists_that_are_being_changed) {
  void* const first = test::allocate(20000);
  heap::free(first);
  const unsigned k = size_class_of(20000);
  ASSERT_EQ(thread_cache->bins[k].head, first);
  thread_cache->lock.lock();
  void* const in_handler = heap::take_medium(20000, thread_cache);
  thread_cache->lock.unlock();
  EXPECT_EQ(in_handler, nullptr);
  EXPECT_EQ(heap::take_medium(20000, thread_cache), first);
  heap::free(first);
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
