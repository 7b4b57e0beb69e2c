// Checked mode of frames: what a rewind drops is filled with 0xDD, and rewinds that cannot be meant stop the process.
#include "frame_chunks.hpp"

#include <memory>

#include "arena_calls.hpp"
#include "base/options.hpp"
#include "sluice/frame.hpp"

namespace {

using namespace sluice;

constexpr unsigned char poison = 0xDD;
constexpr const char* past_inner = "sluice: a frame was rewound past an inner one that is still open";
constexpr const char* elsewhere =
    "sluice: a frame was rewound on another thread than its own, or to a mark that has "
    "been dropped";

class FrameChecksDeathTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    test::scoped_free(test::scoped_allocate(1));  // the options are read
    options.frame_checks = true;
  }
  void SetUp() override { mark_ = sluice_frame_mark(); }
  void TearDown() override { sluice_frame_rewind(mark_); }
  sluice_mark mark_{};
};

unsigned char* frame_filled(size_t size, unsigned char value) {
  auto* const block = static_cast<unsigned char*>(sluice_frame_alloc(size, 16));
  std::memset(block, value, size);
  return block;
}

TEST_F(FrameChecksDeathTest, what_a_rewind_drops_is_poisoned_and_nothing_else_is) {
  unsigned char* const kept = frame_filled(100, 1);
  const sluice_mark mark = sluice_frame_mark();
  unsigned char* const dropped = frame_filled(1000, 2);
  sluice_frame_rewind(mark);
  EXPECT_TRUE(test::all_bytes(dropped, 1000, poison));
  EXPECT_TRUE(test::all_bytes(kept, 100, 1));
  {
    frame inner;
    std::memset(inner.allocate(500), 3, 500);
  }
  EXPECT_TRUE(test::all_bytes(dropped, 500, poison));
}

TEST_F(FrameChecksDeathTest, what_lies_in_the_lower_chunk_is_poisoned_too) {
  const sluice_mark mark = sluice_frame_mark();
  unsigned char* const dropped = frame_filled(20'000, 2);
  for (int i = 0; i < 20; ++i)
    frame_filled(20'000, 3);
  sluice_frame_rewind(mark);
  EXPECT_TRUE(test::all_bytes(dropped, 20'000, poison));
}

TEST_F(FrameChecksDeathTest, a_rewind_past_an_inner_frame_stops) {
  const sluice_mark mark = sluice_frame_mark();
  frame_filled(10, 1);
  frame outer;
  (void)outer.allocate(100);
  {
    frame inner;
    (void)inner.allocate(100);
    EXPECT_DEATH(outer.rewind(), past_inner);
    EXPECT_DEATH(sluice_frame_rewind(mark), past_inner);
    for (int i = 0; i < 30; ++i)
      (void)inner.allocate(30'000);
    EXPECT_DEATH(outer.rewind(), past_inner);
    frame innermost;  // begins in a chunk above
    (void)innermost.allocate(10);
    EXPECT_DEATH(inner.rewind(), past_inner);
    EXPECT_DEATH(outer.rewind(), past_inner);
    innermost.rewind();
  }
  outer.rewind();
  EXPECT_DEATH(sluice_frame_rewind(mark), past_inner);
}

TEST_F(FrameChecksDeathTest, an_outer_frame_that_ends_before_its_inner_one_stops) {
  auto outer = std::make_unique<frame>();
  (void)outer->allocate(100);
  auto inner = std::make_unique<frame>();
  EXPECT_DEATH(outer.reset(), past_inner);
  inner.reset();
  outer.reset();
}

TEST_F(FrameChecksDeathTest, a_rewind_to_a_mark_of_the_innermost_frame_is_allowed) {
  frame one;
  const sluice_mark mark = sluice_frame_mark();
  frame_filled(100, 1);
  sluice_frame_rewind(mark);
  for (int i = 0; i < 30; ++i)
    frame_filled(30'000, 1);
  sluice_frame_rewind(mark);
  one.rewind();
}

TEST_F(FrameChecksDeathTest, a_rewind_to_a_dropped_mark_stops) {
  const sluice_mark outer = sluice_frame_mark();
  frame_filled(1000, 1);
  const sluice_mark dropped = sluice_frame_mark();
  for (int i = 0; i < 30; ++i)
    frame_filled(30'000, 1);
  const sluice_mark far_above = sluice_frame_mark();
  sluice_frame_rewind(outer);
  EXPECT_DEATH(sluice_frame_rewind(dropped), elsewhere);
  EXPECT_DEATH(sluice_frame_rewind(far_above), elsewhere);
}

TEST_F(FrameChecksDeathTest, a_rewind_on_another_thread_stops) {
  frame_filled(100, 1);
  const sluice_mark mark = sluice_frame_mark();
  EXPECT_DEATH(test::on_another_thread([mark] { sluice_frame_rewind(mark); }), elsewhere);
  EXPECT_DEATH(test::on_another_thread([mark] {
                 frame_filled(100, 1);
                 sluice_frame_rewind(mark);
               }),
               elsewhere);
}

}  // namespace
