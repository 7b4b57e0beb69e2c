// The first blocks of a class that a thread does not use come from a class of larger blocks, so that each needs no page
// and no slab of its own.
#include <bit>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/options.hpp"
#include "base/size_class.hpp"
#include "cache_test.hpp"
#include "heap/heap.hpp"
#include "heap/slab.hpp"
#include "heap/thread_cache.hpp"
#include "heap_calls.hpp"
#include "in_child.hpp"
#include "pages/region.hpp"

namespace {

using namespace sluice;

unsigned class_of(const void* block) {
  return slab::of(block)->slab.size_class;
}

// Runs the body on a thread that has used no class but what the thread library needs, which is smaller than these.
template <typename Body>
void on_a_new_thread(Body body) {
  std::thread(body).join();
}

TEST(StandIns, hold_each_block_of_the_class_and_are_at_most_twice_as_large) {
  for (unsigned k = 1; k < size_class_count; ++k) {
    const unsigned other = stand_in_of(k);
    EXPECT_GE(class_sizes[other], class_sizes[k]);
    EXPECT_LE(class_sizes[other], 2 * class_sizes[k] + size_of_line);
    EXPECT_FALSE(is_for_alignment_alone(class_sizes[other]) && other != k);
    if (class_sizes[k] <= 64 || std::has_single_bit(class_sizes[k])) {
      EXPECT_EQ(other, k);
    }
  }
  EXPECT_EQ(class_sizes[stand_in_of(size_class_of(600))], 1024u);
  EXPECT_EQ(class_sizes[stand_in_of(size_class_of(40'000))], 65'536u);
}

class StandInsTest : public test::CacheTest {};

TEST_F(StandInsTest, serve_the_first_few_requests_and_the_class_the_others) {
  on_a_new_thread([] {
    constexpr size_t size = 5000;
    constexpr unsigned k = size_class_of(size);
    std::vector<void*> blocks;
    for (unsigned i = 0; i < cache::most_stood_in; ++i) {
      blocks.push_back(test::allocate(size));
      EXPECT_EQ(class_of(blocks.back()), size_class_of(8192));
      EXPECT_EQ(heap::usable_size(blocks.back()), class_sizes[size_class_of(8192)]);
    }
    for (int i = 0; i < 20; ++i) {
      blocks.push_back(test::allocate(size));
      EXPECT_EQ(class_of(blocks.back()), k);
    }
    test::free_many(blocks);
  });
}

TEST_F(StandInsTest, share_pages) {
  on_a_new_thread([] {
    std::vector<void*> blocks;
    std::set<uintptr_t> pages;
    for (const size_t size : {544u, 580u, 650u, 770u, 840u, 900u, 970u, 1000u})
      blocks.push_back(test::allocate(size));
    for (void* const block : blocks)
      pages.insert(reinterpret_cast<uintptr_t>(block) / 4096);
    EXPECT_LE(pages.size(), 3u);
    test::free_many(blocks);
  });
}

TEST_F(StandInsTest, do_not_serve_where_the_class_has_a_slab) {
  on_a_new_thread([] {
    heap::free(test::allocate(16));  // it has a cache then
    ThreadCache& c = *thread_cache;
    constexpr size_t size = 3000;
    constexpr unsigned k = size_class_of(size);
    c.stood_in[k] = cache::most_stood_in;
    void* const first = test::allocate(size);
    ASSERT_EQ(class_of(first), k);
    c.stood_in[k] = 0;
    std::vector<void*> blocks{first};
    for (int i = 0; i < 40; ++i) {
      blocks.push_back(test::allocate(size));
      EXPECT_EQ(class_of(blocks.back()), k);
    }
    test::free_many(blocks);
  });
}

TEST_F(StandInsTest, do_not_serve_aligned_requests) {
  on_a_new_thread([] {
    for (const size_t alignment : {32u, 64u, 256u, 4096u}) {
      const size_t size = 3 * alignment;
      void* const block = heap::allocate_aligned(alignment, size);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % alignment, 0u);
      EXPECT_EQ(class_of(block), aligned_class_for(size, alignment));
      heap::free(block);
    }
  });
}

// A table that grows by an eighth comes through each class of larger blocks.
TEST_F(StandInsTest, make_a_block_that_grows_take_few_slabs) {
  on_a_new_thread([] {
    void* block = test::allocate(1000);
    uint32_t most = 0;
    unsigned moves = 0;
    for (size_t size = 1000; size < 60'000; size += size / 8) {
      void* const before = block;
      block = heap::reallocate(block, size);
      ASSERT_NE(block, nullptr);
      moves += block != before;
      const cache::CacheLock held(thread_cache->lock);
      most = thread_cache->slab_count > most ? thread_cache->slab_count : most;
    }
    EXPECT_LE(moves, 8u);
    EXPECT_LE(most, 10u);
    heap::free(block);
  });
}

TEST_F(StandInsTest, serve_again_where_a_class_of_large_blocks_was_evicted_or_the_thread_is_new) {
  ThreadCache& c = *thread_cache;
  constexpr unsigned small = size_class_of(700), large = size_class_of(3000);
  c.stood_in[small] = c.stood_in[large] = cache::most_stood_in;
  {
    const cache::CacheLock held(c.lock);
    cache::evict(c, small);
    cache::evict(c, large);
  }
  EXPECT_EQ(c.stood_in[small], cache::most_stood_in);
  EXPECT_EQ(c.stood_in[large], 0);
  ThreadCache* used = nullptr;
  on_a_new_thread([&used] {
    heap::free(test::allocate(16));
    used = thread_cache;
    used->stood_in[small] = used->stood_in[large] = cache::most_stood_in;
  });
  on_a_new_thread([used] {
    heap::free(test::allocate(16));
    if (thread_cache != used) GTEST_SKIP() << "it got another cache";
    EXPECT_EQ(used->stood_in[small], cache::most_stood_in);
    EXPECT_EQ(used->stood_in[large], 0);
  });
}

// Its slabs are longer than those of the class itself.
TEST_F(StandInsTest, do_not_make_a_request_fail_that_the_class_can_serve) {
  constexpr size_t size = 33'000;
  constexpr unsigned k = size_class_of(size);
  constexpr size_t units = slab::units_per_slab(k);
  ASSERT_LT(units, slab::units_per_slab(stand_in_of(k)));
  EXPECT_EQ(test::in_child([]() -> std::string {
              bool clean = false;
              options.retain = 0;
              heap::free(test::allocate(16));
              const size_t hole = region::allocate(units, 1, UnitState::Large, &clean);
              for (size_t each = size_t{1} << 20; each != 0; each /= 2)
                while (region::allocate(each, 1, UnitState::Large, &clean) != unit_index_none)
                  continue;
              region::give_back(hole, units, false);
              const void* const block = test::allocate(size);
              if (block == nullptr) return "there is no memory";
              return class_of(block) == k ? "" : "it is of class " + std::to_string(class_of(block));
            }),
            "");
}

// So a loop that takes and gives back one block takes the fast path soon.
TEST_F(StandInsTest, leave_off_also_where_each_block_comes_back) {
  on_a_new_thread([] {
    constexpr size_t size = 700;
    for (int i = 0; i < 10; ++i)
      heap::free(test::allocate(size));
    const uint32_t slow_calls = thread_cache->slow_calls;
    for (int i = 0; i < 1000; ++i)
      heap::free(test::allocate(size));
    EXPECT_EQ(thread_cache->slow_calls, slow_calls);
  });
}

}  // namespace
