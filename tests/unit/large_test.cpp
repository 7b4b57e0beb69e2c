// Large spans: alignment, growth in place and by moving pages, and contents that survive both.
#include "heap/large.hpp"
#include "heap_calls.hpp"

#include <bit>
#include <cstring>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "base/options.hpp"
#include "heap/heap.hpp"
#include "os/memory.hpp"
#include "pages/free_spans.hpp"
#include "pages/region.hpp"
#include "random_blocks.hpp"

namespace {

using namespace sluice;

constexpr size_t mib = size_t{1} << 20;

// Each 8 bytes hold their own offset, so that a page that went astray shows.
void number(void* block, size_t size) {
  auto* words = static_cast<uint64_t*>(block);
  for (size_t i = 0; i < size / 8; ++i)
    words[i] = i * 0x9e3779b97f4a7c15u;
}

bool is_numbered(const void* block, size_t size) {
  const auto* words = static_cast<const uint64_t*>(block);
  for (size_t i = 0; i < size / 8; ++i)
    if (words[i] != i * 0x9e3779b97f4a7c15u) return false;
  return true;
}

bool is_zero(const void* block, size_t size) {
  const auto* bytes = static_cast<const char*>(block);
  return bytes[0] == 0 && std::memcmp(bytes, bytes + 1, size - 1) == 0;
}

// Takes spans until what lies right behind the block is in use, so that it cannot grow in place. They are as short as
// any that may be free there.
void obstruct(void* block, std::vector<void*>& obstacles) {
  const Unit* span = large::find(block);
  const Unit* behind = region::unit_at(region::index_of(span) + span->units);
  while (behind->use() == UnitState::None || FreeSpans::is_free(behind->use())) {
    obstacles.push_back(large::allocate(unit_size, unit_size, false));
    ASSERT_NE(obstacles.back(), nullptr);
  }
}

class LargeTest : public testing::Test {
 protected:
  void SetUp() override { heap::free(test::allocate(1)); }
  void TearDown() override {
    const char* wrong = heap::validate().what;
    EXPECT_EQ(wrong, nullptr) << wrong;
  }
};

TEST_F(LargeTest, sizes_from_a_page_over_the_small_ones_to_many_MiB_are_usable_to_the_last_byte) {
  std::vector<std::pair<char*, size_t>> blocks;
  for (size_t size = max_small_size + 1; size <= 64 * mib; size = size * 5 / 4 + 1) {
    auto* block = static_cast<char*>(large::allocate(size, unit_size, false));
    ASSERT_NE(block, nullptr);
    const size_t usable = large::usable_size(*large::find(block));
    EXPECT_GE(usable, size);
    EXPECT_LT(usable, size + os::page_size());
    block[0] = block[usable - 1] = 'x';
    blocks.emplace_back(block, size);
  }
  EXPECT_EQ(heap::validate().what, nullptr);
  for (const auto& [block, size] : blocks)
    large::give_back(large::claim(block));
}

TEST_F(LargeTest, alignment_holds_up_to_64_MiB) {
  for (size_t alignment = 1; alignment <= 64 * mib; alignment *= 2) {
    for (const size_t size : {max_small_size + 1, mib, 3 * mib + 5}) {
      void* block = large::allocate(size, alignment, false);
      ASSERT_NE(block, nullptr) << alignment;
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % alignment, 0u);
      static_cast<char*>(block)[size - 1] = 1;
      large::give_back(large::claim(block));
    }
  }
}

TEST_F(LargeTest, only_the_first_byte_of_a_live_span_finds_it) {
  auto* block = static_cast<char*>(large::allocate(3 * unit_size, unit_size, false));
  EXPECT_NE(large::find(block), nullptr);
  EXPECT_EQ(large::find(block + 1), nullptr);
  EXPECT_EQ(large::find(block + unit_size), nullptr);
  EXPECT_EQ(large::claim(block + 1), nullptr);
  EXPECT_EQ(large::claim(block + unit_size), nullptr);
  Unit* const span = large::claim(block);
  ASSERT_NE(span, nullptr);
  EXPECT_EQ(large::claim(block), nullptr);
  large::give_back(span);
  EXPECT_EQ(large::claim(&block), nullptr);
  EXPECT_EQ(large::claim(nullptr), nullptr);
  EXPECT_EQ(large::find(block), nullptr);
  EXPECT_EQ(large::find(&block), nullptr);
  EXPECT_EQ(large::find(nullptr), nullptr);
}

