// What holds for frames wherever their memory comes from. Included by the test of each source, which says with
// frame_memory() how many bytes the frames of all threads have taken, or a constant where that cannot be known.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "random_blocks.hpp"
#include "sluice/frame.hpp"

namespace {

using sluice::test::Block;
using sluice::test::Random;

unsigned char* frame_filled(size_t size, size_t alignment, unsigned char value) {
  auto* const block = static_cast<unsigned char*>(sluice_frame_alloc(size, alignment));
  if (block != nullptr) std::memset(block, value, size);
  return block;
}
bool filled_with(const void* block, size_t size, unsigned char value) {
  const auto* const bytes = static_cast<const unsigned char*>(block);
  return std::all_of(bytes, bytes + size, [value](unsigned char byte) { return byte == value; });
}

class Frames : public testing::Test {
 protected:
  void SetUp() override { outermost_ = sluice_frame_mark(); }
  void TearDown() override { sluice_frame_rewind(outermost_); }
  sluice_mark outermost_{};
};

TEST_F(Frames, a_rewind_gives_the_same_memory_again) {
  const sluice_mark mark = sluice_frame_mark();
  void* const first = frame_filled(100, 16, 1);
  for (int i = 0; i < 1000; ++i) {
    sluice_frame_rewind(mark);
    ASSERT_EQ(frame_filled(100, 16, 1), first);
  }
}

TEST_F(Frames, blocks_lie_side_by_side) {
  unsigned char* const first = frame_filled(24, 8, 1);
  unsigned char* const second = frame_filled(1, 1, 2);
  unsigned char* const third = frame_filled(7, 1, 3);
  EXPECT_EQ(second, first + 24);
  EXPECT_EQ(third, second + 1);
}

TEST_F(Frames, marks_nest_and_one_may_be_rewound_to_many_times) {
  unsigned char* const kept = frame_filled(1000, 16, 1);
  const sluice_mark outer = sluice_frame_mark();
  for (int i = 0; i < 100; ++i) {
    unsigned char* const of_outer = frame_filled(3000, 16, 2);
    const sluice_mark inner = sluice_frame_mark();
    for (int n = 0; n < 100; ++n) {
      frame_filled(5000, 16, 3);
      if (n % 30 == 29) sluice_frame_rewind(inner);
    }
    sluice_frame_rewind(inner);
    ASSERT_TRUE(filled_with(of_outer, 3000, 2));
    sluice_frame_rewind(outer);
    ASSERT_TRUE(filled_with(kept, 1000, 1));
  }
}

TEST_F(Frames, two_marks_at_one_place_are_one) {
  const sluice_mark first = sluice_frame_mark();
  const sluice_mark second = sluice_frame_mark();
  void* const block = frame_filled(10, 1, 1);
  sluice_frame_rewind(second);
  sluice_frame_rewind(first);
  EXPECT_EQ(frame_filled(10, 1, 1), block);
}

TEST_F(Frames, every_alignment_is_kept_also_larger_than_a_chunk) {
  for (size_t alignment = 1; alignment <= size_t{1} << 20; alignment *= 2) {
    for (const size_t size : {0u, 1u, 100u, 70'000u}) {
      frame_filled(1, 1, 0);
      unsigned char* const block = frame_filled(size, alignment, 1);
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % alignment, 0u) << alignment;
      EXPECT_TRUE(filled_with(block, size, 1));
    }
  }
}

TEST_F(Frames, bad_alignments_are_refused_with_einval) {
  for (const size_t alignment : {size_t{0}, size_t{3}, size_t{24}, ~size_t{0}, (size_t{1} << 63) + 1}) {
    errno = 0;
    EXPECT_EQ(sluice_frame_alloc(8, alignment), nullptr) << alignment;
    EXPECT_EQ(errno, EINVAL);
  }
}

TEST_F(Frames, what_cannot_be_had_is_null_with_enomem_and_takes_nothing) {
  unsigned char* const before = frame_filled(10, 1, 7);
  for (const size_t size : {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 64, SIZE_MAX / 2, SIZE_MAX / 4, SIZE_MAX / 8,
                            static_cast<size_t>(PTRDIFF_MAX), size_t{1} << 62, size_t{1} << 50}) {
    for (const size_t alignment : {size_t{1}, size_t{16}, size_t{4096}, size_t{1} << 40, size_t{1} << 63}) {
      size_t hidden = size;
      __asm__("" : "+r"(hidden));
      errno = 0;
      EXPECT_EQ(sluice_frame_alloc(hidden, alignment), nullptr) << size << ' ' << alignment;
      EXPECT_EQ(errno, ENOMEM);
    }
  }
  errno = 0;
  EXPECT_EQ(sluice_frame_alloc(SIZE_MAX, 1), nullptr);  // a constant
  EXPECT_EQ(sluice_frame_alloc(static_cast<size_t>(PTRDIFF_MAX), 1), nullptr);
  EXPECT_EQ(sluice_frame_alloc(1, size_t{1} << 63), nullptr);
  EXPECT_EQ(sluice_frame_alloc(1, size_t{1} << 62), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(frame_filled(1, 1, 7), before + 10);
  EXPECT_EQ(sluice_frame_grow(before, 10, SIZE_MAX), nullptr);
  EXPECT_EQ(sluice_frame_grow(before + 10, 1, SIZE_MAX), nullptr);
  EXPECT_EQ(sluice_frame_grow(before + 10, 1, SIZE_MAX - 20), nullptr);
  EXPECT_TRUE(filled_with(before, 11, 7));
  EXPECT_EQ(frame_filled(1, 1, 7), before + 11);
}

TEST_F(Frames, the_last_block_grows_and_shrinks_where_it_is) {
  unsigned char* const block = frame_filled(10, 16, 4);
  for (size_t size = 10; size < 20'000; size += 1111) {
    ASSERT_EQ(sluice_frame_grow(block, size, size + 1111), block);
    ASSERT_TRUE(filled_with(block, 10, 4));
  }
  const size_t size = 10 + 18 * 1111;
  EXPECT_EQ(sluice_frame_grow(block, size, 5), block);
  EXPECT_EQ(frame_filled(1, 1, 5), block + 5);
}

TEST_F(Frames, a_block_below_moves_when_it_grows_and_stays_when_it_shrinks) {
  unsigned char* const block = frame_filled(100, 64, 4);
  unsigned char* const above = frame_filled(100, 1, 5);
  EXPECT_EQ(sluice_frame_grow(block, 100, 50), block);
  auto* const moved = static_cast<unsigned char*>(sluice_frame_grow(block, 50, 3000));
  EXPECT_NE(moved, block);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(moved) % 64, 0u);
  EXPECT_TRUE(filled_with(moved, 50, 4));
  std::memset(moved, 6, 3000);
  EXPECT_TRUE(filled_with(above, 100, 5));
}

TEST_F(Frames, growing_nothing_is_allocating) {
  auto* const block = static_cast<unsigned char*>(sluice_frame_grow(nullptr, 0, 100));
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 16, 0u);
  std::memset(block, 1, 100);
  EXPECT_EQ(sluice_frame_grow(block, 100, 0), block);
}

