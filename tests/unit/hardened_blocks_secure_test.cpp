// What libsluice-secure.so promises of blocks that nobody misuses: links, order, quarantine, pages that cannot be
// touched, contents, sizes and counts. What it reports: hardened_secure_test.cpp.
#include "secure/hardened.hpp"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <utility>

#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "guarded/pool.hpp"
#include "hardened_calls.hpp"
#include "heap/block_state.hpp"
#include "heap/sampling.hpp"
#include "in_child.hpp"
#include "pages/quarantine.hpp"
#include "pages/region.hpp"
#include "stats/snapshot.hpp"

namespace {

using namespace sluice;
using test::count_of;
using test::Hardened;
using test::is_accessible;
using test::mib;
using test::said;
using test::write_to_freed;
using test::written_to;
using testing::IsEmpty;

char* allocate(size_t size) {
  return test::allocate_chars(size);
}

// Each in a process of its own: what they turn on stays on. They come first, before this process uses the heap.
TEST(HardenedApart, WithZeroOnFreeEveryByteOfAFreedBlockIsClearedAndWatched) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              options.zero_on_free = true;
              options.abort_on_corruption = false;
              return write_to_freed(2'000, 1'500) > written_to * 9 / 10 ? "" : "not found";
            }),
            "");
}

TEST(HardenedApart, GuardedBlocksAreAsLongAsWasAskedFor) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              hardened::free(allocate(1));
              guarded::set_slots(64);
              sampling::start(1);
              for (const size_t size : {0, 1, 40, 5'000, 70'000, 300'000}) {
                void* const blocks[] = {allocate(size), hardened::allocate_zeroed(1, size),
                                        hardened::allocate_aligned(64, size),
                                        hardened::reallocate(allocate(400'000), size + 1)};
                for (size_t i = 0; i < 4; ++i) {
                  if (!guarded::covers(blocks[i])) return "not guarded";
                  if (hardened::usable_size(blocks[i]) != size + i / 3) return "wrong size " + std::to_string(size);
                  hardened::free(blocks[i]);
                }
              }
              return "";
            }),
            "");
}

TEST(HardenedApart, WhatWaitsInAQueueIsCountedAsFreed) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              options.stats = "1";
              for (size_t size = 0; size < 3'000; ++size)
                hardened::free(allocate(size));
              static stats::Snapshot snapshot;
              for (const bool flushed : {false, true}) {
                if (flushed) (void)heap::trim(0);
                stats::take_snapshot(&snapshot);
                if (snapshot.mallocs < 3'000) return "not counted";
                if (snapshot.mallocs != snapshot.frees || snapshot.live_bytes != 0)
                  return flushed ? "seems to be live once it is flushed" : "seems to be live";
              }
              return "";
            }),
            "");
}

// What a signal handler frees, a few each time.
std::vector<char*> left_to_handler;
std::atomic<size_t> freed_by_handler{0};
void free_in_handler(int) {
  for (int i = 0; i < 3; ++i)
    if (const size_t next = freed_by_handler; next < left_to_handler.size()) {
      freed_by_handler = next + 1;
      hardened::free(left_to_handler[next]);
    }
}

