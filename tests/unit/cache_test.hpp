// What the tests of thread caches and of threads' lives share: many blocks of one size, and the heap in order at the
// end.
#pragma once

#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "heap/heap.hpp"
#include "heap/slab.hpp"
#include "heap/thread_life.hpp"
#include "heap_calls.hpp"
#include "random_blocks.hpp"

namespace sluice::test {

// Blocks of all slabs that are with the program, in caches, or freed by other threads but not taken in.
inline size_t used_blocks(unsigned k) {
  size_t used = 0;
  cache::lock_all();
  for (size_t i = region::first_index(); i < region::limit(); i += region::unit_at(i)->units) {
    const Unit* unit = region::unit_at(i);
    if (unit->use() == UnitState::Slab && unit->slab.size_class == k) used += slab::used_of(unit);
  }
  cache::unlock_all();
  return used;
}

inline std::vector<void*> allocate_many(size_t count, size_t size) {
  std::vector<void*> blocks(count);
  for (void*& block : blocks) {
    block = allocate(size);
    std::memset(block, 0xab, size);
  }
  return blocks;
}

inline void free_many(const std::vector<void*>& blocks) {
  for (void* block : blocks)
    heap::free(block);
}

// Whether the cache counts the blocks of its slabs right.
inline bool counts_are_right(const ThreadCache& c) {
  size_t used[size_class_count]{}, carved[size_class_count]{};
  bool right = true;
  cache::lock_all();
  for (size_t i = region::first_index(); i < region::limit(); i += region::unit_at(i)->units) {
    const Unit* unit = region::unit_at(i);
    if (unit->use() != UnitState::Slab || unit->owner.load(std::memory_order_relaxed) != &c) continue;
    used[unit->slab.size_class] += slab::used_of(unit);
    carved[unit->slab.size_class] += unit->slab.carved;
  }
  for (unsigned k = 1; k < size_class_count; ++k)
    right &= used[k] == c.uses[k].used.load(std::memory_order_relaxed) && carved[k] == c.uses[k].carved;
  cache::unlock_all();
  return right;
}

inline void shuffle(std::vector<void*>& blocks, uint64_t seed) {
  Random random(seed);
  for (size_t i = blocks.size(); i > 1; --i)
    std::swap(blocks[i - 1], blocks[random.below(i)]);
}

// The heap is valid when the test is over.
class CacheTest : public testing::Test {
 protected:
  void SetUp() override {
    heap::free(allocate(1));
    (void)heap::trim(0);
  }
  void TearDown() override {
    const char* wrong = heap::validate().what;
    EXPECT_EQ(wrong, nullptr) << wrong;
    for (const ThreadCache* c = cache::first(); c != nullptr; c = c->next_cache)
      EXPECT_TRUE(counts_are_right(*c));
  }
};

}  // namespace sluice::test
