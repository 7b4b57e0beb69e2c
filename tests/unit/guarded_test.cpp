// Guarded blocks and sampling as the heap uses them: where blocks lie, how often, how slots are used again, what a
// thread and a signal handler may do. What is reported, and how faults end, is tests/preload/guard_test.py's.
#include <atomic>
#include <csignal>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/time.h>

#include "base/options.hpp"
#include "guarded/pool.hpp"
#include "guarded/slot.hpp"
#include "heap/heap.hpp"
#include "heap/sampling.hpp"
#include "heap_calls.hpp"
#include "in_child.hpp"
#include "os/keep_errno.hpp"
#include "os/memory.hpp"
#include "stats/snapshot.hpp"

namespace {

using namespace sluice;
using test::allocate;

// A heap that samples, in a process of its own.
template <typename Body>
std::string sampled(uint64_t rate, size_t slots, Body body) {
  return test::in_child([&]() -> std::string {
    heap::free(allocate(1));
    guarded::set_slots(slots);
    sampling::start(rate);
    std::string wrong = body();
    if (!wrong.empty()) return wrong;
    const char* invalid = heap::validate().what;
    return invalid != nullptr ? invalid : "";
  });
}

bool is_guarded(const void* block) {
  return guarded::covers(block) && guarded::usable_size(block) != 0;
}

guarded::Figures figures() {
  cache::lock_all();
  const guarded::Figures f = guarded::figures();
  cache::unlock_all();
  return f;
}

TEST(Guarded, BlocksAreAlignedExactAndApart) {
  EXPECT_EQ(sampled(1, 64,
                    []() -> std::string {
                      for (size_t size = 1; size <= guarded::most_bytes; size = size * 5 / 4 + 3) {
                        for (size_t alignment = 16; alignment <= os::page_size(); alignment *= 4) {
                          auto* block = static_cast<char*>(heap::allocate_aligned(alignment, size));
                          if (!is_guarded(block)) return "not guarded: " + std::to_string(size);
                          if (heap::usable_size(block) != size) return "not exact";
                          if (reinterpret_cast<uintptr_t>(block) % alignment != 0) return "not aligned";
                          memset(block, 1, size);
                          heap::free(block);
                          if (guarded::usable_size(block) != 0) return "still there";
                        }
                      }
                      return "";
                    }),
            "");
}

TEST(Guarded, LargerBlocksAndStricterAlignmentsAreOrdinary) {
  EXPECT_EQ(sampled(1, 64,
                    []() -> std::string {
                      void* large = allocate(guarded::most_bytes + 1);
                      void* strict = heap::allocate_aligned(2 * os::page_size(), 10);
                      const bool any = guarded::covers(large) || guarded::covers(strict);
                      heap::free(large);
                      heap::free(strict);
                      return any ? "guarded" : "";
                    }),
            "");
}

TEST(Guarded, ASlotIsUsedAgainAfterAllOthers) {
  EXPECT_EQ(sampled(1, 16,
                    []() -> std::string {
                      void* first = allocate(10);
                      heap::free(first);
                      size_t others = 0;
                      void* block = nullptr;
                      do {
                        block = allocate(10);
                        heap::free(block);
                        ++others;
                      } while (block != first && others < 100);
                      return others == 14 ? "" : "after " + std::to_string(others);  // two of 16 are for larger blocks
                    }),
            "");
}

TEST(Guarded, ASlotWhoseBlockIsFreedKeepsLittleInMemory) {
  EXPECT_EQ(sampled(1, 16,
                    []() -> std::string {
                      for (int i = 0; i < 20; ++i)
                        heap::free(allocate(100));
                      for (size_t i = 0; i < guarded::slot_count(); ++i) {
                        const guarded::Slot& slot = guarded::slot_of_index(i);
                        const size_t kept =
                            os::resident_bytes(guarded::data_of(slot), guarded::data_bytes(slot), os::page_size());
                        if (kept > size_t{16} << 10) return std::to_string(kept) + " bytes";
                      }
                      return "";
                    }),
            "");
}

TEST(Guarded, MostOfTheSlotsMayBeLiveAndTheOthersAreOrdinaryBlocks) {
  EXPECT_EQ(sampled(1, 32,
                    []() -> std::string {
                      std::vector<void*> blocks;
                      for (int i = 0; i < 100; ++i)
                        blocks.push_back(allocate(static_cast<size_t>(1000 * i)));
                      if (figures().live_blocks != 28) return std::to_string(figures().live_blocks) + " live";
                      for (void* block : blocks)
                        heap::free(block);
                      const guarded::Figures f = figures();
                      return f.live_blocks == 0 && f.live_bytes == 0 && f.slots <= 32 ? "" : "slots leak";
                    }),
            "");
}

TEST(Guarded, LargeBlocksOfManySizesShareTheirSlots) {
  EXPECT_EQ(sampled(1, 16,
                    []() -> std::string {
                      for (size_t i = 0; i < 200; ++i) {
                        auto* block = static_cast<char*>(allocate(60'000 + i * 4'801));
                        if (!is_guarded(block)) return "not guarded: " + std::to_string(i);
                        memset(block, 2, 60'000 + i * 4'801);
                        heap::free(block);
                      }
                      return figures().slot_bytes < (size_t{8} << 20) ? "" : "address space leaks";
                    }),
            "");
}

TEST(Guarded, ReallocKeepsWhatFits) {
  EXPECT_EQ(sampled(1, 64,
                    []() -> std::string {
                      auto* block = static_cast<unsigned char*>(allocate(1));
                      block[0] = 0;
                      size_t size = 1;
                      for (const size_t next : {2, 100, 5'000, 70'000, 2'000'000, 300'000, 40, 41, 1}) {
                        block = static_cast<unsigned char*>(heap::reallocate(block, next));
                        for (size_t i = 0; i < (size < next ? size : next); ++i)
                          if (block[i] != static_cast<unsigned char>(i * 7))
                            return "changed at " + std::to_string(next);
                        for (size_t i = 0; i < next; ++i)
                          block[i] = static_cast<unsigned char>(i * 7);
                        size = next;
                      }
                      heap::free(block);
                      return "";
                    }),
            "");
}

TEST(Guarded, ZeroedBlocksAreZeroInSlotsThatWereUsed) {
  EXPECT_EQ(sampled(1, 8,
                    []() -> std::string {
                      for (int round = 0; round < 50; ++round) {
                        for (const size_t size : {24, 4096, 30'000, 100'000}) {
                          auto* block = static_cast<unsigned char*>(heap::allocate_zeroed(1, size));
                          for (size_t i = 0; i < size; ++i)
                            if (block[i] != 0) return "not zero: " + std::to_string(size);
                          memset(block, 0xff, size);
                          heap::free(block);
                        }
                      }
                      return "";
                    }),
            "");
}

TEST(Guarded, NothingIsGuardedUnlessSamplingHasStarted) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              for (int i = 0; i < 1000; ++i) {
                void* block = allocate(33);
                if (guarded::covers(block)) return "guarded";
                heap::free(block);
              }
              return thread_cache->small_limit > max_direct_size && figures().slots == 0 ? "" : "sampling is on";
            }),
            "");
}

