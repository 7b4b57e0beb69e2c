// Free spans that a thread keeps for itself: who earns them, what they serve for, and when they go back.
#include "heap/own_spans.hpp"
#include "os/keep_errno.hpp"
#include "os/memory.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstring>
#include <iterator>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/options.hpp"
#include "cache_test.hpp"
#include "heap/heap.hpp"
#include "heap/own_spans.hpp"
#include "os/keep_errno.hpp"
#include "os/memory.hpp"
#include "pages/free_spans.hpp"
#include "pages/region_state.hpp"
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
  const size_t page = os::page_size();
  const size_t lead = large::lead_of(*large::find(block));
  EXPECT_EQ(lead + heap::usable_size(block), (lead + size - 1'000 + page - 1) / page * page);
  std::memset(block, 1, size - 1'000);
  heap::free(block);
  EXPECT_EQ(kept(), units);
  void* const other = test::allocate(size);
  EXPECT_EQ(unit_index_of(other), unit_index_of(block));
  heap::free(other);
}

TEST_F(OwnSpansTest, what_has_waited_goes_back_and_the_grant_when_all_has) {
  options.purge_delay = 200;
  const auto make_slow_calls = [] { test::free_many(test::allocate_many(20'000, 64)); };
  make_slow_calls();  // the first one hears of the trim before the test
  earn();
  thread_cache->own_spans.puts = 0;  // no free looks by itself
  const auto wait = [] { std::this_thread::sleep_for(std::chrono::milliseconds(60)); };
  void* blocks[3];
  for (void*& block : blocks)
    block = test::allocate(size);
  for (void* block : blocks)
    heap::free(block);
  ASSERT_EQ(kept(), 3 * units);
  wait();
  own_spans::look(*thread_cache);
  EXPECT_EQ(kept(), 3 * units);
  allocate_and_free(size, 3);
  wait();
  own_spans::look(*thread_cache);
  EXPECT_EQ(kept(), units);  // two that nobody took
  EXPECT_NE(own().granted, 0u);
  wait();
  make_slow_calls();
  EXPECT_EQ(kept(), 0u);
  EXPECT_EQ(own().granted, 0u);
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

TEST_F(OwnSpansTest, no_more_is_kept_than_is_granted) {
  earn();
  allocate_and_free(size, 20);  // so often that requests which nothing serves do not end it
  std::vector<void*> blocks(12);
  for (void*& block : blocks)
    block = test::allocate(size);
  for (void* block : blocks)
    heap::free(block);
  EXPECT_NE(own().granted, 0u);
  EXPECT_LT(own().granted, blocks.size() * units);
  EXPECT_LE(kept(), own().granted);
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
  void* const at_page = heap::allocate_aligned(4096, size);
  EXPECT_EQ(kept(), 0u);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(at_page) % 4096, 0u);
  heap::free(at_page);
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

TEST_F(OwnSpansTest, nothing_stays_when_the_program_says_how_much_may) {
  earn();
  region::keep_free(0);
  allocate_and_free(size, 2 * own_spans::puts_per_look);
  EXPECT_EQ(kept(), 0u);
  EXPECT_EQ(own().granted, 0u);
  region::kept_free.store(region::as_options_say, std::memory_order_relaxed);
}

// Here the last request that is served by neither is made in a handler that interrupts the region, and a look at the
// heap holds the cache.
TEST_F(OwnSpansTest, a_signal_handler_that_interrupts_the_region_waits_for_no_cache) {
  earn();
  ThreadCache& cache = *thread_cache;
  cache.own_spans.worth = INT16_MIN / 2;
  std::atomic<int> step{0};
  std::thread looker([&] {
    cache.lock.lock_to_look();
    step = 1;
    while (step != 2)
      std::this_thread::yield();
    cache.lock.unlock_after_look();
  });
  while (step != 1)
    std::this_thread::yield();
  region::mutex().lock();

  EXPECT_EQ(test::allocate(9 * unit_size), nullptr);
  region::mutex().unlock();
  step = 2;
  looker.join();
  EXPECT_EQ(kept(), units);
}

// What the handler below has, each block with the address of its place here in it.
void* of_handler[4]{};
std::atomic<unsigned> handled{0};
std::atomic<bool> twice{false};

void fill(void*& block) {
  block = test::allocate(size);
  if (block != nullptr) *static_cast<void**>(block) = &block;
}
void check_and_free(void*& block) {
  if (*static_cast<void**>(block) != &block) twice = true;
  heap::free(std::exchange(block, nullptr));
}

void take_or_free(int) {
  const KeepErrno keep;
  void*& block = of_handler[handled.fetch_add(1) % std::size(of_handler)];
  block != nullptr ? check_and_free(block) : fill(block);
}

TEST_F(OwnSpansTest, signal_handlers_get_no_block_that_the_thread_is_about_to_take) {
  earn();
  struct sigaction action {
  }, before{};
  action.sa_handler = take_or_free;
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  std::atomic<bool> done{false};
  std::thread sender([&done, to = pthread_self()] {
    while (!done)
      pthread_kill(to, SIGUSR1);
  });
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (handled < 100'000 && !twice && std::chrono::steady_clock::now() < end) {
    void* blocks[3];
    for (void*& block : blocks)
      fill(block);
    for (void*& block : blocks)
      check_and_free(block);
  }
  done = true;
  sender.join();
  EXPECT_FALSE(twice);
  EXPECT_EQ(sigaction(SIGUSR1, &before, nullptr), 0);
  for (void*& block : of_handler)
    heap::free(std::exchange(block, nullptr));
}

TEST_F(OwnSpansTest, a_child_of_a_fork_may_keep_what_threads_kept_that_stayed_behind) {
  std::atomic<int> ready{0};
  std::atomic<bool> done{false};
  std::vector<std::thread> others;
  for (int i = 0; i < 3; ++i)
    others.emplace_back([&] {
      for (unsigned times = 0; own().granted < 16 && times < 1'000; ++times)
        allocate_and_free(size, 1);
      ++ready;
      while (!done)
        std::this_thread::yield();
    });
  while (ready != 3)
    std::this_thread::yield();
  earn();
  EXPECT_EQ(own().granted, 0u);  // they have all
  const pid_t child = fork();
  if (child == 0) {
    size_t others_keep = 0;
    for (const ThreadCache* c = cache::first(); c != nullptr; c = c->next_cache)
      others_keep += c == thread_cache ? 0 : c->own_spans.units.load(std::memory_order_relaxed) + c->own_spans.granted;
    earn();
    _exit(others_keep == 0 && own().granted != 0 && heap::validate().what == nullptr ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  done = true;
  for (std::thread& other : others)
    other.join();
}

}  // namespace
