// Every kind of system call fails, at every place where it is made, once or from there on, while a program uses all
// that the heap offers: what it holds stays whole, what it cannot have is null with ENOMEM, and afterwards all is
// served. Open it when a rare failure breaks the heap; the result says which call of which kind it was.
#include "frame_chunks.hpp"

#include <cerrno>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "arena_program.hpp"
#include "base/options.hpp"
#include "fault_stride.hpp"
#include "heap_program.hpp"
#include "in_child.hpp"
#include "mock_os.hpp"
#include "pages/region.hpp"

namespace {

using namespace sluice;
using mock_os::Call;
using test::ArenaProgram;
using test::HeapProgram;

constexpr size_t mib = size_t{1} << 20;
const char nothing_failed[] = "nothing failed";

// Purges are many, and alike.
unsigned stride(Call call) {
  return test::fault_stride(call == Call::Purge || call == mock_os::any ? 9 : 1);
}

// Large blocks that grow, move, shrink to small ones and grow again.
void resize_up_and_down(HeapProgram& pools) {
  pools.allocate(0, 2 * mib);
  for (const size_t slot : {1, 2, 3})  // one of them right behind, so that the first moves
    pools.allocate(slot, 3 * mib);
  for (const size_t size : {9 * mib, 12 * mib, 3 * mib, size_t{100'000}, size_t{50}, size_t{70'000}, 2 * mib, 4 * mib})
    pools.reallocate(0, size);
  for (const size_t slot : {2, 3})
    pools.release(slot);
  pools.allocate_aligned(2, mib, 300'000);
  pools.reallocate(2, 2 * mib);
  pools.reallocate(2, 10);
  pools.allocate_zeroed(3, 3, mib);
  pools.release(1);
  pools.allocate_zeroed(3, 1, 2 * mib);
}

// Threads whose first call may find no memory; each frees what the caller made, and the caller frees what it made.
std::string thread_that_ends(HeapProgram& pools, uint64_t seed) {
  std::string wrong;
  std::thread([&] {
    HeapProgram own(20, seed, 100'000);
    own.may_run_out(true);
    for (int i = 0; i < 40; ++i)
      own.step();
    for (size_t slot = 4; slot < 12; ++slot) {
      own.discard(pools.take(slot));
      pools.discard(own.take(slot));
    }
    for (size_t slot = 4; slot < 12; ++slot)
      pools.allocate(slot, 3000);  // the caller frees them, after this thread has ended
    ArenaProgram scoped(60, seed);
    scoped.may_run_out(true);
    scoped.enter(SLUICE_ROUTE);
    for (int i = 0; i < 150; ++i)
      scoped.step();
    scoped.leave_all();
    scoped.release_all();
    own.release_all();
    wrong = own.wrong() + scoped.wrong();
  }).join();
  for (size_t slot = 4; slot < 12; ++slot)
    pools.release(slot);
  return wrong;
}

std::string use_frames(bool may_run_out) {
  const sluice_mark mark = sluice_frame_mark();
  test::Block blocks[40];
  for (size_t i = 0; i < 40; ++i) {
    errno = 0;
    blocks[i] = {static_cast<unsigned char*>(sluice_frame_alloc(i * 700, 16)), i * 700, static_cast<unsigned char>(i)};
    if (blocks[i].data != nullptr)
      test::fill(blocks[i]);
    else if (!may_run_out || errno != ENOMEM)
      return "no frame memory";
  }
  for (const test::Block& block : blocks)
    if (block.data != nullptr && !test::intact(block)) return "a block of a frame changed";
  sluice_frame_rewind(mark);
  return "";
}

// All of it, as long as nothing is wrong. Returns: what is.
std::string use_everything(HeapProgram& pools, ArenaProgram& scoped, bool may_run_out) {
  pools.may_run_out(may_run_out);
  scoped.may_run_out(may_run_out);
  for (int i = 0; i < 60; ++i)
    pools.step();
  resize_up_and_down(pools);
  scoped.enter(SLUICE_ROUTE);
  for (int i = 0; i < 400; ++i)
    scoped.step();
  scoped.leave_all();
  std::string wrong = use_frames(may_run_out);
  for (uint64_t seed = 1; seed <= 2 && wrong.empty(); ++seed)
    wrong = thread_that_ends(pools, seed);
  (void)heap::trim(0);
  for (int i = 0; i < 60; ++i)
    pools.step();
  wrong += pools.wrong() + scoped.wrong();
  const char* const invalid = heap::validate().what;
  return wrong.empty() && invalid != nullptr ? invalid : wrong;
}

// A page of somebody else right behind what the heap has reserved: it has to go on behind that.
void put_an_obstacle() {
  const size_t reserved = region::first_index() * unit_size + region::figures().reserved_bytes;
  (void)mmap(region_base + reserved, unit_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

enum class Place { roomy, cramped };

template <typename Arm>
std::string survive(Place place, Arm arm) {
  return test::in_child([&]() -> std::string {
    options.purge_delay = 0;
    options.retain = mib;
    options.arena_hot = 0;
    if (place == Place::cramped) {
      mock_os::set_address_space_limit(128 * mib);
      HeapProgram first(1, 1);
      first.allocate(0, 100);
      put_an_obstacle();
    }
    arm();
    HeapProgram pools(30, 7, 600'000);
    ArenaProgram scoped(200, 9);
    std::string wrong = use_everything(pools, scoped, true);
    if (!wrong.empty()) return wrong;
    const bool failed = mock_os::has_failed();
    mock_os::never_fail();
    wrong = use_everything(pools, scoped, false);
    pools.release_all();
    scoped.release_all();
    wrong += pools.wrong() + scoped.wrong();
    if (const char* const invalid = heap::validate().what) wrong += invalid;
    if (!wrong.empty()) return "after the failures: " + wrong;
    return failed ? "" : nothing_failed;
  });
}

// Returns: how many calls of the kind were there to fail.
unsigned sweep(Place place, Call call, void (*arm)(Call, unsigned)) {
  for (unsigned n = 1;; n += stride(call)) {
    const std::string result = survive(place, [&] { arm(call, n); });
    if (result == nothing_failed) return n - 1;
    EXPECT_EQ(result, "") << "call " << n << " of kind " << static_cast<int>(call);
    if (!result.empty() || n > 5000) return n;
  }
}

class EveryCall : public testing::TestWithParam<Call> {};

TEST_P(EveryCall, may_fail_once) {
  EXPECT_GT(sweep(Place::roomy, GetParam(), mock_os::fail_nth), 0u);
}

TEST_P(EveryCall, may_fail_from_any_place_on) {
  EXPECT_GT(sweep(Place::roomy, GetParam(), mock_os::fail_from), 0u);
}

// In a cramped heap; where ThreadSanitizer uses the addresses itself there is none.
#if !defined(SLUICE_THREAD_SANITIZER)
TEST_P(EveryCall, may_fail_where_address_space_is_short_and_others_are_in_the_way) {
  (void)sweep(Place::cramped, GetParam(), mock_os::fail_nth);
  (void)sweep(Place::cramped, GetParam(), mock_os::fail_from);
}
#endif

// Release and MakeReadable are calls of the start; the others come from everywhere.
INSTANTIATE_TEST_SUITE_P(Kinds, EveryCall,
                         testing::Values(Call::Reserve, Call::Commit, Call::MakeReadable, Call::Purge, Call::Renew,
                                         Call::MovePages, Call::RegisterThreadExit, Call::ArmThreadExit, mock_os::any));

// munmap may fail where a mapping would have to be split.
TEST(EveryRelease, may_fail) {
  for (const auto arm : {mock_os::fail_nth, mock_os::fail_from}) {
    for (unsigned n = 1; n < 6; ++n) {
      const std::string result = survive(Place::roomy, [&] {
        mock_os::refuse_exact_reservations();  // so that the heap takes more than it needs, to align it
        arm(Call::Release, n);
      });
      EXPECT_TRUE(result.empty() || result == nothing_failed) << n << ": " << result;
    }
  }
}

}  // namespace
