// What malloc_usable_size promises: constant while the block lives, wholly the program's, wholly copied by
// realloc. Open it when a program that uses the slack of its blocks sees bytes change.
#include <gtest/gtest.h>
#include <malloc.h>

#include <vector>

#include "subject.hpp"

namespace {

using namespace subject;

std::vector<size_t> sizes() {
  std::vector<size_t> all;
  for (size_t size = 0; size <= 1100; ++size)
    all.push_back(size);
  for (size_t size = 1200; size < 4 * MiB; size += size / 11)
    all.push_back(size);
  return all;
}

TEST(UsableSize, OfNullIsZero) {
  EXPECT_EQ(malloc_usable_size(hide(static_cast<void*>(nullptr))), 0u);
}

TEST(UsableSize, CoversTheRequestAndIsConstant) {
  struct Live {
    void* block;
    size_t usable;
  };
  std::vector<Live> live;
  for (const size_t size : sizes()) {
    void* const block = malloc(size);
    const size_t usable = malloc_usable_size(block);
    ASSERT_GE(usable, size);
    ASSERT_EQ(malloc_usable_size(block), usable);
    memset(hide(block), 0xff, usable);
    ASSERT_EQ(malloc_usable_size(block), usable) << size;
    live.push_back({block, usable});
  }
  for (const Live& each : live)
    ASSERT_EQ(malloc_usable_size(each.block), each.usable);
  for (const Live& each : live)
    free(each.block);
}

TEST(UsableSize, IsWhollyTheOwners) {
  struct Live {
    void* block;
    size_t usable;
  };
  std::vector<Live> live;
  for (const size_t size : sizes()) {
    for (int i = 0; i < (size < 2000 ? 4 : 1); ++i) {
      void* const block = malloc(size);
      const size_t usable = malloc_usable_size(block);
      fill(block, usable, live.size());
      live.push_back({block, usable});
    }
  }
  for (size_t i = 0; i < live.size(); i += 2)
    free(live[i].block);
  for (size_t i = 1; i < live.size(); i += 2) {
    ASSERT_TRUE(holds(live[i].block, live[i].usable, i)) << live[i].usable;
    free(live[i].block);
  }
}

TEST(UsableSize, IsWhollyCopiedByRealloc) {
  uint64_t seed = 0;
  for (const size_t size : sizes()) {
    void* block = malloc(size);
    const size_t usable = malloc_usable_size(block);
    fill(block, usable, ++seed);
    block = realloc(block, usable * 2 + 100);
    ASSERT_NE(block, nullptr);
    ASSERT_TRUE(holds(block, usable, seed)) << size;
    free(block);
  }
}

// As of glibc. Each size is taken twice, so that the second block lies where bytes are left of the first.
TEST(UsableSize, OfCallocIsZeroAllOver) {
  for (const size_t size : sizes()) {
    for (int i = 0; i < 2; ++i) {
      void* const block = calloc(1, hide(size));
      const size_t usable = malloc_usable_size(block);
      ASSERT_GE(usable, size);
      ASSERT_TRUE(is_filled_with(block, usable, 0)) << size << " of " << usable;
      memset(hide(block), 0xff, usable);
      free(block);
    }
  }
}

}  // namespace
