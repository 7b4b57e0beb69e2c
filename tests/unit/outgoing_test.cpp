// Blocks of other threads' slabs wait together, and none is lost: they are sent when they are many, when their place is
// needed, and when the cache is flushed. The owners here are caches that no thread uses.
#include "heap/outgoing.hpp"

#include <bit>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/options.hpp"
#include "heap/heap.hpp"
#include "heap/slab.hpp"
#include "random_blocks.hpp"

namespace {

using namespace sluice;

uint32_t count_waiting(const ThreadCache& c) {
  uint32_t waiting = 0;
  for (unsigned k = 1; k < size_class_count; ++k)
    waiting += outgoing::count(c, k);
  return waiting;
}

TEST(Outgoing, nothing_waits_in_a_thread_that_is_idle_or_has_ended) {
  constexpr size_t count = 1000;
  std::vector<void*> blocks(2 * count);
  for (void*& block : blocks)
    block = heap::allocate(100);
  ThreadCache* used = nullptr;
  std::thread([&blocks, &used] {
    const auto free_some = [&blocks](size_t first) {
      for (size_t i = 0; i < count; ++i)
        heap::free(blocks[first + i * 37 % count]);
    };
    free_some(0);
    used = thread_cache;
    EXPECT_GT(count_waiting(*used), 0u);
    heap::idle();
    EXPECT_EQ(count_waiting(*used), 0u);
    free_some(count);
    EXPECT_GT(count_waiting(*used), 0u);
  }).join();
  EXPECT_EQ(count_waiting(*used), 0u);
}

ThreadCache owner;
ThreadCache other;  // who frees

class OutgoingTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (region_base != nullptr) return;  // for another suite of this file
    options.reserve = size_t{256} << 20;
    ASSERT_TRUE(region::initialize());
  }
  void SetUp() override {
    ASSERT_TRUE(owner.lock.try_lock());
    ASSERT_TRUE(other.lock.try_lock());
  }
  void TearDown() override {
    EXPECT_EQ(other.outgoing.bytes, 0u);
    EXPECT_EQ(other.outgoing.used, 0u);
    slab::collect_pending(owner);
    slab::destroy_empty(owner);
    EXPECT_EQ(owner.slab_count, 0u);
    other.lock.unlock();
    owner.lock.unlock();
    EXPECT_EQ(heap::validate().what, nullptr);
  }

  static std::vector<void*> take_all(Unit* s) {
    std::vector<void*> blocks;
    while (s->slab.free_count != 0 || s->slab.carved < s->slab.capacity)
      for (void* block = slab::take_blocks(s, 1000).first; block != nullptr; block = next_of(block))
        blocks.push_back(block);
    return blocks;
  }

  static void add(Unit* s, void* block) {
    const size_t number = slab::number_of(s, block);
    EXPECT_EQ(outgoing::add(other, s, number / 64, uint64_t{1} << (number % 64), 1), 0u);
  }
};

TEST_F(OutgoingTest, blocks_of_a_word_wait_together_and_are_sent_at_once) {
  constexpr unsigned k = size_class_of(256);
  Unit* const s = slab::create(owner, k);
  const std::vector<void*> blocks = take_all(s);
  for (size_t i = 0; i < 64; ++i)
    add(s, blocks[i]);
  EXPECT_EQ(std::popcount(other.outgoing.used), 1);
  EXPECT_EQ(outgoing::count(other, k), 64u);
  EXPECT_EQ(outgoing::count(other, k + 1), 0u);
  EXPECT_EQ(slab::remote_count(s), 0u);
  EXPECT_FALSE(s->queued.load(std::memory_order_relaxed));
  outgoing::send(other);
  EXPECT_EQ(outgoing::count(other, k), 0u);
  EXPECT_EQ(slab::remote_count(s), 64u);
  EXPECT_TRUE(s->queued.load(std::memory_order_relaxed));
  for (size_t i = 64; i < blocks.size(); ++i)
    add(s, blocks[i]);
  outgoing::send(other);
}

TEST_F(OutgoingTest, a_list_waits_as_single_blocks_do) {
  constexpr unsigned k = size_class_of(64);
  Unit* const s = slab::create(owner, k);
  Unit* const t = slab::create(owner, k);
  const std::vector<void*> first = take_all(s), second = take_all(t);
  void* list = nullptr;
  for (size_t i = 0; i < 100; ++i) {
    set_next(first[i], list);
    list = first[i];
  }
  set_next(first[0], second[0]);
  set_next(second[0], nullptr);
  const slab::Run run = outgoing::take(other, s, list);
  EXPECT_EQ(run.count, 100u);
  EXPECT_EQ(run.rest, second[0]);
  EXPECT_EQ(outgoing::take(other, t, run.rest).rest, nullptr);
  EXPECT_EQ(outgoing::count(other, k), 101u);
  for (size_t i = 100; i < first.size(); ++i)
    add(s, first[i]);
  for (size_t i = 1; i < second.size(); ++i)
    add(t, second[i]);
  outgoing::send(other);
  EXPECT_EQ(slab::remote_count(s), first.size());
  EXPECT_EQ(slab::remote_count(t), second.size());
}

TEST_F(OutgoingTest, no_more_waits_than_32_KiB_and_large_blocks_do_not_wait) {
  constexpr unsigned k = size_class_of(2048), larger = k + 1;
  Unit* const s = slab::create(owner, k);
  Unit* const l = slab::create(owner, larger);
  const std::vector<void*> blocks = take_all(s), few = take_all(l);
  for (size_t i = 0; i < blocks.size(); ++i) {
    add(s, blocks[i]);
    EXPECT_LE(other.outgoing.bytes, 32u * 1024);
    EXPECT_EQ(outgoing::count(other, k) + slab::remote_count(s), i + 1);
  }
  for (void* block : few) {
    set_next(block, nullptr);
    EXPECT_EQ(outgoing::take(other, l, block).count, 1u);
  }
  EXPECT_EQ(outgoing::count(other, larger), 0u);
  EXPECT_EQ(slab::remote_count(l), few.size());
  EXPECT_TRUE(l->queued.load(std::memory_order_relaxed));
  outgoing::send(other);
}

TEST_F(OutgoingTest, of_many_slabs_each_block_waits_or_was_sent) {
  test::Random random(1);
  std::vector<Unit*> slabs;
  std::vector<std::pair<Unit*, void*>> blocks;
  for (unsigned i = 0; i < 200; ++i) {
    slabs.push_back(slab::create(owner, size_class_of(16 + 64 * (i % 20))));
    for (void* block : take_all(slabs.back()))
      blocks.emplace_back(slabs.back(), block);
  }
  for (size_t i = blocks.size(); i > 1; --i)
    std::swap(blocks[i - 1], blocks[random.below(i)]);
  for (const auto& [s, block] : blocks)
    add(s, block);
  const uint32_t waiting = count_waiting(other);
  uint32_t sent = 0;
  for (const Unit* s : slabs)
    sent += slab::remote_count(s);
  EXPECT_EQ(waiting + sent, blocks.size());
  EXPECT_GT(waiting, 0u);
  outgoing::send(other);
}

TEST_F(OutgoingTest, what_waits_is_forgotten_where_it_is_lost) {
  Unit* const s = slab::create(owner, size_class_of(64));
  const std::vector<void*> blocks = take_all(s);
  add(s, blocks[0]);
  outgoing::forget(other);
  EXPECT_EQ(outgoing::count(other, size_class_of(64)), 0u);
  for (void* block : blocks)
    add(s, block);
  outgoing::send(other);
}

}  // namespace
