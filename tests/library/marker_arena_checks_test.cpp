// Mistakes with a checked marker_arena: markers and frames out of order, foreign ones, and damage; each is found, told,
// and leaves the arena as it was.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "sluice/marker_arena.hpp"
#include "sluice/marker_resource.hpp"
#include "violations.hpp"

namespace {

using library_test::Violations;
using sluice::checked;
using sluice::violation_kind;
using Arena = sluice::marker_arena<checked>;

class CheckedMarkerArena : public testing::Test {
 protected:
  ~CheckedMarkerArena() override { arena_.clear(); }

  Violations violations_;
  alignas(64) unsigned char memory_[4096] = {};
  Arena arena_{memory_, sizeof memory_, "level"};
};

// Textbook markers are offsets: any that is not above the top is taken.
bool textbook_version(std::size_t marker, std::size_t top) {
  return marker <= top;
}

TEST_F(CheckedMarkerArena, FindsAMarkerOfAnotherArena) {
  alignas(16) unsigned char other_memory[256];
  Arena other(other_memory, sizeof other_memory);
  EXPECT_NE(arena_.try_allocate(10), nullptr);
  const std::size_t used = arena_.used();
  EXPECT_TRUE(textbook_version(other.used(), used));
  arena_.rewind(other.mark());
  const sluice::violation found = Violations::take();
  EXPECT_EQ(found.kind, violation_kind::foreign);
  EXPECT_EQ(found.object, &arena_);
  EXPECT_STREQ(found.component, "marker_arena");
  EXPECT_STREQ(found.name, "level");
  arena_.rewind(Arena::marker());
  Violations::expect(violation_kind::foreign);
  EXPECT_EQ(arena_.used(), used);
}

TEST_F(CheckedMarkerArena, FindsAMarkerThatARewindHasEnded) {
  EXPECT_NE(arena_.try_allocate(10), nullptr);
  const auto lower = arena_.mark();
  EXPECT_NE(arena_.try_allocate(100), nullptr);
  const std::size_t used_at_upper = arena_.used();
  const auto upper = arena_.mark();
  arena_.rewind(lower);
  arena_.rewind(upper);
  Violations::expect(violation_kind::marker_order);

  // The top has grown past it, elsewhere or to the very place.
  EXPECT_NE(arena_.try_allocate(100), nullptr);
  EXPECT_EQ(arena_.used(), used_at_upper);
  EXPECT_TRUE(textbook_version(used_at_upper, arena_.used()));
  arena_.rewind(upper);
  Violations::expect(violation_kind::marker_order);
  EXPECT_NE(arena_.try_allocate(300), nullptr);
  const std::size_t used = arena_.used();
  arena_.rewind(upper);
  Violations::expect(violation_kind::marker_order);
  EXPECT_EQ(arena_.used(), used);
  arena_.rewind(lower);
  arena_.clear();
  arena_.rewind(lower);
  Violations::expect(violation_kind::marker_order);
}

TEST_F(CheckedMarkerArena, FindsAMarkerThatLiesOnNoBoundary) {
  EXPECT_NE(arena_.try_allocate(100), nullptr);
  const auto marker = arena_.mark();
  EXPECT_NE(arena_.try_allocate(100), nullptr);
  const std::size_t used = arena_.used();
  for (const std::ptrdiff_t off : {1, -1, 8, 50, -40}) {
    EXPECT_TRUE(textbook_version(100 + static_cast<std::size_t>(off), used));
    auto wrong = marker;
    unsigned char* place = nullptr;
    std::memcpy(&place, static_cast<const void*>(&wrong), sizeof place);
    place += off;
    std::memcpy(static_cast<void*>(&wrong), &place, sizeof place);
    arena_.rewind(wrong);
    Violations::expect(violation_kind::foreign);
    EXPECT_EQ(arena_.used(), used);
  }
  arena_.rewind(marker);
}

TEST_F(CheckedMarkerArena, MarkersThatAreRightStayRight) {
  const auto empty = arena_.mark();
  EXPECT_NE(arena_.try_allocate(10), nullptr);
  const auto one = arena_.mark();
  const auto same = arena_.mark();
  EXPECT_NE(arena_.try_allocate(10), nullptr);
  arena_.rewind(same);
  arena_.rewind(one);
  arena_.rewind(same);
  EXPECT_NE(arena_.try_allocate(10), nullptr);
  arena_.rewind(one);
  arena_.rewind(empty);
  arena_.clear();
  arena_.rewind(empty);
  EXPECT_TRUE(arena_.empty());
}

TEST_F(CheckedMarkerArena, FindsAFrameThatEndsBeforeAnInnerOne) {
  std::unique_ptr<Arena::frame> outer, inner;
  outer = std::make_unique<Arena::frame>(arena_);
  EXPECT_NE(arena_.try_allocate(10), nullptr);
  inner = std::make_unique<Arena::frame>(arena_);
  EXPECT_NE(arena_.try_allocate(10), nullptr);
  const std::size_t used = arena_.used();
  outer.reset();
  Violations::expect(violation_kind::marker_order);
  EXPECT_EQ(arena_.used(), used);
  inner.reset();
  EXPECT_TRUE(Violations::none());
  EXPECT_LT(arena_.used(), used);
  { Arena::frame next(arena_); }  // none is open any more
}

TEST_F(CheckedMarkerArena, FindsAFrameThatEndsBeforeAnInnerOneWithNothingBetween) {
  std::unique_ptr<Arena::frame> outer, inner;
  outer = std::make_unique<Arena::frame>(arena_);
  inner = std::make_unique<Arena::frame>(arena_);
  outer.reset();
  Violations::expect(violation_kind::marker_order);
  inner.reset();
}

TEST_F(CheckedMarkerArena, FindsARewindPastAnOpenFrame) {
  const auto before = arena_.mark();
  EXPECT_NE(arena_.try_allocate(10), nullptr);
  {
    Arena::frame frame(arena_);
    EXPECT_NE(arena_.try_allocate(10), nullptr);
    const std::size_t used = arena_.used();
    arena_.rewind(before);
    Violations::expect(violation_kind::marker_order);
    arena_.clear();
    Violations::expect(violation_kind::marker_order);
    EXPECT_EQ(arena_.used(), used);
  }
  arena_.rewind(before);
}

TEST_F(CheckedMarkerArena, FindsWritesBehindABlock) {
  for (std::size_t behind = 0; behind < 8; ++behind) {
    const auto marker = arena_.mark();
    auto* const block = static_cast<unsigned char*>(arena_.try_allocate(10));
    EXPECT_NE(arena_.try_allocate(10), nullptr);
    block[10 + behind] ^= 1;
    arena_.rewind(marker);
    const sluice::violation found = Violations::take();
    EXPECT_EQ(found.kind, violation_kind::write_past_end);
    EXPECT_EQ(found.address, block);
    EXPECT_TRUE(arena_.empty());
  }
}

TEST_F(CheckedMarkerArena, FindsAHeaderThatIsOverwrittenAndDoesNotFollowIt) {
  const auto marker = arena_.mark();
  EXPECT_NE(arena_.try_allocate(16), nullptr);
  auto* const block = static_cast<unsigned char*>(arena_.try_allocate(16));
  unsigned char header[32];
  std::memcpy(header, block - 32, 32);
  std::memset(block - 32, 0x41, 32);
  const std::size_t used = arena_.used();
  arena_.rewind(marker);
  Violations::expect(violation_kind::write_past_end);
  EXPECT_EQ(arena_.used(), used);
  std::memcpy(block - 32, header, 32);
  arena_.rewind(marker);
  EXPECT_TRUE(arena_.empty());
  auto* const last = static_cast<unsigned char*>(arena_.try_allocate(16));
  std::memset(last - 32, 0x41, 32);
  arena_.clear();
  Violations::expect(violation_kind::write_past_end);
  EXPECT_TRUE(arena_.empty());
}

TEST_F(CheckedMarkerArena, FindsWritesToWhatWasFreed) {
  for (int place = 0; place < 40; ++place) {
    const auto marker = arena_.mark();
    auto* const block = static_cast<unsigned char*>(arena_.try_allocate(40));
    arena_.rewind(marker);
    block[place] ^= 1;
    EXPECT_NE(arena_.try_allocate(100), nullptr);
    Violations::expect(violation_kind::write_after_release);
    arena_.rewind(marker);
  }
}

TEST_F(CheckedMarkerArena, FindsABlockThatOnlyEndsWhereTheLastOneDoes) {
  auto* const block = static_cast<unsigned char*>(arena_.try_allocate(40));
  EXPECT_FALSE(arena_.try_deallocate_last(block + 8, 32));
  Violations::expect(violation_kind::foreign);
  EXPECT_FALSE(arena_.try_resize_last(block + 8, 32, 10));
  Violations::expect(violation_kind::foreign);
  EXPECT_TRUE(arena_.try_deallocate_last(block, 40));
}

TEST(CheckedMarkerArenaEnd, CountsWhatIsNotFreed) {
  Violations violations;
  alignas(16) unsigned char memory[512];
  {
    Arena arena(memory, sizeof memory);
    EXPECT_NE(arena.try_allocate(10), nullptr);
    EXPECT_NE(arena.try_allocate(10), nullptr);
  }
  const sluice::violation found = Violations::take();
  EXPECT_EQ(found.kind, violation_kind::leak);
  EXPECT_EQ(found.value, 2u);
  {
    Arena arena(memory, sizeof memory);
    Arena::frame frame(arena);
    EXPECT_NE(arena.try_allocate(10), nullptr);
  }
  EXPECT_TRUE(Violations::none());
}

TEST(CheckedMarkerArenaEnd, FindsWritesToWhatWasFreed) {
  Violations violations;
  alignas(16) unsigned char memory[512];
  {
    Arena arena(memory, sizeof memory);
    auto* const block = static_cast<unsigned char*>(arena.try_allocate(10));
    arena.clear();
    block[5] = 0;
  }
  Violations::expect(violation_kind::write_after_release);
}

TEST(CheckedMarkerArenaEnd, SaysWhatHappenedAndStops) {
  alignas(16) unsigned char memory[512];
  EXPECT_DEATH(
      {
        Arena arena(memory, sizeof memory, "level");
        const auto lower = arena.mark();
        (void)arena.try_allocate(10);
        const auto upper = arena.mark();
        arena.rewind(lower);
        arena.rewind(upper);
      },
      "marker_arena \"level\" .*rewound out of order");
}

TEST(CheckedMarkerResource, TellsItsNameAndDropsTheRestInSilence) {
  Violations violations;
  sluice::marker_resource<checked> level(1000, nullptr, "level 1");
  EXPECT_NE(level.allocate(10), nullptr);
  level.rewind(sluice::marker_resource<checked>::marker());
  const sluice::violation found = Violations::take();
  EXPECT_STREQ(found.component, "marker_resource");
  EXPECT_STREQ(found.name, "level 1");
  EXPECT_EQ(found.object, &level);
}

}  // namespace