TEST_F(Frames, a_block_that_grows_beyond_its_chunk_moves_and_keeps_its_contents) {
  unsigned char* block = frame_filled(1, 16, 9);
  size_t size = 1;
  while (size < 6'000'000) {
    const size_t larger = size * 3 / 2 + 1;
    block = static_cast<unsigned char*>(sluice_frame_grow(block, size, larger));
    ASSERT_NE(block, nullptr);
    ASSERT_TRUE(filled_with(block, size, 9));
    std::memset(block, 9, larger);
    size = larger;
  }
}

TEST_F(Frames, rewinding_over_many_chunks_keeps_what_lies_below) {
  for (int round = 0; round < 5; ++round) {
    unsigned char* const kept = frame_filled(50'000, 16, 1);
    const sluice_mark mark = sluice_frame_mark();
    unsigned char* const next = frame_filled(100, 16, 2);
    for (int i = 0; i < 300; ++i)
      frame_filled(20'000, 16, 3);
    frame_filled(3'000'000, 16, 3);
    sluice_frame_rewind(mark);
    ASSERT_TRUE(filled_with(kept, 50'000, 1));
    EXPECT_EQ(frame_filled(100, 16, 2), next);
  }
}

// The top chunk has room; a mark there is not reached from the one below by its addresses.
TEST_F(Frames, rewinding_to_marks_in_every_chunk_between_works_in_turn) {
  std::vector<sluice_mark> marks;
  std::vector<unsigned char*> blocks;
  for (unsigned i = 0; i < 200; ++i) {
    marks.push_back(sluice_frame_mark());
    blocks.push_back(frame_filled(15'000, 16, static_cast<unsigned char>(i)));
  }
  while (!marks.empty()) {
    sluice_frame_rewind(marks.back());
    marks.pop_back();
    blocks.pop_back();
    for (size_t i = 0; i < blocks.size(); i += 17)
      ASSERT_TRUE(filled_with(blocks[i], 15'000, static_cast<unsigned char>(i)));
  }
}

TEST_F(Frames, a_rewind_touches_nothing_that_came_from_malloc) {
  std::vector<std::unique_ptr<std::string>> strings;
  const sluice_mark mark = sluice_frame_mark();
  for (int i = 0; i < 1000; ++i) {
    frame_filled(700, 16, 0xee);
    strings.push_back(std::make_unique<std::string>(100, 'x'));
  }
  sluice_frame_rewind(mark);
  for (int i = 0; i < 1000; ++i)
    frame_filled(700, 16, 0xff);
  for (const auto& text : strings)
    ASSERT_EQ(*text, std::string(100, 'x'));
}

TEST_F(Frames, the_class_drops_what_was_allocated_in_it) {
  void* first;
  {
    sluice::frame frame;
    first = frame.allocate(100);
  }
  sluice::frame frame;
  EXPECT_EQ(frame.allocate(100), first);
  frame.rewind();
  EXPECT_EQ(frame.allocate(100), first);
  struct Point {
    int x, y;
  };
  const Point* const point = frame.create<Point>(1, 2);
  EXPECT_EQ(point->y, 2);
  size_t huge = SIZE_MAX;
  __asm__("" : "+r"(huge));
  EXPECT_THROW((void)frame.allocate(huge), std::bad_alloc);
}

TEST_F(Frames, containers_live_in_a_frame) {
  for (int round = 0; round < 3; ++round) {
    sluice::frame frame;
    std::pmr::vector<std::pmr::string> words(frame.resource());
    for (int i = 0; i < 5000; ++i)
      words.emplace_back(std::string(static_cast<size_t>(i % 100), 'a'));
    for (int i = 0; i < 5000; ++i)
      ASSERT_EQ(words[static_cast<size_t>(i)].size(), static_cast<size_t>(i % 100));
  }
}

TEST_F(Frames, the_resource_takes_back_the_last_block) {
  sluice::frame frame;
  std::pmr::memory_resource* const resource = frame.resource();
  void* const first = resource->allocate(100, 16);
  resource->deallocate(first, 100, 16);
  EXPECT_EQ(resource->allocate(100, 16), first);
  void* const second = resource->allocate(100, 16);
  resource->deallocate(first, 100, 16);  // not the last: it stays until the frame ends
  EXPECT_GT(resource->allocate(100, 16), second);
  EXPECT_TRUE(resource->is_equal(*resource));
  sluice::frame inner;
  EXPECT_FALSE(resource->is_equal(*inner.resource()));
}

// A container of the outer frame grows while an inner one is open.
TEST_F(Frames, an_outer_frames_memory_stays_when_the_inner_frame_ends) {
  sluice::frame outer;
  std::pmr::vector<int> numbers(outer.resource());
  numbers.push_back(-1);
  void* aligned = nullptr;
  for (int i = 0; i < 200; ++i) {
    sluice::frame inner;
    std::pmr::vector<int> scratch(1000, 7, inner.resource());
    for (int n = 0; n < 50; ++n)
      numbers.push_back(i * 50 + n);
    aligned = outer.resource()->allocate(300, 256);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(aligned) % 256, 0u);
    std::memset(aligned, 0x77, 300);
    scratch.resize(3000, 8);
    EXPECT_EQ(scratch[999], 7);
  }
  sluice::frame another;
  std::memset(another.allocate(60'000), 0xee, 60'000);
  for (int i = 0; i < 10'000; ++i)
    ASSERT_EQ(numbers[static_cast<size_t>(i) + 1], i);
  EXPECT_TRUE(filled_with(aligned, 300, 0x77));
}

TEST_F(Frames, an_exception_ends_the_frames_that_it_passes) {
  sluice::frame outer;
  void* const expected = [] {
    sluice::frame probe;
    return probe.allocate(100);
  }();
  try {
    sluice::frame inner;
    (void)inner.allocate(100'000);
    throw 1;
  } catch (int) {
  }
  sluice::frame again;
  EXPECT_EQ(again.allocate(100), expected);
}

TEST_F(Frames, each_thread_has_frame_memory_of_its_own) {
  unsigned char* const here = frame_filled(1000, 16, 1);
  std::vector<std::thread> threads;
  for (unsigned char t = 2; t < 6; ++t) {
    threads.emplace_back([t, here] {
      const sluice_mark mark = sluice_frame_mark();
      for (int i = 0; i < 200; ++i) {
        unsigned char* const block = frame_filled(2000, 16, t);
        EXPECT_NE(block, here);
        if (i % 50 == 0) sluice_frame_rewind(mark);
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_TRUE(filled_with(here, 1000, 1));
}

// In checked mode these stop the process; frame_checks_test.cpp has that.
TEST_F(Frames, a_mark_that_was_dropped_has_no_effect) {
  if (sluice_frame_mark().opaque[1] % 2 != 0)
    GTEST_SKIP() << "a checked build stops the process here: frame_checks_test.cpp";
  const sluice_mark outer = sluice_frame_mark();
  frame_filled(1000, 16, 1);
  const sluice_mark dropped = sluice_frame_mark();
  sluice_frame_rewind(outer);
  unsigned char* const block = frame_filled(100, 16, 2);
  sluice_frame_rewind(dropped);
  EXPECT_EQ(frame_filled(16, 16, 3), block + 112);
  EXPECT_TRUE(filled_with(block, 100, 2));
}

TEST_F(Frames, a_mark_of_another_thread_has_no_effect) {
  if (sluice_frame_mark().opaque[1] % 2 != 0)
    GTEST_SKIP() << "a checked build stops the process here: frame_checks_test.cpp";
  unsigned char* const block = frame_filled(100, 16, 2);
  const sluice_mark mark = sluice_frame_mark();
  frame_filled(100, 16, 2);
  std::thread([mark] {
    unsigned char* const own = frame_filled(100, 16, 1);
    sluice_frame_rewind(mark);
    EXPECT_EQ(frame_filled(16, 16, 1), own + 112);
  }).join();
  EXPECT_EQ(frame_filled(16, 16, 1), block + 224);
}

TEST_F(Frames, random_allocations_and_rewinds_keep_every_block_whole) {
  Random random(21);
  struct Level {
    sluice_mark mark;
    std::vector<Block> blocks;
  };
  std::vector<Level> levels;
  for (int i = 0; i < 100'000; ++i) {
    const uint64_t choice = random.below(1000);
    if (levels.empty() || choice < 30) {
      levels.push_back({sluice_frame_mark(), {}});
    } else if (choice < 50) {
      for (const Level& level : levels)
        for (const Block& block : level.blocks)
          ASSERT_TRUE(sluice::test::intact(block));
      const size_t to = random.below(levels.size());
      sluice_frame_rewind(levels[to].mark);
      levels.resize(to);
    } else {
      const size_t size = random.chance(1) ? random.below(400'000) : random.below(500);
      const size_t alignment = size_t{1} << random.below(random.chance(1) ? 19 : 7);
      const Block block{static_cast<unsigned char*>(sluice_frame_alloc(size, alignment)), size,
                        static_cast<unsigned char>(random.next())};
      ASSERT_NE(block.data, nullptr);
      ASSERT_EQ(reinterpret_cast<uintptr_t>(block.data) % alignment, 0u);
      sluice::test::fill(block);
      levels.back().blocks.push_back(block);
    }
  }
}

}  // namespace
