// What comes back too early, and how often the longest lists are flushed, by a clock that the test sets: how often it
// may be before a thread's cache keeps more.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/options.hpp"
#include "cache_test.hpp"
#include "heap/budget.hpp"
#include "heap/heap.hpp"
#include "heap/thread_cache.hpp"
#include "heap_calls.hpp"
#include "mock_os.hpp"
#include "os/memory.hpp"
#include "pages/region.hpp"
#include "without_stand_ins.hpp"

namespace {

using namespace sluice;
using test::allocate_many;
using test::free_many;

constexpr int at_once = 256;          // of what had nothing come back before the budget grows…
constexpr uint64_t ms_of_each = 1;    // …and one more each so many ms
constexpr int of_all_at_once = 4096;  // of all threads, and 16 more each ms
uint64_t beginning = 1'000'000;       // of the clock, in ms; later in each test, since what threads paid together stays
constexpr unsigned k = size_class_of(2'000);

class BudgetFaultTest : public test::CacheTest {
 protected:
  void SetUp() override {
    CacheTest::SetUp();
    beginning += 1'000'000;
    mock_os::set_clock(beginning);
    heap::free(test::allocate(1));
    cache::flush_own();
    thread_cache->budget_kib = budget::at_first();
    thread_cache->paid_until = 0;
  }
  void TearDown() override {
    budget::note_live(1);
    CacheTest::TearDown();
  }
};

// A class is evicted and needed again at once. Returns: whether the budget is larger then.
bool grows_by_return() {
  ThreadCache& c = *thread_cache;
  const uint32_t before = c.budget_kib;
  c.slow_calls = 1'000;
  c.uses[k].evicted_at = 999;
  budget::note_return(c, k);
  return c.budget_kib > before;
}

bool grows_by_last_free() {
  ThreadCache& c = *thread_cache;
  const uint32_t before = c.budget_kib;
  c.uses[k].last_free_at = static_cast<uint16_t>(c.slow_calls);
  c.uses[k].last_frees = 8;  // from now on each one counts
  for (int i = 0; i < 8; ++i)
    budget::note_last_free(c, k);
  return c.budget_kib > before;
}

TEST_F(BudgetFaultTest, the_budget_grows_where_classes_come_back_more_often_than_they_may) {
  for (int i = 0; i < at_once; ++i)
    ASSERT_FALSE(grows_by_return()) << i;
  EXPECT_TRUE(grows_by_return());
  EXPECT_TRUE(grows_by_return()) << "while it goes on";
}

TEST_F(BudgetFaultTest, what_comes_back_seldom_makes_it_no_larger_however_long_that_goes_on) {
  for (int i = 0; i < 10 * at_once; ++i) {
    mock_os::set_clock(beginning + static_cast<uint64_t>(i) * ms_of_each);
    ASSERT_FALSE(grows_by_return()) << i;
  }
}

TEST_F(BudgetFaultTest, who_waits_may_do_so_again_and_no_more_than_at_first) {
  const auto spend_all = [] {
    int times = 0;
    while (!grows_by_return())
      ++times;
    return times;
  };
  EXPECT_EQ(spend_all(), at_once);
  mock_os::set_clock(beginning + 10 * ms_of_each);
  EXPECT_EQ(spend_all(), 10);
  mock_os::set_clock(beginning + 100'000);
  EXPECT_EQ(spend_all(), at_once);
}

// Its pages go and are filled again: that costs more than the calls.
TEST_F(BudgetFaultTest, what_had_much_may_come_back_less_often_and_makes_room_for_as_much) {
  ThreadCache& c = *thread_cache;
  constexpr uint16_t blocks = 160;
  constexpr uint32_t kib = (blocks * class_sizes[k] + 1023) / 1024;
  int times = 0;
  for (; times <= at_once; ++times) {
    c.uses[k].carved_then = blocks;
    if (grows_by_return()) break;
  }
  EXPECT_EQ(times, 16 * at_once / static_cast<int>(kib + 16));
  EXPECT_EQ(c.budget_kib, budget::at_first() + kib);
  c.uses[k].carved_then = 0;
}

// There would be as many larger budgets as threads.
TEST_F(BudgetFaultTest, it_may_come_back_more_often_to_each_of_many_threads) {
  const auto at_once_among = [](size_t threads) {
    budget::note_live(threads);
    thread_cache->paid_until = 0;
    int times = 0;
    while (!grows_by_return())
      ++times;
    return times;
  };
  EXPECT_EQ(at_once_among(3), at_once);
  EXPECT_EQ(at_once_among(4), 2 * at_once);
  EXPECT_EQ(at_once_among(8), 4 * at_once);
  EXPECT_EQ(at_once_among(1'000), 4 * at_once);
}

TEST_F(BudgetFaultTest, larger_blocks_pay_as_others_do) {
  constexpr unsigned larger = size_class_of(20'000);
  static_assert(budget::counts_room(larger) && !budget::counts_room(k));
  ThreadCache& c = *thread_cache;
  const auto paid_by_return = [&c](unsigned size_class) {
    c.paid_until = 0;
    c.slow_calls = 1'000;
    c.uses[size_class].evicted_at = 999;
    c.uses[size_class].carved_then = 0;
    budget::note_return(c, size_class);
    return c.paid_until - os::clock_ms() * 16;
  };
  const uint64_t alone = paid_by_return(larger);
  budget::note_live(8);
  EXPECT_EQ(4 * paid_by_return(larger), alone);
  EXPECT_EQ(paid_by_return(larger), paid_by_return(k));
}

TEST_F(BudgetFaultTest, no_time_pays_more_than_32_times_the_price) {
  const auto paid = [](uint32_t kib) {
    thread_cache->paid_until = 0;
    (void)budget::is_too_often(*thread_cache, kib);
    return thread_cache->paid_until - os::clock_ms() * 16;
  };
  EXPECT_EQ(paid(48), 4 * 16);
  EXPECT_EQ(paid(112), 8 * 16);
  EXPECT_EQ(paid(1'000'000), 32 * 4 * 16);
}

TEST_F(BudgetFaultTest, threads_that_come_and_go_are_noted) {
  const auto pays = [] {
    thread_cache->paid_until = 0;
    (void)budget::is_too_often(*thread_cache, 1'000);
    return thread_cache->paid_until - os::clock_ms() * 16;
  };
  const uint64_t alone = pays();
  uint64_t among_eight = 0;
  {
    std::vector<std::thread> threads;
    std::atomic<int> waiting{0};
    std::atomic<bool> ends{false};
    for (int i = 0; i < 7; ++i)
      threads.emplace_back([&] {
        heap::free(test::allocate(1));
        ++waiting;
        while (!ends)
          std::this_thread::yield();
      });
    while (waiting != 7)
      std::this_thread::yield();
    among_eight = pays();
    ends = true;
    for (std::thread& thread : threads)
      thread.join();
  }
  EXPECT_EQ(among_eight, alone / 4);
  EXPECT_EQ(pays(), alone);
}

TEST_F(BudgetFaultTest, last_frees_pay_from_the_same_account) {
  for (int i = 0; i < at_once - 8; ++i)
    ASSERT_FALSE(grows_by_return()) << i;
  EXPECT_FALSE(grows_by_last_free());
  EXPECT_TRUE(grows_by_last_free());
}

// Each is the first of its thread.
TEST_F(BudgetFaultTest, all_threads_together_may_do_so_less_often_than_64_of_them_could) {
  const auto grows_of_another_thread = [] {
    thread_cache->paid_until = 0;
    return grows_by_return();
  };
  for (int i = 0; i < of_all_at_once; ++i)
    ASSERT_FALSE(grows_of_another_thread()) << i;
  EXPECT_TRUE(grows_of_another_thread());
  mock_os::set_clock(beginning + 2);
  for (int i = 0; i < 2 * 16; ++i)
    ASSERT_FALSE(grows_of_another_thread()) << i;
  EXPECT_TRUE(grows_of_another_thread());
}

// 20 classes, of which the budget has room for a few, in turn.
TEST_F(BudgetFaultTest, a_thread_that_works_now_and_then_keeps_what_its_cache_may_hold_at_first) {
  const auto use_classes = [] {
    for (unsigned each = 20; each < 40; ++each)
      free_many(allocate_many(20'000 / class_sizes[each], class_sizes[each]));
  };
  for (uint64_t round = 0; round < 100; ++round) {
    mock_os::set_clock(beginning + 250 * round);
    use_classes();
    ASSERT_EQ(thread_cache->budget_kib, budget::at_first()) << round;
  }
  for (int round = 0; round < 100; ++round)
    use_classes();
  EXPECT_GT(thread_cache->budget_kib, 2 * budget::at_first()) << "without a rest";
}

// Blocks of one size taken and given back all together, again and again, by a thread that begins with empty lists.
class BurstsFaultTest : public BudgetFaultTest {
 protected:
  void SetUp() override {
    BudgetFaultTest::SetUp();
    ThreadCache& c = *thread_cache;
    for (unsigned each = 1; each < size_class_count; ++each) {
      c.uses[each].earned = static_cast<uint16_t>(budget::first_cap(each));
      c.uses[each].evicted_at = 0;
    }
    cache::flush_own();
    c.most_flushed = c.flushes_ahead = 0;
    c.short_flushes = 0;
    c.steps_without = c.times_in_the_way = 0;
    c.budget_kib = budget::at_first();
    cache::note_live(1);
  }
  void TearDown() override {
    cache::flush_own();
    thread_cache->budget_kib = budget::at_first();
    BudgetFaultTest::TearDown();
  }

  static void bursts(int times, size_t blocks, size_t size, uint64_t ms_between = 0) {
    std::vector<void*> burst(blocks);
    for (int i = 0; i < times; ++i) {
      clock += ms_between;
      mock_os::set_clock(clock);
      for (void*& block : burst)
        block = test::allocate(size);
      free_many(burst);
    }
  }

  // What both lists of the class may hold.
  static size_t both(size_t size) {
    const unsigned size_class = size_class_of(size);
    return size_t{2} * thread_cache->uses[size_class].earned * class_sizes[size_class];
  }

  static inline uint64_t clock = 0;
};

TEST_F(BurstsFaultTest, lists_come_to_hold_all_blocks_of_a_burst) {
  clock = beginning;
  for (const auto& [blocks, size] : {std::pair<size_t, size_t>{1'600, 64},
                                     {1'000, 500},
                                     {1'000, 2'000},
                                     {100, 4'000},
                                     {100, 10'000},
                                     {100, 30'000},
                                     {100, 60'000}}) {
    bursts(500, blocks, size);
    const uint32_t before = thread_cache->slow_calls;
    bursts(100, blocks, size);
    EXPECT_LE(thread_cache->slow_calls - before, 2 * 100u) << size;
    EXPECT_LE(both(size), blocks * class_sizes[size_class_of(size)] * 3 / 2) << size;
  }
}

TEST_F(BurstsFaultTest, they_do_not_where_bursts_are_far_apart) {
  clock = beginning;
  for (const size_t size : {4'000u, 30'000u}) {
    bursts(2'000, 100, size, 5);
    EXPECT_LE(both(size), std::max<size_t>(budget::at_first() << 10, 8 * class_sizes[size_class_of(size)])) << size;
  }
}

TEST_F(BurstsFaultTest, they_do_not_where_blocks_are_freed_for_good) {
  clock = beginning;
  for (const size_t size : {500u, 10'000u}) {
    free_many(allocate_many((size_t{64} << 20) / size, size));
    EXPECT_EQ(thread_cache->long_class, 0) << size;
  }
}

TEST_F(BurstsFaultTest, they_hold_8_mib_at_most_and_those_of_several_threads_4_together) {
  clock = beginning;
  for (const auto& [threads, most] :
       {std::pair<size_t, size_t>{1, size_t{8} << 20}, {2, size_t{2} << 20}, {4, size_t{1} << 20}}) {
    cache::flush_own();
    cache::note_live(threads);
    bursts(500, 500, 30'000);
    EXPECT_LE(both(30'000), most) << threads;
    EXPECT_GT(both(30'000), most / 2) << threads;
  }
}

TEST_F(BurstsFaultTest, those_of_many_threads_hold_sixteen_blocks_each) {
  clock = beginning;
  cache::note_live(100);
  bursts(2'000, 100, 30'000);
  EXPECT_LE(both(30'000), 32 * class_sizes[size_class_of(30'000)]);
}

TEST_F(BurstsFaultTest, lists_that_are_flushed_as_a_whole_are_as_long_as_usual_again) {
  clock = beginning;
  constexpr unsigned longer = size_class_of(4'000);
  bursts(500, 500, 4'000);
  ASSERT_GT(thread_cache->uses[longer].earned, 2 * budget::most_cap(longer));
  cache::flush_own();
  EXPECT_EQ(thread_cache->uses[longer].earned, budget::most_cap(longer));
  thread_cache->budget_kib = budget::at_first();
  bursts(1, 500, 4'000);
  EXPECT_LE(cache::held_blocks(*thread_cache, longer) * size_t{class_sizes[longer]}, budget::at_first() << 10);
}

// What they hold would come on top of it otherwise.
TEST_F(BurstsFaultTest, lists_that_are_not_used_make_way_for_slabs_of_other_classes) {
  clock = beginning;
  constexpr unsigned longer = size_class_of(10'000), other = size_class_of(2'000);
  bursts(500, 500, 10'000);
  ASSERT_EQ(thread_cache->long_class, longer);
  const size_t held = cache::held_blocks(*thread_cache, longer) * size_t{class_sizes[longer]};
  ASSERT_GT(held, size_t{4} << 20);
  const auto few = allocate_many((size_t{512} << 10) / class_sizes[other], 2'000);
  EXPECT_EQ(thread_cache->long_class, longer) << "for little";
  const auto many = allocate_many((size_t{4} << 20) / class_sizes[other], 2'000);
  EXPECT_EQ(thread_cache->long_class, 0);
  EXPECT_EQ(cache::held_blocks(*thread_cache, longer), 0u);
  EXPECT_EQ(thread_cache->uses[longer].earned, budget::most_cap(longer));
  free_many(few);
  free_many(many);
}

// A signal handler may have interrupted a call that is at the bin: half of it stays until the thread's next slow call.
TEST_F(BurstsFaultTest, they_make_way_for_a_large_block) {
  clock = beginning;
  constexpr unsigned longer = size_class_of(10'000);
  bursts(500, 500, 10'000);
  ASSERT_EQ(thread_cache->long_class, longer);
  heap::free(test::allocate(size_t{128} << 10));
  EXPECT_FALSE(thread_cache->long_ends) << "for little";
  void* const first = thread_cache->bins[longer].head;
  ASSERT_NE(first, nullptr);
  heap::free(test::allocate(size_t{16} << 20));
  EXPECT_EQ(thread_cache->bins[longer].head, first);
  EXPECT_EQ(thread_cache->spare[longer], nullptr);
  heap::free(test::allocate(2'000));
  EXPECT_EQ(thread_cache->long_class, 0);
  EXPECT_EQ(cache::held_blocks(*thread_cache, longer), 0u);
}

TEST_F(BurstsFaultTest, they_make_way_for_one_block_that_needs_as_much_as_they_hold_and_for_several_smaller_ones) {
  clock = beginning;
  const auto take = [](size_t bytes) {
    (void)region::purge_all(0);
    return test::allocate(bytes);
  };
  bursts(500, 500, 10'000);
  ASSERT_GT(thread_cache->long_kib, 4u * 1024);
  void* const first = take(size_t{2} << 20);
  EXPECT_FALSE(thread_cache->long_ends) << "for one";
  void* const second = take(size_t{2} << 20);
  EXPECT_TRUE(thread_cache->long_ends);
  heap::free(first);
  heap::free(second);
}

// What they hold is not worth a flush then.
TEST_F(BurstsFaultTest, they_do_not_for_less_than_half_a_mib) {
  clock = beginning;
  bursts(500, 100, 4'000);
  ASSERT_NE(thread_cache->long_class, 0);
  const auto blocks = allocate_many((size_t{300} << 10) / 2'048, 2'000);
  EXPECT_GT(size_t{thread_cache->others_units} * unit_size, (size_t{thread_cache->long_kib} << 10) / 4);
  EXPECT_NE(thread_cache->long_class, 0);
  free_many(blocks);
}

TEST_F(BurstsFaultTest, they_do_not_where_what_is_free_and_in_memory_is_enough) {
  clock = beginning;
  bursts(500, 100, 10'000);
  ASSERT_NE(thread_cache->long_class, 0);
  void* const in_use = test::allocate(size_t{16} << 20);  // so that no phase of the program ends
  std::memset(in_use, 1, size_t{16} << 20);
  thread_cache->others_units = 0;
  bursts(500, 100, 10'000);
  void* const large = test::allocate(size_t{2} << 20);
  bursts(500, 100, 10'000);
  heap::free(large);
  ASSERT_GE(region::free_dirty_bytes(), size_t{2} << 20);
  heap::free(test::allocate(size_t{2} << 20));
  EXPECT_FALSE(thread_cache->long_ends);
  heap::free(in_use);
}

TEST_F(BurstsFaultTest, who_was_in_the_way_again_and_again_does_without_for_longer) {
  clock = beginning;
  const auto bursts_until_long = [] {
    int times = 0;
    for (; thread_cache->long_class == 0 && times < 20'000; ++times)
      bursts(1, 500, 10'000);
    return times;
  };
  const auto get_in_the_way = [] {
    free_many(allocate_many((size_t{8} << 20) / 2'048, 2'000));
    return thread_cache->long_class == 0;
  };
  const int first = bursts_until_long();
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(get_in_the_way());
    (void)bursts_until_long();
  }
  ASSERT_TRUE(get_in_the_way());
  EXPECT_GT(bursts_until_long(), 4 * first);
}

// Classes of which little is used would be evicted for it, or those that lie idle stay.
TEST_F(BurstsFaultTest, what_they_hold_is_counted_apart_from_the_budget) {
  clock = beginning;
  bursts(500, 500, 10'000);
  ASSERT_GT(both(10'000), size_t{4} << 20);
  EXPECT_LT(thread_cache->budget_kib, 1024u);
  EXPECT_LE(thread_cache->kept_kib, thread_cache->budget_kib);
  {
    const MutexLock<OwnerMutex> held(thread_cache->lock);
    (void)budget::weigh(*thread_cache, size_class_of(10'000), 0);
  }
  EXPECT_EQ(thread_cache->uses[size_class_of(10'000)].kept_kib, 0u);
}

TEST_F(BurstsFaultTest, lists_that_lie_unused_for_half_a_purge_delay_go) {
  clock = beginning;
  bursts(500, 500, 10'000);
  const auto work_otherwise = [] {
    for (int i = 0; i < 40; ++i)
      free_many(allocate_many(200, 500));
  };
  work_otherwise();
  mock_os::set_clock(beginning + options.purge_delay / 4);
  work_otherwise();
  EXPECT_NE(thread_cache->long_class, 0);
  mock_os::set_clock(beginning + options.purge_delay);
  work_otherwise();
  EXPECT_EQ(thread_cache->long_class, 0);
}

TEST_F(BurstsFaultTest, all_threads_together_have_no_more_than_4_mib_whenever_they_begin) {
  clock = beginning;
  cache::note_live(2);
  bursts(500, 500, 10'000);
  ASSERT_NE(thread_cache->long_class, 0);
  size_t all = both(10'000);
  std::atomic<bool> ends{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    std::atomic<size_t> of_this{SIZE_MAX};
    threads.emplace_back([&of_this, &ends] {
      heap::free(test::allocate(1));
      cache::note_live(2);  // as if each thought so
      bursts(500, 500, 10'000);
      of_this = thread_cache->long_class != 0 ? both(10'000) : 0;
      while (!ends)
        std::this_thread::yield();
    });
    while (of_this == SIZE_MAX)
      std::this_thread::yield();
    all += of_this;
  }
  EXPECT_LE(all, size_t{4} << 20);
  EXPECT_GT(all, size_t{2} << 20);
  ends = true;
  for (std::thread& thread : threads)
    thread.join();
  cache::flush_own();
  cache::note_live(2);
  bursts(500, 500, 10'000);
  EXPECT_GT(both(10'000), size_t{1} << 20) << "what threads had that have ended";
}

TEST_F(BurstsFaultTest, who_has_more_than_twice_its_part_gives_it_back) {
  clock = beginning;
  cache::note_live(2);
  bursts(500, 500, 10'000);
  ASSERT_GT(both(10'000), size_t{1} << 20);
  cache::note_live(16);
  for (int i = 0; i < 40; ++i)
    free_many(allocate_many(200, 500));
  EXPECT_EQ(thread_cache->long_class, 0);
}

TEST_F(BurstsFaultTest, who_makes_the_second_thread_gives_back_what_one_of_two_may_not_have) {
  clock = beginning;
  bursts(500, 500, 10'000);
  ASSERT_GT(both(10'000), size_t{2} << 20);
  heap::prepare_for_threads();
  heap::free(test::allocate(2'000));
  EXPECT_EQ(thread_cache->long_class, 0);
}

TEST_F(BurstsFaultTest, lists_that_are_used_stay_long_beside_what_others_need_in_turn) {
  clock = beginning;
  bursts(500, 500, 10'000);
  for (int i = 0; i < 50; ++i) {
    heap::free(test::allocate(size_t{1} << 20));
    bursts(1, 500, 10'000);
    ASSERT_EQ(thread_cache->long_class, size_class_of(10'000)) << i;
  }
  std::vector<std::vector<void*>> slabs;
  for (int i = 0; i < 12; ++i) {
    slabs.push_back(allocate_many((size_t{700} << 10) / 2'048, 2'000));
    bursts(1, 500, 10'000);
    ASSERT_EQ(thread_cache->long_class, size_class_of(10'000)) << i;
  }
  for (const std::vector<void*>& each : slabs)
    free_many(each);
}

TEST_F(BurstsFaultTest, the_lists_of_one_class_alone_are_longer_than_usual) {
  clock = beginning;
  constexpr unsigned former = size_class_of(10'000), now = size_class_of(60'000);
  // Slabs that have blocks to give, so that no new ones get in the way.
  std::vector<void*> blocks = allocate_many(160, 60'000), live;
  for (size_t i = 0; i < blocks.size(); ++i)
    if (i % 8 == 0)
      live.push_back(blocks[i]);
    else
      heap::free(blocks[i]);
  cache::flush_own();
  bursts(500, 100, 10'000);
  ASSERT_EQ(thread_cache->long_class, former);
  bursts(40, 60, 60'000);  // so few that the former one does not count as idle
  EXPECT_EQ(thread_cache->times_in_the_way, 0);
  EXPECT_EQ(thread_cache->long_class, now);
  EXPECT_EQ(cache::held_blocks(*thread_cache, former), 0u);
  free_many(live);
}

TEST_F(BurstsFaultTest, who_gets_the_cache_of_a_thread_that_has_ended_begins_without) {
  clock = beginning;
  static constexpr unsigned k_of_64 = size_class_of(64);
  std::thread([] {
    heap::free(test::allocate(1));
    bursts(500, 1'600, 64);
    EXPECT_EQ(thread_cache->long_class, k_of_64);
  }).join();
  std::thread([] {
    heap::free(test::allocate(1));
    EXPECT_EQ(thread_cache->long_class, 0);
    EXPECT_LE(thread_cache->uses[k_of_64].earned, budget::most_cap(k_of_64));
  }).join();
}

TEST_F(BurstsFaultTest, a_small_cache_has_no_longer_lists) {
  clock = beginning;
  const size_t before = std::exchange(options.cache, 32 * 1024);
  bursts(1'000, 500, 2'000);
  EXPECT_LE(thread_cache->uses[size_class_of(2'000)].earned, 16);
  options.cache = before;
}

}  // namespace
