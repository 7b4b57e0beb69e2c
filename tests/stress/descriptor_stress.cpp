// Descriptors as those see them who hold the region's lock alone, or all locks, while spans beside them change their
// use: chunks and frames, spans of guarded blocks, large blocks. Run under ThreadSanitizer it finds what is written
// without order.
#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "arena_calls.hpp"
#include "frame_chunks.hpp"
#include "guarded/pool.hpp"
#include "pages/region.hpp"
#include "stats/snapshot.hpp"
#include "stress_rounds.hpp"
#include "validate_among_others.hpp"

namespace {

using namespace sluice;
using test::rounds;

// A frame of several chunks: those that are not kept for it become empty chunks of the arena and frames again.
void use_frames() {
  const sluice_mark mark = sluice_frame_mark();
  for (int i = 0; i < 4; ++i)
    EXPECT_NE(sluice_frame_alloc(50'000, 16), nullptr);
  sluice_frame_rewind(mark);
}

// Small ones, whose spans are cut off longer ones, and larger ones, whose slots give their spans back.
void use_guarded_blocks(unsigned round) {
  std::vector<void*> blocks;
  for (const size_t size : {size_t{100}, size_t{3000}, size_t{70'000} + round % 4 * 65'536})
    if (void* const block = guarded::allocate(size, min_alignment, false)) blocks.push_back(block);
  size_t size = 0;
  for (void* const block : blocks)
    EXPECT_TRUE(guarded::free(block, &size));
}

// In scopes, so that chunks are opened and retired.
void use_scopes_and_large_blocks() {
  const test::Scope scope;
  std::vector<void*> blocks;
  for (int i = 0; i < 20; ++i)
    blocks.push_back(test::scoped_allocate(i % 5 == 0 ? 200'000 : 8000));
  for (void* const block : blocks)
    test::scoped_free(block);
}

TEST(DescriptorStress, units_are_looked_up_while_spans_beside_them_change_their_use) {
  test::scoped_free(test::scoped_allocate(1));
  guarded::set_slots(2000);
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  const auto start = [&](auto work) {
    threads.emplace_back([&stop, work] {
      for (unsigned round = 0; !stop; ++round)
        work(round);
    });
  };
  start([](unsigned round) {
    const size_t first = region::first_index();
    const size_t index = first + size_t{round} * 7 % (region::limit() - first);
    EXPECT_NE(region::use_of(index), UnitState::None) << "a span leads nowhere";
  });
  start([](unsigned round) { use_guarded_blocks(round); });
  start([](unsigned) { use_scopes_and_large_blocks(); });
  start([](unsigned round) {
    stats::Snapshot snapshot;
    if (round % 2 == 0) return stats::take_snapshot(&snapshot);
    EXPECT_EQ(test::validate_among_others(), nullptr);
  });
  for (int i = 0; i < rounds(20'000); ++i)
    use_frames();
  stop = true;
  for (std::thread& thread : threads)
    thread.join();
  test::expect_valid();
}

}  // namespace
