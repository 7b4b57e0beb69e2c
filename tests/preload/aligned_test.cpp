// The contract of aligned_alloc, posix_memalign, memalign, valloc and pvalloc: alignments good and bad, sizes
// odd and huge. Open it when a block comes back with the wrong alignment or a bad alignment with the wrong
// error.
#include <gtest/gtest.h>
#include <malloc.h>

#include <vector>

#include "subject.hpp"

namespace {

using namespace subject;

const size_t alignments[] = {1,    2,    4,    8,     16,    32,    64,     128,     256,     512,    1024,
                             2048, 4096, 8192, 16384, 32768, 65536, 131072, 1 << 20, 1 << 22, 1 << 24};
const size_t sizes[] = {0, 1, 15, 16, 17, 63, 64, 65, 100, 1000, 1024, 4095, 4096, 5000, 65536, 65537, 300000, 2000000};

size_t page() {
  return static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

void expect_good_block(void* block, size_t alignment, size_t size) {
  ASSERT_NE(block, nullptr) << alignment << " " << size;
  ASSERT_TRUE(is_aligned(block, alignment < 16 ? 16 : alignment)) << alignment << " " << size;
  ASSERT_GE(malloc_usable_size(block), size) << alignment;
  memset(hide(block), 0x5a, malloc_usable_size(block));
}

TEST(Memalign, GivesEveryAlignmentAtEverySize) {
  for (const size_t alignment : alignments) {
    for (const size_t size : sizes) {
      void* const first = memalign(alignment, size);
      void* const second = memalign(alignment, size);
      expect_good_block(first, alignment, size);
      expect_good_block(second, alignment, size);
      EXPECT_NE(first, second);
      free(first);
      free(second);
    }
  }
}

TEST(Memalign, RoundsAnOddAlignmentUpToAPowerOfTwo) {
  struct {
    size_t asked, given;
  } const cases[] = {{0, 16},   {3, 16},    {17, 32},     {24, 32},       {33, 64},
                     {65, 128}, {100, 128}, {4097, 8192}, {65537, 131072}};
  for (const auto& each : cases) {
    void* const block = memalign(hide(each.asked), 200);
    expect_good_block(block, each.given, 200);
    free(block);
  }
}

TEST(Memalign, RefusesAnAlignmentThatNoPowerOfTwoCovers) {
  errno = 0;
  EXPECT_EQ(memalign(hide(SIZE_MAX / 2 + 2), 16), nullptr);
  EXPECT_EQ(errno, EINVAL);
}

TEST(Memalign, RefusesWhatTheAddressSpaceCannotHold) {
  errno = 0;
  EXPECT_EQ(memalign(hide(SIZE_MAX / 2 + 1), 16), nullptr);
  EXPECT_EQ(errno, ENOMEM);
}

TEST(AlignedAlloc, GivesEveryPowerOfTwo) {
  for (const size_t alignment : alignments) {
    for (const size_t size : sizes) {
      void* const block = aligned_alloc(alignment, size);
      expect_good_block(block, alignment, size);
      free(block);
    }
  }
}

TEST(AlignedAlloc, RefusesAnAlignmentThatIsNoPowerOfTwo) {
  for (const size_t alignment : {size_t{0}, size_t{3}, size_t{24}, size_t{100}, size_t{4097}, SIZE_MAX}) {
    errno = 0;
    EXPECT_EQ(aligned_alloc(hide(alignment), 64), nullptr) << alignment;
    EXPECT_EQ(errno, EINVAL) << alignment;
  }
}

TEST(PosixMemalign, GivesEveryPowerOfTwoFromAPointerUp) {
  for (const size_t alignment : alignments) {
    if (alignment < sizeof(void*)) continue;
    for (const size_t size : sizes) {
      void* block = nullptr;
      ASSERT_EQ(posix_memalign(&block, alignment, size), 0);
      expect_good_block(block, alignment, size);
      free(block);
    }
  }
}

TEST(PosixMemalign, LeavesItsResultAloneOnError) {
  int marker = 0;
  for (const size_t alignment :
       {size_t{0}, size_t{1}, size_t{2}, size_t{4}, size_t{7}, size_t{12}, size_t{24}, size_t{1000}}) {
    void* block = &marker;
    EXPECT_EQ(posix_memalign(&block, hide(alignment), 64), EINVAL) << alignment;
    EXPECT_EQ(block, &marker) << alignment;
  }
  for (const size_t size : {static_cast<size_t>(PTRDIFF_MAX) + 1, SIZE_MAX - 4096, SIZE_MAX}) {
    void* block = &marker;
    EXPECT_EQ(posix_memalign(&block, 64, hide(size)), ENOMEM) << size;
    EXPECT_EQ(block, &marker) << size;
  }
}

// As of glibc, where programs call perror after a failure.
TEST(PosixMemalign, SetsErrnoWithoutMemoryAndLeavesItAloneOtherwise) {
  for (const size_t alignment : {size_t{8}, size_t{64}, size_t{65536}, size_t{1} << 20}) {
    void* block = nullptr;
    errno = 0;
    EXPECT_EQ(posix_memalign(&block, hide(alignment), hide(SIZE_MAX - (size_t{2} << 20))), ENOMEM);
    EXPECT_EQ(errno, ENOMEM) << alignment;
    errno = 1234;
    EXPECT_EQ(posix_memalign(&block, hide(size_t{24}), 64), EINVAL);
    EXPECT_EQ(errno, 1234) << alignment;
    ASSERT_EQ(posix_memalign(&block, alignment, 1000), 0);
    EXPECT_EQ(errno, 1234) << alignment;
    free(block);
  }
}

TEST(Valloc, AlignsToThePage) {
  for (const size_t size : sizes) {
    void* const block = valloc(size);
    expect_good_block(block, page(), size);
    free(block);
  }
}

TEST(Pvalloc, AlignsToThePageAndRoundsTheSizeUpToPages) {
  for (const size_t size : sizes) {
    void* const block = pvalloc(size);
    expect_good_block(block, page(), (size + page() - 1) / page() * page());
    free(block);
  }
}

TEST(AlignedBlocks, AreReallocatedWithTheirContents) {
  uint64_t seed = 0;
  for (const size_t alignment : alignments) {
    if (alignment > 65536) continue;
    for (const size_t size : {size_t{1}, size_t{100}, size_t{5000}, size_t{100000}}) {
      for (const size_t next : {size / 2 + 1, size * 2, size * 20}) {
        void* block = memalign(alignment, size);
        ASSERT_NE(block, nullptr);
        fill(block, size, ++seed);
        block = realloc(block, next);
        ASSERT_NE(block, nullptr);
        ASSERT_TRUE(holds(block, size < next ? size : next, seed)) << alignment << " " << size << " " << next;
        free(block);
      }
    }
  }
}

TEST(AlignedBlocks, NeverOverlap) {
  struct Live {
    void* block;
    size_t size;
  };
  std::vector<Live> live;
  Sequence random(11);
  for (size_t i = 0; i < 4000; ++i) {
    const size_t alignment = size_t{1} << random.below(17);
    const size_t size = random.below(i % 50 == 0 ? 200000 : 3000);
    void* const block = memalign(alignment, size);
    ASSERT_NE(block, nullptr);
    fill(block, size, i);
    live.push_back({block, size});
  }
  for (size_t i = 0; i < live.size(); ++i)
    ASSERT_TRUE(holds(live[i].block, live[i].size, i)) << i;
  for (const Live& each : live)
    free(each.block);
}

}  // namespace
