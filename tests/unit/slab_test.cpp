// Slabs: blocks come in the order of their addresses, come back from their owner and from other threads, and an empty
// slab goes when its class has another. The owners here are caches that no thread uses.
#include "heap/slab.hpp"

#include <algorithm>
#include <bit>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/options.hpp"
#include "heap/announce.hpp"
#include "heap/heap.hpp"
#include "heap/orphan_index.hpp"
#include "os/memory.hpp"
#include "random_blocks.hpp"
#include "start_region.hpp"

namespace {

using namespace sluice;
using test::Random;

ThreadCache first_owner;
ThreadCache second_owner;

constexpr unsigned class_64 = size_class_of(64);
constexpr unsigned class_4096 = size_class_of(4096);

class SlabTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { test::start_region(); }
  void TearDown() override {
    for (ThreadCache* owner : {&first_owner, &second_owner}) {
      const MutexLock held(owner->lock);
      slab::collect_pending(*owner);
      slab::destroy_empty(*owner);
      EXPECT_EQ(owner->slab_count, 0u);
    }
    EXPECT_EQ(heap::validate().what, nullptr);
  }

  static std::vector<void*> to_vector(slab::BlockList list) {
    std::vector<void*> blocks;
    for (void* block = list.first; block != nullptr; block = next_of(block))
      blocks.push_back(block);
    EXPECT_EQ(blocks.size(), list.count);
    return blocks;
  }

  static void* to_list(const std::vector<void*>& blocks) {
    for (size_t i = 0; i < blocks.size(); ++i)
      set_next(blocks[i], i + 1 < blocks.size() ? blocks[i + 1] : nullptr);
    return blocks.empty() ? nullptr : blocks.front();
  }

  static std::vector<void*> take(Unit* s, uint32_t most) { return to_vector(slab::take_blocks(s, most)); }

