// Thread caches: they fill and empty in batches, grow with use, and take in what other threads free.
// thread_life_test.cpp has what happens when their threads end.
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
#include "heap/budget.hpp"
#include "heap/heap.hpp"
#include "heap/thread_life.hpp"
#include "heap_calls.hpp"
#include "random_blocks.hpp"

namespace {

using namespace sluice;
using test::allocate_many;
using test::free_many;
using test::Random;
using test::used_blocks;

constexpr unsigned class_of_64 = size_class_of(64);

void shuffle(std::vector<void*>& blocks, uint64_t seed) {
  Random random(seed);
  for (size_t i = blocks.size(); i > 1; --i)
    std::swap(blocks[i - 1], blocks[random.below(i)]);
}

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
  EXPECT_EQ(heap::validate().what, nullptr);
  cache::flush_idle();
  EXPECT_EQ(used_blocks(class_of_64), 0u);
}

// What the slabs of a cache have had in use so far, in KiB.
size_t carved_kib(const ThreadCache& c) {
  size_t bytes = 0;
  cache::lock_all();
  for (size_t i = region::first_index(); i < region::limit(); i += region::unit_at(i)->units) {
    const Unit* unit = region::unit_at(i);
    if (unit->use() == UnitState::Slab && unit->owner.load(std::memory_order_relaxed) == &c)
      bytes += size_t{unit->slab.carved} * class_sizes[unit->slab.size_class];
  }
  cache::unlock_all();
  return bytes >> 10;
}

// Calls act(cache) on a thread whose cache is empty and has the budget that caches have at first.
template <typename Act>
void on_a_new_thread(Act act) {
  std::thread([act] {
    heap::free(test::allocate(1));
    for (unsigned k = 1; k < size_class_count; ++k)
      thread_cache->uses[k].earned = static_cast<uint16_t>(budget::first_cap(k));
    cache::flush_own();
    thread_cache->budget_kib = budget::at_first();
    act(*thread_cache);
  }).join();
}

