// How much a thread's cache keeps: its budget, what makes that grow and shrink, and what goes when it is not enough.
#include "heap/budget.hpp"

#include <algorithm>
#include <functional>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/options.hpp"
#include "cache_test.hpp"
#include "heap/heap.hpp"
#include "heap/slab.hpp"
#include "heap/sparse.hpp"
#include "heap/thread_cache.hpp"
#include "heap/thread_life.hpp"
#include "heap/transfer.hpp"
#include "heap_calls.hpp"
#include "os/memory.hpp"
#include "random_blocks.hpp"
#include "without_stand_ins.hpp"

namespace {

using namespace sluice;
using test::allocate_many;
using test::free_many;
using test::Random;
using test::shuffle;

class BudgetTest : public test::CacheTest {};

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

// Calls act(cache) on a thread whose cache is empty and has the budget that caches have at first. What comes back too
// early makes that larger whenever it does so: how often it may, by the clock, is in budget_fault_test.cpp.
template <typename Act>
void on_a_new_thread(Act act) {
  std::thread([act] {
    heap::free(test::allocate(1));
    for (unsigned k = 1; k < size_class_count; ++k) {
      thread_cache->uses[k].earned = static_cast<uint16_t>(budget::first_cap(k));
      thread_cache->uses[k].evicted_at = 0;
    }
    cache::flush_own();
    thread_cache->budget_kib = budget::at_first();
    thread_cache->paid_until = UINT64_MAX / 2;
    act(*thread_cache);
  }).join();
}

TEST_F(BudgetTest, a_thread_that_freed_everything_keeps_no_more_than_its_budget) {
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

TEST_F(BudgetTest, one_class_after_the_other_leaves_no_more_than_the_budget) {
  on_a_new_thread([](ThreadCache& c) {
    for (unsigned k = 1; k < size_class_count; ++k) {
      for (int round = 0; round < 3; ++round)
        free_many(allocate_many((size_t{192} << 10) / class_sizes[k], class_sizes[k]));
      EXPECT_LE(carved_kib(c), budget::at_first()) << k;
    }
    EXPECT_EQ(c.budget_kib, budget::at_first());
  });
}

// What lies in the lists of a cache, in KiB.
size_t held_kib(const ThreadCache& c) {
  size_t bytes = 0;
  for (unsigned k = 1; k < size_class_count; ++k)
    bytes += size_t{cache::held_blocks(c, k)} * class_sizes[k];
  return bytes >> 10;
}

// Each class gets as many as its bin has room for, so that none is ever full.
TEST_F(BudgetTest, larger_blocks_of_other_threads_lie_in_a_cache_within_its_budget) {
  for (int round = 0; round < 2; ++round) {  // a cache that nobody had before, and one that an ended thread left
    std::vector<void*> blocks;
    size_t kib = 0;
    for (unsigned k = size_class_of(8 * 1024 + 1); k < size_class_count; ++k)
      for (int i = 0; i < 2; ++i) {
        blocks.push_back(allocate_many(1, class_sizes[k]).front());
        kib += class_sizes[k] >> 10;
      }
    ASSERT_GT(kib, 8 * budget::at_first());
    on_a_new_thread([&blocks](ThreadCache& c) {
      free_many(blocks);
      EXPECT_EQ(c.budget_kib, budget::at_first());
      EXPECT_LE(held_kib(c), budget::at_first() + 2 * (max_small_size >> 10));  // the class that came last is spared
      EXPECT_GT(held_kib(c), 0u);
    });
  }
}

// However often they come.
TEST_F(BudgetTest, larger_blocks_of_other_threads_make_no_budget_grow_that_is_four_times_the_first) {
  std::vector<void*> blocks;
  for (int round = 0; round < 40; ++round)
    for (unsigned k = size_class_of(8 * 1024 + 1); k < size_class_count; ++k)
      blocks.push_back(allocate_many(1, class_sizes[k]).front());
  on_a_new_thread([&blocks](ThreadCache& c) {
    free_many(blocks);
    EXPECT_LT(c.budget_kib, 4 * budget::at_first() + (4 + 4 * budget::at_first() / 8));  // by one step more
    EXPECT_LE(held_kib(c), c.budget_kib + 2 * (max_small_size >> 10));
  });
}

TEST_F(BudgetTest, blocks_that_others_passed_on_make_no_budget_grow_that_is_four_times_the_first) {
  constexpr unsigned k = size_class_of(1'000);
  ThreadCache& c = *thread_cache;
  const auto budget_after_returns = [&c](uint32_t from) {
    c.budget_kib = from;
    for (int times = 0; times < 10'000; ++times) {
      c.uses[k].evicted_at = static_cast<uint16_t>(c.slow_calls - 1);
      budget::note_passed_on(c, k);
      EXPECT_EQ(c.uses[k].evicted_at, 0);
    }
    return c.budget_kib;
  };
  c.slow_calls = 1'000;
  EXPECT_GE(budget_after_returns(budget::at_first()), 4 * budget::at_first());
  EXPECT_EQ(budget_after_returns(4 * budget::at_first()), 4 * budget::at_first());
  EXPECT_LT(budget_after_returns(4 * budget::at_first() - 1), 5 * budget::at_first());
  c.budget_kib = budget::at_first();
}

TEST_F(BudgetTest, a_new_cache_has_no_room_for_larger_blocks) {
  constexpr unsigned larger = size_class_of(9 * 1024);
  std::vector<const ThreadCache*> old;
  for (const ThreadCache* c = cache::first(); c != nullptr; c = c->next_cache)
    old.push_back(c);
  bool any_new = false;
  const std::function<void(size_t)> start_threads = [&](size_t more) {  // each waits for the next, so that none ends
    const ThreadCache& c = cache::attach();  // no call yet that would flush it, as the last trim has asked
    if (std::find(old.begin(), old.end(), &c) == old.end()) {
      any_new = true;
      EXPECT_EQ(c.bins[larger].room, 0);
      EXPECT_EQ(c.bins[larger].cap, 0);
      EXPECT_EQ(c.bins[larger - 1].room, budget::first_cap(larger - 1));
    } else if (more != 0) {
      std::thread(start_threads, more - 1).join();
    }
  };
  start_threads(old.size());
  EXPECT_TRUE(any_new);
}

TEST_F(BudgetTest, a_larger_class_that_was_evicted_counts_for_its_room_from_its_next_block_on) {
  constexpr unsigned k = size_class_of(20'000);
  on_a_new_thread([](ThreadCache& c) {
    EXPECT_EQ(c.bins[k].room, 0);
    heap::free(test::allocate(20'000));
    EXPECT_EQ(c.uses[k].kept_kib, budget::to_kib(c.uses[k].earned, k));
    EXPECT_EQ(c.bins[k].room, c.uses[k].earned - 1);
    c.lock.lock();
    c.slow_calls = 7;
    budget::note_evicted(c, k);
    c.lock.unlock();
    EXPECT_NE(c.uses[k].evicted_at, 0);
    cache::flush_own();
    EXPECT_EQ(c.uses[k].kept_kib, 0u);
    EXPECT_EQ(c.bins[k].room, 0);
    EXPECT_EQ(c.bins[size_class_of(8 * 1024)].room, budget::first_cap(size_class_of(8 * 1024)));
  });
}

TEST_F(BudgetTest, the_last_free_of_a_class_that_keeps_too_much_gives_its_slabs_back) {
  constexpr unsigned k = size_class_of(1'900);
  on_a_new_thread([](ThreadCache& c) {
    c.budget_kib = 8;
    const std::vector<void*> blocks = allocate_many(11, 1'900);
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

// Blocks whose neighbours in the order of frees lie in another slab are set aside, most of them without a look.
TEST_F(BudgetTest, the_last_free_is_seen_however_many_blocks_before_it_were_set_aside) {
  constexpr unsigned k = size_class_of(64);
  on_a_new_thread([](ThreadCache& c) {
    for (size_t count = 3'000; count < 3'020; ++count) {
      c.budget_kib = 8;
      c.uses[k].earned = static_cast<uint16_t>(budget::first_cap(k));
      const std::vector<void*> blocks = allocate_many(count, 64);
      bool aside = false;
      for (size_t i = 0; i < count / 3; ++i) {
        for (size_t third = 0; third < 3; ++third)
          heap::free(blocks[third * (count / 3) + i]);
        aside = aside || c.uses[k].unseen != 0;
      }
      EXPECT_TRUE(aside);
      for (size_t i = count / 3 * 3; i < count; ++i)
        heap::free(blocks[i]);
      EXPECT_EQ(c.uses[k].used.load(std::memory_order_relaxed), 0u) << count;
      EXPECT_EQ(c.uses[k].kept_kib, 0u) << count;
    }
  });
}

TEST_F(BudgetTest, blocks_that_come_and_go_in_random_order_come_to_take_few_slow_calls) {
  on_a_new_thread([](ThreadCache& c) {
    std::vector<void*> blocks = allocate_many(12'000, 64);
    const auto replace_some = [&blocks](uint64_t round) {
      shuffle(blocks, round);
      for (size_t i = 0; i < 800; ++i)
        heap::free(blocks[i]);
      for (size_t i = 0; i < 800; ++i)
        blocks[i] = test::allocate(64);
    };
    for (uint64_t round = 1; round <= 30; ++round)
      replace_some(round);
    const uint32_t slow_calls = c.slow_calls;
    for (uint64_t round = 31; round <= 50; ++round)
      replace_some(round);
    EXPECT_LE(c.slow_calls - slow_calls, 20u);
    free_many(blocks);
  });
}

TEST_F(BudgetTest, within_the_budget_a_class_takes_no_other_calls_than_without) {
  constexpr unsigned k = size_class_of(1'700);
  on_a_new_thread([](ThreadCache& c) {
    free_many(allocate_many(11, 1'700));
    EXPECT_EQ(c.uses[k].kept_kib, carved_kib(c));
    const uint32_t slow_calls = c.slow_calls;
    for (int round = 0; round < 10; ++round) {
      free_many(allocate_many(4, 1'700));
      EXPECT_EQ(c.bins[k].cap, c.uses[k].earned);
    }
    EXPECT_EQ(c.slow_calls, slow_calls);
  });
}

TEST_F(BudgetTest, blocks_that_are_freed_at_once_take_no_slow_path) {
  on_a_new_thread([](ThreadCache& c) {
    free_many(allocate_many(3, 1'700));
    const uint32_t slow_calls = c.slow_calls;
    for (size_t most = 1; most < 3; ++most)
      for (int round = 0; round < 100; ++round)
        free_many(allocate_many(most, 1'700));
    EXPECT_EQ(c.slow_calls, slow_calls);
  });
}

TEST_F(BudgetTest, the_budget_grows_with_use_and_shrinks_without) {
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

TEST_F(BudgetTest, blocks_of_many_classes_that_are_replaced_in_turn_come_to_take_no_slow_path) {
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

TEST_F(BudgetTest, blocks_of_many_classes_that_come_and_go_together_come_to_take_no_slow_path) {
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
TEST_F(BudgetTest, blocks_that_come_and_go_in_bursts_come_to_take_few_slow_calls) {
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
TEST_F(BudgetTest, a_thread_that_is_busy_with_one_class_gives_back_what_lies_idle) {
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

TEST_F(BudgetTest, a_class_that_goes_beyond_the_budget_again_and_again_keeps_its_slabs) {
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

TEST_F(BudgetTest, eight_blocks_of_any_class_swing_between_the_lists_alone) {
  on_a_new_thread([](ThreadCache& c) {
    for (const size_t size : {16'384u, 40'000u, 65'536u}) {
      std::vector<void*> blocks(8);
      const auto round = [&blocks, size] {
        for (void*& block : blocks)
          block = test::allocate(size);
        free_many(blocks);
      };
      for (int i = 0; i < 200; ++i)
        round();
      const uint32_t before = c.slow_calls;
      for (int i = 0; i < 100; ++i)
        round();
      EXPECT_LE(c.slow_calls - before, 100u) << size;
    }
  });
}

void take_and_free(size_t count, size_t size) {
  std::vector<void*> blocks(count);
  for (void*& block : blocks)
    block = test::allocate(size);
  free_many(blocks);
}
void take_and_free_eight(size_t size) {
  take_and_free(8, size);
}

// As on_a_new_thread, where tests before this one have left nothing that is still to go.
template <typename Act>
void on_a_settled_heap(Act act) {
  on_a_new_thread([act](ThreadCache& c) {
    (void)region::purge_all(0);
    sparse::next_due = sparse::never;
    act(c);
  });
}

TEST_F(BudgetTest, eight_blocks_of_one_class_come_to_take_no_slow_path) {
  on_a_settled_heap([](ThreadCache& c) {
    for (const size_t size : {1'024u, 2'048u, 8'192u, 40'000u, 65'536u}) {
      for (uint32_t round = 0; round < 2 * cache::idle_after + 100; ++round)  // until what lay idle has gone
        take_and_free_eight(size);
      const uint32_t before = c.slow_calls;
      for (int round = 0; round < 100; ++round)
        take_and_free_eight(size);
      EXPECT_EQ(c.slow_calls - before, 0u) << size;
    }
  });
}

TEST_F(BudgetTest, of_many_blocks_of_4_to_30_kib_few_take_a_slow_path) {
  on_a_settled_heap([](ThreadCache& c) {
    for (const size_t size : {4'096u, 10'000u, 16'384u, 30'000u}) {
      for (int round = 0; round < 500; ++round)
        take_and_free(100, size);
      const uint32_t before = c.slow_calls;
      for (int round = 0; round < 100; ++round)
        take_and_free(100, size);
      EXPECT_LE(c.slow_calls - before, 4'000u) << size;  // of 10,000 pairs
    }
  });
}

TEST_F(BudgetTest, lists_become_long_where_a_thread_flushes_one_class_alone_and_the_budget_allows_both) {
  constexpr size_t size = 10'000;
  const unsigned k = size_class_of(size);
  on_a_settled_heap([=](ThreadCache& c) {
    uint32_t longest = 0;
    for (int round = 0; round < 5'000 && longest < 16; ++round) {
      take_and_free(30, size);  // more, and they would be longer, beside the budget: budget_fault_test.cpp
      ASSERT_LE(2 * c.uses[k].earned * class_sizes[k], std::max<size_t>(c.budget_kib << 10, 8 * class_sizes[k]));
      longest = std::max<uint32_t>(longest, c.uses[k].earned);
    }
    EXPECT_GE(longest, 16u);
  });
}

TEST_F(BudgetTest, lists_stay_short_where_a_thread_flushes_two_classes_as_often) {
  on_a_settled_heap([](ThreadCache& c) {
    for (int round = 0; round < 1'000; ++round)
      for (const size_t size : {10'000u, 20'000u})
        take_and_free(100, size);
    for (const size_t size : {10'000u, 20'000u})
      EXPECT_LT(c.uses[size_class_of(size)].earned, 2 * budget::most_cap(size_class_of(size))) << size;
  });
}

TEST_F(BudgetTest, eight_blocks_of_two_classes_in_turn_come_to_take_no_slow_path) {
  on_a_settled_heap([](ThreadCache& c) {
    const auto rounds = [](int count) {
      for (int round = 0; round < count; ++round)
        for (const size_t size : {8'192u, 16'384u})
          take_and_free_eight(size);
    };
    rounds(2'000);
    const uint32_t before = c.slow_calls;
    rounds(100);
    EXPECT_EQ(c.slow_calls - before, 0u);
  });
}

TEST_F(BudgetTest, lists_take_the_room_of_two_when_what_lies_idle_has_gone) {
  constexpr unsigned busy = size_class_of(8'192);
  on_a_settled_heap([](ThreadCache& c) {
    std::vector<unsigned> idle;
    for (unsigned k = 1; k < size_class_of(4'096); k += 7) {
      free_many(allocate_many(10, class_sizes[k]));
      idle.push_back(k);
    }
    int round = 0;
    for (; round < 5'000 && c.uses[busy].earned < 8; ++round)
      take_and_free_eight(8'192);
    EXPECT_LT(round, 5'000);
    for (const unsigned k : idle)
      EXPECT_EQ(c.uses[k].carved, 0u) << class_sizes[k];
  });
}

TEST_F(BudgetTest, lists_take_the_room_of_two_no_sooner_after_another_class_was_needed) {
  constexpr unsigned busy = size_class_of(8'192), other = size_class_of(1'024);
  on_a_settled_heap([](ThreadCache& c) {
    for (int round = 0; round < 2'000; ++round)
      take_and_free_eight(8'192);
    heap::free(test::allocate(1'024));
    ASSERT_NE(c.uses[other].carved, 0u);
    while (c.uses[busy].earned < 8)
      take_and_free_eight(8'192);
    EXPECT_EQ(c.uses[other].carved, 0u);
  });
}

TEST_F(BudgetTest, lists_stay_as_they_are_while_vacant_pages_are_due) {
  constexpr unsigned k = size_class_of(8'192);
  on_a_settled_heap([](ThreadCache& c) {
    sparse::next_due = os::clock_ms() + 3'600'000;
    for (int round = 0; round < 5'000; ++round)
      take_and_free_eight(8'192);
    EXPECT_LT(c.uses[k].earned, 8);
    sparse::next_due = sparse::never;
    for (int round = 0; round < 5'000 && c.uses[k].earned < 8; ++round)
      take_and_free_eight(8'192);
    EXPECT_EQ(c.uses[k].earned, 8);
  });
}

TEST_F(BudgetTest, lists_stay_as_they_are_while_free_pages_wait_for_their_age) {
  constexpr unsigned k = size_class_of(8'192);
  on_a_settled_heap([](ThreadCache& c) {
    const uint64_t delay = std::exchange(options.purge_delay, 3'600'000);
    void* const large = test::allocate(size_t{8} << 20);
    heap::free(large);
    ASSERT_FALSE(region::dirty_may_stay());
    for (int round = 0; round < 5'000; ++round)
      take_and_free_eight(8'192);
    EXPECT_LT(c.uses[k].earned, 8);
    (void)region::purge_all(0);
    for (int round = 0; round < 5'000 && c.uses[k].earned < 8; ++round)
      take_and_free_eight(8'192);
    EXPECT_EQ(c.uses[k].earned, 8);
    options.purge_delay = delay;
  });
}

TEST_F(BudgetTest, a_list_that_took_the_room_of_two_keeps_it_until_its_class_lies_idle) {
  constexpr unsigned k = size_class_of(65'536);
  on_a_settled_heap([](ThreadCache& c) {
    while (c.uses[k].earned < 8)
      take_and_free_eight(65'536);
    budget::earn(c, k, 0);
    EXPECT_EQ(c.uses[k].earned, 8);
    for (int round = 0; round < 20'000 && c.uses[k].carved != 0; ++round)
      free_many(allocate_many(100, 64));
    EXPECT_EQ(c.uses[k].carved, 0u);
    EXPECT_EQ(c.uses[k].earned, budget::first_cap(k));
  });
}

TEST_F(BudgetTest, the_lists_of_a_small_cache_take_the_room_of_two_and_no_more) {
  const size_t before = std::exchange(options.cache, 4096);
  on_a_settled_heap([](ThreadCache& c) {
    constexpr unsigned k = size_class_of(1'024);
    ASSERT_EQ(budget::most_cap(k), 2);
    for (const size_t count : {4u, 8u})
      for (int round = 0; round < 4'000; ++round)
        take_and_free(count, 1'024);
    EXPECT_EQ(c.uses[k].earned, 4);
  });
  options.cache = before;
}

TEST_F(BudgetTest, the_lists_of_a_small_cache_hold_two_blocks_or_one) {
  const size_t before = std::exchange(options.cache, 4096);
  EXPECT_EQ(budget::most_cap(size_class_of(4096)), 2);
  EXPECT_EQ(budget::most_cap(size_class_of(5000)), 1);
  options.cache = 64 * 1024;
  EXPECT_EQ(budget::most_cap(size_class_of(1'024)), 32);
  EXPECT_EQ(budget::most_cap(size_class_of(2'048)), 15);
  EXPECT_EQ(budget::most_cap(size_class_of(16'384)), 4);
  EXPECT_EQ(budget::most_cap(size_class_of(65'536)), 4);
  options.cache = before;
}

TEST_F(BudgetTest, blocks_that_other_threads_freed_do_not_hide_that_the_last_one_comes_back) {
  constexpr size_t size = 2'000;
  on_a_new_thread([](ThreadCache& c) {
    c.budget_kib = 8;
    c.uses[size_class_of(size)].earned = 2;
    const std::vector<void*> blocks = allocate_many(20, size);
    std::thread([&blocks] {
      free_many(std::vector<void*>(blocks.begin(), blocks.begin() + 8));
      cache::flush_own();
      cache::transfer::flush();
    }).join();
    free_many(std::vector<void*>(blocks.begin() + 8, blocks.end()));
    EXPECT_EQ(carved_kib(c), 0u);
  });
}

TEST_F(BudgetTest, a_class_that_looked_idle_gives_back_the_budget_that_it_takes_along) {
  constexpr unsigned k = size_class_of(1'000);
  on_a_new_thread([](ThreadCache& c) {
    std::vector<void*> others(2'000);  // here, so that no class is in use but those of the blocks
    c.budget_kib = 512;
    free_many(allocate_many(100, 1'000));
    for (int round = 0; round < 4'000 && c.uses[k].evicted_at == 0; ++round) {
      for (void*& block : others)
        block = test::allocate(64);
      free_many(others);
    }
    EXPECT_LE(c.budget_kib, 512u - 90);
    heap::free(test::allocate(1'000));
    EXPECT_EQ(c.budget_kib, 512u);
  });
}

TEST_F(BudgetTest, a_class_that_looks_idle_again_and_again_gets_no_more_budget) {
  constexpr unsigned k = size_class_of(1'000);
  // Where pages are as large as slabs, those are carved in fewer and larger pieces, which count as kept.
  static const size_t others = os::page_size() < unit_size ? 1'500 : 1'100;
  on_a_new_thread([](ThreadCache& c) {
    for (int time = 0; time < 5; ++time) {
      heap::free(test::allocate(1'000));
      ASSERT_NE(c.bins[k].head, nullptr);
      // Lists that hold them all change places once in a round: that is a slow call, too.
      for (int round = 0; round < 6'000 && c.bins[k].head != nullptr; ++round)
        free_many(allocate_many(others, 64));
      EXPECT_EQ(c.bins[k].head, nullptr);
    }
    EXPECT_EQ(c.budget_kib, budget::at_first());
  });
}

TEST_F(BudgetTest, scattered_blocks_go_when_a_class_is_evicted) {
  on_a_new_thread([](ThreadCache& c) {
    std::vector<void*> blocks = allocate_many(5'000, 64);
    shuffle(blocks, 7);
    free_many(allocate_many(20, 1'000));
    heap::free(test::allocate(3'000));
    while (c.scattered_count < 10) {
      heap::free(blocks.back());
      blocks.pop_back();
    }
    std::vector<void*> large{test::allocate(3'000)};
    while (c.bins[size_class_of(3'000)].head != nullptr)
      large.push_back(test::allocate(3'000));
    c.budget_kib = 1;  // the next one needs a refill, but no slab
    EXPECT_GT(c.kept_kib, 1u);
    large.push_back(test::allocate(3'000));
    EXPECT_EQ(c.scattered_count, 0u);
    free_many(large);
    free_many(blocks);
  });
}

TEST_F(BudgetTest, the_budget_allows_a_page_of_each_class_however_small_caches_are) {
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

TEST_F(BudgetTest, a_thread_that_gets_the_cache_of_another_begins_with_half_its_budget) {
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

TEST_F(BudgetTest, classes_that_keep_more_than_any_budget_do_not_evict_one_another_for_good) {
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

TEST_F(BudgetTest, a_budget_that_one_busy_class_goes_beyond_grows_to_what_it_keeps) {
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

}  // namespace
