// The contract of malloc, calloc, realloc, reallocarray and free as glibc's programs know it. Open it when
// one of these five returns something else than a program expects.
#include <gtest/gtest.h>
#include <malloc.h>

#include <set>
#include <vector>

#include "subject.hpp"

namespace {

using namespace subject;

const size_t over_ptrdiff_max = static_cast<size_t>(PTRDIFF_MAX) + 1;

// All sizes around each boundary that a size class, a slab or a span could have.
std::vector<size_t> interesting_sizes() {
  std::vector<size_t> sizes;
  for (size_t size = 0; size <= 1100; ++size)
    sizes.push_back(size);
  for (size_t power = 2 * KiB; power <= 8 * MiB; power *= 2) {
    for (size_t eighth = 8; eighth < 16; ++eighth) {
      const size_t middle = power / 8 * eighth;
      for (const size_t size : {middle - 1, middle, middle + 1})
        sizes.push_back(size);
    }
  }
  for (const size_t of_header : {2112, 4368, 8256, 16640, 33280})
    sizes.insert(sizes.end(), {of_header - 1, of_header, of_header + 1});
  return sizes;
}

TEST(Malloc, AlignsEveryBlockTo16) {
  for (const size_t size : interesting_sizes()) {
    void* const from_malloc = malloc(hide(size));
    void* const from_calloc = calloc(1, hide(size));
    void* const from_realloc = realloc(hide(static_cast<void*>(nullptr)), hide(size));
    ASSERT_TRUE(from_malloc != nullptr && from_calloc != nullptr && from_realloc != nullptr) << size;
    ASSERT_TRUE(is_aligned(from_malloc, 16)) << size;
    ASSERT_TRUE(is_aligned(from_calloc, 16)) << size;
    ASSERT_TRUE(is_aligned(from_realloc, 16)) << size;
    free(from_malloc);
    free(from_calloc);
    free(from_realloc);
  }
}

TEST(Malloc, OfNothingGivesDistinctBlocks) {
  std::set<void*> blocks;
  for (int i = 0; i < 5000; ++i)
    blocks.insert(malloc(hide(size_t{0})));
  EXPECT_EQ(blocks.count(nullptr), 0u);
  EXPECT_EQ(blocks.size(), 5000u);
  for (void* const block : blocks)
    free(block);
}

TEST(Malloc, LiveBlocksNeverOverlap) {
  struct Live {
    void* block;
    size_t size;
  };
  std::vector<Live> live;
  for (int round = 0; round < 3; ++round) {
    for (const size_t size : interesting_sizes()) {
      if (size > 256 * KiB) continue;
      void* const block = malloc(size);
      ASSERT_NE(block, nullptr);
      fill(block, size, live.size());
      live.push_back({block, size});
    }
  }
  for (size_t i = 0; i < live.size(); ++i)
    ASSERT_TRUE(holds(live[i].block, live[i].size, i)) << live[i].size;
  for (const Live& each : live)
    free(each.block);
}

TEST(Free, KeepsErrno) {
  for (const size_t size : {0u, 1u, 100u, 5000u, 70000u, 300000u, 5000000u, 64000000u}) {
    std::vector<void*> blocks;
    for (int i = 0; i < (size < 100000 ? 3000 : 3); ++i)
      blocks.push_back(malloc(size));
    for (void* const block : blocks) {
      errno = 1234;
      free(block);
      ASSERT_EQ(errno, 1234) << size;
    }
  }
  errno = 1234;
  free(hide(static_cast<void*>(nullptr)));
  EXPECT_EQ(errno, 1234);
  int* const object = new int(1);
  delete hide(object);
  EXPECT_EQ(errno, 1234);
}

TEST(Realloc, OfNullIsMalloc) {
  void* const block = realloc(hide(static_cast<void*>(nullptr)), 100);
  ASSERT_NE(block, nullptr);
  fill(block, 100, 1);
  free(block);
  void* const empty = realloc(hide(static_cast<void*>(nullptr)), hide(size_t{0}));
  EXPECT_NE(empty, nullptr);
  free(empty);
}

TEST(Realloc, ToNothingFreesAndReturnsNull) {
  const size_t before = resident_bytes();
  for (const size_t size : {size_t{16}, 4 * KiB, 200 * KiB}) {
    for (size_t total = 0; total < 256 * MiB; total += size < 4 * KiB ? 4 * KiB : size) {
      void* const block = malloc(size);
      ASSERT_NE(block, nullptr);
      memset(hide(block), 1, size);
      ASSERT_EQ(realloc(block, hide(size_t{0})), nullptr);
    }
  }
  EXPECT_LT(resident_bytes(), before + 64 * MiB) << "the blocks were not freed";
}

TEST(Realloc, KeepsTheContents) {
  const size_t sizes[] = {1,    15,   16,   17,    40,    100,   256,    257,    1000,
                          1024, 1025, 4096, 10000, 65536, 65537, 200000, 3000000};
  uint64_t seed = 0;
  for (const size_t from : sizes) {
    for (const size_t to : sizes) {
      void* block = malloc(from);
      ASSERT_NE(block, nullptr);
      fill(block, from, ++seed);
      block = realloc(block, to);
      ASSERT_NE(block, nullptr);
      ASSERT_TRUE(is_aligned(block, 16));
      ASSERT_TRUE(holds(block, from < to ? from : to, seed)) << from << " to " << to;
      memset(hide(block), 0xa5, to);
      free(block);
    }
  }
}

TEST(Realloc, GrowsInManySteps) {
  char* block = nullptr;
  size_t size = 0;
  for (size_t next = 1; next < 6 * MiB; next += next / 7 + 1) {
    block = static_cast<char*>(realloc(block, next));
    ASSERT_NE(block, nullptr);
    ASSERT_TRUE(holds(block, size, 7)) << next;
    fill(block, next, 7);
    size = next;
  }
  free(block);
}

TEST(Realloc, FailureLeavesTheOldBlock) {
  for (const size_t size : {size_t{40}, size_t{5000}, size_t{2000000}}) {
    void* const block = malloc(size);
    fill(block, size, 3);
    errno = 0;
    ASSERT_EQ(realloc(hide(block), hide(over_ptrdiff_max)), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    errno = 0;
    ASSERT_EQ(reallocarray(hide(block), hide(SIZE_MAX / 2), hide(size_t{3})), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    EXPECT_TRUE(holds(block, size, 3));
    free(block);
  }
}

TEST(Calloc, ZeroesMemoryThatWasUsedBefore) {
  for (int round = 0; round < 3; ++round) {
    for (const size_t size : interesting_sizes()) {
      void* const dirty = malloc(size);
      ASSERT_NE(dirty, nullptr);
      memset(hide(dirty), 0xff, size);
      free(hide(dirty));
      void* const clean = calloc(hide(size_t{1}), size);
      ASSERT_NE(clean, nullptr);
      ASSERT_TRUE(is_filled_with(clean, size, 0)) << size;
      memset(hide(clean), 0xff, size);
      free(clean);
    }
  }
}

TEST(Calloc, ZeroesWhatNeighboursLeftAfterCoalescing) {
  std::vector<void*> dirty;
  for (int i = 0; i < 200; ++i) {
    dirty.push_back(malloc(100 * KiB));
    memset(dirty.back(), 0xff, 100 * KiB);
  }
  for (void* const block : dirty)
    free(block);
  for (const size_t size : {150 * KiB, 700 * KiB, 5 * MiB}) {
    void* const clean = calloc(size / KiB, KiB);
    ASSERT_NE(clean, nullptr);
    EXPECT_TRUE(is_filled_with(clean, size, 0)) << size;
    free(clean);
  }
}

TEST(Calloc, OverflowIsRefused) {
  const size_t half = hide(SIZE_MAX / 2);
  for (const auto& [count, size] : {std::pair{half, size_t{3}},
                                    {size_t{3}, half},
                                    {SIZE_MAX, SIZE_MAX},
                                    {size_t{1} << 32, size_t{1} << 32},
                                    {(size_t{1} << 32) + 1, size_t{1} << 32}}) {
    errno = 0;
    EXPECT_EQ(calloc(hide(count), hide(size)), nullptr) << count << " * " << size;
    EXPECT_EQ(errno, ENOMEM);
  }
}

TEST(Calloc, OfNothingGivesABlock) {
  for (const auto& [count, size] : {std::pair{0, 0}, {0, 8}, {8, 0}}) {
    void* const block = calloc(hide(size_t(count)), hide(size_t(size)));
    EXPECT_NE(block, nullptr);
    free(block);
  }
}

TEST(Reallocarray, MultipliesAndRefusesOverflow) {
  void* block = reallocarray(hide(static_cast<void*>(nullptr)), 100, 30);
  ASSERT_NE(block, nullptr);
  EXPECT_GE(malloc_usable_size(block), 3000u);
  fill(block, 3000, 9);
  errno = 0;
  EXPECT_EQ(reallocarray(hide(block), hide(size_t{1} << 33), hide(size_t{1} << 33)), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_TRUE(holds(block, 3000, 9));
  block = reallocarray(block, 1000, 30);
  ASSERT_NE(block, nullptr);
  EXPECT_TRUE(holds(block, 3000, 9));
  EXPECT_EQ(reallocarray(block, hide(size_t{0}), 30), nullptr);
}

TEST(HugeRequests, FailWithEnomemAtEveryEntryPoint) {
  struct Entry {
    const char* name;
    void* (*call)(size_t size);
  };
  const Entry entries[] = {
      {"malloc", [](size_t n) { return malloc(n); }},
      {"calloc(1, n)", [](size_t n) { return calloc(hide(size_t{1}), n); }},
      {"calloc(n, 1)", [](size_t n) { return calloc(n, hide(size_t{1})); }},
      {"realloc(NULL, n)", [](size_t n) { return realloc(hide(static_cast<void*>(nullptr)), n); }},
      {"reallocarray(NULL, 1, n)", [](size_t n) { return reallocarray(hide(static_cast<void*>(nullptr)), 1, n); }},
      {"aligned_alloc(16, n)", [](size_t n) { return aligned_alloc(16, n); }},
      {"aligned_alloc(65536, n)", [](size_t n) { return aligned_alloc(65536, n); }},
      {"memalign(8, n)", [](size_t n) { return memalign(8, n); }},
      {"memalign(64, n)", [](size_t n) { return memalign(64, n); }},
      {"valloc", [](size_t n) { return valloc(n); }},
      {"pvalloc", [](size_t n) { return pvalloc(n); }},
      {"posix_memalign",
       [](size_t n) {
         void* block = nullptr;
         errno = posix_memalign(&block, 64, n);
         return block;
       }},
  };
  for (const size_t size : {static_cast<size_t>(PTRDIFF_MAX), over_ptrdiff_max, SIZE_MAX - 65536, SIZE_MAX - 4096,
                            SIZE_MAX - 16, SIZE_MAX - 15, SIZE_MAX - 1, SIZE_MAX}) {
    for (const Entry& entry : entries) {
      errno = 0;
      EXPECT_EQ(entry.call(hide(size)), nullptr) << entry.name << " " << size;
      EXPECT_EQ(errno, ENOMEM) << entry.name << " " << size;
    }
  }
}

}  // namespace
