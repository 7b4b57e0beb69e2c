// What blocks leave behind at the end of a phase, by a clock that the test sets: it goes, and stays where the next
// phase needs it again soon.
#include <barrier>
#include <cstring>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/options.hpp"
#include "heap/heap.hpp"
#include "heap/thread_cache.hpp"
#include "heap_calls.hpp"
#include "in_child.hpp"
#include "mock_os.hpp"
#include "os/memory.hpp"
#include "page_faults.hpp"
#include "pages/region.hpp"

namespace {

using namespace sluice;

constexpr size_t mib = size_t{1} << 20;
constexpr size_t phase = 50 * mib;
constexpr uint64_t beginning = 1'000'000;  // of the clock

void* filled(size_t size) {
  return std::memset(test::allocate(size), 5, size);
}

void take_and_free(size_t bytes) {
  std::vector<void*> blocks;
  for (size_t i = 0; i < bytes / mib; ++i)
    blocks.push_back(filled(mib));
  for (void* const block : blocks)
    test::calls::free(block);
}

size_t free_in_memory() {
  const MutexLock held(region::mutex());
  return region::figures().free_dirty_bytes;
}

// MiB that stay after so many rounds of a phase, with so many purge delays from one to the next. A little goes at each
// end.
size_t stays_after_rounds(uint64_t delays, int rounds = 10) {
  uint64_t now = beginning;
  for (int round = 0; round < rounds; ++round) {
    mock_os::set_clock(now += delays * options.purge_delay);
    take_and_free(phase);
  }
  return free_in_memory() / mib;
}

TEST(PhaseEnd, what_the_next_phase_needs_soon_stays) {
  for (const uint64_t delays : {0u, 1u, 3u, 7u})
    EXPECT_EQ(test::in_child([delays]() -> std::string {
                const size_t kept = stays_after_rounds(delays);
                return kept >= 40 ? "" : "only " + std::to_string(kept) + " MiB stay";
              }),
              "")
        << delays;
}

// Most of it goes before an eighth of the need is in use, and counts as what goes at the end.
TEST(PhaseEnd, what_the_next_phase_needs_is_known_after_few_rounds) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              const size_t kept = stays_after_rounds(3, 3);
              return kept >= 40 ? "" : "only " + std::to_string(kept) + " MiB stay";
            }),
            "");
}

// No end is seen beside it: more than an eighth of the need stays in use.
TEST(PhaseEnd, what_the_next_phase_needs_soon_stays_beside_what_the_program_keeps) {
  for (const uint64_t delays : {0u, 3u, 7u})
    EXPECT_EQ(test::in_child([delays]() -> std::string {
                std::vector<void*> resident;
                for (size_t i = 0; i < 20; ++i)
                  resident.push_back(filled(mib));
                const size_t kept = stays_after_rounds(delays);
                return kept >= 40 ? "" : "only " + std::to_string(kept) + " MiB stay";
              }),
              "")
        << delays;
}

// Programs may touch little of such a block, but what they touched of the one before is what the next one takes.
TEST(PhaseEnd, a_large_block_that_comes_and_goes_finds_its_pages) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              constexpr size_t size = 100 * mib;
              long faults = 0;
              for (int round = 0; round < 12; ++round) {
                mock_os::set_clock(beginning + static_cast<uint64_t>(round) * options.purge_delay);
                const long before = test::page_faults();
                test::calls::free(filled(size));
                faults = test::page_faults() - before;
              }
              const auto all = static_cast<long>(size / os::page_size());
              return faults <= all / 4 ? "" : std::to_string(faults) + " page faults of " + std::to_string(all);
            }),
            "");
}

// No page fault would be spared if such memory were kept: what the next block faults was not in memory before.
TEST(PhaseEnd, blocks_that_nobody_wrote_to_teach_nothing) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(beginning);
              mock_os::set_purged_from_memory(64 << 10);
              for (int round = 0; round < 50; ++round)
                test::calls::free(test::allocate(100 * mib));
              mock_os::set_purged_from_memory(SIZE_MAX);
              take_and_free(200 * mib);
              const size_t kept = free_in_memory() / mib;
              return kept <= 11 ? "" : std::to_string(kept) + " MiB stay";
            }),
            "");
}

TEST(PhaseEnd, of_a_large_block_a_third_counts_as_missed) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(beginning);
              take_and_free(96 * mib);
              const uint64_t before = os::call_counts.regretted_bytes;
              void* const untouched = test::allocate(96 * mib);
              const uint64_t missed = (os::call_counts.regretted_bytes - before) / mib;
              if (untouched == nullptr) return "no memory";
              return missed >= 20 && missed <= 32 ? "" : std::to_string(missed) + " MiB count as missed";
            }),
            "");
}

TEST(PhaseEnd, what_is_needed_much_later_goes_each_time) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              const size_t kept = stays_after_rounds(20);
              return kept <= 11 ? "" : std::to_string(kept) + " MiB stay";
            }),
            "");
}

TEST(PhaseEnd, what_was_needed_soon_is_forgotten_by_half) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              if (stays_after_rounds(3) < 40) return "nothing was learnt";
              uint64_t now = 2 * beginning;
              for (int i = 0; i < 6; ++i) {
                mock_os::set_clock(now += 20 * options.purge_delay);
                region::purge_all(0);  // so that it is not the age that takes it off
                take_and_free(phase);
              }
              const size_t kept = free_in_memory() / mib;
              return kept <= 11 ? "" : std::to_string(kept) + " MiB stay";
            }),
            "");
}

