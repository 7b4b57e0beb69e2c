// Region: spans never overlap, are aligned, read as zero when called clean, join when they come back, and run out with
// grace. The range is small, so that its end is near. No thread cache is made here: the region stands alone.
#include "pages/region.hpp"

#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "base/options.hpp"
#include "os/memory.hpp"
#include "pages/free_spans.hpp"
#include "pages/region_state.hpp"
#include "random_blocks.hpp"

namespace {

using namespace sluice;
using test::Random;

constexpr size_t range_bytes = size_t{128} << 20;

struct Span {
  size_t index;
  size_t units;
  bool dirty;  // it may read as other than zero
};

class RegionTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    options.reserve = range_bytes;
    options.retain = size_t{8} << 20;
    options.purge_delay = 3'600'000;
    ASSERT_TRUE(region::initialize());
    make_reserve();
    begin_epoch();
  }

  // Free memory is one clean span, whichever tests came before.
  void SetUp() override {
    used_.assign(region_range_units, false);
    (void)region::purge_all(0);
  }

  void TearDown() override {
    while (!spans_.empty())
      give_back(spans_.size() - 1);
    check();
    EXPECT_EQ(in_use_units(), 0u);
  }

  // What the heap needs is noted from the first free on that leaves much: however long the machine has run, no purge
  // delay is over in a test.
  static void begin_epoch() {
    constexpr size_t much = 96;  // units
    bool clean = false;
    const size_t index = region::allocate(much, 1, UnitState::Large, &clean);
    std::memset(region::address_of(index), 1, much * unit_size);  // what is not in memory is not missed
    region::give_back(index, much, false);
    (void)region::purge_all(0);
  }

  // The first request has the reserve for signal handlers made: it is not to come between the spans of a test.
  static void make_reserve() {
    bool clean = false;
    region::give_back(region::allocate(1, 1, UnitState::Large, &clean), 1, clean);
  }

  // Everything that must hold at any time.
  void check() {
    const MutexLock held(region::mutex());
    const char* wrong = region::validate();
    ASSERT_EQ(wrong, nullptr) << wrong;
    const region::Figures f = region::figures();
    const size_t used = (in_use_units() + metadata_units()) * unit_size;
    ASSERT_EQ(f.free_clean_bytes + f.free_dirty_bytes + used, f.committed_bytes);
    ASSERT_LE(f.committed_bytes, f.reserved_bytes);
    ASSERT_EQ(f.committed_bytes, (region::limit() - region::first_index()) * unit_size);
  }

  static region::Figures figures() {
    const MutexLock held(region::mutex());
    return region::figures();
  }

  size_t in_use_units() const { return static_cast<size_t>(std::count(used_.begin(), used_.end(), true)); }

  // Metadata is never given back.
  static size_t metadata_units() {
    size_t units = 0;
    for (size_t i = region::first_index(); i < region::limit(); i += region::unit_at(i)->units)
      if (region::unit_at(i)->use() == UnitState::Meta) units += region::unit_at(i)->units;
    return units;
  }

  // Takes a span and compares it with the model. False when there is no memory.
  bool take(size_t units, size_t align_units = 1) {
    bool clean = false;
    const size_t index = region::allocate(units, align_units, UnitState::Large, &clean);
    if (index == unit_index_none) return false;
    EXPECT_GE(index, region::first_index());
    EXPECT_LE(index + units, region::limit());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(region::address_of(index)) % (align_units * unit_size), 0u);
    occupy(index, units);
    EXPECT_TRUE(!clean || reads_as_zero(index, units)) << index << " +" << units;
    spans_.push_back({index, units, !clean});
    return true;
  }

  void occupy(size_t index, size_t units) {
    for (size_t u = index; u < index + units; ++u) {
      ASSERT_FALSE(used_[u]) << "unit " << u << " is handed out twice";
      used_[u] = true;
    }
  }

  static bool reads_as_zero(size_t index, size_t units) {
    const char* first = region::address_of(index);
    return first[0] == 0 && std::memcmp(first, first + 1, units * unit_size - 1) == 0;
  }

  void write(Span& span) {
    span.dirty = true;
    for (size_t at = 0; at < span.units * unit_size; at += 2048)
      region::address_of(span.index)[at] = 'x';
  }

  void forget_units(size_t index, size_t units) {
    for (size_t u = index; u < index + units; ++u)
      used_[u] = false;
  }

  // Gives back the span at a position of `spans_`.
  void give_back(size_t position) {
    const Span span = spans_[position];
    spans_[position] = spans_.back();
    spans_.pop_back();
    forget_units(span.index, span.units);
    region::give_back(span.index, span.units, !span.dirty);
  }

  std::vector<Span> spans_;
  std::vector<bool> used_;
};

