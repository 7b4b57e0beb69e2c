// Free spans that a thread keeps for itself: who earns them, what they serve for, and when they go back.
#include "heap/own_spans.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/options.hpp"
#include "cache_test.hpp"
#include "heap/heap.hpp"
#include "pages/free_spans.hpp"
#include "stats/snapshot.hpp"

namespace {

using namespace sluice;

constexpr size_t size = 100'000;
constexpr size_t mib = size_t{1} << 20;
constexpr size_t units = 2;  // that it takes

const OwnSpans& own() {
  return thread_cache->own_spans;
}

size_t kept() {
  return own().units.load(std::memory_order_relaxed);
}

void allocate_and_free(size_t bytes, unsigned times) {
  for (unsigned i = 0; i < times; ++i)
    heap::free(test::allocate(bytes));
}

// Until the thread keeps a span of `size`.
void earn() {
  for (unsigned i = 0; i < 1'000 && kept() == 0; ++i)
    allocate_and_free(size, 1);
}

class OwnSpansTest : public test::CacheTest {
 protected:
  void SetUp() override {
    CacheTest::SetUp();
    before_ = options;
    ASSERT_EQ(thread_cache->small_limit, small_limit_when_open);
    ASSERT_EQ(kept(), 0u);
  }
  void TearDown() override {
    options = before_;
    (void)heap::trim(0);
    EXPECT_EQ(kept(), 0u);
    EXPECT_EQ(own().granted, 0u);
    CacheTest::TearDown();
  }

 private:
  decltype(options) before_;
};

TEST_F(OwnSpansTest, a_thread_that_frees_and_takes_one_length_keeps_its_span) {
  allocate_and_free(size, 8);
  EXPECT_EQ(own().granted, 0u);  // not yet
  earn();
  ASSERT_EQ(kept(), units);
  char* const block = static_cast<char*>(test::allocate(size - 1'000));
  EXPECT_EQ(kept(), 0u);
  EXPECT_EQ(heap::usable_size(block), (size - 1'000 + 4'095) / 4'096 * 4'096);
  std::memset(block, 1, size - 1'000);
  heap::free(block);
  EXPECT_EQ(kept(), units);
  EXPECT_EQ(test::allocate(size), block);
  heap::free(block);
}

TEST_F(OwnSpansTest, only_the_same_length_is_served) {
  earn();
  void* const longer = test::allocate(3 * unit_size);
  void* const shorter = test::allocate(unit_size + 1);
  EXPECT_EQ(kept(), 0u);  // the second takes two units
  heap::free(longer);
  heap::free(shorter);
  for (const size_t hopeless : {SIZE_MAX, SIZE_MAX - unit_size / 2, SIZE_MAX - unit_size, SIZE_MAX / 2})
    EXPECT_EQ(test::allocate(hopeless), nullptr);
}

TEST_F(OwnSpansTest, zeroed_blocks_read_as_zero_and_aligned_ones_are_aligned) {
  earn();
  void* dirty = test::allocate(size);
  std::memset(dirty, 0xab, heap::usable_size(dirty));
  heap::free(dirty);
  ASSERT_EQ(kept(), units);
  auto* const zeroed = static_cast<unsigned char*>(heap::allocate_zeroed(1, size));
  EXPECT_EQ(zeroed, dirty);
  EXPECT_EQ(zeroed[0], 0);
  EXPECT_EQ(std::memcmp(zeroed, zeroed + 1, heap::usable_size(zeroed) - 1), 0);
  heap::free(zeroed);
  ASSERT_EQ(kept(), units);
  void* const aligned = heap::allocate_aligned(8 * unit_size, size);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(aligned) % (8 * unit_size), 0u);
  heap::free(aligned);
}

TEST_F(OwnSpansTest, what_is_freed_twice_is_not_kept_twice) {
  earn();
  void* const block = test::allocate(size);
  heap::free(block);
  ASSERT_EQ(kept(), units);
  heap::free(block);
  EXPECT_EQ(kept(), units);
  void* const first = test::allocate(size);
  void* const second = test::allocate(size);
  EXPECT_NE(first, second);
  heap::free(first);
  heap::free(second);
}

TEST_F(OwnSpansTest, requests_of_many_lengths_give_all_back) {
  earn();
  ASSERT_NE(own().granted, 0u);
  std::vector<void*> blocks;
  for (size_t i = 0; i < 300; ++i)
    blocks.push_back(test::allocate(size + i % 14 * unit_size));
  EXPECT_EQ(own().granted, 0u);
  EXPECT_EQ(kept(), 0u);
  for (void* block : blocks)
    heap::free(block);
}

TEST_F(OwnSpansTest, all_threads_keep_no_more_than_may_be_recent) {
  std::vector<std::thread> threads;
  std::atomic<size_t> most{0}, granted{0}, ready{0};
  constexpr size_t count = 8;
  for (size_t i = 0; i < count; ++i)
    threads.emplace_back([&] {
      std::vector<void*> blocks(16);
      for (int round = 0; round < 200; ++round) {
        for (void*& block : blocks)
          block = test::allocate(size);
        for (void* block : blocks)
          heap::free(block);
      }
      EXPECT_LE(kept(), own().granted);
      granted.fetch_add(own().granted);
      ready.fetch_add(1);
      while (ready.load() != count)
        std::this_thread::yield();
      most.store(granted.load());
    });
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_GT(most.load(), 0u);
  EXPECT_LE(most.load(), sluice::FreeSpans::most_recent);
  earn();  // what threads were granted that have ended is to be had again
  EXPECT_NE(own().granted, 0u);
}

TEST_F(OwnSpansTest, a_trim_of_another_thread_is_heard_at_the_next_slow_call) {
  earn();
  std::thread([] { (void)heap::trim(0); }).join();
  test::free_many(test::allocate_many(20'000, 64));
  EXPECT_EQ(kept(), 0u);
}

TEST_F(OwnSpansTest, nothing_is_kept_where_no_span_may_be_recent) {
  options.purge_delay = 0;
  allocate_and_free(size, 200);
  EXPECT_EQ(own().granted, 0u);
  options.purge_delay = 1'000;
  options.retain = 0;
  allocate_and_free(size, 200);
  EXPECT_EQ(own().granted, 0u);
}

TEST_F(OwnSpansTest, blocks_whose_pages_are_to_go_at_once_are_not_kept) {
  earn();
  void* const block = test::allocate(size);
  large::drop_freed(size);
  heap::free(block);
  EXPECT_EQ(kept(), 0u);
  large::drop_freed(SIZE_MAX);
}

TEST_F(OwnSpansTest, statistics_count_kept_spans_as_free) {
  earn();
  void* const block = test::allocate(size);
  ASSERT_EQ(kept(), 0u);
  const auto before = std::make_unique<stats::Snapshot>();
  stats::take_snapshot(before.get());
  heap::free(block);
  ASSERT_EQ(kept(), units);
  const auto after = std::make_unique<stats::Snapshot>();
  stats::take_snapshot(after.get());
  EXPECT_EQ(after->large.live_spans + 1, before->large.live_spans);
  EXPECT_EQ(after->active_bytes + units * unit_size, before->active_bytes);
  EXPECT_EQ(after->retained_bytes, before->retained_bytes + units * unit_size);
}

TEST_F(OwnSpansTest, a_phase_that_ends_takes_them_along) {
  earn();
  std::vector<void*> blocks;
  for (int i = 0; i < 40; ++i) {
    blocks.push_back(test::allocate(mib));
    std::memset(blocks.back(), 1, mib);
  }
  earn();
  ASSERT_NE(own().granted, 0u);
  for (void* block : blocks)
    heap::free(block);
  test::free_many(test::allocate_many(20'000, 64));
  EXPECT_EQ(own().granted, 0u);
}

TEST_F(OwnSpansTest, a_child_of_a_fork_gives_back_what_a_thread_kept_that_stayed_behind) {
  std::atomic<int> step{0};
  std::thread other([&] {
    earn();
    EXPECT_EQ(kept(), units);
    step.store(1);
    while (step.load() != 2)
      std::this_thread::yield();
  });
  while (step.load() != 1)
    std::this_thread::yield();
  const pid_t child = fork();
  if (child == 0) {
    // The next thread takes the cache over.
#if defined(SLUICE_TEST_SANITIZER)  // ThreadSanitizer lets no thread be made in such a child
    _exit(0);
#else
    bool in_order = false;
    std::thread([&] { in_order = kept() == 0 && heap::usable_size(test::allocate(size)) >= size; }).join();
    for (const ThreadCache* c = cache::first(); c != nullptr; c = c->next_cache)
      in_order = in_order && (c == thread_cache || c->own_spans.granted == 0);
    _exit(in_order && heap::validate().what == nullptr ? 0 : 1);
#endif
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  step.store(2);
  other.join();
}

}  // namespace
