// What libsluice-secure.so knows of sizes: blocks of no bytes lie where nobody can touch them, a free that names
// another size than was asked for is found, and so is a question for the size of what is no block.
#include <set>
#include <thread>
#include <vector>

#include "guarded/pool.hpp"
#include "hardened_calls.hpp"
#include "heap/sampling.hpp"
#include "in_child.hpp"
#include "secure/zero.hpp"
#include "stats/snapshot.hpp"

namespace {

using namespace sluice;
using test::Hardened;
using test::is_accessible;
using test::mib;
using test::said;
using testing::HasSubstr;
using testing::IsEmpty;

char* allocate(size_t size) {
  return test::allocate_chars(size);
}

TEST(HardenedApart, BlocksOfNoBytesAreCountedAndFreed) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              options.stats = "1";
              for (int i = 0; i < 3'000; ++i)
                hardened::free(allocate(0));
              static stats::Snapshot snapshot;
              stats::take_snapshot(&snapshot);
              if (snapshot.mallocs < 3'000) return "not counted";
              return snapshot.mallocs == snapshot.frees && snapshot.live_bytes == 0 ? "" : "seems to be live";
            }),
            "");
}

TEST(HardenedApart, AGuardedBlockIsFreedWithItsSize) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              options.abort_on_corruption = false;
              hardened::free(allocate(1));
              guarded::set_slots(64);
              sampling::start(1);
              char* const block = allocate(40);
              if (!guarded::covers(block)) return "not guarded";
              if (said([=] { hardened::free_sized(block, 41); }).find("wrong size") == std::string::npos)
                return "missed";
              return said([=] { hardened::free_sized(block, 40); });
            }),
            "");
}

// Each of these takes 64 KiB of the reservation, and where there is no room for many at once, they come one by one.
TEST(HardenedApart, AlignedBlocksOfNoBytesAreFreedWithTheirSizeWhereTheReservationEnds) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              static void* blocks[4096];
              options.abort_on_corruption = false;
              options.reserve = 128 * mib;
              size_t count = 0;
              while (count < std::size(blocks) && (blocks[count] = hardened::allocate_aligned(unit_size, 0)) != nullptr)
                ++count;
              if (count == 0 || count == std::size(blocks)) return "the reservation has no end";
              if (hardened::zero::covers(blocks[count - 1])) return "all were had at once";
              for (size_t i = 0; i < count; ++i)
                if (hardened::usable_size(blocks[i]) != 0) return "it has a size";
              return said([&] {
                for (size_t i = 0; i < count; ++i)
                  hardened::free_sized(blocks[i], 0);
              });
            }),
            "");
}

TEST_F(Hardened, BlocksOfNoBytesDifferAndCannotBeTouched) {
  std::set<char*> blocks;
  for (int i = 0; i < 20'000; ++i) {
    char* const block = i % 3 == 0   ? allocate(0)
                        : i % 3 == 1 ? static_cast<char*>(hardened::allocate_zeroed(0, 8))
                                     : static_cast<char*>(hardened::reallocate(nullptr, 0));
    ASSERT_NE(block, nullptr);
    ASSERT_EQ(reinterpret_cast<uintptr_t>(block) % min_alignment, 0u);
    ASSERT_TRUE(blocks.insert(block).second);
    if (i % 100 == 0) {
      EXPECT_FALSE(is_accessible(block));
      EXPECT_EQ(hardened::usable_size(block), 0u);
    }
  }
  EXPECT_THAT(said([&] {
                for (char* block : blocks)
                  hardened::free(block);
              }),
              IsEmpty());
}

TEST_F(Hardened, AlignedBlocksOfNoBytesAreAlignedAndCannotBeTouched) {
  for (const size_t alignment : {size_t{32}, size_t{4096}, unit_size, 4 * unit_size, mib}) {
    std::set<void*> blocks;
    for (int i = 0; i < 10; ++i) {
      void* const block = hardened::allocate_aligned(alignment, 0);
      EXPECT_TRUE(blocks.insert(block).second);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % alignment, 0u);
      EXPECT_FALSE(is_accessible(block)) << alignment;
      EXPECT_EQ(hardened::usable_size(block), 0u);
    }
    EXPECT_THAT(said([&] {
                  for (void* block : blocks)
                    hardened::free_sized(block, 0);
                }),
                IsEmpty());
  }
}

TEST_F(Hardened, AlignedBlocksOfNoBytesCannotBeTouchedHoweverManyLive) {
  for (const size_t alignment : {size_t{4096}, unit_size}) {
    std::set<void*> blocks;
    for (int i = 0; i < 500; ++i) {
      void* const block = hardened::allocate_aligned(alignment, 0);
      ASSERT_TRUE(blocks.insert(block).second);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(block) % alignment, 0u);
      ASSERT_FALSE(is_accessible(block)) << alignment << ", after " << i;
      ASSERT_EQ(hardened::usable_size(block), 0u);
    }
    EXPECT_THAT(said([&] {
                  for (void* block : blocks)
                    hardened::free_sized(block, 0);
                }),
                IsEmpty());
  }
}

