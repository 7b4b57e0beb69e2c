// What a thread's cache keeps of larger blocks in libsluice-secure.so: those that wait, of all classes together, and
// those that its bins hold.
#include "heap/reuse.hpp"

#include <thread>
#include <vector>

#include "hardened_calls.hpp"
#include "heap/budget.hpp"
#include "heap/thread_cache.hpp"

namespace {

using namespace sluice;
using test::Hardened;
using test::said;

constexpr unsigned first_larger = size_class_of(longest_in_queue + 1);

char* allocate(size_t size) {
  return test::allocate_chars(size);
}

// A block that has all of its class but for its canary.
char* allocate_of_class(unsigned k) {
  return allocate(class_sizes[k] - canary_size);
}

size_t waiting_larger(const ThreadCache& c) {
  size_t count = 0;
  for (unsigned k = first_larger; k < size_class_count; ++k)
    count += hardened::delayed_blocks(c, k);
  return count;
}

// Blocks of larger classes that wait or lie in lists, in KiB.
size_t kept_kib_of_larger(const ThreadCache& c) {
  size_t bytes = 0;
  for (unsigned k = first_larger; k < size_class_count; ++k)
    bytes += (cache::held_blocks(c, k) + hardened::delayed_blocks(c, k)) * class_sizes[k];
  return bytes >> 10;
}

TEST_F(Hardened, FreedLargerBlocksOfAllClassesWaitTogether) {
  for (int round = 0; round < 3; ++round)
    for (unsigned k = first_larger; k < size_class_count; ++k)
      hardened::free(allocate_of_class(k));
  EXPECT_EQ(waiting_larger(*thread_cache), SecureCache::larger_slots);
}

// Whatever classes these are of.
TEST_F(Hardened, AFreedLargerBlockServesAgainAfterAsManyOthersAsWait) {
  for (const size_t size : {8'200, 20'000, 60'000})
    for (const size_t other_size : {size, size_t{30'000}}) {
      char* const block = allocate(size);
      hardened::free(block);
      std::vector<char*> looked_at;  // not freed, so that they do not take the place of others
      size_t frees = 0;
      for (; frees < 100; ++frees) {
        looked_at.push_back(allocate(size));
        if (looked_at.back() == block) break;
        hardened::free(allocate(other_size));
      }
      for (char* const other : looked_at)
        hardened::free(other);
      EXPECT_GE(frees, SecureCache::larger_slots) << size << ", " << other_size;
      EXPECT_LT(frees, 100u) << size << ", " << other_size << ": never";
    }
}

TEST_F(Hardened, AWriteToALargerBlockThatWaitsIsFoundWhenTheThreadEnds) {
  for (const size_t size : {8'200, 60'000})
    for (const size_t at : {0, 20})
      EXPECT_THAT(said([=] {
                    std::thread([=] {
                      char* const block = allocate(size);
                      hardened::free(block);
                      block[at] = 1;
                    }).join();
                  }),
                  testing::HasSubstr("write to free memory"))
          << size << " at " << at;
}

// Each class gets as many as its bin takes at first, so that none is ever full.
TEST_F(Hardened, LargerBlocksOfOtherThreadsLieInACacheWithinItsBudget) {
  std::vector<char*> blocks;
  size_t kib = 0;
  for (int i = 0; i < 4; ++i)
    for (unsigned k = first_larger; k < size_class_count; ++k) {
      blocks.push_back(allocate_of_class(k));
      kib += class_sizes[k] >> 10;
    }
  ASSERT_GT(kib, 16 * budget::at_first());
  std::thread([&blocks] {
    hardened::free(allocate(1));
    cache::flush_own();
    thread_cache->budget_kib = budget::at_first();
    thread_cache->paid_until = UINT64_MAX / 2;
    for (char* const block : blocks)
      hardened::free(block);
    const size_t waiting = SecureCache::larger_slots * (max_small_size >> 10);
    EXPECT_GT(kept_kib_of_larger(*thread_cache), 0u);
    EXPECT_LE(kept_kib_of_larger(*thread_cache),
              thread_cache->budget_kib + waiting + 2 * (max_small_size >> 10));  // the class that came last is spared
    EXPECT_LT(thread_cache->budget_kib, 5 * budget::at_first());
  }).join();
}

}  // namespace
