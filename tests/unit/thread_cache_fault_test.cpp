// Signal handlers that come in the middle of a refill or a flush, here inside of a call to the system: what they free
// goes through the fast path, into the bin that is being changed.
#include <vector>

#include <gtest/gtest.h>

#include "base/options.hpp"
#include "cache_test.hpp"
#include "heap/budget.hpp"
#include "heap/heap.hpp"
#include "heap/slab.hpp"
#include "heap/thread_cache.hpp"
#include "heap/vacant.hpp"
#include "heap_calls.hpp"
#include "in_child.hpp"
#include "mock_os.hpp"
#include "os/memory.hpp"
#include "without_stand_ins.hpp"

namespace {

using namespace sluice;
using mock_os::Call;
using test::allocate_many;
using test::free_many;

constexpr size_t size = 30'000;
constexpr unsigned k = size_class_of(size);

void* handled = nullptr;
bool went_into_the_bin = false;

void free_in_handler() {
  const int32_t room = thread_cache->bins[k].room;
  heap::free(handled);
  went_into_the_bin = thread_cache->bins[k].room == room - 1;
}

class ThreadCacheFaultTest : public test::CacheTest {
 protected:
  void SetUp() override {
    CacheTest::SetUp();
    options.purge_delay = 0;
    options.retain = 0;
    thread_cache->budget_kib = 1 << 20;
    went_into_the_bin = false;
  }
  void TearDown() override {
    mock_os::never_fail();
    EXPECT_TRUE(went_into_the_bin);
    EXPECT_EQ(cache::held_blocks(*thread_cache, k) + live, test::used_blocks(k));
    free_many(blocks);
    (void)heap::trim(0);
    EXPECT_EQ(test::used_blocks(k), 0u);
    CacheTest::TearDown();
  }
  std::vector<void*> blocks;
  size_t live = 0;
};

TEST_F(ThreadCacheFaultTest, a_block_freed_in_the_middle_of_a_flush_is_counted) {
  blocks = allocate_many(40, size);
  handled = blocks.front();
  blocks.erase(blocks.begin());
  free_many(blocks);
  blocks.clear();
  mock_os::call_at_next(Call::Purge, free_in_handler);
  cache::flush_own();
}

TEST_F(ThreadCacheFaultTest, a_block_freed_in_the_middle_of_a_refill_is_not_lost) {
  handled = test::allocate(size);
  mock_os::call_at_next(Call::Commit, free_in_handler);
  for (; !went_into_the_bin && live < 10'000; ++live)
    blocks.push_back(test::allocate(size));
}

TEST_F(ThreadCacheFaultTest, a_block_freed_in_the_middle_of_a_refill_that_fails_is_counted) {
  handled = test::allocate(size);
  mock_os::call_at_next(Call::Commit, free_in_handler);
  mock_os::fail_from(Call::Commit, 1);
  while (void* const block = test::allocate(size))
    blocks.push_back(block);
  live = blocks.size();
}

class EvictedClassTest : public test::CacheTest {
 protected:
  void SetUp() override {
    if (!vacant::gives_back) GTEST_SKIP() << "no page of a slab goes back by itself";
    CacheTest::SetUp();
  }
  // The class keeps so many blocks, and must give them back for others.
  static void evict(size_t blocks) {
    thread_cache->budget_kib = 1 << 20;
    free_many(allocate_many(blocks, size));
    thread_cache->budget_kib = budget::at_first();
    for (unsigned other = 1; other < size_class_count && thread_cache->uses[k].evicted_at == 0; ++other)
      if (other != k) free_many(allocate_many(2, class_sizes[other]));
    ASSERT_NE(thread_cache->uses[k].evicted_at, 0);
  }
  // Where the pages begin that went of the block's slab, as seen from its start; 0: none did.
  static size_t first_dropped(const void* block) {
    const Unit* const s = slab::of(block);
    const auto start = reinterpret_cast<uintptr_t>(slab::start_of(s));
    for (const mock_os::Record& record : mock_os::records())
      if (record.call == Call::Purge && record.address > start && record.address < start + s->units * unit_size) {
        EXPECT_EQ(record.address + record.bytes, start + s->units * unit_size);
        return record.address - start;
      }
    return 0;
  }
};

TEST_F(EvictedClassTest, keeps_the_pages_alone_of_as_many_blocks_as_it_had) {
  constexpr size_t in_a_slab = slab::blocks_per_slab(k);
  for (const size_t blocks : {size_t{1}, size_t{2}, size_t{5}, in_a_slab, in_a_slab + 1}) {
    (void)heap::trim(0);
    heap::free(test::allocate(1));  // here the thread does what it was asked for
    ASSERT_NO_FATAL_FAILURE(evict(blocks));
    mock_os::forget_records();
    const uint64_t made_again = os::call_counts.slabs_made_again.load();
    void* const block = test::allocate(size);
    EXPECT_EQ(os::call_counts.slabs_made_again.load(), made_again + 1);
    const size_t kept = (blocks > 2 ? blocks : 2) * class_sizes[k];
    const size_t first = first_dropped(block);
    const size_t all = slab::of(block)->units * unit_size;
    if (blocks > in_a_slab || kept + os::page_size() > all) {
      EXPECT_EQ(first, 0u);
    } else {
      EXPECT_GE(first, kept);
      EXPECT_LT(first, kept + os::page_size());
    }
    heap::free(block);
  }
}

// Threads that come and go make such slabs all the time, and need all of their pages soon. Returns: how many rests of
// slabs go while 900 are made again in so many ms.
size_t rests_that_go(uint64_t ms, void (*evict)()) {
  const uint64_t made_again = os::call_counts.slabs_made_again.load();
  mock_os::forget_records();
  unsigned rounds = 0;
  for (uint64_t made = 0; made < 900 && ++rounds < 500; made = os::call_counts.slabs_made_again.load() - made_again) {
    mock_os::set_clock((uint64_t{1} << 40) + ms * made / 900);
    evict();
    heap::free(test::allocate(size));
  }
  size_t rests = 0;
  for (const mock_os::Record& record : mock_os::records())
    rests += record.call == Call::Purge && record.address % unit_size != 0 ? 1 : 0;  // other spans go as a whole
  return rests;
}

TEST_F(EvictedClassTest, gives_back_no_more_rests_than_cost_little) {
  for (const uint64_t ms : {0u, 40u})
    EXPECT_EQ(test::in_child([ms]() -> std::string {
                const size_t rests = rests_that_go(ms, [] { evict(1); });
                const bool is_enough = rests >= 240 + 4 * ms || os::page_size() != 4096;  // few have a rest there
                return is_enough && rests <= 264 + 8 * ms ? "" : std::to_string(rests) + " go";
              }),
              "")
        << ms;
}

}  // namespace
