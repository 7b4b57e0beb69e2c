// Blocks of many slabs of another owner, freed in one go: each comes to its slab, and a block that is freed twice ends
// the list. The owner here is a cache that no thread uses.
#include "heap/remote_frees.hpp"

#include <algorithm>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/options.hpp"
#include "heap/announce.hpp"
#include "heap/heap.hpp"
#include "start_region.hpp"

namespace {

using namespace sluice;

ThreadCache owner;

constexpr unsigned class_64 = size_class_of(64);
constexpr unsigned class_4096 = size_class_of(4096);

class RemoteFreesTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { test::start_region(); }
  void TearDown() override { EXPECT_EQ(heap::validate().what, nullptr); }
};

// As a cache does that takes what several threads send, in turns. Returns the blocks of each slab.
std::vector<std::vector<void*>> take_from_each(const std::vector<Unit*>& slabs, uint32_t blocks) {
  std::vector<std::vector<void*>> taken;
  for (Unit* const s : slabs) {
    taken.emplace_back();
    for (void* block = slab::take_blocks(s, blocks).first; block != nullptr; block = next_of(block))
      taken.back().push_back(block);
  }
  return taken;
}

TEST_F(RemoteFreesTest, gathered_frees_reach_the_owners_of_all_slabs_in_whatever_order_they_come) {
  for (const size_t slab_count : {2, 5, 40}) {  // less and more than are gathered at once
    std::vector<Unit*> slabs;
    std::vector<std::vector<void*>> blocks;
    {
      const MutexLock held(owner.lock);
      for (size_t i = 0; i < slab_count; ++i)
        slabs.push_back(slab::create(owner, i % 3 == 2 ? class_4096 : class_64));
      blocks = take_from_each(slabs, 12);
    }
    std::thread([&] {
      slab::RemoteFrees frees;
      for (size_t turn = 0; turn < 12; ++turn) {
        for (size_t i = 0; i < slab_count; ++i) {
          if (turn >= blocks[i].size()) continue;
          void* const block = blocks[i][turn];
          set_next(block, nullptr);
          ASSERT_EQ(frees.put(slabs[i], block).rest, nullptr);
        }
      }
      // What fits is not told yet.
      if (slab_count == 2) {
        EXPECT_EQ(slab::remote_count(slabs[0]) + slab::remote_count(slabs[1]), 0u);
      }
    }).join();
    const MutexLock held(owner.lock);
    slab::collect_pending(owner);
    for (Unit* const s : slabs) {
      EXPECT_EQ(slab::remote_count(s), 0u);
    }
    slab::destroy_empty(owner);
    EXPECT_EQ(owner.slab_count, 0u);
    EXPECT_EQ(owner.pending.load(), unit_index_none);
  }
}

TEST_F(RemoteFreesTest, words_of_one_slab_that_take_each_others_place_stay_apart) {
  constexpr unsigned class_16 = size_class_of(16);
  const MutexLock held(owner.lock);
  Unit* const s = slab::create(owner, class_16);
  std::vector<void*> blocks;
  while (blocks.size() < slab::blocks_per_slab(class_16))
    for (void* block = slab::take_blocks(s, UINT16_MAX).first; block != nullptr; block = next_of(block))
      blocks.push_back(block);
  std::sort(blocks.begin(), blocks.end());
  std::thread([&] {
    slab::RemoteFrees frees;
    for (const size_t i : {0, 16 * 64 + 1, 2, 32 * 64 + 3, 16 * 64 + 4, 5}) {
      set_next(blocks[i], nullptr);
      (void)frees.put(s, blocks[i]);
    }
  }).join();
  slab::collect_pending(owner);
  EXPECT_EQ(slab::free_bits(s)[0], 0b100101u);
  EXPECT_EQ(slab::free_bits(s)[16], 0b10010u);
  EXPECT_EQ(slab::free_bits(s)[32], 0b1000u);
  EXPECT_EQ(s->slab.free_count, 6u);
  for (size_t i = 0; i < blocks.size(); ++i) {
    if ((slab::free_bits(s)[i / 64] >> (i % 64) & 1) != 0) continue;
    set_next(blocks[i], nullptr);
    (void)slab::put_list(owner, blocks[i]);
  }
  slab::destroy_empty(owner);
}

TEST_F(RemoteFreesTest, a_block_that_is_gathered_twice_ends_its_list) {
  options.abort_on_corruption = false;
  const unsigned slab_count = 17;  // more than are gathered at once, and as many as an owner's queue may have
  std::vector<Unit*> slabs;
  std::vector<std::vector<void*>> blocks;
  {
    const MutexLock held(owner.lock);
    for (unsigned i = 0; i < slab_count; ++i)
      slabs.push_back(slab::create(owner, class_64));
    blocks = take_from_each(slabs, 2);
  }
  // A circle through blocks that have places of their own, and one through blocks that take each other's.
  for (const size_t circle : {size_t{3}, size_t{slab_count}}) {
    const size_t which = circle == 3 ? 0 : 1;
    for (size_t i = 0; i < circle; ++i)
      set_next(blocks[i][which], blocks[(i + 1) % circle][which]);
    {
      slab::RemoteFrees frees;
      size_t steps = 0;
      for (void* block = blocks[0][which]; block != nullptr && steps < 1000; ++steps)
        block = frees.put(slab::of(block), block).rest;
      EXPECT_GT(steps, circle);
      EXPECT_LE(steps, circle == 3 ? circle + 1 : 2 * circle);
    }
    for (size_t i = circle; i < slab_count; ++i) {
      set_next(blocks[i][which], nullptr);
      (void)slab::put_remote(slabs[i], blocks[i][which]);
      slab::announce(slabs[i], 1);
    }
  }
  options.abort_on_corruption = true;
  const MutexLock held(owner.lock);
  slab::collect_pending(owner);
  slab::destroy_empty(owner);
  EXPECT_EQ(owner.slab_count, 0u);
}

}  // namespace