TEST(Sampling, TheRateIsKeptToOnAverageInEveryThread) {
  EXPECT_EQ(sampled(20, 64,
                    []() -> std::string {
                      std::string wrong;
                      const auto count = [&wrong] {
                        int guarded = 0;
                        for (int i = 0; i < 20'000; ++i) {
                          void* block = i % 4 == 0 ? allocate(5'000) : allocate(40);
                          guarded += guarded::covers(block) ? 1 : 0;
                          heap::free(block);
                        }
                        if (guarded < 850 || guarded > 1150) wrong += std::to_string(guarded) + " ";
                      };
                      count();
                      for (int i = 0; i < 3; ++i)
                        std::thread(count).join();
                      return wrong;
                    }),
            "");
}

TEST(Sampling, PatternsInTheProgramAreSampledEvenly) {
  EXPECT_EQ(sampled(10, 64,
                    []() -> std::string {
                      int guarded[10] = {};
                      for (int i = 0; i < 50'000; ++i) {
                        void* block = allocate(40);
                        guarded[i % 10] += guarded::covers(block) ? 1 : 0;
                        heap::free(block);
                      }
                      for (const int count : guarded)
                        if (count < 350 || count > 650) return std::to_string(count);
                      return "";
                    }),
            "");
}

// Blocks of that size among 2,000 that are guarded, at a rate.
size_t guarded_of_2000(uint64_t rate, size_t size) {
  const std::string answer = sampled(rate, 64, [size]() -> std::string {
    size_t guarded = 0;
    for (int i = 0; i < 2000; ++i) {
      void* block = allocate(size);
      guarded += guarded::covers(block) ? 1 : 0;
      heap::free(block);
    }
    return std::to_string(guarded);
  });
  return std::stoul(answer);
}

TEST(Sampling, TheFirstBlockOfAThreadTakesPart) {
  EXPECT_EQ(sampled(1, 64,
                    []() -> std::string {
                      bool guarded = false;
                      std::thread([&guarded] {
                        void* const block = allocate(40);
                        guarded = guarded::covers(block);
                        heap::free(block);
                      }).join();
                      return guarded ? "" : "it does not";
                    }),
            "");
}

// As if signal handlers allocated while an allocation that they interrupted has taken one off the count.
TEST(Sampling, ACountThatACallHasTakenOneOffStaysAsItIs) {
  EXPECT_EQ(sampled(1, 64,
                    []() -> std::string {
                      heap::free(allocate(40));
                      for (const int64_t count : {0, -1, -2}) {
                        thread_cache->until_guarded = count;
                        void* const block = allocate(40);
                        if (guarded::covers(block)) return "guarded";
                        heap::free(block);
                        if (thread_cache->until_guarded != count) return "counted";
                      }
                      thread_cache->until_guarded = 1;
                      return guarded::covers(allocate(40)) ? "" : "not guarded";
                    }),
            "");
}

// As in a signal handler that interrupted the region's holder: who holds the pool's lock may be waiting for the
// region's.
TEST(Sampling, NobodyWaitsForThePoolWhereTheRegionIsHeld) {
  EXPECT_EQ(sampled(1, 64,
                    []() -> std::string {
                      void* const block = allocate(40);
                      if (!guarded::covers(block)) return "not guarded";
                      std::atomic<bool> holds{false};
                      std::atomic<bool> done{false};
                      std::thread holder([&] {  // as one that takes a span
                        const MutexLock pool(guarded::mutex());
                        holds.store(true);
                        while (!done.load())
                          os::yield();
                      });
                      while (!holds.load())
                        os::yield();
                      std::string wrong;
                      {
                        const MutexLock region(region::mutex());
                        void* const other = allocate(1);  // from a bin that has blocks
                        if (guarded::covers(other)) wrong = "guarded under the region's lock";
                        heap::free(block);
                        heap::free(other);
                      }
                      done.store(true);
                      holder.join();
                      if (!wrong.empty()) return wrong;
                      return figures().live_blocks == 0 ? "" : "what was freed meanwhile is alive";
                    }),
            "");
}

// The profile's count goes down where there is none, too, and requests that fail take much off.
TEST(Sampling, HugeRequestsMakeNoSampleWithoutAProfile) {
  EXPECT_EQ(sampled(1000, 64,
                    []() -> std::string {
                      for (int i = 0; i < 8; ++i)
                        if (heap::allocate(size_t{PTRDIFF_MAX} - 4096) != nullptr) return "allocated";
                      thread_cache->profile.until = 0;
                      for (int i = 0; i < 2000; ++i)
                        heap::free(allocate(40));
                      return "";
                    }),
            "");
}

TEST(Sampling, LargeBlocksAreLeftAloneWhereTheTimeIsBounded) {
  const size_t large = sampling::most_bounded_bytes + 1;
  EXPECT_GT(guarded_of_2000(sampling::bounded_rate - 1, large), 0U);
  EXPECT_EQ(guarded_of_2000(sampling::bounded_rate, large), 0U);
  EXPECT_GT(guarded_of_2000(sampling::bounded_rate, large - 1), 0U);
}

TEST(Sampling, ExactCountsIncludeGuardedBlocks) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              heap::free(allocate(1));
              cache::set_counting(true);  // for threads that start from now on
              guarded::set_slots(64);
              std::string wrong;
              std::thread([&wrong] {
                heap::free(allocate(1));
                sampling::start(3);
                static stats::Snapshot before, between, after;
                stats::take_snapshot(&before);
                std::vector<void*> blocks(300);
                size_t guarded = 0;
                for (void*& block : blocks) {
                  block = allocate(40);
                  guarded += guarded::covers(block) ? 1 : 0;
                }
                stats::take_snapshot(&between);
                for (void* block : blocks)
                  heap::free(block);
                stats::take_snapshot(&after);
                const size_t ordinary = blocks.size() - guarded;
                if (guarded < 50 || guarded > 64) wrong += "rate ";
                if (between.mallocs - before.mallocs != blocks.size()) wrong += "mallocs ";
                if (between.large.mallocs - before.large.mallocs != guarded) wrong += "large ";
                if (between.live_bytes - before.live_bytes != guarded * 40 + ordinary * 48) wrong += "bytes ";
                if (after.frees - before.frees != blocks.size()) wrong += "frees ";
                if (after.live_bytes != before.live_bytes) wrong += "live";
              }).join();
              return wrong;
            }),
            "");
}

