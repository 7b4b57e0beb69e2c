// Frames without Sluice: all that holds for frames, on memory from malloc.
#include "frame_tests.hpp"

// malloc refuses what it cannot give, as it does without a sanitizer.
extern "C" const char* __tsan_default_options() {
  return "allocator_may_return_null=1";
}
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1";
}

namespace {

TEST(FrameFallback, memory_does_not_come_from_the_library) {
  EXPECT_EQ(&sluice_frame_chunk_get, nullptr);
  EXPECT_EQ(&sluice_frame_chunk_put, nullptr);
}

// A leak checker sees it when a thread's chunks stay.
TEST(FrameFallback, memory_goes_back_at_the_end_of_its_thread) {
  for (int i = 0; i < 50; ++i) {
    std::thread([] {
      const sluice_mark mark = sluice_frame_mark();
      for (int n = 0; n < 50; ++n)
        std::memset(sluice_frame_alloc(30'000, 16), 1, 30'000);
      if (mark.opaque[0] % 3 == 0) sluice_frame_rewind(mark);
      (void)sluice_frame_alloc(3'000'000, 16);
    }).join();
  }
}

}  // namespace
