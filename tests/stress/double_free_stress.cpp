// Two threads that free the same large block at the same instant: one of them ends it.
#include <atomic>
#include <set>
#include <thread>

#include <gtest/gtest.h>

#include "base/mutex.hpp"
#include "base/options.hpp"
#include "heap/counters.hpp"
#include "heap/heap.hpp"
#include "heap/large.hpp"
#include "heap_calls.hpp"
#include "random_blocks.hpp"
#include "stress_rounds.hpp"

namespace {

using namespace sluice;
using test::rounds;

constexpr size_t size = 100'000;

// Two threads take each step together.
class Pair {
 public:
  void meet(unsigned step) {
    arrived_.fetch_add(1);
    while (arrived_.load() < 2 * step)
      if (++spins_ % 1000 == 0) std::this_thread::yield();  // one processor may have to do for both
  }

 private:
  std::atomic<unsigned> arrived_{0};
  static thread_local unsigned spins_;
};
thread_local unsigned Pair::spins_ = 0;

// Lets two threads call `end` with the same new block, again and again, and returns how often.
template <class End>
int free_twice_at_once(End end) {
  const int count = rounds(100'000);
  Pair pair;
  std::atomic<void*> shared{nullptr};
  const auto run = [&](bool allocates) {
    test::Random random(allocates);
    for (unsigned round = 0; round < static_cast<unsigned>(count); ++round) {
      if (allocates) shared.store(test::allocate(size));
      pair.meet(2 * round + 1);
      void* const block = shared.load();
      // Who sees the other come goes on later than the one that comes: a while makes up for it now and then.
      for (uint64_t wait = random.below(60); wait != 0; --wait)
        cpu_relax();
      end(block);
      pair.meet(2 * round + 2);
    }
  };
  std::thread other(run, false);
  std::thread(run, true).join();
  other.join();
  return count;
}

class DoubleFreeStress : public testing::Test {
 protected:
  void SetUp() override {
    options.abort_on_corruption = false;
    test::calls::free(test::allocate(1));
  }
  void TearDown() override {
    const char* const wrong = heap::validate().what;
    EXPECT_EQ(wrong, nullptr) << wrong;
  }
};

TEST_F(DoubleFreeStress, of_two_threads_that_claim_a_large_block_at_once_one_gets_its_span) {
  std::atomic<int> claimed{0};
  const int count = free_twice_at_once([&claimed](void* block) {
    Unit* const span = large::claim(block);
    if (span == nullptr) return;
    claimed.fetch_add(1);
    large::give_back(span);
  });
  EXPECT_EQ(claimed.load(), count);
}

// Reading what another thread frees is a race, which ThreadSanitizer would name.
#if !defined(SLUICE_THREAD_SANITIZER)
TEST_F(DoubleFreeStress, of_two_threads_that_free_a_large_block_at_once_one_ends_it) {
  cache::set_counting(true);
  testing::internal::CaptureStderr();
  const auto count = static_cast<uint64_t>(free_twice_at_once([](void* block) { test::calls::free(block); }));
  (void)testing::internal::GetCapturedStderr();  // of those that came second
  uint64_t mallocs = 0, frees = 0, live = 0;
  const auto add = [&](const LargeCounters& large) {
    mallocs += large.mallocs.load();
    frees += large.frees.load();
    live += large.allocated_bytes.load() - large.freed_bytes.load();
  };
  add(counters::totals.large);
  for (const ThreadCache* c = cache::first(); c != nullptr; c = c->next_cache)
    if (c->counters != nullptr) add(c->counters->large);
  EXPECT_EQ(mallocs, count);
  EXPECT_EQ(frees, count);
  EXPECT_EQ(live, 0u);
  cache::set_counting(false);
}

TEST_F(DoubleFreeStress, a_large_block_that_two_threads_free_at_once_is_handed_out_once) {
  testing::internal::CaptureStderr();
  (void)free_twice_at_once([](void* block) { test::calls::free(block); });
  (void)testing::internal::GetCapturedStderr();
  std::set<void*> blocks;
  for (int i = 0; i < 100; ++i)
    EXPECT_TRUE(blocks.insert(test::allocate(size)).second);
  for (void* const block : blocks)
    test::calls::free(block);
}
#endif

}  // namespace
