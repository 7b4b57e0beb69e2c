// Slabs hand out different blocks first, so that those which a program takes again and again do not share the sets of a
// processor's first cache.
#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/options.hpp"
#include "heap/heap.hpp"
#include "heap/slab.hpp"
#include "os/memory.hpp"
#include "start_region.hpp"

namespace {

using namespace sluice;

ThreadCache owner;

class FirstBlock : public testing::Test {
 protected:
  static void SetUpTestSuite() { test::start_region(); }
  void TearDown() override {
    const MutexLock held(owner.lock);
    slab::destroy_empty(owner);
    EXPECT_EQ(heap::validate().what, nullptr);
  }

  // All blocks of one portion, in the order in which they are handed out.
  static std::vector<char*> take(Unit* s) {
    std::vector<char*> blocks;
    for (void* block = slab::take_blocks(s, UINT16_MAX).first; block != nullptr; block = next_of(block))
      blocks.push_back(static_cast<char*>(block));
    return blocks;
  }
  static void put_back(Unit* s, const std::vector<char*>& blocks) {
    for (size_t i = 0; i < blocks.size(); ++i)
      set_next(blocks[i], i + 1 < blocks.size() ? blocks[i + 1] : nullptr);
    EXPECT_EQ(slab::put_list(*s->owner.load(std::memory_order_relaxed), blocks.front()).rest, nullptr);
  }
};

TEST_F(FirstBlock, SlabsOfOneClassBeginInDifferentPlacesOfTheirFirstPages) {
  for (const size_t size : {16, 64, 80, 256, 512, 1024}) {
    const MutexLock held(owner.lock);
    (void)region::purge_all(0);  // more than a page is carved at once where pages are in memory
    std::vector<std::pair<Unit*, std::vector<char*>>> taken;
    std::set<size_t> places;
    for (unsigned i = 0; i < 32; ++i) {
      Unit* const s = slab::create(owner, size_class_of(size));
      ASSERT_NE(s, nullptr);
      std::vector<char*> blocks = take(s);
      ASSERT_EQ(blocks.size(), os::page_size() / size);
      places.insert(static_cast<size_t>(blocks.front() - slab::start_of(s)));
      // Upwards, and from the page's start after its end.
      for (size_t k = 1; k < blocks.size(); ++k)
        EXPECT_EQ(blocks[k], blocks[k - 1] + size < slab::start_of(s) + blocks.size() * size ? blocks[k - 1] + size
                                                                                             : slab::start_of(s));
      const char* const lowest = *std::min_element(blocks.begin(), blocks.end());
      EXPECT_EQ(lowest, slab::start_of(s)) << "the page is handed out whole";
      if (s->slab.carved < s->slab.capacity) {
        std::vector<char*> next = take(s);
        EXPECT_TRUE(std::is_sorted(next.begin(), next.end())) << "later pages begin with their first blocks";
        blocks.insert(blocks.end(), next.begin(), next.end());
      }
      taken.emplace_back(s, blocks);
    }
    for (const auto& [s, blocks] : taken)
      put_back(s, blocks);
    EXPECT_GE(places.size(), std::min<size_t>(12, os::page_size() / size)) << size;
  }
}

// One behind the other, as those of a program that starts: the first blocks of the classes that it uses.
TEST_F(FirstBlock, SlabsSideBySideBeginInDifferentSets) {
  const MutexLock held(owner.lock);
  constexpr size_t line = 64, sets = 64;
  std::vector<unsigned> in_set(sets);
  for (const size_t size : {16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256}) {
    Unit* const s = slab::create(owner, size_class_of(size));
    ASSERT_NE(s, nullptr);
    const std::vector<char*> blocks = take(s);
    ++in_set[reinterpret_cast<uintptr_t>(blocks.front()) / line % sets];
    put_back(s, blocks);
  }
  EXPECT_LE(*std::max_element(in_set.begin(), in_set.end()), 3U);
}

}  // namespace