TEST_F(RegionTest, a_span_is_committed_and_can_be_written_to_its_last_byte) {
  ASSERT_TRUE(take(3));
  std::memset(region::address_of(spans_[0].index), 7, 3 * unit_size);
  spans_[0].dirty = true;
  check();
}

TEST_F(RegionTest, neighbours_that_come_back_in_any_order_join_into_one_span) {
  const size_t order[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  for (const auto& positions : order) {
    bool clean = false;
    const size_t whole = region::allocate(9, 1, UnitState::Large, &clean);
    ASSERT_NE(whole, unit_index_none);
    region::give_back(whole, 9, clean);
    size_t at[3];
    for (size_t& index : at)
      index = region::allocate(3, 1, UnitState::Large, &clean);
    std::sort(std::begin(at), std::end(at));
    for (const size_t position : positions)
      region::give_back(at[position], 3, false);
    check();
    const size_t again = region::allocate(9, 1, UnitState::Large, &clean);
    EXPECT_EQ(again, at[0]);
    region::give_back(again, 9, false);
  }
}

TEST_F(RegionTest, alignment_up_to_64_MiB_holds_and_what_is_skipped_is_free) {
  for (size_t align = 1; align <= 1024; align *= 2) {
    if (!take(1, align)) {
      EXPECT_GE(align * unit_size, range_bytes / 4) << "no memory though the range has room";
      continue;
    }
    check();
    give_back(spans_.size() - 1);
    check();
  }
}

// Recent spans are short ones.
TEST_F(RegionTest, what_aligned_spans_leave_serves_their_like_again) {
  for (const size_t units : {size_t{2}, size_t{8}, size_t{32}, size_t{50}}) {
    constexpr size_t align = 32;
    (void)region::purge_all(0);
    std::set<size_t> first;
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(take(units, align));
      write(spans_.back());
      first.insert(spans_.back().index);
    }
    const size_t committed = figures().committed_bytes;
    Random random(units);
    for (int i = 0; i < 200; ++i) {
      give_back(random.below(spans_.size()));
      ASSERT_TRUE(take(units, align));
      EXPECT_TRUE(spans_.back().dirty) << units << " units: not in memory";
      EXPECT_EQ(first.count(spans_.back().index), 1u) << units << " units";
      check();
    }
    EXPECT_EQ(figures().committed_bytes, committed);
    while (!spans_.empty())
      give_back(spans_.size() - 1);
  }
}

TEST_F(RegionTest, an_aligned_span_that_was_given_back_last_serves_and_leaves_the_other_recent_ones_alone) {
  make_reserve();
  ASSERT_TRUE(take(2, 32));
  ASSERT_TRUE(take(3));
  const size_t aligned = spans_[0].index;
  for (Span& span : spans_)
    write(span);
  give_back(0);
  give_back(0);
  ASSERT_TRUE(take(2, 32));
  EXPECT_EQ(spans_[0].index, aligned);
  const size_t other = region::allocate_recent(3, UnitState::Large);
  EXPECT_NE(other, unit_index_none) << "joined with its neighbours";
  if (other != unit_index_none) region::give_back(other, 3, false);
}