TEST(Guarded, ThreadsShareThePool) {
  EXPECT_EQ(sampled(2, 40,
                    []() -> std::string {
                      std::atomic<void*> shelf[64] = {};
                      std::vector<std::thread> threads;
                      for (unsigned t = 0; t < 4; ++t) {
                        threads.emplace_back([&shelf, t] {
                          for (unsigned i = 0; i < 3'000; ++i) {
                            const size_t size = (i * 37 + t) % 7'000 + sizeof(unsigned);
                            void* block = allocate(size);
                            memset(block, 3, size);
                            heap::free(shelf[(i * 11 + t) % 64].exchange(block));
                          }
                        });
                      }
                      for (std::thread& thread : threads)
                        thread.join();
                      for (std::atomic<void*>& block : shelf)
                        heap::free(block.exchange(nullptr));
                      return figures().live_blocks == 0 ? "" : "blocks were lost";
                    }),
            "");
}

std::atomic<int> handled{0};
void* kept = nullptr;

void allocate_in_handler(int) {
  const KeepErrno keep;  // a call that waits for a lock may change it
  heap::free(kept);
  kept = allocate(100);
  heap::free(allocate(70'000));
  handled.fetch_add(1, std::memory_order_relaxed);
}

TEST(Guarded, SignalHandlersMayAllocateAndFreeInTheMiddleOfIt) {
  EXPECT_EQ(sampled(1, 32,
                    []() -> std::string {
                      struct sigaction action {};
                      action.sa_handler = allocate_in_handler;
                      (void)sigaction(SIGALRM, &action, nullptr);
                      const itimerval often{{0, 1000}, {0, 1000}};
                      (void)setitimer(ITIMER_REAL, &often, nullptr);
                      for (int i = 0; handled.load(std::memory_order_relaxed) < 50; ++i) {
                        void* block = allocate(static_cast<size_t>(i % 9'000));
                        heap::free(block);
                      }
                      const itimerval never{};
                      (void)setitimer(ITIMER_REAL, &never, nullptr);
                      heap::free(kept);
                      heap::free(allocate(1));  // what handlers have left is taken in
                      return figures().live_blocks == 0 ? "" : "blocks were lost";
                    }),
            "");
}

}  // namespace
