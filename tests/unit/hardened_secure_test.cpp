// What libsluice-secure.so reports, in which words, and that the heap serves on where it may. What else it promises of
// blocks: hardened_blocks_secure_test.cpp.
#include "secure/hardened.hpp"

#include <algorithm>
#include <csignal>
#include <random>
#include <thread>

#include "hardened_calls.hpp"
#include "heap/reuse.hpp"
#include "heap/thread_cache.hpp"
#include "in_child.hpp"

namespace {

using namespace sluice;
using test::count_of;
using test::Hardened;
using test::said;
using test::write_to_freed;
using test::written_to;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;

char* allocate(size_t size) {
  return test::allocate_chars(size);
}

// In a process of its own, for each place: a damaged block keeps its slab.
TEST(HardenedApart, AWriteToABlockInAQueueIsFoundWhenTheThreadGivesBackWhatItHolds) {
  for (const size_t offset : {0, 7, 8, 20, 2'104}) {
    EXPECT_EQ(test::in_child([offset]() -> std::string {
                options.abort_on_corruption = false;
                return said([offset] {
                         char* const block = allocate(2'040);
                         hardened::free(block);
                         block[offset] = static_cast<char>(block[offset] ^ 1);
                         (void)heap::trim(0);
                       })
                    .substr(0, 30);
              }),
              "sluice: write to free memory: ")
        << offset;
  }
}

TEST(HardenedApart, AFirstBlockOfASlabThatWasGivenBackIsNoLargeBlock) {
  EXPECT_THAT(test::in_child([]() -> std::string {
                options.abort_on_corruption = false;
                std::vector<char*> blocks;
                for (int i = 0; i < 2'000; ++i)
                  blocks.push_back(allocate(1'000));
                const auto first = std::find_if(blocks.begin(), blocks.end(), [](const char* block) {
                  return reinterpret_cast<uintptr_t>(block) % unit_size == 0;
                });
                if (first == blocks.end()) return "no slab's first block";
                char* const block = *first;
                for (char* each : blocks)
                  hardened::free(each);
                cache::flush_idle();
                if (class_bytes()[unit_index_of(block)] != class_byte_none) return "the slab stays";
                return said([block] { hardened::free(block); });
              }),
              ContainsRegex("^sluice: invalid free: no block begins at 0x[0-9a-f]+; the process goes on"));
}

// Sizes of all kinds: the first ones, those around each class, and large ones.
std::vector<size_t> sizes() {
  std::vector<size_t> all;
  for (size_t size = 0; size <= 600; ++size)
    all.push_back(size);
  for (unsigned k = 1; k < size_class_count; ++k)
    for (size_t less = 0; less <= 17; ++less)
      if (class_sizes[k] > 600 + less) all.push_back(class_sizes[k] - less);
  for (const size_t size : {65'537, 65'536 + 4096, 131'072 - 8, 131'072, 300'001, 3'000'000})
    all.push_back(size);
  return all;
}

TEST_F(Hardened, TheUsableSizeIsWhatWasAskedForAndDoesNotChange) {
  for (const size_t size : sizes()) {
    char* const block = allocate(size);
    ASSERT_EQ(hardened::usable_size(block), size);
    memset(block, 0xff, size);
    ASSERT_EQ(hardened::usable_size(block), size);
    EXPECT_EQ(hardened::usable_size(block + 1), 0u);
    hardened::free(block);
  }
}

TEST_F(Hardened, AnyByteBehindABlockIsMissed) {
  for (const size_t size : sizes()) {
    size_t stopped = 0;
    const std::string text = said([size, &stopped] {
      for (size_t beyond = 0; beyond < canary_size; ++beyond) {
        char* const block = allocate(size);
        if (!test::change(block + size + beyond)) ++stopped;
        hardened::free(block);
      }
    });
    if (size != 0 && size <= max_small_size - canary_size) {
      EXPECT_EQ(stopped, 0u) << size;
    }
    EXPECT_EQ(count_of(text, "sluice: overflow: 0x") + stopped, canary_size) << size;
    EXPECT_EQ(count_of(text, " was written to behind its end, a block of " + std::to_string(size) +
                                 " bytes; the process goes on") +
                  stopped,
              canary_size)
        << size << text;
  }
}

TEST_F(Hardened, AZeroBehindABlockIsMissed) {
  for (const size_t size : sizes()) {
    char* const block = allocate(size);
    const bool stopped = !test::is_accessible(block + size);
    if (!stopped) block[size] = 0;
    EXPECT_THAT(said([=] { hardened::free(block); }), HasSubstr(stopped ? "" : "sluice: overflow: 0x")) << size;
  }
}

TEST_F(Hardened, WhatReallocLeavesIsGuardedLikeANewBlock) {
  for (const size_t from : {1, 40, 600, 5'000, 70'000, 3'000'000}) {
    for (const size_t to : {2, 39, 41, 590, 4'000, 69'000, 90'000, 2'500'000, 5'000'000}) {
      auto* block = allocate(from);
      memset(block, 'r', from);
      block = static_cast<char*>(hardened::reallocate(block, to));
      EXPECT_EQ(hardened::usable_size(block), to);
      for (size_t i = 0; i < std::min(from, to); i += 13)
        ASSERT_EQ(block[i], 'r');
      memset(block, 's', to);
      block[to] = 0;
      EXPECT_THAT(said([=] { hardened::free(block); }), HasSubstr("sluice: overflow: 0x")) << from << " " << to;
    }
  }
}

TEST_F(Hardened, AnOverflowIsFoundByReallocWhichKeepsTheBlock) {
  char* const block = allocate(40);
  strcpy(block, "content");
  block[40] = 0;
  EXPECT_THAT(said([=] { EXPECT_EQ(hardened::reallocate(block, 4'000), nullptr); }), HasSubstr("sluice: overflow: 0x"));
  EXPECT_STREQ(block, "content");
}

TEST_F(Hardened, AnUnderflowIsFoundAtTheBlockInFront) {
  std::vector<char*> blocks;
  for (int i = 0; i < 64; ++i)
    blocks.push_back(allocate(100));
  std::sort(blocks.begin(), blocks.end());
  const auto next = std::adjacent_find(blocks.begin(), blocks.end(), [](char* a, char* b) { return b - a == 112; });
  ASSERT_NE(next, blocks.end());
  next[1][-1] = 0;
  EXPECT_THAT(said([=] { hardened::free(next[0]); }), HasSubstr("sluice: overflow: 0x"));
}

TEST_F(Hardened, ADoubleFreeIsFoundAtOnceInEveryOrder) {
  for (const size_t size : {1, 40, 600, 5'000, 60'000, 70'000, 3'000'000}) {
    char* const first = allocate(size);
    char* const second = allocate(size);
    hardened::free(first);
    EXPECT_THAT(said([=] { hardened::free(first); }), HasSubstr("sluice: double free: 0x")) << size;
    hardened::free(second);
    EXPECT_THAT(said([=] { hardened::free(first); }), HasSubstr("sluice: double free: 0x")) << size;
    std::string elsewhere;
    std::thread([&] { elsewhere = said([=] { hardened::free(second); }); }).join();
    EXPECT_THAT(elsewhere, HasSubstr("sluice: double free: 0x")) << size;
    EXPECT_THAT(said([=] { EXPECT_EQ(hardened::reallocate(second, 10), nullptr); }),
                HasSubstr("sluice: realloc of a freed block: 0x"))
        << size;
  }
}

TEST_F(Hardened, ADoubleFreeIsFoundAtOnceInATeardown) {
  std::vector<char*> blocks;
  for (int i = 0; i < 5'000; ++i)
    blocks.push_back(allocate(200));
  std::shuffle(blocks.begin(), blocks.end(), std::minstd_rand(1));
  for (char* block : blocks)
    hardened::free(block);
  char* const last = blocks.back();  // nobody has looked at its ends yet
  EXPECT_THAT(said([=] { hardened::free(last); }), HasSubstr("sluice: double free: 0x"));
  EXPECT_EQ(hardened::usable_size(last), 0u);
  EXPECT_THAT(said([=] { EXPECT_EQ(hardened::reallocate(last, 10), nullptr); }),
              HasSubstr("sluice: realloc of a freed block: 0x"));
  std::string elsewhere;
  std::thread([&] { elsewhere = said([=] { hardened::free(last); }); }).join();
  EXPECT_THAT(elsewhere, HasSubstr("sluice: double free: 0x"));
  std::vector<char*> others;
  for (int i = 0; i < 100; ++i)
    others.push_back(allocate(200));  // there is room in the bin again
  EXPECT_THAT(said([=] { hardened::free(last); }), HasSubstr("sluice: double free: 0x"));
  for (char* block : others)
    hardened::free(block);
}

// A thread that frees more than its cache takes: the ends of the last few of its frees are checked a little later, when
// more come, when the cache is flushed, or when the process ends.
class HardenedWaiting : public Hardened, public testing::WithParamInterface<void (*)(std::vector<char*>&)> {};
TEST_P(HardenedWaiting, MistakesInATeardownAreFound) {
  std::vector<char*> blocks, later;
  for (int i = 0; i < 6'000; ++i)
    (i < 5'000 ? blocks : later).push_back(allocate(200));
  std::shuffle(blocks.begin(), blocks.end(), std::minstd_rand(1));  // the thread's cache takes what lies in order
  char* const overflown = blocks[4'998];
  char* const freed_twice = blocks[4'997];
  overflown[200] ^= 1;
  const std::string text = said([&] {
    for (char* block : blocks)
      hardened::free(block);
    hardened::free(freed_twice);
    GetParam()(later);
  });
  EXPECT_EQ(count_of(text, "sluice: overflow: 0x"), 1u) << text;
  EXPECT_EQ(count_of(text, "sluice: double free: 0x"), 1u) << text;
  EXPECT_EQ(count_of(text, "sluice: "), 2u) << text;
  for (char* block : later)
    hardened::free(block);
}
INSTANTIATE_TEST_SUITE_P(Unit, HardenedWaiting,
                         testing::Values(
                             [](std::vector<char*>& more) {
                               for (char* block : more)
                                 hardened::free(block);
                               more.clear();
                             },
                             [](std::vector<char*>&) { (void)heap::trim(0); },
                             [](std::vector<char*>&) { hardened::check_waiting(); }));

TEST_F(Hardened, WhatAThreadFreedLastIsCheckedWhenItEnds) {
  const std::string text = said([] {
    std::thread([] {
      std::vector<char*> blocks;
      for (int i = 0; i < 60'000; ++i)
        blocks.push_back(allocate(24));
      std::shuffle(blocks.begin(), blocks.end(), std::minstd_rand(1));
      blocks.back()[24] ^= 1;
      for (char* block : blocks)
        hardened::free(block);
    }).join();
  });
  EXPECT_EQ(count_of(text, "sluice: overflow: 0x"), 1u) << text;
}

TEST_F(Hardened, AnAddressThatBeginsNoBlockIsNotFreed) {
  char* const small = allocate(96);
  char* const large = allocate(200'000);
  auto* const aligned = static_cast<char*>(hardened::allocate_aligned(4096, 10'000));
  char local[64];
  EXPECT_THAT(
      said([=] { hardened::free(small + 16); }),
      ContainsRegex("sluice: invalid free: 0x[0-9a-f]+ lies 16 bytes into a block of 96 bytes at 0x[0-9a-f]+; the"));
  EXPECT_THAT(said([=] { hardened::free(small + 1); }), HasSubstr("lies 1 bytes into a block of 96 bytes"));
  EXPECT_THAT(said([=] { hardened::free(aligned + 4096); }), HasSubstr("lies 4096 bytes into a block of 10000 bytes"));
  // A unit inside a block may once have begun another one.
  for (char* const address : {large + 16, large + unit_size, large + 3 * unit_size, &local[16]})
    EXPECT_THAT(said([=] { hardened::free(address); }),
                ContainsRegex("sluice: (invalid free: no block|double free: 0x)"));
  EXPECT_THAT(said([=] { EXPECT_EQ(hardened::reallocate(small + 16, 10), nullptr); }),
              HasSubstr("sluice: invalid realloc"));
  EXPECT_THAT(said([=] { EXPECT_EQ(hardened::reallocate(large + 16, 10), nullptr); }),
              HasSubstr("sluice: invalid realloc"));
  EXPECT_THAT(said([=] {
                for (char* block : {small, large, aligned})
                  hardened::free(block);
              }),
              IsEmpty());
}

TEST_F(Hardened, MemoryThatWasNeverHandedOutIsNotFreed) {
  char* const block = allocate(3'000);
  const size_t unit = unit_index_of(block);
  char* const end = region::address_of(unit + 1) - 3'072;  // of the slab's last block
  const std::string text = said([=] { hardened::free(end - (end - region::address_of(unit)) % 3'072); });
  EXPECT_THAT(text, HasSubstr("sluice: invalid free: 0x"));
  hardened::free(block);
}

// Units without a descriptor: those in front of the first and behind the last that the heap took.
TEST_F(Hardened, NoUnitOutsideOfWhatTheHeapTookIsFreed) {
  hardened::free(allocate(1));
  const size_t first = region::first_index();
  const size_t limit = region::limit();
  ASSERT_GT(first, 0u);
  for (const size_t unit : {size_t{0}, first / 4, first / 2, first - 1, limit, limit + (region_range_units - limit) / 2,
                            region_range_units - 1}) {
    EXPECT_THAT(said([=] { hardened::free(region::address_of(unit)); }), HasSubstr("invalid free: no block")) << unit;
    EXPECT_THAT(said([=] { EXPECT_EQ(hardened::reallocate(region::address_of(unit), 10), nullptr); }),
                HasSubstr("invalid realloc: no block"))
        << unit;
  }
}

TEST_F(Hardened, StopsTheProcessWhereItIsNotToGoOn) {
  options.abort_on_corruption = true;
  EXPECT_EXIT(
      {
        char* const block = allocate(24);
        block[24] = 0;
        hardened::free(block);
      },
      testing::KilledBySignal(SIGABRT), "sluice: overflow: 0x.* a block of 24 bytes; the process is stopped");
}

TEST_F(Hardened, AWriteToAFreedBlockIsFoundWhereverItIs) {
  for (const size_t offset : {8, 15, 16, 39, 40, 47, 104, 111})
    EXPECT_GT(write_to_freed(100, offset), written_to / 2) << offset;
}

// What a string that is ended one byte before its first writes.
TEST_F(Hardened, AZeroAtTheEndOfAFreedBlockIsFound) {
  for (const size_t size : {100, 1'000, 5'000}) {
    char* const block = allocate(size);
    hardened::free(block);
    char& last = block[class_sizes[size_class_of(size + canary_size)] - 1];
    const char kept = std::exchange(last, '\0');
    EXPECT_EQ(count_of(said([] { hardened::check_waiting(); }), "sluice: write to free memory: 0x"), 1u) << size;
    last = kept;
  }
}

TEST_F(Hardened, AWriteToABlockThatWaitsIsFoundWhenItsThreadOrTheProcessEnds) {
  for (const size_t size : {8, 40, 500, 5'000, 40'000}) {
    char* const block = allocate(size);
    hardened::free(block);
    block[5] = 1;
    EXPECT_EQ(count_of(said([] { hardened::check_waiting(); }), "sluice: write to free memory: 0x"), 1u) << size;
    block[5] = 0;
    EXPECT_EQ(said([] { hardened::check_waiting(); }), "") << size;
  }
}

// The link's word is only watched in a queue and in a list, where it matters.
TEST_F(Hardened, AWriteToALinkIsFoundWhileItIsInUse) {
  for (const size_t offset : {0, 1, 7})
    EXPECT_GT(write_to_freed(100, offset), 30u) << offset;  // those of a queue and a bin
}

}  // namespace