TEST(HardenedApart, SignalHandlersMayFreeInTheMiddleOfATeardown) {
#if defined(SLUICE_TEST_SANITIZER) || !defined(__OPTIMIZE__) || !defined(__x86_64__)
  // Steps of a free take several instructions there, also on aarch64, and lib/docs/limits.md promises nothing to a
  // handler that comes in between.
  GTEST_SKIP() << "a bin's count is no single instruction in this build";
#endif
  EXPECT_EQ(test::in_child([]() -> std::string {
              struct sigaction action {};
              action.sa_handler = free_in_handler;
              (void)sigaction(SIGALRM, &action, nullptr);
              std::mt19937 random(3);
              for (int round = 0; round < 8; ++round) {
                std::vector<char*> blocks;
                for (int i = 0; i < 60'000; ++i)
                  blocks.push_back(allocate(16 + random() % 300));
                std::shuffle(blocks.begin(), blocks.end(), random);
                left_to_handler.assign(blocks.end() - 12'000, blocks.end());
                blocks.resize(blocks.size() - left_to_handler.size());
                freed_by_handler = 0;
                const itimerval often{{0, 100}, {0, 100}};
                (void)setitimer(ITIMER_REAL, &often, nullptr);
                for (char* block : blocks)
                  hardened::free(block);
                const itimerval never{};
                (void)setitimer(ITIMER_REAL, &never, nullptr);
                while (freed_by_handler < left_to_handler.size())
                  free_in_handler(0);
              }
              const char* const wrong = heap::validate().what;
              return wrong != nullptr ? wrong : "";
            }),
            "");
}

// The first call of a thread counts too, and what is guarded has the size that was asked for.
TEST(HardenedApart, AThreadsFirstBlockIsGuardedAndAsLongAsItWasAskedFor) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              hardened::free(allocate(1));
              guarded::set_slots(64);
              sampling::start(1);
              std::string wrong;
              for (const size_t size : {24, 5'000, 200'000})
                for (const bool zeroed : {false, true})
                  std::thread([&wrong, size, zeroed] {
                    void* const block = zeroed ? hardened::allocate_zeroed(1, size) : hardened::allocate(size);
                    if (!guarded::covers(block) || hardened::usable_size(block) != size)
                      wrong += std::to_string(size) + (zeroed ? " zeroed " : " ");
                    hardened::free(block);
                  }).join();
              return wrong;
            }),
            "");
}

// As if the thread had been stopped while a generation goes from the queue to the stack.
void tear_queue(ThreadCache& c, unsigned size_class) {
  Reuse& reuse = c.secure_part.reuse[size_class];
  void** const queue = c.secure_part.slots + reuse.first_queued;
  const unsigned from =
      (reuse.next - reuse.first_queued) / reuse.generation() * reuse.generation() ^ reuse.generation();
  void** const top = c.secure_part.slots + reuse.top;
  for (unsigned i = 0; i < reuse.generation() / 2; ++i)
    top[i] = std::exchange(queue[from + i], nullptr);
}