TEST_F(RegionTest, an_aligned_span_is_cut_out_of_the_middle_of_a_longer_one) {
  (void)region::purge_all(0);
  ASSERT_TRUE(take(100));
  const Span whole = spans_[0];
  write(spans_[0]);
  give_back(0);
  ASSERT_TRUE(take(32, 32));
  EXPECT_TRUE(spans_[0].dirty);
  EXPECT_GE(spans_[0].index, whole.index);
  EXPECT_LE(spans_[0].index + 32, whole.index + whole.units);
  check();
  EXPECT_EQ(figures().free_dirty_bytes, 68 * unit_size);
  give_back(0);
  bool clean = true;
  EXPECT_EQ(region::allocate(100, 1, UnitState::Large, &clean), whole.index) << "not joined again";
  EXPECT_FALSE(clean);
  region::give_back(whole.index, 100, false);
}

TEST_F(RegionTest, dirty_pages_are_handed_out_before_clean_ones_and_said_to_be_dirty) {
  ASSERT_TRUE(take(5));
  const size_t index = spans_[0].index;
  write(spans_[0]);
  give_back(0);
  bool clean = true;
  EXPECT_EQ(region::allocate(5, 1, UnitState::Large, &clean), index);
  EXPECT_FALSE(clean);
  region::give_back(index, 5, false);
}

TEST_F(RegionTest, purged_pages_read_as_zero_and_leave_memory) {
  (void)region::purge_all(0);
  ASSERT_TRUE(take(7));
  const size_t index = spans_[0].index;
  write(spans_[0]);
  give_back(0);
  EXPECT_EQ(figures().free_dirty_bytes, 7 * unit_size);
  const uint64_t before = os::call_counts.purged_bytes.load();
  EXPECT_EQ(region::purge_all(0), 7 * unit_size);
  EXPECT_EQ(os::call_counts.purged_bytes.load() - before, 7 * unit_size);
  EXPECT_EQ(figures().free_dirty_bytes, 0u);
  EXPECT_EQ(os::resident_bytes(region::address_of(index), 7 * unit_size, unit_size), 0u);
  EXPECT_EQ(region::purge_all(0), 0u);
  check();
}

TEST_F(RegionTest, purge_all_keeps_what_was_freed_last) {
  (void)region::purge_all(0);
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(take(2));
    write(spans_.back());
  }
  // Every other one, so that they do not join.
  std::sort(spans_.begin(), spans_.end(), [](const Span& a, const Span& b) { return a.index < b.index; });
  const size_t newest = spans_[0].index;
  for (const size_t position : {6, 4, 2, 0}) {
    const Span span = spans_[position];
    forget_units(span.index, span.units);
    region::give_back(span.index, span.units, false);
  }
  for (const size_t position : {6, 4, 2, 0})
    spans_.erase(spans_.begin() + static_cast<long>(position));
  EXPECT_EQ(region::purge_all(2 * unit_size), 6 * unit_size);
  EXPECT_EQ(figures().free_dirty_bytes, 2 * unit_size);
  bool clean = true;
  EXPECT_EQ(region::allocate(2, 1, UnitState::Large, &clean), newest);
  EXPECT_FALSE(clean);
  region::give_back(newest, 2, false);
}

TEST_F(RegionTest, a_short_span_serves_for_its_length_again_before_it_is_joined) {
  (void)region::purge_all(0);
  bool clean = false;
  const size_t whole = region::allocate(9, 1, UnitState::Large, &clean);
  region::split(whole, 3);
  region::split(whole + 3, 3);
  for (const size_t index : {whole, whole + 6, whole + 3})
    region::give_back(index, 3, false);
  EXPECT_EQ(region::use_of(whole), UnitState::FreeRecent);
  EXPECT_EQ(figures().free_dirty_bytes, 9 * unit_size);
  check();
  for (const size_t index : {whole + 3, whole + 6, whole}) {
    clean = true;
    EXPECT_EQ(region::allocate(3, 1, UnitState::Large, &clean), index) << "the last one comes first";
    EXPECT_FALSE(clean);
  }
  EXPECT_EQ(figures().free_dirty_bytes, 0u);
  for (const size_t index : {whole, whole + 3, whole + 6})
    region::give_back(index, 3, false);
  EXPECT_EQ(region::allocate(9, 1, UnitState::Large, &clean), whole) << "not joined for a request of another length";
  region::give_back(whole, 9, false);
}

