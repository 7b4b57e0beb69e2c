// Frames as programs use them, in C and in C++, under the preload. Open it when memory of a frame overlaps, is lost
// before its rewind, or is not dropped by it.
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <memory_resource>
#include <sluice/frame.hpp>
#include <string>
#include <unordered_map>
#include <vector>

#include "arena_subject.hpp"

namespace {

using namespace subject;

struct Block {
  void* address;
  size_t size;
  uint64_t seed;
};

bool intact(const std::vector<Block>& blocks, size_t from = 0) {
  return std::all_of(blocks.begin() + static_cast<ptrdiff_t>(from), blocks.end(),
                     [](const Block& each) { return holds(each.address, each.size, each.seed); });
}

Block take(Sequence& random, size_t most) {
  const size_t align = size_t{1} << random.below(13);
  const Block block{nullptr, random.below(most), random.next()};
  void* const address = sluice_frame_alloc(block.size, align);
  EXPECT_NE(address, nullptr);
  EXPECT_TRUE(is_aligned(address, align));
  fill(address, block.size, block.seed);
  return {address, block.size, block.seed};
}

TEST(Frame, NestedMarksDropWhatCameAfterThemAndNothingElse) {
  Sequence random(1);
  struct Level {
    sluice_mark mark;
    size_t blocks;
  };
  std::vector<Level> levels;
  std::vector<Block> blocks;
  const sluice_mark bottom = sluice_frame_mark();
  for (int step = 0; step < 20000; ++step) {
    const size_t what = random.below(100);
    if (what < 12 && levels.size() < 40) {
      levels.push_back({sluice_frame_mark(), blocks.size()});
    } else if (what < 24 && !levels.empty()) {
      const size_t to = random.below(4) == 0 ? random.below(levels.size()) : levels.size() - 1;
      ASSERT_TRUE(intact(blocks, levels[to].blocks));
      sluice_frame_rewind(levels[to].mark);
      blocks.resize(levels[to].blocks);
      levels.resize(to + random.below(2));  // a mark may be rewound to more than once
    } else {
      blocks.push_back(take(random, what == 99 ? 300000 : 300));
    }
  }
  ASSERT_TRUE(intact(blocks));
  sluice_frame_rewind(bottom);
}

TEST(Frame, MemoryIsUsedAgainAfterARewind) {
  const sluice_mark mark = sluice_frame_mark();
  void* const first = sluice_frame_alloc(100, 16);
  const size_t before = resident_bytes();
  for (int round = 0; round < 2000; ++round) {
    sluice_frame_rewind(mark);
    ASSERT_EQ(sluice_frame_alloc(100, 16), first);
    for (int i = 0; i < 3000; ++i)
      memset(sluice_frame_alloc(100, 16), 1, 100);
  }
  sluice_frame_rewind(mark);
  EXPECT_LT(resident_bytes(), before + 2 * MiB);
}

TEST(Frame, LargeRequestsGoBackAtTheRewind) {
  const size_t before = resident_bytes();
  for (int round = 0; round < 20; ++round) {
    const sluice_mark mark = sluice_frame_mark();
    for (const size_t size : {64 * KiB, 100 * KiB, MiB, 40 * MiB}) {
      void* const block = sluice_frame_alloc(size, 4096);
      ASSERT_NE(block, nullptr);
      ASSERT_TRUE(is_aligned(block, 4096));
      memset(block, 1, size);
    }
    sluice_frame_rewind(mark);
  }
  EXPECT_LT(resident_bytes(), before + 200 * MiB);
}

TEST(Frame, ImpossibleRequestsFailAndChangeNothing) {
  const sluice_mark mark = sluice_frame_mark();
  void* const block = sluice_frame_alloc(100, 16);
  fill(block, 100, 1);
  for (const size_t size : {SIZE_MAX, SIZE_MAX - 100, SIZE_MAX / 2, SIZE_MAX / 8, size_t{1} << 50}) {
    errno = 0;
    EXPECT_EQ(sluice_frame_alloc(hide(size), 16), nullptr);
    EXPECT_EQ(errno, ENOMEM);
    errno = 0;
    EXPECT_EQ(sluice_frame_grow(block, 100, hide(size)), nullptr);
    EXPECT_EQ(errno, ENOMEM);
  }
  EXPECT_EQ(sluice_frame_alloc(16, size_t{1} << 63), nullptr);
  for (const size_t align : {size_t{0}, size_t{3}, size_t{24}, SIZE_MAX}) {
    errno = 0;
    EXPECT_EQ(sluice_frame_alloc(16, hide(align)), nullptr);
    EXPECT_EQ(errno, EINVAL);
  }
  EXPECT_TRUE(holds(block, 100, 1));
  EXPECT_EQ(static_cast<char*>(sluice_frame_alloc(4, 4)), static_cast<char*>(block) + 100);
  sluice_frame_rewind(mark);
}

TEST(Frame, NothingHasAnAddressToo) {
  const sluice_mark mark = sluice_frame_mark();
  EXPECT_NE(sluice_frame_alloc(0, 1), nullptr);
  EXPECT_NE(sluice_frame_grow(nullptr, 0, 0), nullptr);
  sluice_frame_rewind(mark);
}

TEST(Frame, TheLastBlockGrowsInPlaceAndOthersMove) {
  const sluice_mark mark = sluice_frame_mark();
  auto* text = static_cast<char*>(sluice_frame_alloc(1, 1));
  char* const start = text;
  fill(text, 1, 4);
  for (size_t size = 2; size < 2000; ++size) {
    text = static_cast<char*>(sluice_frame_grow(text, size - 1, size));
    ASSERT_EQ(text, start);
    text[size - 1] = static_cast<char>(payload_byte(4, size - 1));
  }
  EXPECT_EQ(sluice_frame_grow(text, 1999, 1000), start);
  void* const other = sluice_frame_alloc(10, 64);
  void* const moved = sluice_frame_grow(text, 1000, 5000);
  EXPECT_NE(moved, start);
  EXPECT_TRUE(holds(moved, 1000, 4));
  void* const far_larger = sluice_frame_grow(moved, 5000, 3 * MiB);
  EXPECT_TRUE(holds(far_larger, 1000, 4));
  memset(far_larger, 1, 3 * MiB);
  void* const aligned = sluice_frame_grow(other, 10, 1000);
  EXPECT_TRUE(is_aligned(aligned, 64));
  sluice_frame_rewind(mark);
}

TEST(Frame, ARewindTouchesNothingThatCameFromMalloc) {
  const sluice_mark mark = sluice_frame_mark();
  const sluice::scope scope;
  std::vector<Block> blocks;
  for (size_t i = 0; i < 3000; ++i) {
    blocks.push_back({malloc(i), i, i});
    fill(blocks.back().address, i, i);
    memset(sluice_frame_alloc(i, 8), 0xee, i);
  }
  sluice_frame_rewind(mark);
  const sluice::frame other;
  for (size_t i = 0; i < 3000; ++i)
    memset(sluice_frame_alloc(i, 8), 0xdd, i);
  EXPECT_TRUE(intact(blocks));
  for (const Block& each : blocks)
    free(each.address);
}

TEST(Frame, ServesContainersAsAMemoryResource) {
  for (int round = 0; round < 50; ++round) {
    sluice::frame frame;
    std::pmr::vector<std::pmr::string> words(frame.resource());
    std::pmr::map<int, std::pmr::string> by_number(frame.resource());
    std::pmr::unordered_map<std::pmr::string, int> by_name(frame.resource());
    std::pmr::list<int> numbers(frame.resource());
    for (int i = 0; i < 2000; ++i) {
      words.emplace_back(static_cast<size_t>(i % 100), static_cast<char>('a' + i % 26));
      by_number.emplace(i, words.back());
      by_name.emplace(std::to_string(i), i);
      numbers.push_back(i);
    }
    for (int i = 0; i < 2000; ++i) {
      ASSERT_EQ(words[static_cast<size_t>(i)], by_number.at(i));
      ASSERT_EQ(by_name.at(std::pmr::string(std::to_string(i))), i);
    }
  }
}

TEST(Frame, AnOuterFrameAllocatesWhileAnInnerOneIsOpen) {
  sluice::frame outer;
  std::vector<Block> blocks;
  for (size_t round = 0; round < 100; ++round) {
    sluice::frame inner;
    memset(inner.allocate(100), 1, 100);
    const size_t size = round * 97 % 9000;
    blocks.push_back({outer.allocate(size, 64), size, round});
    ASSERT_TRUE(is_aligned(blocks.back().address, 64));
    fill(blocks.back().address, size, round);
    memset(inner.allocate(1000), 2, 1000);
  }
  sluice::frame last;
  memset(last.allocate(100000), 3, 100000);
  EXPECT_TRUE(intact(blocks));
}

TEST(Frame, ThrowsBadAllocWhenThereIsNoMemory) {
  sluice::frame frame;
  EXPECT_THROW((void)frame.allocate(hide(SIZE_MAX / 2)), std::bad_alloc);
  {
    const sluice::frame inner;
    EXPECT_THROW((void)frame.allocate(hide(SIZE_MAX / 2)), std::bad_alloc);
  }
  EXPECT_NE(frame.create<int>(4), nullptr);
}

TEST(Frame, RewindGoesOnInTheSameFrame) {
  sluice::frame frame;
  const int* const first = frame.create<int>(1);
  for (int i = 0; i < 100000; ++i)
    (void)frame.create<long>(i);
  frame.rewind();
  EXPECT_EQ(frame.create<int>(2), first);
}

void throw_from(int depth) {
  sluice::frame frame;
  std::pmr::string text(static_cast<size_t>(depth) * 100, 'x', frame.resource());
  if (depth == 0) throw std::runtime_error("thrown");
  throw_from(depth - 1);
}

TEST(Frame, ExceptionsRewind) {
  const sluice::frame frame;
  const sluice_mark before = sluice_frame_mark();
  for (int i = 0; i < 500; ++i)
    EXPECT_THROW(throw_from(30), std::runtime_error);
  const sluice_mark after = sluice_frame_mark();
  EXPECT_EQ(before.opaque[0], after.opaque[0]);
}

TEST(Frame, TheChildOfAForkHasTheParentsFrames) {
  sluice::frame frame;
  std::vector<Block> blocks;
  Sequence random(5);
  const auto take_some = [&blocks, &random] {
    for (int i = 0; i < 1000; ++i)
      blocks.push_back(take(random, 400));
  };
  take_some();
  EXPECT_EQ(exit_status_of_child([&] {
              if (!intact(blocks)) return 1;
              {
                const sluice::frame inner;
                take_some();
                if (!intact(blocks)) return 2;
                blocks.resize(1000);
              }
              on_another_thread([] {
                const sluice::frame others;
                for (int i = 0; i < 3000; ++i)
                  memset(sluice_frame_alloc(100, 8), 1, 100);
              });
              if (!intact(blocks)) return 3;
              frame.rewind();
              return 0;
            }),
            0);
  EXPECT_TRUE(intact(blocks));
}

// What checked mode stops; without it these are the program's own misfortune, and end otherwise or not at all.
bool is_checked() {
  return (sluice_frame_mark().opaque[1] & 1) != 0;
}

TEST(FrameChecks, ARewindPastAnInnerFrameStopsTheProcess) {
  if (!is_checked()) GTEST_SKIP() << "not in checked mode";
  EXPECT_EXIT(
      {
        sluice::frame outer;
        (void)outer.allocate(100);
        sluice::frame inner;
        outer.rewind();
      },
      testing::KilledBySignal(SIGABRT), "past an inner one that is still open");
}

TEST(FrameChecks, ARewindToADroppedMarkStopsTheProcess) {
  if (!is_checked()) GTEST_SKIP() << "not in checked mode";
  EXPECT_EXIT(
      {
        const sluice_mark outer = sluice_frame_mark();
        (void)sluice_frame_alloc(100, 8);
        const sluice_mark inner = sluice_frame_mark();
        sluice_frame_rewind(outer);
        sluice_frame_rewind(inner);
      },
      testing::KilledBySignal(SIGABRT), "to a mark that has been dropped");
}

TEST(FrameChecks, ARewindOnAnotherThreadStopsTheProcess) {
  if (!is_checked()) GTEST_SKIP() << "not in checked mode";
  EXPECT_EXIT(
      {
        const sluice_mark mark = sluice_frame_mark();
        on_another_thread([mark] { sluice_frame_rewind(mark); });
        on_another_thread([mark] {
          (void)sluice_frame_alloc(10, 8);
          sluice_frame_rewind(mark);
        });
      },
      testing::KilledBySignal(SIGABRT), "on another thread than its own");
}

TEST(FrameChecks, WhatARewindDropsIsFilled) {
  if (!is_checked()) GTEST_SKIP() << "not in checked mode";
  sluice::frame frame;
  auto* const block = static_cast<unsigned char*>(frame.allocate(100));
  memset(block, 1, 100);
  frame.rewind();
  EXPECT_TRUE(is_filled_with(hide(block), 100, 0xdd));
}

}  // namespace