TEST_F(Hardened, ABlockOfNoBytesServesAgainLate) {
  char* const first = allocate(0);
  hardened::free(first);
  for (int i = 0; i < 1'000; ++i) {
    char* const next = allocate(0);
    ASSERT_NE(next, first);
    hardened::free(next);
  }
}

TEST_F(Hardened, ABlockOfNoBytesGrows) {
  char* block = static_cast<char*>(hardened::reallocate(allocate(0), 100));
  memset(block, 'g', 100);
  EXPECT_EQ(hardened::usable_size(block), 100u);
  hardened::free(block);
}

TEST_F(Hardened, MistakesWithBlocksOfNoBytesAreNamed) {
  char* const block = allocate(0);
  EXPECT_THAT(said([=] { hardened::free(block + 1); }), HasSubstr("sluice: invalid free: "));
  hardened::free(block);
  EXPECT_THAT(said([=] { hardened::free(block); }), HasSubstr("sluice: double free: 0x"));
  EXPECT_THAT(said([=] { EXPECT_EQ(hardened::reallocate(block, 8), nullptr); }),
              HasSubstr("sluice: realloc of a freed block: 0x"));
  EXPECT_THAT(said([=] { hardened::free(block + 2 * unit_size); }), HasSubstr("sluice: "));
}

TEST_F(Hardened, ManyThreadsGetBlocksOfNoBytesOfTheirOwn) {
  std::vector<std::vector<char*>> all(8);
  std::vector<std::thread> threads;
  for (auto& blocks : all)
    threads.emplace_back([&blocks] {
      for (int i = 0; i < 30'000; ++i) {
        blocks.push_back(allocate(0));
        if (i % 3 == 0) {
          hardened::free(blocks.back());
          blocks.pop_back();
        }
      }
    });
  for (std::thread& thread : threads)
    thread.join();
  std::set<char*> seen;
  for (const auto& blocks : all)
    for (char* block : blocks)
      ASSERT_TRUE(seen.insert(block).second);
  for (char* block : seen)
    hardened::free(block);
}

TEST_F(Hardened, AFreeThatNamesAnotherSizeIsFound) {
  for (const size_t size : {0, 1, 40, 48, 600, 5'000, 20'000, 60'000, 70'000, 131'072, 3'000'000}) {
    for (const size_t wrong : {size + 1, size + 16, size - 1, size_t{0}, size * 2 + 8}) {
      if (wrong == size || wrong > PTRDIFF_MAX) continue;
      char* const block = allocate(size);
      EXPECT_THAT(said([=] { hardened::free_sized(block, wrong); }),
                  HasSubstr(" is a block of " + std::to_string(size) + " bytes, not of " + std::to_string(wrong)))
          << size;
      EXPECT_EQ(hardened::usable_size(block), size);  // it is left alone
      EXPECT_THAT(said([=] { hardened::free_sized(block, size); }), IsEmpty()) << size;
    }
  }
}

TEST_F(Hardened, AFreeThatNamesTheSizeIsAnOrdinaryOne) {
  EXPECT_THAT(said([] {
                hardened::free_sized(nullptr, 8);
                for (int round = 0; round < 20; ++round) {
                  std::vector<char*> blocks;
                  for (size_t i = 0; i < 2'000; ++i)
                    blocks.push_back(allocate(i));
                  for (size_t i = 0; i < 2'000; ++i)
                    hardened::free_sized(blocks[i], i);
                }
                for (const size_t alignment : {size_t{64}, size_t{4096}, mib})
                  hardened::free_sized(hardened::allocate_aligned(alignment, 100), 100);
                hardened::free_sized(hardened::reallocate(allocate(100), 90), 90);
                hardened::free_sized(hardened::reallocate(allocate(100'000), 99'000), 99'000);
              }),
              IsEmpty());
  char* const block = allocate(40);
  hardened::free_sized(block, 40);
  EXPECT_THAT(said([=] { hardened::free_sized(block, 40); }), HasSubstr("sluice: double free: 0x"));
}

TEST_F(Hardened, ASizeQueryOfWhatIsNoBlockIsNamed) {
  char local[64];
  for (const size_t size : {0, 40, 20'000, 70'000, 3'000'000}) {
    char* const block = allocate(size);
    EXPECT_THAT(said([=] { EXPECT_EQ(hardened::usable_size(block), size); }), IsEmpty());
    EXPECT_THAT(said([=] { EXPECT_EQ(hardened::usable_size(block + 1), 0u); }),
                HasSubstr("sluice: invalid size query"));
    hardened::free(block);
    EXPECT_THAT(said([=] { EXPECT_EQ(hardened::usable_size(block), 0u); }),
                HasSubstr("sluice: size query of a freed block: 0x"))
        << size;
  }
  EXPECT_THAT(said([&] { EXPECT_EQ(hardened::usable_size(&local[16]), 0u); }),
              HasSubstr("sluice: invalid size query: no block of the heap begins at 0x"));
  EXPECT_THAT(said([] { EXPECT_EQ(hardened::usable_size(nullptr), 0u); }), IsEmpty());
}

}  // namespace
