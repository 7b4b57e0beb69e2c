// Thread caches: they fill and empty in batches, grow with use, leave nothing behind when their thread ends, and are
// handed from thread to thread.
#include "heap/thread_cache.hpp"

#include <signal.h>

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
#include <pthread.h>

#include "base/options.hpp"
#include "heap/heap.hpp"
#include "heap/slab.hpp"
#include "heap/thread_life.hpp"
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
    const char* wrong = heap::validate().what;
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
    EXPECT_EQ(heap::validate().what, nullptr);
    EXPECT_EQ(std::set<void*>(blocks.begin(), blocks.end()).size(), blocks.size());
    free_many(blocks);
    EXPECT_EQ(heap::validate().what, nullptr);
    cache::set_counting(false);
    EXPECT_FALSE(thread_cache->gated);
    EXPECT_GT(thread_cache->small_limit, max_direct_size);
    EXPECT_EQ(heap::validate().what, nullptr);
    free_many(allocate_many(1000, 64));
    EXPECT_EQ(heap::validate().what, nullptr);
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
    slabs += region::unit_at(i)->state == UnitState::Slab && region::unit_at(i)->size_class == k ? 1 : 0;
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

TEST_F(ThreadCacheTest, however_many_threads_have_ended_the_memory_that_they_left_serves_before_new_memory_does) {
  constexpr size_t threads = 64, slabs_each = 8;
  const size_t blocks_each = slabs_each * slab::blocks_per_slab(left_class);
  std::vector<std::vector<void*>> kept(threads);
  on_threads(threads, [&](size_t i) { kept[i] = free_all_but_one_a_slab(allocate_many(blocks_each, left_size)); });
  const size_t before = slabs_of(left_class);
  ASSERT_GE(before, threads * slabs_each);
  const size_t wanted = threads * blocks_each * 15 / 16;
  const std::vector<void*> blocks = allocate_many(wanted, left_size);
  EXPECT_LE(slabs_of(left_class), before + before / 100);
  free_many(blocks);
  for (const std::vector<void*>& left : kept)
    free_many(left);
}

TEST_F(ThreadCacheTest, a_slab_of_the_class_is_found_at_once_among_threads_that_left_others) {
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

TEST_F(ThreadCacheTest, blocks_freed_after_their_threads_have_ended_serve_before_new_memory_does) {
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

TEST_F(ThreadCacheTest, what_threads_left_and_new_threads_adopted_is_found_again_when_these_end) {
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

TEST_F(ThreadCacheTest, what_is_freed_while_the_lock_of_an_ended_threads_cache_is_held_goes_back_soon) {
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

TEST_F(ThreadCacheTest, what_is_freed_while_an_orphan_is_swept_is_taken_in_by_the_sweep) {
  EXPECT_EQ(used_after_frees_during(cache::sweep_orphans), 0u);
}

TEST_F(ThreadCacheTest, what_is_freed_while_a_trim_flushes_an_orphan_is_taken_in_by_the_trim) {
  EXPECT_EQ(used_after_frees_during(cache::flush_idle), 0u);
}

TEST_F(ThreadCacheTest, what_is_queued_on_a_slabs_former_owner_reaches_the_last_one_though_both_have_ended) {
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
  ASSERT_EQ(s->owner.load(), &former);
  former.lock.lock();
  ASSERT_TRUE(last.lock.try_lock());
  free_remotely(blocks);        // is queued on the former owner…
  slab::change_owner(s, last);  // …whose slab is stolen by a thread that ends, too
  last.lock.unlock();
  former.lock.unlock();
  cache::flush_idle();
  EXPECT_EQ(used_blocks(left_class), 0u);
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
