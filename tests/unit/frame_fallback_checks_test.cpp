// Checked mode of frames without Sluice, which a macro switches on for the whole program.
#define SLUICE_FRAME_CHECKS 1
#include "sluice/frame.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

#include <gtest/gtest.h>

namespace {

unsigned char* frame_filled(size_t size) {
  auto* const block = static_cast<unsigned char*>(sluice_frame_alloc(size, 16));
  std::memset(block, 1, size);
  return block;
}

TEST(FrameFallbackChecksDeathTest, what_a_rewind_drops_is_poisoned) {
  const sluice_mark mark = sluice_frame_mark();
  unsigned char* const block = frame_filled(20'000);
  for (int i = 0; i < 20; ++i)
    frame_filled(20'000);
  sluice_frame_rewind(mark);
  EXPECT_TRUE(std::all_of(block, block + 20'000, [](unsigned char byte) { return byte == 0xDD; }));
}

TEST(FrameFallbackChecksDeathTest, rewinds_that_cannot_be_meant_stop) {
  const sluice_mark outer = sluice_frame_mark();
  frame_filled(100);
  const sluice_mark dropped = sluice_frame_mark();
  frame_filled(100);
  sluice_frame_rewind(outer);
  EXPECT_DEATH(sluice_frame_rewind(dropped),
               "sluice: a frame was rewound on another thread than its own, or to a mark");
  EXPECT_DEATH(std::thread([outer] { sluice_frame_rewind(outer); }).join(),
               "sluice: a frame was rewound on another thread than its own, or to a mark");
  frame_filled(100);
  sluice::frame frame;
  EXPECT_DEATH(sluice_frame_rewind(outer), "sluice: a frame was rewound past an inner one that is still open");
}

}  // namespace