  // Every block of the slab.
  static std::vector<void*> take_all(Unit* s) {
    std::vector<void*> all;
    while (s->slab.free_count != 0 || s->slab.carved < s->slab.capacity) {
      const std::vector<void*> some = take(s, UINT16_MAX);
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }

  static void put_back(Unit* s, const std::vector<void*>& blocks) {
    ThreadCache& owner = *s->owner.load(std::memory_order_relaxed);
    const uint32_t used = owner.uses[s->slab.size_class].used.load(std::memory_order_relaxed);
    EXPECT_EQ(slab::put_list(owner, to_list(blocks)).rest, nullptr);
    EXPECT_EQ(owner.uses[s->slab.size_class].used.load(std::memory_order_relaxed), used - blocks.size());
  }

  static bool in_partial_list(const ThreadCache& owner, const Unit* s) {
    for (uint32_t i = owner.partial[s->slab.size_class]; i != unit_index_none; i = region::unit_at(i)->slab.next)
      if (region::unit_at(i) == s) return true;
    return false;
  }
};

TEST_F(SlabTest, a_new_slab_of_each_class_yields_every_block_once_inside_its_span) {
  for (unsigned k = 1; k < size_class_count; ++k) {
    const MutexLock held(first_owner.lock);
    Unit* s = slab::create(first_owner, k);
    ASSERT_NE(s, nullptr);
    std::vector<void*> blocks = take_all(s);
    ASSERT_EQ(blocks.size(), slab::blocks_per_slab(k));
    EXPECT_FALSE(in_partial_list(first_owner, s));
    std::sort(blocks.begin(), blocks.end());
    const char* const start = slab::start_of(s);
    for (size_t i = 0; i < blocks.size(); ++i)
      ASSERT_EQ(blocks[i], start + i * class_sizes[k]) << k;
    EXPECT_EQ(slab::of(blocks.back()), s);
    EXPECT_EQ(slab::of(static_cast<char*>(blocks.back()) + class_sizes[k] - 1), s);
    put_back(s, blocks);
    slab::destroy_empty(first_owner);
    EXPECT_EQ(first_owner.slab_count, 0u);
  }
}

TEST_F(SlabTest, blocks_are_carved_a_page_at_a_time_and_one_at_least) {
  const MutexLock held(first_owner.lock);
  (void)region::purge_all(0);
  Unit* small = slab::create(first_owner, class_64);
  EXPECT_EQ(take(small, UINT16_MAX).size(), os::page_size() / 64);
  EXPECT_EQ(small->slab.carved, os::page_size() / 64);
  if (os::page_size() < unit_size) {
    EXPECT_EQ(take(small, 3).size(), 3u);
    EXPECT_EQ(small->slab.carved, os::page_size() / 64 + 3);
  }
  Unit* large = slab::create(first_owner, size_class_count - 1);
  EXPECT_EQ(take(large, UINT16_MAX).size(), std::max<size_t>(1, os::page_size() / max_small_size));
  for (Unit* s : {small, large}) {
    std::vector<void*> out;
    for (uint32_t i = 0; i < s->slab.carved; ++i)
      out.push_back(slab::start_of(s) + i * class_sizes[s->slab.size_class]);
    put_back(s, out);
  }
}

// Makes a slab whose span has been a slab before, of which every page was written. What was one may go to the system
// with a free neighbour; not so the next time.
Unit* slab_with_pages(unsigned k) SLUICE_REQUIRES(first_owner.lock) {
  Unit* s = slab::create(first_owner, k);
  for (int tries = 0; tries < 4 && !s->slab.has_pages; ++tries) {
    __builtin_memset(slab::start_of(s), 1, s->units * unit_size);
    (void)slab::create(first_owner, k);  // an empty slab may stay, but for the first of two
    slab::destroy_empty(first_owner);
    s = slab::create(first_owner, k);
  }
  return s;
}

TEST_F(SlabTest, as_many_blocks_as_the_program_has_are_carved_where_their_pages_are_in_memory) {
  for (const unsigned k : {size_class_of(4'096), size_class_of(16'384), size_class_count - 1}) {
    const MutexLock held(first_owner.lock);
    const size_t in_a_page = std::max<size_t>(1, os::page_size() / class_sizes[k]);
    Unit* const s = slab_with_pages(k);
    EXPECT_TRUE(s->slab.has_pages);
    std::vector<void*> all;
    for (size_t had = 0; had < slab::blocks_per_slab(k); had = all.size()) {
      const size_t left = slab::blocks_per_slab(k) - had;
      const std::vector<void*> blocks = take(s, UINT16_MAX);
      EXPECT_EQ(
          blocks.size(),
          std::min(std::max(in_a_page, std::min({had, size_t{16}, std::max(had / 8, 2 * unit_size / class_sizes[k])})),
                   left))
          << class_sizes[k];
      all.insert(all.end(), blocks.begin(), blocks.end());
      if (blocks.empty()) break;
    }
    put_back(s, all);
    slab::destroy_empty(first_owner);
  }
}

TEST_F(SlabTest, blocks_are_carved_a_page_at_a_time_where_no_page_is_in_memory) {
  constexpr unsigned k = size_class_of(16'384);
  const MutexLock held(first_owner.lock);
  for (const bool dropped : {false, true}) {
    (void)region::purge_all(0);
    Unit* const s = dropped ? slab_with_pages(k) : slab::create(first_owner, k);
    if (dropped) slab::drop_rest(s, 2);
    EXPECT_FALSE(s->slab.has_pages);
    std::vector<void*> all;
    while (all.size() < 5) {
      const std::vector<void*> blocks = take(s, UINT16_MAX);
      EXPECT_EQ(blocks.size(), std::max<size_t>(1, os::page_size() / class_sizes[k]));
      all.insert(all.end(), blocks.begin(), blocks.end());
    }
    put_back(s, all);
    slab::destroy_empty(first_owner);
  }
}

TEST_F(SlabTest, freed_blocks_come_in_the_order_of_their_addresses_however_they_came_back) {
  for (const unsigned k : {class_64, class_4096, size_class_of(48), size_class_of(1792)}) {
    const MutexLock held(first_owner.lock);
    Unit* s = slab::create(first_owner, k);
    std::vector<void*> blocks = take_all(s);
    Random random(k);
    for (size_t i = blocks.size(); i > 1; --i)
      std::swap(blocks[i - 1], blocks[random.below(i)]);
    const std::vector<void*> kept(blocks.begin(), blocks.begin() + static_cast<long>(blocks.size() / 3));
    std::vector<void*> freed(blocks.begin() + static_cast<long>(blocks.size() / 3), blocks.end());
    put_back(s, freed);
    std::sort(freed.begin(), freed.end());
    const std::vector<void*> head = take(s, 5);
    const std::vector<void*> rest = take(s, UINT16_MAX);
    std::vector<void*> again = head;
    again.insert(again.end(), rest.begin(), rest.end());
    EXPECT_EQ(again, freed);
    put_back(s, again);
    put_back(s, kept);
    slab::destroy_empty(first_owner);
  }
}

TEST_F(SlabTest, put_list_finds_slab_and_class_of_each_block_up_to_one_of_another_owner) {
  const MutexLock held(first_owner.lock);
  ASSERT_TRUE(second_owner.lock.try_lock());
  Unit* const one = slab::create(first_owner, class_64);
  Unit* const two = slab::create(first_owner, class_64);
  Unit* const larger = slab::create(first_owner, class_4096);
  Unit* const theirs = slab::create(second_owner, class_64);
  const std::vector<void*> a = take(one, 5), b = take(two, 3), c = take_all(larger), d = take(theirs, 4);
  const size_t freed = first_owner.vacancy.free_bytes;
  const slab::OwnRuns own =
      slab::put_list(first_owner, to_list({a[0], a[1], b[0], c[2], a[3], c[0], b[2], d[1], a[2]}));
  EXPECT_EQ(own.rest, d[1]);
  EXPECT_EQ(own.runs, 6);
  EXPECT_EQ(slab::used_of(one), 2u);
  EXPECT_EQ(slab::used_of(two), 1u);
  EXPECT_EQ(slab::used_of(larger), c.size() - 2);
  EXPECT_EQ(slab::used_of(theirs), 4u);
  EXPECT_EQ(first_owner.uses[class_64].used.load(std::memory_order_relaxed), 3u);
  EXPECT_EQ(first_owner.uses[class_4096].used.load(std::memory_order_relaxed), c.size() - 2);
  EXPECT_EQ(first_owner.vacancy.free_bytes, freed + 5 * 64 + 2 * 4096);
  EXPECT_TRUE(in_partial_list(first_owner, larger));
  put_back(theirs, d);
  put_back(one, {a[2], a[4]});
  put_back(two, {b[1]});
  put_back(larger, {c.begin() + 3, c.end()});
  put_back(larger, {c[1]});
  slab::destroy_empty(first_owner);
  slab::destroy_empty(second_owner);
  EXPECT_EQ(first_owner.slab_count, 0u);
  second_owner.lock.unlock();
}

TEST_F(SlabTest, an_empty_slab_goes_unless_it_is_the_last_of_its_class) {
  const MutexLock held(first_owner.lock);
  Unit* one = slab::create(first_owner, class_64);
  const std::vector<void*> ones = take(one, 10);
  put_back(one, ones);
  EXPECT_EQ(first_owner.slab_count, 1u);
  EXPECT_TRUE(in_partial_list(first_owner, one));
  const size_t index = region::index_of(one);
  const std::vector<void*> more = take(one, 10);
  Unit* two = slab::create(first_owner, class_64);
  put_back(one, more);
  EXPECT_EQ(first_owner.slab_count, 1u);
  EXPECT_EQ(class_bytes()[index], class_byte_none);
  EXPECT_TRUE(in_partial_list(first_owner, two));
}

TEST_F(SlabTest, a_full_slab_returns_to_the_list_with_its_first_free_block) {
  const MutexLock held(first_owner.lock);
  Unit* s = slab::create(first_owner, class_4096);
  const std::vector<void*> blocks = take_all(s);
  EXPECT_FALSE(in_partial_list(first_owner, s));
  void* one[] = {blocks[3]};
  EXPECT_EQ(slab::put_scattered(first_owner, one, 1), 0u);
  EXPECT_TRUE(in_partial_list(first_owner, s));
  EXPECT_EQ(take(s, 9), std::vector<void*>{blocks[3]});
  EXPECT_FALSE(in_partial_list(first_owner, s));
  put_back(s, blocks);
}

TEST_F(SlabTest, put_scattered_frees_exactly_the_blocks_and_does_not_touch_them) {
  const MutexLock held(first_owner.lock);
  for (unsigned k = 1; k < size_class_count; ++k) {
    Unit* s = slab::create(first_owner, k);
    const std::vector<void*> blocks = take_all(s);
    for (const size_t i : {size_t{0}, blocks.size() / 2, blocks.size() - 1}) {
      auto* word = static_cast<uint64_t*>(blocks[i]);
      *word = 0x5eed;
      void* one[] = {blocks[i]};
      EXPECT_EQ(slab::put_scattered(first_owner, one, 1), 0u);
      EXPECT_EQ(*word, 0x5eedu);
      EXPECT_EQ(take(s, 1), std::vector<void*>{blocks[i]}) << k;
    }
    put_back(s, blocks);
    slab::destroy_empty(first_owner);
  }
}

TEST_F(SlabTest, put_scattered_leaves_the_blocks_of_other_owners_at_the_front) {
  const MutexLock held(first_owner.lock);
  ASSERT_TRUE(second_owner.lock.try_lock());
  Unit* const ours = slab::create(first_owner, class_64);
  Unit* const larger = slab::create(first_owner, size_class_of(256));
  Unit* const theirs = slab::create(second_owner, class_64);
  std::vector<void*> a = take(ours, 4), b = take(larger, 2), c = take(theirs, 3);
  for (std::vector<void*>* blocks : {&a, &b, &c})
    std::sort(blocks->begin(), blocks->end());
  std::vector<void*> mixed = {a[0], c[2], b[1], a[3], c[0], a[1], c[1], b[0], a[2]};
  EXPECT_EQ(slab::put_scattered(first_owner, mixed.data(), static_cast<uint32_t>(mixed.size())), 3u);
  EXPECT_EQ(std::vector<void*>(mixed.begin(), mixed.begin() + 3), (std::vector<void*>{c[2], c[0], c[1]}));
  EXPECT_EQ(slab::used_of(theirs), 3u);
  EXPECT_EQ(take(ours, 4), a);
  EXPECT_EQ(take(larger, 2), b);
  put_back(ours, a);
  put_back(larger, b);
  put_back(theirs, c);
  second_owner.lock.unlock();
}

TEST_F(SlabTest, remote_frees_reach_the_owner_when_it_collects) {
  for (const unsigned k : {class_64, class_4096}) {
    const MutexLock held(first_owner.lock);
    Unit* s = slab::create(first_owner, k);
    const std::vector<void*> blocks = take(s, 12);
    std::thread([&] {
      EXPECT_EQ(slab::put_remote(s, to_list(blocks)).count, blocks.size());
      slab::announce(s, s->units);
    }).join();
    EXPECT_EQ(slab::remote_count(s), blocks.size());
    EXPECT_EQ(slab::used_of(s), blocks.size());
    slab::collect_pending(first_owner);
    EXPECT_EQ(slab::remote_count(s), 0u);
    EXPECT_EQ(slab::used_of(s), 0u);
    EXPECT_EQ(first_owner.pending.load(), unit_index_none);
    slab::destroy_empty(first_owner);
  }
}

TEST_F(SlabTest, remote_frees_join_the_blocks_that_the_owner_freed_itself) {
  for (const unsigned k : {class_64, class_4096}) {
    const MutexLock held(first_owner.lock);
    Unit* s = slab::create(first_owner, k);
    std::vector<void*> blocks = take_all(s);
    // Every other block comes back from the owner, the rest from another thread: bits of both lie in the same words.
    std::vector<void*> own, remote;
    for (size_t i = 0; i < blocks.size(); ++i)
      (i % 2 == 0 ? own : remote).push_back(blocks[i]);
    put_back(s, own);
    std::thread([&] {
      (void)slab::put_remote(s, to_list(remote));
      slab::announce(s, s->units);
    }).join();
    slab::collect_pending(first_owner);
    EXPECT_EQ(s->slab.free_count, blocks.size());
    ASSERT_EQ(heap::validate().what, nullptr);
    std::sort(blocks.begin(), blocks.end());
    EXPECT_EQ(take(s, UINT16_MAX), blocks);
    put_back(s, blocks);
    slab::destroy_empty(first_owner);
  }
}

TEST_F(SlabTest, an_orphans_slabs_take_remote_frees_in_at_once) {
  Unit* s = nullptr;
  std::vector<void*> blocks;
  {
    const MutexLock held(first_owner.lock);
    s = slab::create(first_owner, class_64);
    blocks = take(s, 12);
  }
  first_owner.orphan.store(true);
  (void)slab::put_remote(s, to_list(blocks));
  slab::announce(s, s->units);
  EXPECT_EQ(slab::remote_count(s), 0u);
  EXPECT_EQ(slab::used_of(s), 0u);
  first_owner.orphan.store(false);
}

TEST_F(SlabTest, a_sleeping_owners_slabs_are_collected_when_many_wait) {
  std::vector<Unit*> slabs;
  std::vector<std::vector<void*>> blocks;
  {
    const MutexLock held(first_owner.lock);
    for (int i = 0; i < 100; ++i) {
      slabs.push_back(slab::create(first_owner, class_64));
      blocks.push_back(take(slabs.back(), 4));
    }
  }
  for (size_t i = 0; i < slabs.size(); ++i) {
    (void)slab::put_remote(slabs[i], to_list(blocks[i]));
    slab::announce(slabs[i], slabs[i]->units);
  }
  EXPECT_LE(first_owner.slab_count, 70u);
}

TEST_F(SlabTest, a_slab_that_changes_hands_while_it_is_queued_reaches_its_new_owner) {
  Unit* s = nullptr;
  std::vector<void*> blocks;
  {
    const MutexLock held(first_owner.lock);
    s = slab::create(first_owner, class_64);
    blocks = take(s, 12);
  }
  (void)slab::put_remote(s, to_list(blocks));
  slab::announce(s, s->units);
  {
    const MutexLock held(second_owner.lock);
    ASSERT_TRUE(first_owner.lock.try_lock());
    slab::change_owner(s, second_owner);
    EXPECT_EQ(first_owner.slab_count, 0u);
    EXPECT_EQ(second_owner.slab_count, 1u);
    EXPECT_TRUE(in_partial_list(second_owner, s));
    EXPECT_FALSE(in_partial_list(first_owner, s));
    first_owner.lock.unlock();
  }
  {
    const MutexLock held(first_owner.lock);
    slab::collect_pending(first_owner);
  }
  EXPECT_EQ(slab::used_of(s), 12u);
  const MutexLock held(second_owner.lock);
  slab::collect_pending(second_owner);
  EXPECT_EQ(slab::used_of(s), 0u);
}

// Four threads free the blocks of an owner that goes on taking and giving: none is lost, none comes twice.
// A slab that stands in its owner's pending stack when it is destroyed, and whose unit serves again there.
class UnitUsedAgain : public SlabTest {
 protected:
  // Queues a slab late, as does a thread that freed blocks which were taken in before it came to announce it, and
  // destroys it. Returns: its unit.
  static Unit* destroyed_while_queued() {
    Unit* s = nullptr;
    {
      const MutexLock held(first_owner.lock);
      s = slab::create(first_owner, class_4096);
      const std::vector<void*> blocks = take(s, 3);
      std::thread([s] { slab::announce(s, s->units); }).join();
      put_back(s, blocks);
      slab::destroy_empty(first_owner);
    }
    EXPECT_EQ(first_owner.pending.load(), region::index_of(s));
    EXPECT_TRUE(s->queued.load(std::memory_order_relaxed));
    return s;
  }

  // A slab of the class that begins at the unit. Others that come first are emptied when the test ends.
  static void create_at(Unit* unit, ThreadCache& owner, unsigned k) {
    const MutexLock held(owner.lock);
    for (Unit* s = nullptr; s != unit;) {
      s = slab::create(owner, k);
      ASSERT_NE(s, nullptr) << "the unit is not used again";
    }
  }

  static std::vector<void*> take_locked(ThreadCache& owner, Unit* s, uint32_t most) {
    const MutexLock held(owner.lock);
    return take(s, most);
  }

  static void free_remotely(Unit* s, const std::vector<void*>& blocks) {
    std::thread([&] {
      (void)slab::put_remote(s, to_list(blocks));
      slab::announce(s, s->units);
    }).join();
  }
};

TEST_F(UnitUsedAgain, by_another_owner_gets_its_remote_frees_when_the_former_owner_looks) {
  Unit* const s = destroyed_while_queued();
  create_at(s, second_owner, class_64);
  const std::vector<void*> blocks = take_locked(second_owner, s, 12);
  free_remotely(s, blocks);
  EXPECT_EQ(slab::used_of(s), 12u);
  {
    const MutexLock held(first_owner.lock);
    slab::collect_pending(first_owner);
  }
  EXPECT_EQ(second_owner.pending.load(), region::index_of(s));
  const MutexLock held(second_owner.lock);
  slab::collect_pending(second_owner);
  EXPECT_EQ(slab::used_of(s), 0u);
  EXPECT_FALSE(s->queued.load(std::memory_order_relaxed));
}

TEST_F(UnitUsedAgain, by_its_former_owner_gets_its_remote_frees_when_that_looks) {
  Unit* const s = destroyed_while_queued();
  create_at(s, first_owner, class_64);
  const std::vector<void*> blocks = take_locked(first_owner, s, 12);
  free_remotely(s, blocks);
  const MutexLock held(first_owner.lock);
  slab::collect_pending(first_owner);
  EXPECT_EQ(slab::used_of(s), 0u);
  EXPECT_FALSE(s->queued.load(std::memory_order_relaxed));
}

TEST_F(UnitUsedAgain, for_a_large_block_leaves_the_stack_unharmed) {
  Unit* waiting = nullptr;
  std::vector<void*> blocks;
  {
    const MutexLock held(first_owner.lock);
    waiting = slab::create(first_owner, class_64);
    blocks = take(waiting, 5);
  }
  free_remotely(waiting, blocks);
  Unit* const s = destroyed_while_queued();
  const size_t index = region::index_of(s);
  bool clean = false;
  std::vector<size_t> spans;
  while (spans.empty() || spans.back() != index) {
    spans.push_back(region::allocate(1, 1, UnitState::Large, &clean));
    ASSERT_NE(spans.back(), unit_index_none) << "the unit is not used again";
  }
  {
    const MutexLock held(first_owner.lock);
    slab::collect_pending(first_owner);
  }
  EXPECT_EQ(slab::used_of(waiting), 0u);
  EXPECT_FALSE(s->queued.load(std::memory_order_relaxed));
  for (const size_t span : spans)
    region::give_back(span, 1, false);
}

TEST_F(UnitUsedAgain, by_an_owner_that_has_ended_is_not_forgotten) {
  Unit* const s = destroyed_while_queued();
  create_at(s, second_owner, class_64);
  const std::vector<void*> blocks = take_locked(second_owner, s, 12);
  second_owner.orphan.store(true);
  free_remotely(s, blocks);
  {
    const MutexLock held(first_owner.lock);
    slab::collect_pending(first_owner);
  }
  EXPECT_TRUE(second_owner.noted[orphan_index::to_look_at].load());
  ASSERT_EQ(orphan_index::take(orphan_index::to_look_at), &second_owner);
  orphan_index::forget(second_owner, orphan_index::to_look_at);
  slab::look_after(second_owner);
  EXPECT_EQ(slab::used_of(s), 0u);
  second_owner.orphan.store(false);
  while (ThreadCache* const noted = orphan_index::take(class_64))
    orphan_index::forget(*noted, class_64);
}

TEST_F(SlabTest, remote_frees_from_many_threads_lose_no_block) {
  constexpr int threads = 4;
  constexpr int rounds = 60;
  for (int round = 0; round < rounds; ++round) {
    std::vector<std::vector<void*>> shares(threads);
    Random random(static_cast<uint64_t>(round));
    std::vector<Unit*> slabs;
    {
      const MutexLock held(first_owner.lock);
      for (const unsigned k : {class_64, class_64, class_4096, size_class_of(80)}) {
        slabs.push_back(slab::create(first_owner, k));
        for (void* block : take_all(slabs.back()))
          shares[random.below(threads)].push_back(block);
      }
    }
    std::vector<std::thread> running;
    for (const std::vector<void*>& share : shares) {
      running.emplace_back([&share] {
        // Batches, as a flush makes them.
        for (size_t i = 0; i < share.size();) {
          const size_t last = std::min(i + 16, share.size());
          void* block = to_list({share.begin() + static_cast<long>(i), share.begin() + static_cast<long>(last)});
          while (block != nullptr) {
            Unit* s = slab::of(block);
            const uint32_t units = s->units;  // its owner may destroy it as soon as it has the blocks
            block = slab::put_remote(s, block).rest;
            slab::announce(s, units);
          }
          i = last;
        }
      });
    }
    for (int i = 0; i < 50; ++i) {
      const MutexLock held(first_owner.lock);
      slab::collect_pending(first_owner);
      std::this_thread::yield();
    }
    for (std::thread& thread : running)
      thread.join();
    const MutexLock held(first_owner.lock);
    slab::collect_pending(first_owner);
    slab::destroy_empty(first_owner);
    ASSERT_EQ(first_owner.slab_count, 0u) << "blocks were lost in round " << round;
  }
}

}  // namespace
