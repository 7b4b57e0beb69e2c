// Threads and their caches: the first call makes one, an ended thread's serves the next, and its memory serves all.
#include "heap/thread_life.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstring>
#include <latch>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "cache_test.hpp"
#include "heap/heap.hpp"
#include "heap/slab.hpp"
#include "heap_calls.hpp"
#include "without_stand_ins.hpp"

namespace {

using namespace sluice;
using test::allocate_many;
using test::free_many;
using test::used_blocks;

constexpr unsigned class_of_64 = size_class_of(64);

class ThreadLifeTest : public test::CacheTest {};

cache::ThreadCounts counts() {
  cache::lock_all();
  const cache::ThreadCounts result = cache::thread_counts();
  cache::unlock_all();
  return result;
}

TEST_F(ThreadLifeTest, a_thread_without_calls_has_no_cache_and_the_first_call_makes_one) {
  std::thread([] {
    EXPECT_EQ(thread_cache, &cache_not_started);
    heap::free(test::allocate(64));
    EXPECT_NE(thread_cache, &cache_not_started);
    EXPECT_TRUE(thread_cache->attached);
  }).join();
}

TEST_F(ThreadLifeTest, the_next_thread_adopts_what_an_ended_one_left) {
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

TEST_F(ThreadLifeTest, an_ended_thread_keeps_its_cache_only_if_it_is_small) {
  constexpr size_t most_kept = 192 * 1024;
  ThreadCache* left = nullptr;
  size_t before = 0;
  // Lives beside the others: whose end leaves one thread may find that a phase is over, and flushes.
  std::latch begun(1);
  std::latch over(1);
  std::thread another([&] {
    free_many(allocate_many(1, 100));
    begun.count_down();
    over.wait();
  });
  begun.wait();
  std::thread([&] {
    // What bins hold at the end of a round depends on which of them have aged in it: no two rounds are alike.
    for (size_t round = 0; round < 1000 && before <= most_kept; ++round) {
      for (size_t size = 1024; size <= 16384; size += size / 8) {
        const std::vector<void*> blocks = allocate_many(200 + round, size);
        thread_cache->budget_kib = 16'384;
        free_many(blocks);
      }
      left = thread_cache;
      before = held_bytes(*left);
    }
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
  over.count_down();
  another.join();
}

TEST_F(ThreadLifeTest, slabs_of_an_ended_thread_serve_others_before_new_memory_does) {
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

// Threads that live at once and have ended when this returns; act(i) is called on each.
template <typename Act>
void on_threads(size_t count, Act act) {
  std::barrier all_live(static_cast<std::ptrdiff_t>(count));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < count; ++i)
    threads.emplace_back([&, i] {
      act(i);
      all_live.arrive_and_wait();
    });
  for (std::thread& thread : threads)
    thread.join();
}

size_t slabs_of(unsigned k) {
  size_t slabs = 0;
  cache::lock_all();
  for (size_t i = region::first_index(); i < region::limit(); i += region::unit_at(i)->units)
    slabs += region::unit_at(i)->use() == UnitState::Slab && region::unit_at(i)->slab.size_class == k ? 1 : 0;
  cache::unlock_all();
  return slabs;
}

// What threads free of their blocks, all but the first of each slab, and return: those that are left.
std::vector<void*> free_all_but_one_a_slab(const std::vector<void*>& blocks) {
  std::vector<void*> kept;
  for (void* block : blocks) {
    if (kept.empty() || slab::of(kept.back()) != slab::of(block))
      kept.push_back(block);
    else
      heap::free(block);
  }
  return kept;
}

constexpr size_t left_size = 832;
constexpr unsigned left_class = size_class_of(left_size);

TEST_F(ThreadLifeTest, however_many_threads_have_ended_the_memory_that_they_left_serves_before_new_memory_does) {
  constexpr size_t threads = 64, slabs_each = 8;
  const size_t blocks_each = slabs_each * slab::blocks_per_slab(left_class);
  std::vector<std::vector<void*>> kept(threads);
  on_threads(threads, [&](size_t i) { kept[i] = free_all_but_one_a_slab(allocate_many(blocks_each, left_size)); });
  const size_t before = slabs_of(left_class);
  ASSERT_GE(before, threads * slabs_each);
  cache::flush_idle();  // a small cache stays with what its thread left
  const size_t wanted = threads * blocks_each * 15 / 16;
  const std::vector<void*> blocks = allocate_many(wanted, left_size);
  EXPECT_LE(slabs_of(left_class), before + before / 100);
  free_many(blocks);
  for (const std::vector<void*>& left : kept)
    free_many(left);
}

TEST_F(ThreadLifeTest, a_slab_of_the_class_is_found_at_once_among_threads_that_left_others) {
  constexpr size_t threads = 300, owner = 150, size = 704;  // a class that no other test uses
  std::vector<std::vector<void*>> kept(threads);
  on_threads(threads,
             [&](size_t i) { kept[i] = free_all_but_one_a_slab(allocate_many(200, i == owner ? size : size_t{320})); });
  ASSERT_EQ(thread_cache->partial[size_class_of(size)], unit_index_none);
  void* const block = test::allocate(size);
  const std::vector<void*>& survivors = kept[owner];
  EXPECT_TRUE(std::any_of(survivors.begin(), survivors.end(), [&](void* b) { return slab::of(b) == slab::of(block); }))
      << "a slab was made though there was one";
  heap::free(block);
  for (const std::vector<void*>& left : kept)
    free_many(left);
}

TEST_F(ThreadLifeTest, blocks_freed_after_their_threads_have_ended_serve_before_new_memory_does) {
  constexpr size_t threads = 40;
  const size_t blocks_each = 4 * slab::blocks_per_slab(left_class);
  std::vector<std::vector<void*>> kept(threads);
  on_threads(threads, [&](size_t i) { kept[i] = allocate_many(blocks_each, left_size); });
  for (std::vector<void*>& blocks : kept)
    blocks = free_all_but_one_a_slab(blocks);
  const size_t before = slabs_of(left_class);
  const std::vector<void*> blocks = allocate_many(threads * blocks_each * 3 / 4, left_size);
  EXPECT_LE(slabs_of(left_class), before);
  free_many(blocks);
  for (const std::vector<void*>& left : kept)
    free_many(left);
}

TEST_F(ThreadLifeTest, what_threads_left_and_new_threads_adopted_is_found_again_when_these_end) {
  constexpr size_t threads = 20;
  const size_t blocks_each = 4 * slab::blocks_per_slab(left_class);
  std::vector<std::vector<void*>> kept(threads);
  on_threads(threads, [&](size_t i) { kept[i] = free_all_but_one_a_slab(allocate_many(blocks_each, left_size)); });
  const auto use_some = [] {
    void* const block = test::allocate(left_size);  // which shows to those who search that most are taken now
    on_threads(threads, [](size_t) { heap::free(test::allocate(left_size)); });
    return block;
  };
  void* const first = use_some();
  void* const second = use_some();
  const size_t before = slabs_of(left_class);
  const std::vector<void*> blocks = allocate_many(threads * blocks_each * 3 / 4, left_size);
  EXPECT_LE(slabs_of(left_class), before);
  free_many(blocks);
  for (const std::vector<void*>& left : kept)
    free_many(left);
  heap::free(first);
  heap::free(second);
}

ThreadCache& attached() {
  heap::free(test::allocate(1));
  return *thread_cache;
}

// A thread that has ended, and left full slabs.
struct Left {
  explicit Left(size_t size) {
    std::thread([&] {
      blocks = allocate_many(4 * slab::blocks_per_slab(size_class_of(size)), size);
      cache = thread_cache;
    }).join();
  }
  std::vector<void*> blocks;
  ThreadCache* cache;
};

// As a flush of another thread's cache does it.
void free_remotely(const std::vector<void*>& blocks) {
  for (void* block : blocks)
    cache::put_shared(block);
}

// What a thread does that has no need of the memory in question.
void go_on(size_t slow_calls) {
  for (const uint32_t until = thread_cache->slow_calls + static_cast<uint32_t>(slow_calls);
       thread_cache->slow_calls < until;)
    free_many(allocate_many(500, 1000));
}

TEST_F(ThreadLifeTest, what_is_freed_while_the_lock_of_an_ended_threads_cache_is_held_goes_back_soon) {
  constexpr size_t others = 12;  // which end later
  std::optional<Left> left;
  std::latch all_attached(others);
  on_threads(others, [&](size_t i) {
    (void)attached();
    all_attached.arrive_and_wait();
    if (i == 0) left.emplace(left_size);
  });
  left->cache->lock.lock();  // as a fork does, or a snapshot
  free_remotely(left->blocks);
  left->cache->lock.unlock();
  EXPECT_EQ(used_blocks(left_class), left->blocks.size());
  go_on(600);
  EXPECT_EQ(used_blocks(left_class), 0u);
}

// What happens while somebody looks after an ended thread's stack arena, under its cache's lock.
const Left* freed_meanwhile = nullptr;
cache::ArenaHooks hooks_that_free_meanwhile() {
  cache::ArenaHooks hooks{};
  hooks.give_back_orphaned = [](ThreadCache&) noexcept {
    if (const Left* const left = std::exchange(freed_meanwhile, nullptr)) free_remotely(left->blocks);
  };
  hooks.validate = [](const ThreadCache&) noexcept -> const char* { return nullptr; };
  return hooks;
}

template <typename Look>
size_t used_after_frees_during(Look look) {
  static const cache::ArenaHooks hooks = hooks_that_free_meanwhile();
  const Left left(left_size);
  freed_meanwhile = &left;
  const cache::ArenaHooks* const before = cache::arena_hooks.exchange(&hooks);
  Arena* const arena = std::exchange(left.cache->arena, reinterpret_cast<Arena*>(left.cache));  // any but null
  look();
  left.cache->arena = arena;
  cache::arena_hooks = before;
  EXPECT_EQ(freed_meanwhile, nullptr) << "nothing was freed meanwhile";
  return used_blocks(left_class);
}

TEST_F(ThreadLifeTest, what_is_freed_while_an_orphan_is_swept_is_taken_in_by_the_sweep) {
  EXPECT_EQ(used_after_frees_during(cache::sweep_orphans), 0u);
}

TEST_F(ThreadLifeTest, what_is_freed_while_a_trim_flushes_an_orphan_is_taken_in_by_the_trim) {
  EXPECT_EQ(used_after_frees_during(cache::flush_idle), 0u);
}

TEST_F(ThreadLifeTest, what_is_queued_on_a_slabs_former_owner_reaches_the_last_one_though_both_have_ended) {
  std::vector<void*> blocks;
  ThreadCache *former_cache = nullptr, *last_cache = nullptr;
  std::thread([&] {
    last_cache = &attached();
    std::thread([&] {
      former_cache = &attached();
      blocks = allocate_many(3, left_size);  // of a slab with blocks to give
    }).join();
  }).join();
  ThreadCache& former = *former_cache;
  ThreadCache& last = *last_cache;
  Unit* const s = slab::of(blocks.front());
  ASSERT_EQ(s->owner.load(std::memory_order_relaxed), &former);
  former.lock.lock();
  ASSERT_TRUE(last.lock.try_lock());
  free_remotely(blocks);        // is queued on the former owner…
  slab::change_owner(s, last);  // …whose slab is stolen by a thread that ends, too
  last.lock.unlock();
  former.lock.unlock();
  cache::flush_idle();
  EXPECT_EQ(used_blocks(left_class), 0u);
}

TEST_F(ThreadLifeTest, remote_frees_after_the_owner_ended_are_taken_in) {
  std::vector<void*> blocks;
  std::thread([&] { blocks = allocate_many(5000, 64); }).join();
  free_many(blocks);
  cache::flush_idle();
  EXPECT_EQ(used_blocks(class_of_64), 0u);
}

TEST_F(ThreadLifeTest, thousands_of_short_threads_make_no_more_caches_than_live_at_once) {
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

TEST_F(ThreadLifeTest, calls_after_the_end_of_a_threads_cache_work_and_build_none) {
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

}  // namespace
