// Signal handlers that come in the middle of a refill or a flush, here inside of a call to the system: what they free
// goes through the fast path, into the bin that is being changed.
#include <vector>

#include <gtest/gtest.h>

#include "base/options.hpp"
#include "cache_test.hpp"
#include "heap/heap.hpp"
#include "heap/thread_cache.hpp"
#include "heap_calls.hpp"
#include "mock_os.hpp"

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

}  // namespace