// A block that grows and shrinks takes what went behind it: that is missed, too.
TEST(PhaseEnd, a_stack_that_halves_keeps_its_pages) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(beginning);
              for (int round = 0; round < 5; ++round) {
                void* block = nullptr;
                for (size_t size = mib; size <= 64 * mib; size *= 2) {
                  block = test::calls::reallocate(block, size);
                  std::memset(block, 7, size);
                }
                for (size_t size = 32 * mib; size >= mib / 4; size /= 2)
                  block = test::calls::reallocate(block, size);
                test::calls::free(block);
              }
              const size_t kept = free_in_memory() / mib;
              return kept >= 50 ? "" : "only " + std::to_string(kept) + " MiB stay";
            }),
            "");
}

// Blocks of 2 to 256 KiB, of which one in four lies in a slab; each is replaced many times before all go.
void take_and_free_mixed() {
  constexpr size_t blocks = 256;
  constexpr size_t turns = 20'000;
  std::vector<void*> taken(blocks);
  std::minstd_rand random(1);
  for (size_t i = 0; i < turns; ++i) {
    void*& block = taken[random() % blocks];
    test::calls::free(block);
    block = test::allocate((2 + random() % 255) << 10);
  }
  for (void* const block : taken)
    test::calls::free(block);
}

size_t slab_bytes() {
  return thread_cache->vacancy.slab_units * unit_size;
}

// The thread's cache and the slabs of its blocks are more than an eighth of what the phase needed.
TEST(PhaseEnd, is_seen_although_the_cache_holds_much) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(beginning);
              take_and_free_mixed();
              const size_t left = free_in_memory() + slab_bytes();
              return left <= 12 * mib ? "" : std::to_string(left / mib) + " MiB stay";
            }),
            "");
}

TEST(PhaseEnd, seldom_costs_a_cache_its_blocks) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(beginning);
              for (int round = 0; round < 20; ++round)
                take_and_free_mixed();
              if (slab_bytes() < 4 * mib) return "each phase flushes the cache";
              mock_os::set_clock(beginning + options.purge_delay);
              take_and_free_mixed();
              return slab_bytes() <= 2 * mib ? "" : "it is never flushed again";
            }),
            "");
}

// Of all classes up to a size, so that a cache holds blocks of many slabs.
std::vector<void*> small_blocks(size_t bytes, size_t most = 2048) {
  std::minstd_rand random(1);
  std::vector<void*> blocks;
  for (size_t left = bytes, size; left != 0; left -= size < left ? size : left)
    blocks.push_back(filled(size = 1 + random() % most));
  return blocks;
}

void free_all(const std::vector<void*>& blocks) {
  for (void* const block : blocks)
    test::calls::free(block);
}

// Of free spans, and of slabs of whatever thread.
size_t stays() {
  size_t units = 0;
  for (const ThreadCache* c = cache::first(); c != nullptr; c = c->next_cache)
    units += c->vacancy.slab_units;
  return free_in_memory() + units * unit_size;
}

std::string if_more_stays_than(size_t bytes) {
  const size_t left = stays();
  return left <= bytes ? "" : std::to_string(left / (mib / 8)) + " eighths of a MiB stay";
}

TEST(PhaseEnd, is_seen_where_only_small_blocks_were_freed) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(beginning);
              free_all(small_blocks(phase));
              return if_more_stays_than(6 * mib);
            }),
            "");
}

TEST(PhaseEnd, of_small_blocks_keeps_what_the_next_needs_soon) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(beginning);
              for (int round = 0; round < 10; ++round)
                free_all(small_blocks(phase));
              return stays() >= 40 * mib ? "" : "only " + std::to_string(stays() / mib) + " MiB stay";
            }),
            "");
}

constexpr size_t threads = 4;

// Of threads that have ended since, each of which had a cache of its own.
std::vector<void*> small_blocks_of_threads(size_t bytes, size_t most = 2048) {
  std::vector<void*> blocks[threads];
  std::vector<std::thread> all;
  std::barrier together(threads);
  for (auto& own : blocks)
    all.emplace_back([&own, &together, bytes, most] {
      own = small_blocks(bytes / threads, most);
      together.arrive_and_wait();
    });
  std::vector<void*> joined;
  for (size_t i = 0; i < threads; ++i) {
    all[i].join();
    joined.insert(joined.end(), blocks[i].begin(), blocks[i].end());
  }
  return joined;
}

TEST(PhaseEnd, is_seen_although_the_blocks_are_of_threads_that_have_ended) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(beginning);
              free_all(small_blocks_of_threads(phase));
              return if_more_stays_than(10 * mib);
            }),
            "");
}

// The last who frees keeps blocks of many slabs, and they go although no thread comes that would take its cache.
TEST(PhaseEnd, comes_with_the_end_of_the_last_thread_but_one) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(beginning);
              test::calls::free(test::allocate(1));  // so that this thread has a cache
              options.cache = 1024;                  // so little that an ended thread keeps it
              const std::vector<void*> blocks = small_blocks_of_threads(4 * mib, 512);
              std::thread([&blocks] { free_all(blocks); }).join();
              return if_more_stays_than(mib);
            }),
            "");
}

}  // namespace