TEST_F(LargeTest, a_zeroed_span_is_zero_after_dirty_reuse) {
  void* block = large::allocate(mib, unit_size, false);
  std::memset(block, 0xff, mib);
  large::give_back(large::claim(block));
  void* again = large::allocate(mib, unit_size, true);
  EXPECT_EQ(again, block) << "the dirty pages were to be used again";
  EXPECT_TRUE(is_zero(again, mib));
  large::give_back(large::claim(again));
}

TEST_F(LargeTest, zeroed_spans_that_were_moved_away_from_read_as_zero) {
  void* block = large::allocate(2 * mib, unit_size, false);
  number(block, 2 * mib);
  void* moved = large::move(large::find(block), 9 * mib);
  if (moved == nullptr) GTEST_SKIP() << "this system does not move pages";
  EXPECT_TRUE(is_numbered(moved, 2 * mib));
  EXPECT_TRUE(is_zero(block, 2 * mib)) << "the region takes what was moved away from for clean";
  EXPECT_EQ(large::find(block), nullptr);
  large::give_back(large::claim(moved));
}

TEST_F(LargeTest, growth_keeps_the_contents_whether_in_place_or_moved) {
  for (size_t size : {max_small_size + 1, 200'000ul, mib, 5 * mib}) {
    void* block = test::allocate(size);
    std::vector<void*> obstacles;
    number(block, size);
    for (int step = 0; step < 12 && size <= 64 * mib; ++step) {
      const bool must_move = step % 2 == 0;
      if (must_move) obstruct(block, obstacles);
      const size_t larger = size * 3;
      void* grown = heap::reallocate(block, larger);
      ASSERT_NE(grown, nullptr);
      ASSERT_TRUE(is_numbered(grown, size)) << size << " to " << larger;
      EXPECT_TRUE(!must_move || grown != block);
      block = grown;
      size = larger;
      number(block, size);
      ASSERT_EQ(heap::validate().what, nullptr);
    }
    heap::free(block);
    for (void* obstacle : obstacles)
      heap::free(obstacle);
  }
}

TEST_F(LargeTest, growth_in_small_steps_is_told_exactly_and_never_reaches_the_next_unit) {
  constexpr size_t first = max_small_size + 1;
  void* const other = heap::allocate(first);
  void* block = heap::allocate(first);
  for (size_t size = first; size <= 3 * unit_size; size += 4093) {
    block = heap::reallocate(block, size);
    ASSERT_NE(block, nullptr);
    const Unit* const span = large::find(block);
    ASSERT_NE(span, nullptr) << size;
    EXPECT_EQ(large::requested_bytes(*span), size);
    EXPECT_EQ(span->units, large::units_for(size + large::lead_of(*span)));
    EXPECT_GE(heap::usable_size(block), size);
  }
  for (size_t size = 3 * unit_size; size > first; size -= 4093) {
    ASSERT_EQ(heap::reallocate(block, size), block);
    EXPECT_EQ(large::requested_bytes(*large::find(block)), size);
    EXPECT_EQ(large::find(block)->units, large::units_for(size + large::lead_of(*large::find(block))));
  }
  block = heap::reallocate(block, max_small_size);
  EXPECT_EQ(large::find(block), nullptr) << "a small one has a class";
  heap::free(block);
  heap::free(other);
  EXPECT_EQ(heap::validate().what, nullptr);
}

// A block that is large for the sake of its alignment alone.
TEST_F(LargeTest, an_aligned_block_that_shrinks_to_a_few_bytes_leaves_its_unit) {
  void* const block = heap::allocate_aligned(2 * unit_size, 60'000);
  ASSERT_NE(large::find(block), nullptr);
  void* const shrunk = heap::reallocate(block, 10);
  EXPECT_EQ(large::find(shrunk), nullptr);
  EXPECT_EQ(large::find(block), nullptr);
  heap::free(shrunk);
}

TEST_F(LargeTest, growth_in_place_needs_free_space_behind) {
  auto* block = static_cast<char*>(large::allocate(4 * mib, unit_size, false));
  ASSERT_TRUE(large::resize_in_place(large::find(block), mib));
  EXPECT_EQ(large::usable_size(*large::find(block)), mib);
  auto* const behind = static_cast<char*>(large::allocate(3 * mib, unit_size, false));
  const bool in_the_way = behind >= block && behind < block + 2 * mib;
  EXPECT_EQ(large::resize_in_place(large::find(block), 2 * mib), !in_the_way);
  large::give_back(large::claim(behind));
  number(block, mib);
  EXPECT_TRUE(large::resize_in_place(large::find(block), 2 * mib));
  EXPECT_TRUE(is_numbered(block, mib));
  large::give_back(large::claim(block));
}

TEST_F(LargeTest, shrinking_keeps_the_place_and_gives_the_rest_back) {
  auto* block = static_cast<char*>(test::allocate(16 * mib));
  number(block, 16 * mib);
  for (const size_t size : {12 * mib, 4 * mib + 1, mib, max_small_size + 1}) {
    EXPECT_EQ(heap::reallocate(block, size), block);
    EXPECT_TRUE(is_numbered(block, size));
    EXPECT_GE(heap::usable_size(block), size);
    EXPECT_LT(heap::usable_size(block), size + os::page_size());
    EXPECT_EQ(heap::validate().what, nullptr);
  }
  char* small = static_cast<char*>(heap::reallocate(block, 1000));
  EXPECT_NE(small, block) << "a small block does not keep a span";
  EXPECT_TRUE(is_numbered(small, 1000));
  heap::free(small);
}

TEST_F(LargeTest, a_moved_span_can_be_moved_shrunk_grown_and_freed_like_any_other) {
  void* block = test::allocate(mib);
  number(block, mib);
  std::vector<void*> obstacles;
  for (size_t size = 2 * mib; size <= 40 * mib; size += 7 * mib) {
    obstruct(block, obstacles);
    block = heap::reallocate(block, size);
    ASSERT_TRUE(is_numbered(block, mib));
    ASSERT_EQ(heap::reallocate(block, size - mib / 2), block);
    ASSERT_EQ(heap::validate().what, nullptr);
  }
  heap::free(block);
  for (void* obstacle : obstacles)
    heap::free(obstacle);
  void* zeroed = heap::allocate_zeroed(1, 40 * mib);
  EXPECT_TRUE(is_zero(zeroed, 40 * mib));
  heap::free(zeroed);
}

TEST_F(LargeTest, impossible_sizes_fail_without_a_trace) {
  const size_t sizes[] = {size_t{PTRDIFF_MAX}, size_t{PTRDIFF_MAX} + 1, SIZE_MAX, SIZE_MAX - unit_size,
                          size_t{1} << 46};
  for (const size_t size : sizes) {
    EXPECT_EQ(large::allocate(size, 1, false), nullptr) << size;
    EXPECT_EQ(large::allocate(mib, std::bit_floor(size), false), nullptr) << size;
  }
  void* block = large::allocate(mib, 1, false);
  for (const size_t size : sizes) {
    EXPECT_FALSE(large::resize_in_place(large::find(block), size)) << size;
    EXPECT_EQ(large::move(large::find(block), size), nullptr) << size;
  }
  large::give_back(large::claim(block));
}

// Where a block begins in its span.
size_t lead_of(const void* block) {
  return large::lead_of(*large::find(block));
}

// A block of `size` bytes that does not begin its span. Those before it are kept until it is there.
void* allocate_with_lead(size_t size) {
  std::vector<void*> others;
  void* block = test::allocate(size);
  for (; lead_of(block) == 0 && others.size() < 64; block = test::allocate(size))
    others.push_back(block);
  for (void* other : others)
    heap::free(other);
  EXPECT_NE(lead_of(block), 0u);
  return block;
}

class LeadTest : public LargeTest {
 protected:
  void SetUp() override {
    if (!large::has_leads) GTEST_SKIP() << "secure builds need the ends of blocks";
    LargeTest::SetUp();
  }
};

TEST_F(LeadTest, blocks_begin_at_different_lines_and_take_no_page_more) {
  constexpr size_t page = 4096;
  std::vector<void*> blocks;
  std::set<size_t> places;
  for (size_t i = 0; i < 200; ++i) {
    const size_t size = max_small_size + 1 + i * 5003;
    void* const block = test::allocate(size);
    const size_t lead = reinterpret_cast<uintptr_t>(block) % page;
    EXPECT_EQ(lead, lead_of(block));
    EXPECT_EQ(lead % large::line_size, 0u);
    EXPECT_EQ((lead + size + page - 1) / page, (size + page - 1) / page) << size;
    EXPECT_EQ((reinterpret_cast<uintptr_t>(block) + heap::usable_size(block)) % os::page_size(), 0u);
    std::memset(block, 1, heap::usable_size(block));
    places.insert(lead);
    blocks.push_back(block);
  }
  EXPECT_GT(places.size(), 30u);
  for (void* block : blocks)
    heap::free(block);
}

TEST_F(LeadTest, the_same_span_serves_at_the_same_line) {
  void* const block = allocate_with_lead(100'000);
  heap::free(block);
  EXPECT_EQ(test::allocate(100'000), block);
  heap::free(block);
}

TEST_F(LeadTest, aligned_blocks_and_those_of_whole_pages_have_none) {
  std::vector<void*> blocks;
  for (int i = 0; i < 16; ++i) {
    heap::free(allocate_with_lead(100'000));  // so that recent spans serve, too
    for (size_t alignment = 128; alignment <= unit_size; alignment *= 2) {
      blocks.push_back(heap::allocate_aligned(alignment, 100'000));
      EXPECT_EQ(reinterpret_cast<uintptr_t>(blocks.back()) % alignment, 0u) << alignment;
    }
    blocks.push_back(test::allocate(25 * 4096));
    EXPECT_EQ(lead_of(blocks.back()), 0u);
  }
  for (void* block : blocks)
    heap::free(block);
}

TEST_F(LeadTest, what_lies_before_the_block_is_none) {
  auto* const block = static_cast<char*>(allocate_with_lead(100'000));
  EXPECT_EQ(large::find(block - lead_of(block)), nullptr);
  EXPECT_EQ(large::claim(block - large::line_size), nullptr);
  EXPECT_EQ(large::find(block + large::line_size), nullptr);
  heap::free(block);
}

// To each size near the end of its span, by either way: it stays within, and its neighbour behind is whole.
TEST_F(LeadTest, growth_to_the_end_of_a_span_counts_the_lead) {
  std::vector<void*> obstacles;
  for (const size_t before_end : {0, 1, 63, 64, 1000, 2000, 4000}) {
    void* block = allocate_with_lead(100'000);
    obstruct(block, obstacles);
    const size_t lead = lead_of(block);
    number(block, 100'000);
    const size_t size = 2 * unit_size - before_end;
    const bool fits = lead + size <= 2 * unit_size;
    EXPECT_EQ(large::resize_within(unit_index_of(block), size), fits) << before_end;
    EXPECT_EQ(large::resize_in_place(large::find(block), size), fits);
    void* const grown = heap::reallocate(block, size);
    EXPECT_EQ(grown == block, fits);
    EXPECT_LE(lead_of(grown) + heap::usable_size(grown), large::find(grown)->units * unit_size);
    EXPECT_TRUE(is_numbered(grown, 100'000));
    heap::free(grown);
  }
  for (void* obstacle : obstacles)
    heap::free(obstacle);
}

TEST_F(LeadTest, pages_that_move_keep_it) {
  std::vector<void*> obstacles;
  for (size_t end = 0; end <= 4096; end += 512) {
    void* block = allocate_with_lead(mib + 100);
    number(block, mib + 100);
    obstruct(block, obstacles);
    const size_t lead = lead_of(block);
    // With an eighth more, which is address space only, whole units, or a little less.
    const size_t size = (24 * unit_size - end) / 9 * 8;
    void* const moved = large::move(large::find(block), size);
    ASSERT_NE(moved, nullptr);
    EXPECT_EQ(lead_of(moved), lead);
    EXPECT_TRUE(is_numbered(moved, mib + 100));
    EXPECT_LE(lead + size + size / 8, large::find(moved)->units * unit_size);
    heap::free(moved);
  }
  for (void* obstacle : obstacles)
    heap::free(obstacle);
}

TEST_F(LeadTest, zeroed_blocks_read_as_zero_to_their_end) {
  void* const dirty = allocate_with_lead(100'000);
  std::memset(dirty, 0xab, heap::usable_size(dirty));
  heap::free(dirty);
  void* const zeroed = heap::allocate_zeroed(1, 99'000);
  EXPECT_TRUE(is_zero(zeroed, heap::usable_size(zeroed)));
  heap::free(zeroed);
}

}  // namespace