TEST_F(RegionTest, a_block_grows_into_a_short_span_that_was_just_freed) {
  bool clean = false;
  const size_t whole = region::allocate(8, 1, UnitState::Large, &clean);
  region::split(whole, 4);
  region::give_back(whole + 4, 4, false);
  EXPECT_EQ(region::use_of(whole + 4), UnitState::FreeRecent);
  EXPECT_TRUE(region::resize(whole, 6));
  EXPECT_EQ(region::unit_at(whole)->units, 6u);
  EXPECT_EQ(region::use_of(whole + 6), UnitState::FreeDirty);
  region::give_back(whole, 6, false);
}

TEST_F(RegionTest, short_spans_that_are_many_or_purged_are_joined) {
  (void)region::purge_all(0);
  bool clean = false;
  const size_t count = FreeSpans::most_recent / 2 + 1;
  const size_t whole = region::allocate(2 * count, 1, UnitState::Large, &clean);
  for (size_t i = 0; i + 1 < count; ++i)
    region::split(whole + 2 * i, 2);
  for (size_t i = 0; i + 1 < count; ++i)
    region::give_back(whole + 2 * i, 2, false);
  EXPECT_EQ(region::use_of(whole), UnitState::FreeRecent);
  region::give_back(whole + 2 * (count - 1), 2, false);
  EXPECT_NE(region::use_of(whole), UnitState::FreeRecent);
  check();
  EXPECT_EQ(region::allocate(2 * count, 1, UnitState::Large, &clean), whole);
  region::give_back(whole, 2 * count, false);
  ASSERT_TRUE(take(2));
  give_back(0);
  EXPECT_NE(region::purge_all(0), 0u);
  EXPECT_EQ(figures().free_dirty_bytes, 0u);
}

TEST_F(RegionTest, what_nobody_needs_any_more_goes_while_short_spans_alone_are_used) {
  (void)region::purge_all(0);
  bool clean = false;
  for (int i = 0; i < 2; ++i)  // the first one begins an epoch, the second is what the heap lately needed
    region::give_back(region::allocate(96, 1, UnitState::Large, &clean), 96, false);
  ASSERT_EQ(figures().free_dirty_bytes, 96 * unit_size);
  options.purge_delay = 1;
  const uint64_t start = os::clock_ms();
  while (os::clock_ms() < start + 40)
    os::yield();  // more than two delays, if they are doubled, too
  for (int i = 0; i < 64; ++i)
    region::give_back(region::allocate(2, 1, UnitState::Large, &clean), 2, false);
  options.purge_delay = 3'600'000;
  EXPECT_LE(figures().free_dirty_bytes, 64 * unit_size);
  check();
}

TEST_F(RegionTest, where_the_program_says_how_much_stays_short_spans_are_joined_at_once) {
  (void)region::purge_all(0);
  for (int i = 0; i < 8; ++i) {
    ASSERT_TRUE(take(2));
    write(spans_.back());
  }
  while (spans_.size() > 2)
    give_back(spans_.size() - 1);
  EXPECT_EQ(figures().free_dirty_bytes, 12 * unit_size);
  region::keep_free(4 * unit_size);
  give_back(1);
  EXPECT_LE(figures().free_dirty_bytes, 6 * unit_size) << "what was freed before it said so stays";
  region::keep_free(0);
  give_back(0);
  EXPECT_EQ(figures().free_dirty_bytes, 0u);
  region::kept_free.store(region::as_options_say);
}

TEST_F(RegionTest, more_free_pages_than_are_retained_go_back_at_once) {
  const size_t units = 2 * options.retain / unit_size;
  ASSERT_TRUE(take(units));
  write(spans_.back());
  give_back(0);
  EXPECT_LE(figures().free_dirty_bytes, options.retain);
  check();
}

TEST_F(RegionTest, young_pages_stay_until_the_purge_delay_is_over) {
  (void)region::purge_all(0);
  ASSERT_TRUE(take(4));
  write(spans_.back());
  give_back(0);
  region::purge_aged();
  EXPECT_EQ(figures().free_dirty_bytes, 4 * unit_size);
  options.purge_delay = 0;
  const uint64_t start = os::clock_ms();
  while (os::clock_ms() < start + 8)
    os::yield();  // a look at most every millisecond
  region::purge_aged();
  options.purge_delay = 3'600'000;
  EXPECT_EQ(figures().free_dirty_bytes, 0u);
}