TEST(HardenedApart, AForkThatStopsAThreadInItsQueueGivesNoBlockToTwo) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer lets no thread start in the child of a program with threads";
#endif
  EXPECT_EQ(test::in_child([]() -> std::string {
              std::atomic<bool> ready{false};
              std::thread([&ready] {
                for (int i = 0; i < 1'000; ++i)
                  hardened::free(allocate(20));
                tear_queue(*thread_cache, size_class_of(20 + canary_size));
                ready = true;
                for (;;)
                  pause();
              }).detach();
              while (!ready)
                std::this_thread::yield();
              return test::in_child([]() -> std::string {
                std::set<char*> blocks;
                std::thread([&blocks] {
                  for (int round = 0; round < 2; ++round) {
                    for (int i = 0; i < 4'000; ++i)
                      blocks.insert(allocate(20));
                    if (round != 0) break;
                    for (char* block : std::exchange(blocks, {}))
                      hardened::free(block);
                  }
                }).join();
                if (blocks.size() != 4'000) return "one block was handed out twice";
                const char* const wrong = heap::validate().what;
                return wrong != nullptr ? wrong : "";
              });
            }),
            "");
}

TEST_F(Hardened, AlignedBlocksStayAlignedWhereDamagedOnesAreLeftAlone) {
  std::set<void*> seen;
  (void)said([&] {
    std::vector<char*> blocks;
    for (int i = 0; i < 500; ++i)
      blocks.push_back(static_cast<char*>(hardened::allocate_aligned(256, 200)));
    for (char* block : blocks)
      hardened::free(block);
    for (char* block : blocks)
      block[20] = 1;
    for (int i = 0; i < 500; ++i)
      seen.insert(hardened::allocate_aligned(256, 200));
  });
  EXPECT_EQ(seen.size(), 500u);
  for (void* block : seen)
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 256, 0u);
}

TEST_F(Hardened, LinksAreNoAddresses) {
  std::vector<char*> blocks;
  for (int i = 0; i < 2000; ++i)
    blocks.push_back(allocate(40));
  for (char* block : blocks)
    hardened::free(block);
  size_t filled = 0;
  for (char* block : blocks) {
    uintptr_t word;
    memcpy(&word, block, sizeof word);
    filled += word != 0;
    EXPECT_GE(unit_index_of(reinterpret_cast<void*>(word)), region_range_units) << std::hex << word;
  }
  EXPECT_GT(filled, 100u);
}

TEST_F(Hardened, ALargeBlockThatShrinksALittleGivesBackItsPages) {
  char* block = allocate(8 * mib);
  memset(block, 1, 8 * mib);
  block = static_cast<char*>(hardened::reallocate(block, 6 * mib));
  char* const behind = block + 6 * mib + unit_size;
  std::vector<unsigned char> present((2 * mib - unit_size) / os::page_size());
  ASSERT_EQ(mincore(behind, 2 * mib - unit_size, present.data()), 0);
  EXPECT_EQ(std::count_if(present.begin(), present.end(), [](unsigned char page) { return (page & 1) != 0; }), 0);
  EXPECT_EQ(block[6 * mib - 1], 1);
  hardened::free(block);
}

TEST_F(Hardened, NewBlocksComeInRandomOrder) {
  size_t neighbours = 0;
  char* last = allocate(24);
  for (int i = 0; i < 1000; ++i) {
    char* const block = allocate(24);
    neighbours += block - last == 32 ? 1 : 0;
    last = block;
  }
  EXPECT_LT(neighbours, 480u);  // some 375 where each changes places with its neighbour or not; 1000 in order
}

TEST_F(Hardened, AFreedBlockIsNotTheNextOne) {
  for (const size_t size : {40, 3'000}) {
    char* const block = allocate(size);
    hardened::free(block);
    std::vector<char*> next;
    for (int i = 0; i < 200; ++i)
      next.push_back(allocate(size));
    EXPECT_THAT(next, testing::Not(testing::Contains(block)));
    for (char* other : next)
      hardened::free(other);
  }
}

TEST_F(Hardened, AFreedBlockServesAgainAfterAsManyMoreFreesAsAGenerationHas) {
  for (const size_t size : {1, 24, 100, 120, 200, 500, 1'000}) {
    const size_t least = generation_of(class_sizes[size_class_of(size + canary_size)]);
    for (int i = 0; i < 300; ++i)
      hardened::free(allocate(size));
    for (int round = 0; round < 300; ++round) {
      char* const block = allocate(size);
      hardened::free(block);
      size_t frees = 0;
      for (; frees < 2'000; ++frees) {
        char* const next = allocate(size);
        hardened::free(next);
        if (next == block) break;
      }
      ASSERT_GE(frees, least) << size;
      ASSERT_LT(frees, 2'000) << size << ": never";
    }
  }
}

// Otherwise the same block would follow another one each time.
TEST_F(Hardened, WhatWasFreedComesBackInRandomOrder) {
  std::map<char*, char*> follower;
  size_t same = 0;
  char* last = nullptr;
  for (int i = 0; i < 4'000; ++i) {
    char* const block = allocate(40);
    hardened::free(block);
    char*& before = follower[last];
    if (before == block) ++same;
    before = block;
    last = block;
  }
  EXPECT_LT(same, 2'000u);  // some 1,300 in random order among each four
}

TEST_F(Hardened, NothingOfTheLastUserIsLeftInTheFirstBytes) {
  for (int i = 0; i < 1000; ++i) {
    char* const block = allocate(48);
    for (size_t k = 0; k < 48; ++k)
      ASSERT_EQ(block[k], 0);
    memset(block, 's', 48);
    hardened::free(block);
  }
}

TEST_F(Hardened, CallocClearsWhatIsUsedAgain) {
  for (const size_t size : {100, 5'000, 60'000, 70'000, 500'000, 2'000'000}) {
    for (int i = 0; i < 40; ++i) {
      auto* const block = static_cast<char*>(hardened::allocate_zeroed(1, size));
      ASSERT_TRUE(block[0] == 0 && memcmp(block, block + 1, size - 1) == 0) << size;
      memset(block, 'd', size);
      hardened::free(block);
    }
  }
}

// A block that is the last of its slab, or large, ends in front of pages that cannot be touched.
TEST_F(Hardened, SlabsAndLargeBlocksEndAtPagesThatCannotBeTouched) {
  for (const size_t size : {40, 1'000, 8'000, 8'100, 30'000, 65'000, 70'000, 2'000'000}) {
    char* const block = allocate(size);
    size_t unit = unit_index_of(block);
    const Unit* const span = region::unit_at(unit) - (size <= max_small_size ? region::unit_at(unit)->slab.back : 0);
    unit = region::index_of(span);
    EXPECT_FALSE(is_accessible(region::address_of(unit + span->units) - 1)) << size;
    EXPECT_FALSE(is_accessible(region::address_of(unit + span->units - 1))) << size;
    EXPECT_TRUE(is_accessible(region::address_of(unit + span->units - 1) - unit_size)) << size;
    hardened::free(block);
  }
}

TEST_F(Hardened, GuardsFollowALargeBlockThatGrowsShrinksAndMoves) {
  char* block = allocate(70'000);
  for (const size_t size : {2 * mib, 9 * mib, 30 * mib, 12 * mib, 100'000 * size_t{1}, 4 * mib, 40 * mib}) {
    block = static_cast<char*>(hardened::reallocate(block, size));
    const Unit* const span = region::unit_at(unit_index_of(block));
    EXPECT_FALSE(is_accessible(block + span->units * unit_size - 1)) << size;
    EXPECT_FALSE(is_accessible(block + (span->units - 1) * unit_size)) << size;
    memset(block, 'g', size);
  }
  hardened::free(block);
}

TEST_F(Hardened, AFreedLargeBlockWaitsOutOfReach) {
  char* const block = allocate(2 * mib);
  memset(block, 'f', 2 * mib);
  hardened::free(block);
  EXPECT_FALSE(is_accessible(block));
  EXPECT_FALSE(is_accessible(block + mib));
  for (int i = 0; i < 8; ++i)
    hardened::free(allocate(2 * mib));
  EXPECT_FALSE(is_accessible(block));
  EXPECT_TRUE(quarantine::release_all());
  EXPECT_FALSE(quarantine::release_all());
  EXPECT_TRUE(is_accessible(block));
}

TEST_F(Hardened, SpansThatNothingNeededForAPurgeDelayGoBack) {
  (void)heap::trim(0);
  std::vector<char*> blocks;
  for (int i = 0; i < 4'000; ++i)
    blocks.push_back(allocate(4'000));
  for (char* block : blocks)
    hardened::free(block);
  const uint64_t delay = std::exchange(options.purge_delay, 0);
  quarantine::purge_aged();
  quarantine::purge_aged();
  options.purge_delay = delay;
  EXPECT_FALSE(quarantine::release_all());
}

TEST_F(Hardened, WhatWasMovedIsGuardedInTheQuarantineToo) {
  char* block = allocate(2 * mib);
  char* const behind = allocate(70'000);
  block = static_cast<char*>(hardened::reallocate(block, 20 * mib));
  memset(block, 'm', 20 * mib);
  hardened::free(block);
  EXPECT_FALSE(is_accessible(block));
  (void)quarantine::release_all();
  hardened::free(behind);
  char* const again = allocate(20 * mib);
  memset(again, 'a', 20 * mib);
  hardened::free(again);
}

// An option that is read only now must not make blocks of before look as if they were written to.
TEST_F(Hardened, ClearingAllOfABlockIsDecidedAtStart) {
  std::vector<char*> blocks;
  for (int i = 0; i < 1000; ++i)
    memset(blocks.emplace_back(allocate(1'000)), 'o', 1'000);
  for (char* block : blocks)
    hardened::free(block);
  options.zero_on_free = !options.zero_on_free;
  EXPECT_THAT(said([&] {
                for (char*& block : blocks)
                  block = allocate(1'000);
                for (char* block : blocks)
                  hardened::free(block);
                (void)heap::trim(0);
              }),
              IsEmpty());
  options.zero_on_free = !options.zero_on_free;
}

}  // namespace
