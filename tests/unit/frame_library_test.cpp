// Frames whose memory comes from the stack arena: all that holds for frames, and what becomes of the memory.
#include "frame_chunks.hpp"

#include "arena_calls.hpp"
#include "base/options.hpp"
#include "frame_tests.hpp"

namespace {

using namespace sluice;
using test::units_in_use;

size_t frame_units() {
  return units_in_use(UnitState::Frame);
}

TEST(FrameMemory, comes_from_the_stack_arena) {
  const sluice_mark mark = sluice_frame_mark();
  const auto* const block = static_cast<char*>(sluice_frame_alloc(100, 16));
  const size_t unit = unit_index_of(block);
  ASSERT_LT(unit, region_range_units);
  EXPECT_EQ(class_bytes()[unit], class_byte_none) << "free and realloc would take it for a block";
  sluice_frame_rewind(mark);
  test::expect_valid();
}

TEST(FrameMemory, large_requests_are_dropped_by_the_rewind) {
  test::on_another_thread([] {
    const sluice_mark mark = sluice_frame_mark();
    const size_t before = frame_units();
    for (int i = 0; i < 20; ++i) {
      std::memset(sluice_frame_alloc(10'000'000, 16), 1, 10'000'000);
      EXPECT_GE(frame_units(), before + 10'000'000 / unit_size);
      sluice_frame_rewind(mark);
      EXPECT_LE(frame_units(), before + 4);
    }
    for (int i = 0; i < 500; ++i)
      (void)sluice_frame_alloc(50'000, 16);
    sluice_frame_rewind(mark);
    EXPECT_LE(frame_units(), before + options.arena_hot / unit_size) << "more is kept than the option says";
  });
  test::expect_valid();
}

TEST(FrameMemory, goes_back_at_the_end_of_its_thread) {
  cache::flush_idle();
  const size_t frames = frame_units();
  const size_t chunks = test::chunks_in_use();
  for (int i = 0; i < 10; ++i) {
    test::on_another_thread([] {
      (void)sluice_frame_mark();
      for (int n = 0; n < 100; ++n)
        std::memset(sluice_frame_alloc(30'000, 16), 1, 30'000);
      (void)sluice_frame_alloc(5'000'000, 16);
      const test::Scope scope;
      test::scoped_free(test::scoped_allocate(100));
    });
    EXPECT_EQ(frame_units(), frames);
    EXPECT_EQ(test::chunks_in_use(), chunks);
  }
  test::expect_valid();
}

TEST(FrameMemory, goes_back_when_a_thread_ends_after_a_rewind) {
  const size_t frames = frame_units();
  test::on_another_thread([] {
    const sluice_mark mark = sluice_frame_mark();
    for (int n = 0; n < 100; ++n)
      (void)sluice_frame_alloc(30'000, 16);
    sluice_frame_rewind(mark);
  });
  EXPECT_EQ(frame_units(), frames);
  test::expect_valid();
}

TEST(FrameMemory, shares_empty_chunks_with_scopes) {
  test::on_another_thread([] {
    for (int i = 0; i < 50; ++i) {
      const sluice_mark mark = sluice_frame_mark();
      for (int n = 0; n < 10; ++n)
        std::memset(sluice_frame_alloc(40'000, 16), 0xdd, 40'000);
      {
        const test::Scope scope;
        std::vector<void*> objects;
        for (int n = 0; n < 2000; ++n)
          objects.push_back(test::filled(100, 1));
        for (void* const object : objects)
          test::scoped_free(object);
        auto* const zeroed = static_cast<unsigned char*>(arena::allocate_zeroed(100, 10));
        EXPECT_TRUE(test::all_bytes(zeroed, 1000, 0));
        test::scoped_free(zeroed);
      }
      sluice_frame_rewind(mark);
    }
    EXPECT_LE(test::chunks_in_use() + frame_units(), 24u);
  });
  test::expect_valid();
}

TEST(FrameMemory, errno_is_kept) {
  const sluice_mark mark = sluice_frame_mark();
  errno = 77;
  for (int i = 0; i < 100; ++i)
    (void)sluice_frame_alloc(50'000, 16);
  sluice_frame_rewind(mark);
  EXPECT_EQ(errno, 77);
}

}  // namespace
