// The heap profile as the heap feeds it: which blocks are sampled, and what their sites add up to. The file that is
// written is profile_encoder_test's, programs under the preload are tests/preload/profile_test.py's.
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/options.hpp"
#include "guarded/pool.hpp"
#include "heap/heap.hpp"
#include "heap/sampling.hpp"
#include "heap_calls.hpp"
#include "in_child.hpp"
#include "os/unwind.hpp"
#include "profile/profile.hpp"
#include "profiled.hpp"
#include "stats/snapshot.hpp"

namespace {

using namespace sluice;
using test::allocate;
using test::profiled;

// Sums over all sites.
struct Sums {
  profile::Tally allocated{}, live{}, at_peak{};
  double freed_elsewhere = 0, short_lived = 0;
  size_t sites = 0;
  profile::Totals totals{};

  Sums() {
    const profile::Reading now(true);
    totals = now.totals();
    for (const profile::Site* site = now.sites().first(); site != nullptr; site = site->next) {
      add(allocated, site->allocated);
      add(live, site->live);
      add(at_peak, profile::at_peak(*site, totals.peak));
      freed_elsewhere += site->freed_elsewhere;
      short_lived += site->short_lived;
      ++sites;
    }
  }

 private:
  static void add(profile::Tally& sum, const profile::Tally& tally) {
    sum.objects += tally.objects;
    sum.bytes += tally.bytes;
  }
};

std::string say(const char* what, double found, double expected) {
  return std::string(what) + ": " + std::to_string(found) + ", not " + std::to_string(expected);
}

TEST(Profile, AtARateOfOneEveryKindOfBlockIsCountedExactly) {
  EXPECT_EQ(profiled(1,
                     []() -> std::string {
                       std::vector<void*> blocks;
                       double bytes = 0;
                       const auto keep = [&](void* block, size_t size) {
                         memset(block, 1, size);
                         blocks.push_back(block);
                         bytes += static_cast<double>(size);
                       };
                       for (const size_t size : {0, 1, 16, 100, 1024, 1025, 5000, 65'536, 65'537, 1'000'000})
                         keep(allocate(size), size);
                       for (const size_t size : {10, 5000, 100'000}) {
                         keep(heap::allocate_zeroed(1, size), size);
                         keep(heap::allocate_aligned(64, size), size);
                         keep(heap::allocate_aligned(4096, size), size);
                         keep(heap::allocate_aligned(size_t{1} << 20, size), size);
                       }
                       const auto count = static_cast<double>(blocks.size());
                       const Sums full;
                       if (full.live.objects != count) return say("live", full.live.objects, count);
                       if (full.live.bytes != bytes) return say("live bytes", full.live.bytes, bytes);
                       for (void* block : blocks)
                         heap::free(block);
                       const Sums empty;
                       if (empty.live.objects != 0 || empty.live.bytes != 0) return "something is alive";
                       if (empty.allocated.bytes != bytes) return say("allocated", empty.allocated.bytes, bytes);
                       if (empty.at_peak.bytes != bytes) return say("at the peak", empty.at_peak.bytes, bytes);
                       return empty.totals.dropped == 0 ? "" : "dropped";
                     }),
            "");
}

TEST(Profile, ZeroedBlocksReadAsZeroAlsoWhenTheyServeAgain) {
  EXPECT_EQ(profiled(1,
                     []() -> std::string {
                       for (const size_t size : {100, 5000, 100'000}) {
                         void* const used = allocate(size);
                         memset(used, 1, heap::usable_size(used));
                         heap::free(used);
                         auto* const block = static_cast<char*>(heap::allocate_zeroed(1, size));
                         for (size_t i = 0; i < heap::usable_size(block); ++i)
                           if (block[i] != 0) return "not zero";
                         heap::free(block);
                       }
                       return "";
                     }),
            "");
}

TEST(Profile, UnitsOfFreedBlocksGoBackToTheRegion) {
  EXPECT_EQ(profiled(1,
                     []() -> std::string {
                       for (int round = 0; round < 3; ++round) {
                         std::vector<void*> blocks(50'000);
                         for (size_t i = 0; i < blocks.size(); ++i)
                           blocks[i] = allocate(16 + i % 7 * 300);
                         size_t most = 0;
                         for (unsigned k = 1; k < size_class_count; ++k)
                           most += profile::figures(k).units;
                         if (most < 500) return "few units";
                         for (size_t i = 0; i < blocks.size(); ++i)
                           heap::free(blocks[i * 7919 % blocks.size()]);
                         for (unsigned k = 1; k < size_class_count; ++k) {
                           if (profile::figures(k).live_blocks != 0) return "alive";
                           if (profile::figures(k).units > 1) return "units stay";
                         }
                       }
                       return Sums().totals.dropped == 0 ? "" : "dropped";
                     }),
            "");
}

TEST(Profile, BlocksAreAlignedAndApart) {
  EXPECT_EQ(profiled(1,
                     []() -> std::string {
                       std::vector<std::pair<char*, size_t>> blocks;
                       for (size_t size = 1; size <= 70'000; size = size * 4 / 3 + 1) {
                         for (size_t alignment = 16; alignment <= 65'536; alignment *= 8) {
                           auto* const block = static_cast<char*>(heap::allocate_aligned(alignment, size));
                           if (reinterpret_cast<uintptr_t>(block) % alignment != 0) return "not aligned";
                           if (heap::usable_size(block) < size) return "too short";
                           memset(block, static_cast<int>(blocks.size() % 251), size);
                           blocks.emplace_back(block, size);
                         }
                       }
                       for (size_t i = 0; i < blocks.size(); ++i)
                         for (size_t at = 0; at < blocks[i].second; ++at)
                           if (blocks[i].first[at] != static_cast<char>(i % 251)) return "blocks overlap";
                       for (const auto& block : blocks)
                         heap::free(block.first);
                       return "";
                     }),
            "");
}

TEST(Profile, AMovedBlockKeepsItsContentsAndItsFirstStack) {
  EXPECT_EQ(profiled(1,
                     []() -> std::string {
                       auto* block = static_cast<char*>(allocate(10));
                       strcpy(block, "contents");
                       const Sums before;
                       double allocated = 10;
                       for (const size_t size : {12, 500, 70'000, 5'000'000, 100'000, 50, 20}) {
                         block = static_cast<char*>(heap::reallocate(block, size));
                         if (strcmp(block, "contents") != 0) return "lost";
                         if (size != 12) allocated += static_cast<double>(size);
                         const Sums now;
                         if (now.live.objects != 1 || now.live.bytes != static_cast<double>(size))
                           return say("live bytes", now.live.bytes, static_cast<double>(size));
                       }
                       const Sums after;
                       // In place it has grown by two bytes.
                       if (after.allocated.bytes < allocated) return say("allocated", after.allocated.bytes, allocated);
                       const profile::Reading now(true);
                       const profile::Site* first = now.sites().first();
                       for (const profile::Site* site = first; site != nullptr; site = site->next)
                         if (site->frame_count != first->frame_count ||
                             memcmp(site->frames(), first->frames(), first->frame_count * sizeof(uintptr_t)) != 0)
                           return "another stack";
                       heap::free(block);
                       return "";
                     }),
            "");
}

TEST(Profile, SampledBlocksOfAllKindsAreFoundAtTheirEnd) {
  EXPECT_EQ(profiled(3000,
                     []() -> std::string {
                       std::vector<void*> blocks(2000);
                       uint64_t random = 1;
                       for (int i = 0; i < 100'000; ++i) {
                         random = random * 6364136223846793005 + 1442695040888963407;
                         void*& block = blocks[random >> 33 & 1023];
                         const size_t size = (random >> 43) % (i % 50 == 0 ? 200'000 : 3000);
                         if (random >> 63 != 0) {
                           block = heap::reallocate(block, size + 1);
                         } else {
                           heap::free(block);
                           block = allocate(size);
                         }
                       }
                       for (void* block : blocks)
                         heap::free(block);
                       const Sums sums;
                       if (sums.totals.samples < 10'000) return "few samples";
                       if (sums.live.objects > 1e-3 || sums.live.bytes > 1) return say("live", sums.live.bytes, 0);
                       return sums.totals.dropped == 0 ? "" : "dropped";
                     }),
            "");
}

// The rule of four standard deviations, over many seeds of the thread's generator.
TEST(Profile, WhatIsAliveIsEstimatedWithoutBias) {
  constexpr uint64_t rate = 4096;
  EXPECT_EQ(profiled(rate,
                     []() -> std::string {
                       constexpr size_t rounds = 40;
                       constexpr size_t count = 5000;
                       constexpr size_t size = 100;
                       std::vector<void*> blocks;
                       for (size_t i = 0; i < rounds * count; ++i)
                         blocks.push_back(allocate(size));
                       const double truth = rounds * count;
                       const double probability = -__builtin_expm1(-double{size + 15} / rate);
                       const double deviation = __builtin_sqrt(truth * (1 - probability) / probability);
                       const Sums sums;
                       // The vector's own memory is the system's.
                       if (__builtin_fabs(sums.live.objects - truth) > 4 * deviation)
                         return say("live", sums.live.objects, truth);
                       if (deviation > truth / 50) return "too few to tell";
                       for (void* block : blocks)
                         heap::free(block);
                       return "";
                     }),
            "");
}

TEST(Profile, ABlockThatAnotherThreadFreesIsCountedAsSuch) {
  EXPECT_EQ(profiled(1,
                     []() -> std::string {
                       void* own = allocate(100);
                       void* others[3];
                       for (void*& block : others)
                         block = allocate(100);
                       heap::free(own);
                       std::thread([&others] {
                         for (void* block : others)
                           heap::free(block);
                       }).join();
                       const Sums sums;
                       return sums.freed_elsewhere == 3 ? "" : say("freed elsewhere", sums.freed_elsewhere, 3);
                     }),
            "");
}

TEST(Profile, ShortLivesAreThoseOfFewerThan64KiBMoreOfAllocations) {
  EXPECT_EQ(profiled(1,
                     []() -> std::string {
                       void* brief = allocate(10);
                       heap::free(allocate(60'000));  // short as well
                       heap::free(brief);
                       void* longer = allocate(10);
                       void* others[2] = {allocate(60'000), allocate(10'000)};
                       heap::free(longer);
                       const Sums sums;
                       for (void* block : others)
                         heap::free(block);
                       return sums.short_lived == 2 ? "" : say("short lives", sums.short_lived, 2);
                     }),
            "");
}

TEST(Profile, ThePeakIsThatOfTheMomentWhenMostWasAlive) {
  EXPECT_EQ(profiled(1,
                     []() -> std::string {
                       void* const first = allocate(3000);
                       void* const second = allocate(2000);
                       heap::free(first);
                       void* const third = allocate(1000);
                       heap::free(second);
                       heap::free(allocate(500));
                       const Sums sums;
                       heap::free(third);
                       if (sums.at_peak.bytes != 5000) return say("at the peak", sums.at_peak.bytes, 5000);
                       return sums.live.bytes == 1000 ? "" : say("live", sums.live.bytes, 1000);
                     }),
            "");
}

TEST(Profile, GuardedBlocksTakePart) {
  EXPECT_EQ(profiled(1,
                     []() -> std::string {
                       guarded::set_slots(64);
                       sampling::start(1);
                       void* block = allocate(100);
                       if (!guarded::covers(block)) return "not guarded";
                       if (Sums().live.bytes != 100) return say("live", Sums().live.bytes, 100);
                       block = heap::reallocate(block, 300);
                       if (!guarded::covers(block) || Sums().live.bytes != 300)
                         return say("live", Sums().live.bytes, 300);
                       heap::free(block);
                       return Sums().live.objects == 0 ? "" : "alive";
                     }),
            "");
}

TEST(Profile, ADoubleFreeOfASampledBlockIsReportedAndChangesNothing) {
  EXPECT_EQ(profiled(1,
                     []() -> std::string {
                       options.abort_on_corruption = false;
                       void* const block = allocate(100);
                       void* const other = allocate(100);
                       heap::free(block);
                       heap::free(block);
                       heap::free(static_cast<char*>(other) + 16);
                       const Sums sums;
                       heap::free(other);
                       return sums.live.objects == 1 ? "" : say("live", sums.live.objects, 1);
                     }),
            "");
}

// A thread whose calls are counted, and whose bins always have a block, samples from the next call on.
TEST(Profile, AThreadThatIsAskedWhileItsCallsAreCountedSamples) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              heap::free(allocate(1));
              cache::set_counting(true);  // for threads that start from now on
              os::prepare_unwinding();
              std::string wrong;
              std::thread([&wrong] {
                for (int i = 0; i < 100; ++i) {
                  heap::free(allocate(100));
                  heap::free(heap::allocate_aligned(64, 100));
                }
                if (profile::start(1) != profile::Started::Yes) wrong = "no memory";
                sampling::ask_all();
                heap::free(allocate(100));
                heap::free(heap::allocate_aligned(64, 100));
                if (Sums().allocated.objects != 2) wrong = say("samples", Sums().allocated.objects, 2);
              }).join();
              return wrong;
            }),
            "");
}

TEST(Profile, StatisticsCountSampledBlocksInTheirClass) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              heap::free(allocate(1));
              cache::set_counting(true);  // for threads that start from now on
              os::prepare_unwinding();
              if (profile::start(1) != profile::Started::Yes) return "no memory";
              std::string wrong;
              std::thread([&wrong] {
                heap::free(allocate(1));
                sampling::start_profile();
                static stats::Snapshot before, between, after;
                stats::take_snapshot(&before);
                void* const small = allocate(100);
                void* const large = allocate(100'000);
                stats::take_snapshot(&between);
                heap::free(small);
                heap::free(large);
                stats::take_snapshot(&after);
                const unsigned k = size_class_of(100);
                if (between.classes[k].live_blocks - before.classes[k].live_blocks != 1) wrong += "live ";
                if (between.classes[k].mallocs - before.classes[k].mallocs != 1) wrong += "mallocs ";
                if (between.large.mallocs - before.large.mallocs != 1) wrong += "large ";
                if (after.frees - before.frees != 2) wrong += "frees ";
                if (after.live_bytes != before.live_bytes) wrong += "bytes ";
              }).join();
              return wrong;
            }),
            "");
}

TEST(Profile, StatisticsFindSampledBlocksWithoutCounting) {
  EXPECT_EQ(profiled(1,
                     []() -> std::string {
                       static stats::Snapshot before, between;
                       const unsigned k = size_class_of(100);
                       stats::take_snapshot(&before);
                       void* const block = allocate(100);
                       stats::take_snapshot(&between);
                       heap::free(block);
                       return between.classes[k].live_blocks - before.classes[k].live_blocks == 1 ? "" : "not found";
                     }),
            "");
}

TEST(Profile, FullTablesDropSamplesAndSayHowMany) {
  profile::Sites sites;
  ASSERT_TRUE(sites.map(size_t{1} << 20));
  uintptr_t frames[profile::most_frames] = {};
  const char thread[os::thread_name_capacity] = "name";
  size_t added = 0;
  for (; added < 100'000; ++added) {
    frames[0] = added;
    if (sites.find_or_add({frames, profile::most_frames, true, 16, thread}) == nullptr) break;
  }
  EXPECT_GT(added, 100U);
  EXPECT_LT(added, 2000U);
  EXPECT_EQ(sites.count(), added);
  frames[0] = 7;
  EXPECT_NE(sites.find_or_add({frames, profile::most_frames, true, 16, thread}), nullptr) << "what is there is found";
  EXPECT_EQ(sites.count(), added);
}

// A handler that interrupts realloc asks for other bytes than are being moved.
TEST(Profile, WhatIsAllocatedWhileABlockMovesIsOfItsOwnSite) {
  EXPECT_EQ(profiled(1,
                     []() -> std::string {
                       void* const block = allocate(100);
                       const profile::RecordNumber record = profile::record_of(block);
                       const profile::Site* const site = profile::site_of(record);
                       void* other = nullptr;
                       void* moved = nullptr;
                       {
                         const sampling::Moving moving(record, 5000);
                         other = allocate(3000);
                         moved = allocate(5000);
                       }
                       const auto frames_of = [](const void* of) {
                         const profile::Site* const its = profile::site_of(profile::record_of(of));
                         return std::vector<uintptr_t>(its->frames(), its->frames() + its->frame_count);
                       };
                       const std::vector<uintptr_t> expected(site->frames(), site->frames() + site->frame_count);
                       if (frames_of(moved) != expected) return "the moved block has another stack";
                       if (frames_of(other) == expected) return "another block has the stack of the moved one";
                       for (void* const each : {block, other, moved})
                         heap::free(each);
                       return "";
                     }),
            "");
}

TEST(Profile, SizesAreRoundedToEightStepsForEachDoubling) {
  EXPECT_EQ(profile::rounded_size(0), 16U);
  EXPECT_EQ(profile::rounded_size(100), 112U);
  EXPECT_EQ(profile::rounded_size(65'536), 65'536U);
  EXPECT_EQ(profile::rounded_size(65'537), 65'536U + 8192U);
  EXPECT_EQ(profile::rounded_size(size_t{1} << 30), size_t{1} << 30);
  for (size_t size = 1; size < (size_t{1} << 40); size = size * 9 / 8 + 1) {
    EXPECT_GE(profile::rounded_size(size), size);
    EXPECT_LE(static_cast<double>(profile::rounded_size(size)), static_cast<double>(size) * 1.125 + 16);
  }
}

}  // namespace