TEST_F(ThreadCacheTest, a_thread_that_freed_everything_keeps_no_more_than_its_budget) {
  on_a_new_thread([](ThreadCache& c) {
    Random random(3);
    std::vector<void*> blocks;
    for (size_t bytes = 0; bytes < size_t{4} << 20;) {
      const size_t size = 1 + random.below(random.below(2) == 0 ? 500 : 20'000);
      blocks.push_back(allocate_many(1, size).front());
      bytes += size;
    }
    shuffle(blocks, 5);
    free_many(blocks);
    EXPECT_EQ(c.budget_kib, budget::at_first());
    EXPECT_LE(carved_kib(c), c.budget_kib);
  });
}

TEST_F(ThreadCacheTest, one_class_after_the_other_leaves_no_more_than_the_budget) {
  on_a_new_thread([](ThreadCache& c) {
    for (unsigned k = 1; k < size_class_count; ++k) {
      for (int round = 0; round < 3; ++round)
        free_many(allocate_many((size_t{256} << 10) / class_sizes[k], class_sizes[k]));
      EXPECT_LE(carved_kib(c), budget::at_first()) << k;
    }
    EXPECT_EQ(c.budget_kib, budget::at_first());
  });
}

TEST_F(ThreadCacheTest, the_last_free_of_a_class_that_keeps_too_much_gives_its_slabs_back) {
  constexpr unsigned k = size_class_of(2'000);
  on_a_new_thread([](ThreadCache& c) {
    c.budget_kib = 8;
    const std::vector<void*> blocks = allocate_many(11, 2'000);
    for (size_t i = 0; i + 1 < blocks.size(); ++i)
      heap::free(blocks[i]);
    EXPECT_EQ(c.bins[k].room, 0);
    EXPECT_EQ(c.uses[k].carved, 12u);
    heap::free(blocks.back());
    EXPECT_EQ(c.uses[k].carved, 0u);
    EXPECT_EQ(c.uses[k].kept_kib, 0u);
    EXPECT_EQ(c.bins[k].cap, c.uses[k].earned);
  });
}

TEST_F(ThreadCacheTest, within_the_budget_a_class_takes_no_other_calls_than_without) {
  constexpr unsigned k = size_class_of(2'000);
  on_a_new_thread([](ThreadCache& c) {
    free_many(allocate_many(11, 2'000));
    EXPECT_EQ(c.uses[k].kept_kib, carved_kib(c));
    const uint32_t slow_calls = c.slow_calls;
    for (int round = 0; round < 10; ++round) {
      free_many(allocate_many(4, 2'000));
      EXPECT_EQ(c.bins[k].cap, c.uses[k].earned);
    }
    EXPECT_EQ(c.slow_calls, slow_calls);
  });
}

TEST_F(ThreadCacheTest, blocks_that_are_freed_at_once_take_no_slow_path) {
  on_a_new_thread([](ThreadCache& c) {
    free_many(allocate_many(3, 2'000));
    const uint32_t slow_calls = c.slow_calls;
    for (size_t most = 1; most < 3; ++most)
      for (int round = 0; round < 100; ++round)
        free_many(allocate_many(most, 2'000));
    EXPECT_EQ(c.slow_calls, slow_calls);
  });
}

TEST_F(ThreadCacheTest, the_budget_grows_with_use_and_shrinks_without) {
  on_a_new_thread([](ThreadCache& c) {
    const auto use_classes = [](unsigned first, unsigned end) {
      for (unsigned k = first; k < end; ++k)
        free_many(allocate_many(20'000 / class_sizes[k], class_sizes[k]));
    };
    for (int round = 0; round < 100; ++round)
      use_classes(20, 40);
    const uint32_t grown = c.budget_kib;
    EXPECT_GT(grown, 2 * budget::at_first());
    const auto count_evicted = [&c] {
      return std::count_if(c.uses, c.uses + size_class_count, [](const ClassUse& use) { return use.evicted_at != 0; });
    };
    const auto evicted = count_evicted();
    for (int round = 0; round < 10; ++round) {
      use_classes(20, 40);
      EXPECT_EQ(count_evicted(), evicted) << "it was large enough";
    }
    for (int round = 0; round < 4'000 && c.budget_kib >= grown / 2; ++round)
      free_many(allocate_many(2'000, 64));
    EXPECT_LT(c.budget_kib, grown / 2);
    EXPECT_LE(carved_kib(c), c.budget_kib);
  });
}

// Calls act(round) until no slow call was made in it. Returns: the number of rounds.
template <typename Act>
int rounds_until_fast(const ThreadCache& c, Act act) {
  for (int round = 1; round < 2'000; ++round) {
    const uint32_t slow_calls = c.slow_calls;
    act();
    if (c.slow_calls == slow_calls) return round;
  }
  return 2'000;
}

constexpr unsigned many_classes = 60;

TEST_F(ThreadCacheTest, blocks_of_many_classes_that_are_replaced_in_turn_come_to_take_no_slow_path) {
  on_a_new_thread([](ThreadCache& c) {
    void* blocks[many_classes + 1];
    for (unsigned k = 1; k <= many_classes; ++k)
      blocks[k] = test::allocate(class_sizes[k]);
    EXPECT_LT(rounds_until_fast(c,
                                [&blocks] {
                                  for (unsigned k = 1; k <= many_classes; ++k) {
                                    heap::free(blocks[k]);
                                    blocks[k] = test::allocate(class_sizes[k]);
                                  }
                                }),
              200);
    EXPECT_LE(c.budget_kib, 2 * carved_kib(c));
    free_many(std::vector<void*>(blocks + 1, blocks + many_classes + 1));
  });
}

TEST_F(ThreadCacheTest, blocks_of_many_classes_that_come_and_go_together_come_to_take_no_slow_path) {
  on_a_new_thread([](ThreadCache& c) {
    EXPECT_LT(rounds_until_fast(c,
                                [] {
                                  std::vector<void*> blocks;
                                  for (unsigned k = 1; k <= many_classes; ++k)
                                    blocks.push_back(test::allocate(class_sizes[k]));
                                  free_many(blocks);
                                }),
              200);
    EXPECT_LE(c.budget_kib, 2 * carved_kib(c));
  });
}

// However full the bins are when a burst begins, and whatever the classes in use keep.
TEST_F(ThreadCacheTest, blocks_that_come_and_go_in_bursts_come_to_take_few_slow_calls) {
  on_a_new_thread([](ThreadCache& c) {
    constexpr size_t most = 4'000, step = 64, live = 8;
    std::vector<std::vector<void*>> blocks;
    for (size_t size = 16; size < most; size += step)
      blocks.push_back(allocate_many(live, size));
    uint32_t slow_calls = 0;
    for (int round = 0; round < 30; ++round) {
      slow_calls = c.slow_calls;
      for (size_t i = 0; i < blocks.size(); ++i)
        for (size_t burst = 1; burst < live; ++burst) {
          for (size_t j = 0; j < burst; ++j)
            heap::free(blocks[i][j]);
          for (size_t j = 0; j < burst; ++j)
            blocks[i][j] = test::allocate(16 + i * step);
        }
    }
    EXPECT_LT(c.slow_calls - slow_calls, blocks.size()) << "in " << blocks.size() * (live - 1) << " bursts";
    for (const auto& each : blocks)
      free_many(each);
  });
}

// One class in use, in bursts that its two lists can hold: the thread gives back what lies idle all the same.
TEST_F(ThreadCacheTest, a_thread_that_is_busy_with_one_class_gives_back_what_lies_idle) {
  on_a_new_thread([](ThreadCache& c) {
    free_many(allocate_many(100, 1'000));
    const auto is_idle_kept = [&c] { return c.uses[size_class_of(1'000)].carved != 0; };
    EXPECT_TRUE(is_idle_kept());
    for (int round = 0; round < 20'000 && is_idle_kept(); ++round)
      free_many(allocate_many(100, 64));
    EXPECT_FALSE(is_idle_kept());
    cache::ask_for_flushes();  // as a trim by another thread does
    const uint32_t seen = c.flushes_seen;
    for (int round = 0; round < 1'000 && c.flushes_seen == seen; ++round)
      free_many(allocate_many(100, 64));
    EXPECT_NE(c.flushes_seen, seen);
  });
}

TEST_F(ThreadCacheTest, a_class_that_goes_beyond_the_budget_again_and_again_keeps_its_slabs) {
  on_a_new_thread([](ThreadCache& c) {
    constexpr size_t size = 40'000;
    free_many(allocate_many(8, size));
    EXPECT_EQ(carved_kib(c), 0u);
    EXPECT_EQ(c.budget_kib, budget::at_first());
    for (int round = 0; round < 100; ++round)
      free_many(allocate_many(8, size));
    const size_t carved = carved_kib(c);
    EXPECT_GE(carved, 8 * size >> 10);
    EXPECT_LT(c.budget_kib, 2 * carved);
  });
}

TEST_F(ThreadCacheTest, blocks_that_other_threads_freed_do_not_hide_that_the_last_one_comes_back) {
  constexpr size_t size = 2'000;
  on_a_new_thread([](ThreadCache& c) {
    c.budget_kib = 8;
    c.uses[size_class_of(size)].earned = 2;
    const std::vector<void*> blocks = allocate_many(20, size);
    std::thread([&blocks] {
      free_many(std::vector<void*>(blocks.begin(), blocks.begin() + 8));
      cache::flush_own();
    }).join();
    free_many(std::vector<void*>(blocks.begin() + 8, blocks.end()));
    EXPECT_EQ(carved_kib(c), 0u);
  });
}

TEST_F(ThreadCacheTest, a_class_that_looked_idle_gives_back_the_budget_that_it_takes_along) {
  constexpr unsigned k = size_class_of(1'000);
  on_a_new_thread([](ThreadCache& c) {
    c.budget_kib = 512;
    free_many(allocate_many(100, 1'000));
    for (int round = 0; round < 4'000 && c.uses[k].evicted_at == 0; ++round)
      free_many(allocate_many(2'000, 64));
    EXPECT_LE(c.budget_kib, 512u - 90);
    heap::free(test::allocate(1'000));
    EXPECT_EQ(c.budget_kib, 512u);
  });
}

TEST_F(ThreadCacheTest, a_class_that_looks_idle_again_and_again_gets_no_more_budget) {
  constexpr unsigned k = size_class_of(1'000);
  on_a_new_thread([](ThreadCache& c) {
    for (int time = 0; time < 5; ++time) {
      heap::free(test::allocate(1'000));
      ASSERT_NE(c.bins[k].head, nullptr);
      for (int round = 0; round < 2'000 && c.bins[k].head != nullptr; ++round)
        free_many(allocate_many(1'500, 64));
      EXPECT_EQ(c.bins[k].head, nullptr);
    }
    EXPECT_EQ(c.budget_kib, budget::at_first());
  });
}

TEST_F(ThreadCacheTest, scattered_blocks_go_when_a_class_is_evicted) {
  on_a_new_thread([](ThreadCache& c) {
    std::vector<void*> blocks = allocate_many(5'000, 64);
    shuffle(blocks, 7);
    free_many(allocate_many(20, 1'000));
    heap::free(test::allocate(3'000));
    while (c.scattered_count < 10) {
      heap::free(blocks.back());
      blocks.pop_back();
    }
    void* const first = test::allocate(3'000);  // the next one needs a refill, but no slab
    c.budget_kib = 1;
    EXPECT_GT(c.kept_kib, 1u);
    void* const second = test::allocate(3'000);
    EXPECT_EQ(c.scattered_count, 0u);
    heap::free(first);
    heap::free(second);
    free_many(blocks);
  });
}

TEST_F(ThreadCacheTest, the_budget_allows_a_page_of_each_class_however_small_caches_are) {
  const size_t before = std::exchange(options.cache, 0);
  EXPECT_EQ(budget::at_first(), 128u);
  on_a_new_thread([](ThreadCache& c) {
    EXPECT_LT(rounds_until_fast(c,
                                [] {
                                  for (unsigned k = 1; k <= 40; ++k)
                                    heap::free(test::allocate(class_sizes[k]));
                                }),
              200);
  });
  options.cache = before;
}

TEST_F(ThreadCacheTest, a_thread_that_gets_the_cache_of_another_begins_with_half_its_budget) {
  const ThreadCache* left = nullptr;
  std::thread([&left] {
    heap::free(test::allocate(1));
    left = thread_cache;
    thread_cache->budget_kib = 4'096;
  }).join();
  for (const uint32_t expected : {2'048u, 1'024u, 512u, 256u, budget::at_first(), budget::at_first()}) {
    std::thread([left, expected] {
      heap::free(test::allocate(1));
      EXPECT_EQ(thread_cache, left);
      EXPECT_EQ(thread_cache->budget_kib, expected);
    }).join();
  }
}

TEST_F(ThreadCacheTest, classes_that_keep_more_than_any_budget_do_not_evict_one_another_for_good) {
  const size_t before = std::exchange(options.cache, 4096);
  on_a_new_thread([](ThreadCache& c) {
    const auto evicted = [&c] {
      size_t classes = 0;
      for (unsigned k = 1; k <= many_classes; ++k)
        classes += c.uses[k].evicted_at != 0;
      return classes;
    };
    const auto round = [] {
      std::vector<void*> blocks;
      for (unsigned k = 1; k <= many_classes; ++k)
        for (int i = 0; i < 8; ++i)
          blocks.push_back(test::allocate(class_sizes[k]));
      free_many(blocks);
    };
    round();
    EXPECT_GT(evicted(), 0u);
    for (int i = 0; i < 100; ++i)
      round();
    for (int i = 0; i < 20; ++i) {
      round();
      EXPECT_LT(evicted(), many_classes / 2) << "some may have looked idle, since they look alike each time";
    }
  });
  options.cache = before;
}

TEST_F(ThreadCacheTest, a_budget_that_one_busy_class_goes_beyond_grows_to_what_it_keeps) {
  on_a_new_thread([](ThreadCache& c) {
    const std::vector<void*> blocks = allocate_many(100, 1'000);
    free_many(blocks);
    c.budget_kib = 8;
    cache::tick(c, size_class_of(1'000));
    EXPECT_GE(c.kept_kib, 90u);
    EXPECT_EQ(c.budget_kib, c.kept_kib);
    EXPECT_NE(c.bins[size_class_of(1'000)].head, nullptr);
  });
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
  ASSERT_EQ(thread_cache->bins[handled_class].head, nullptr);
  handled.clear();
  interrupt_slow_call_of(
      [&] { block = test::allocate(handled_size); },
      [] { handled = allocate_many(cache::held_blocks(*thread_cache, handled_class), handled_size); });
  ASSERT_FALSE(handled.empty());
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(std::count(handled.begin(), handled.end(), block), 0);
  heap::free(block);
  free_many(handled);
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
