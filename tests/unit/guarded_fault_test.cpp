// Guarded blocks while the system refuses: whichever call fails, the program gets a block, guarded or not, and guarding
// goes on when the system gives again. Each case is a process of its own.
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "guarded/pool.hpp"
#include "heap/heap.hpp"
#include "heap/sampling.hpp"
#include "heap_calls.hpp"
#include "in_child.hpp"
#include "mock_os.hpp"

namespace {

using namespace sluice;
using mock_os::Call;

// Allocates blocks of all kinds at rate 1, and frees them. Returns how many of them are guarded; -1 when there was no
// memory.
int use_all_kinds() {
  int guarded = 0;
  for (int round = 0; round < 3; ++round) {
    std::vector<char*> blocks;
    for (const size_t size : {40, 5'000, 70'000, 200'000, 300, 1}) {
      auto* block = static_cast<char*>(test::allocate(size));
      if (block == nullptr) return -1;
      memset(block, 1, size);
      guarded += guarded::covers(block) ? 1 : 0;
      blocks.push_back(block);
    }
    for (char* block : blocks)
      heap::free(block);
  }
  return guarded;
}

constexpr int all_blocks = 18;
const char nothing_failed[] = "nothing failed";

// In a child: what ordinary blocks need is there before calls fail.
template <typename Arm>
const char* use_while_refused(Arm arm) {
  std::vector<void*> blocks;
  for (const size_t size : {40, 5'000, 70'000, 200'000, 300, 1, 8 << 20})
    blocks.push_back(test::allocate(size));
  for (void* block : blocks)
    heap::free(block);
  guarded::set_slots(32);
  sampling::start(1);
  arm();
  if (use_all_kinds() < 0) return "no block while the system refuses";
  const bool any = mock_os::has_failed();
  mock_os::never_fail();
  if (use_all_kinds() != all_blocks) return "afterwards blocks are not guarded";
  if (const char* invalid = heap::validate().what) return invalid;
  return any ? "" : nothing_failed;
}

template <typename Arm>
std::string survive(Arm arm, bool* failed) {
  std::string wrong = test::in_child([&arm]() -> std::string { return use_while_refused(arm); });
  *failed = wrong != nothing_failed;
  if (!*failed) wrong.clear();
  return wrong;
}

TEST(GuardedWhileTheSystemRefuses, EachCallInTurn) {
  for (const Call call : {Call::Protect, Call::Commit, Call::Purge}) {
    unsigned nth = 1;
    for (bool failed = true; failed; ++nth) {
      ASSERT_LT(nth, 200u);
      ASSERT_EQ(survive([=] { mock_os::fail_nth(call, nth); }, &failed), "") << static_cast<int>(call) << " " << nth;
    }
    EXPECT_GT(nth, 3u) << "few calls were made";
  }
}

TEST(GuardedWhileTheSystemRefuses, AllCallsFromOneOn) {
  for (const Call call : {Call::Protect, Call::Commit}) {
    bool failed = true;
    for (unsigned nth = 1; failed; nth += 3) {
      ASSERT_LT(nth, 200u);
      ASSERT_EQ(survive([=] { mock_os::fail_from(call, nth); }, &failed), "") << static_cast<int>(call) << " " << nth;
    }
  }
}

}  // namespace