TEST_F(RegionTest, a_span_grows_into_free_neighbours_and_gives_back_what_it_sheds) {
  ASSERT_TRUE(take(20));
  const size_t index = spans_[0].index;
  ASSERT_TRUE(region::resize(index, 8));
  spans_[0].units = 8;
  forget_units(index + 8, 12);
  check();
  ASSERT_TRUE(region::resize(index, 20));
  spans_[0].units = 20;
  occupy(index + 8, 12);
  check();
}

TEST_F(RegionTest, a_span_does_not_grow_over_a_neighbour_in_use) {
  ASSERT_TRUE(take(20));
  const size_t index = spans_[0].index;
  give_back(0);
  bool clean = false;
  ASSERT_EQ(region::allocate(4, 1, UnitState::Large, &clean), index);
  ASSERT_EQ(region::allocate(4, 1, UnitState::Large, &clean), index + 4);
  EXPECT_FALSE(region::resize(index, 5));
  region::give_back(index + 4, 4, false);
  EXPECT_TRUE(region::resize(index, 5));
  region::give_back(index, 5, false);
}

TEST_F(RegionTest, a_full_window_gives_nothing_and_recovers) {
  while (take(16)) {
  }
  size_t total = in_use_units();
  EXPECT_GE(total * unit_size, range_bytes / 10 * 9);
  while (take(1)) {
  }
  bool clean = false;
  EXPECT_EQ(region::allocate(1, 1, UnitState::Large, &clean), unit_index_none);
  EXPECT_EQ(region::limit(), region_range_units);
  EXPECT_EQ(in_use_units() + metadata_units(), region_range_units - region::first_index());
  check();
  write(spans_.front());
  const size_t units = spans_.front().units;
  give_back(0);
  check();
  EXPECT_TRUE(take(units));
  check();
}

TEST_F(RegionTest, an_emptied_window_is_one_span_again_dirty_or_clean) {
  while (take(3)) {
  }
  Random random(1);
  while (!spans_.empty()) {
    const size_t position = random.below(spans_.size());
    if (random.chance(30)) write(spans_[position]);
    give_back(position);
  }
  check();
  if (metadata_units() == 0) {
    EXPECT_TRUE(take(region_range_units - region::first_index()));
    EXPECT_FALSE(take(1));
  }
}

TEST_F(RegionTest, a_free_span_that_fits_is_found_however_many_shorter_ones_lie_before_it) {
  // Spans of 33 to 35 units share a list; the one of 35 is freed first and so lies behind all others.
  ASSERT_TRUE(take(35));
  ASSERT_TRUE(take(1));
  for (int i = 0; i < 24; ++i) {
    ASSERT_TRUE(take(33));
    ASSERT_TRUE(take(1));
  }
  while (take(1)) {
  }
  std::vector<Span> long_spans;
  for (size_t i = spans_.size(); i-- > 0;) {
    if (spans_[i].units == 1) continue;
    long_spans.push_back(spans_[i]);
    spans_.erase(spans_.begin() + static_cast<long>(i));
  }
  std::sort(long_spans.begin(), long_spans.end(), [](const Span& a, const Span& b) { return a.units > b.units; });
  for (const Span& span : long_spans) {
    forget_units(span.index, span.units);
    region::give_back(span.index, span.units, !span.dirty);
  }
  check();
  EXPECT_TRUE(take(35));
}

TEST_F(RegionTest, impossible_sizes_give_nothing) {
  bool clean = false;
  EXPECT_EQ(region::allocate(0, 1, UnitState::Large, &clean), unit_index_none);
  EXPECT_EQ(region::allocate(region_range_units, 1, UnitState::Large, &clean), unit_index_none);
  EXPECT_EQ(region::allocate(SIZE_MAX >> unit_shift, 1, UnitState::Large, &clean), unit_index_none);
  EXPECT_EQ(region::allocate(SIZE_MAX, 2, UnitState::Large, &clean), unit_index_none);
  EXPECT_EQ(region::allocate(1, size_t{1} << 47, UnitState::Large, &clean), unit_index_none);
  check();
}

// Thousands of random operations against the model.
TEST_F(RegionTest, random_operations_agree_with_a_model_at_every_step) {
  Random random(20240229);
  for (int step = 0; step < 6000; ++step) {
    const uint64_t choice = random.below(100);
    if (choice < 45 || spans_.empty()) {
      const size_t units = random.chance(80) ? 1 + random.below(12) : 1 + random.below(200);
      const size_t align = random.chance(85) ? 1 : size_t{1} << random.below(7);
      if (take(units, align) && random.chance(60)) write(spans_.back());
    } else if (choice < 80) {
      give_back(random.below(spans_.size()));
    } else if (choice < 97) {
      Span& span = spans_[random.below(spans_.size())];
      const size_t units = 1 + random.below(40);
      if (region::resize(span.index, units)) {
        if (units < span.units) forget_units(span.index + units, span.units - units);
        if (units > span.units) {
          occupy(span.index + span.units, units - span.units);
          span.dirty = true;  // so may be what it grew into
        }
        span.units = units;
        if (random.chance(50)) write(span);
      }
    } else {
      (void)region::purge_all(random.below(4) * (size_t{1} << 20));
    }
    check();
    if (HasFatalFailure() || HasNonfatalFailure()) FAIL() << "at step " << step;
  }
}

TEST_F(RegionTest, bitmaps_of_much_that_was_purged_go_too_and_those_of_blocks_in_use_stay) {
  constexpr size_t half = 1024;
  (void)region::purge_all(0);
  ASSERT_TRUE(take(100));
  ASSERT_TRUE(take(half));
  const size_t used = spans_[0].index;
  const size_t freed = spans_[1].index;
  const auto write_bits = [](size_t first, size_t last, uint64_t bits) {
    for (size_t u = first; u < last; ++u) {
      *region::free_bitmap_at(u) = bits;
      region::remote_bitmap_at(u)->store(bits, std::memory_order_relaxed);
    }
  };
  write_bits(used, used + 100, 7);
  write_bits(freed, freed + half, 0);
  write(spans_[1]);
  give_back(1);
  (void)region::purge_all(0);
  const auto resident_pages = [](const void* first, const void* last) {
    const size_t page = os::page_size();
    char* const start = reinterpret_cast<char*>(region::round_up(reinterpret_cast<uintptr_t>(first), page));
    std::vector<unsigned char> present((static_cast<const char*>(last) - start) / page);
    EXPECT_EQ(mincore(start, present.size() * page, present.data()), 0);
    return std::count_if(present.begin(), present.end(), [](unsigned char p) { return (p & 1) != 0; });
  };
  EXPECT_EQ(resident_pages(region::free_bitmap_at(freed), region::free_bitmap_at(freed + half)), 0);
  EXPECT_EQ(resident_pages(region::remote_bitmap_at(freed), region::remote_bitmap_at(freed + half)), 0);
  for (size_t u = used; u < used + 100; ++u) {
    ASSERT_EQ(*region::free_bitmap_at(u), 7u);
    ASSERT_EQ(region::remote_bitmap_at(u)->load(std::memory_order_relaxed), 7u);
  }
  write_bits(used, used + 100, 0);
}

TEST_F(RegionTest, metadata_is_zero_aligned_to_lines_and_never_shared) {
  const size_t before = figures().metadata_bytes;
  for (size_t bytes : {size_t{1}, size_t{64}, size_t{100}, size_t{5000}, unit_size, size_t{64}}) {
    char* memory = static_cast<char*>(region::allocate_metadata(bytes));
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
    EXPECT_TRUE(std::all_of(memory, memory + bytes, [](char c) { return c == 0; })) << bytes;
    std::memset(memory, 1, bytes);
  }
  EXPECT_GT(figures().metadata_bytes, before);
  check();
}

}  // namespace
