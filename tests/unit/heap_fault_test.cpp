// The whole heap while the system refuses: whichever call fails, the program gets a block or null with ENOMEM, keeps
// what it has, and gets memory again when the system has some. Each case is a process of its own, with a fresh heap.
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/options.hpp"
#include "fault_stride.hpp"
#include "heap/heap.hpp"
#include "heap_calls.hpp"
#include "heap_program.hpp"
#include "in_child.hpp"
#include "mock_os.hpp"

namespace {

using namespace sluice;
using mock_os::Call;
using test::HeapProgram;

constexpr size_t mib = size_t{1} << 20;

const char nothing_failed[] = "nothing failed";

std::string validated(const HeapProgram& program) {
  if (!program.wrong().empty()) return program.wrong();
  const char* wrong = heap::validate().what;
  return wrong != nullptr ? wrong : "";
}

// A program that reaches every kind of call: it starts the heap, grows it, moves large blocks, starts and ends threads,
// and gives memory back.
std::string reach_everything(HeapProgram& program) {
  for (int i = 0; i < 250; ++i)
    program.step();
  program.allocate(0, 2 * mib);
  program.allocate(1, 2 * mib);  // right behind
  program.reallocate(0, 9 * mib);
  program.reallocate(0, 30 * mib);
  std::string in_thread;
  for (int t = 0; t < 2; ++t) {
    std::thread([&] {
      HeapProgram own(20, 99, 300'000);
      own.may_run_out(true);
      for (int i = 0; i < 60; ++i)
        own.step();
      program.discard(program.take(5));
      own.release_all();
      in_thread = own.wrong();
    }).join();
    if (!in_thread.empty()) return "thread: " + in_thread;
  }
  program.discard(program.take(0));  // its pages were moved
  (void)heap::trim(0);
  for (int i = 0; i < 100; ++i)
    program.step();
  return validated(program);
}

// Runs that program with the failures that `arm` asks for; afterwards the system gives memory again, and the heap must
// too.
template <typename Arm>
std::string survive(Arm arm) {
  return test::in_child([&]() -> std::string {
    options.purge_delay = 0;
    options.retain = 4 * mib;
    arm();
    HeapProgram program(40, 7, 2 * mib);
    program.may_run_out(true);
    std::string wrong = reach_everything(program);
    if (!wrong.empty()) return wrong;
    const bool failed = mock_os::has_failed();
    mock_os::never_fail();
    program.may_run_out(false);
    for (int i = 0; i < 150; ++i)
      program.step();
    wrong = validated(program);
    if (!wrong.empty()) return "after the failures: " + wrong;
    program.release_all();
    wrong = validated(program);
    if (!wrong.empty()) return "at the end: " + wrong;
    return failed ? "" : nothing_failed;
  });
}

// Lets the first call fail, then the second and so on, until there is no such call any more. The hardened heap makes
// many times as many, most of them to protect and to open pages (hardened_secure_fault_test.cpp). Returns: how many
// there were.
unsigned sweep(Call call, void (*arm)(Call, unsigned)) {
  const unsigned stride = test::fault_stride(secure ? 5 : 1);
  for (unsigned n = 1;; n += stride) {
    const std::string result = survive([&] { arm(call, n); });
    if (result == nothing_failed) return n - 1;
    EXPECT_EQ(result, "") << "when call " << n << " failed";
    if (!result.empty() || n > 5000) return n;
  }
}

TEST(HeapFault, any_one_call_may_fail) {
  EXPECT_GT(sweep(mock_os::any, mock_os::fail_nth), 20u);
}

TEST(HeapFault, every_call_from_any_point_on_may_fail) {
  EXPECT_GT(sweep(mock_os::any, mock_os::fail_from), 20u);
}

TEST(HeapFault, any_one_commit_may_fail) {
  EXPECT_GT(sweep(Call::Commit, mock_os::fail_nth), 5u);
}

TEST(HeapFault, purging_may_never_work) {
  EXPECT_EQ(survive([] { mock_os::fail_from(Call::Purge, 1); }), "");
}

TEST(HeapFault, threads_that_cannot_ask_for_a_call_at_their_end_still_allocate) {
  EXPECT_EQ(survive([] { mock_os::fail_from(Call::ArmThreadExit, 1); }), "");
  EXPECT_EQ(survive([] { mock_os::fail_from(Call::RegisterThreadExit, 1); }), "");
}

// Whatever the first call of a program is, and however the start fails.
TEST(HeapFault, the_first_call_of_a_program_may_find_no_memory) {
  using First = void* (*)();
  const First firsts[] = {[] { return test::allocate(1); },
                          [] { return test::allocate(100'000); },
                          [] { return test::calls::allocate_zeroed(1, 100); },
                          [] { return test::calls::allocate_zeroed(1, 100'000); },
                          [] { return test::calls::allocate_aligned(4096, 100); },
                          [] { return test::calls::allocate_aligned(mib, 100); },
                          [] { return test::calls::reallocate(nullptr, 100); }};
  for (const First first : firsts) {
    for (const Call call : {mock_os::any, Call::Reserve, Call::Commit, Call::MakeReadable}) {
      for (unsigned n = 1; n <= 8; ++n) {
        for (const auto arm : {mock_os::fail_nth, mock_os::fail_from}) {
          const std::string result = test::in_child([&]() -> std::string {
            arm(call, n);
            errno = 0;
            void* block = first();
            if (block == nullptr && errno != ENOMEM) return "null without ENOMEM";
            if (block != nullptr) std::memset(block, 1, test::calls::usable_size(block));
            test::calls::free(nullptr);
            test::calls::free(block);
            mock_os::never_fail();
            block = first();
            if (block == nullptr) return "no memory though the system has it again";
            std::memset(block, 1, test::calls::usable_size(block));
            test::calls::free(block);
            const char* wrong = heap::validate().what;
            return wrong != nullptr ? wrong : "";
          });
          ASSERT_EQ(result, "") << "first call " << (&first - firsts) << ", kind " << int(call) << ", n " << n;
        }
      }
    }
  }
}

TEST(HeapFault, realloc_copies_when_pages_cannot_be_moved) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              auto* block = static_cast<unsigned char*>(test::allocate(4 * mib));
              for (size_t i = 0; i < 4 * mib; ++i)
                block[i] = static_cast<unsigned char>(i * 7 + i / 4096);
              void* obstacle = test::allocate(100'000);  // right behind, or else the block would grow in place
              mock_os::fail_from(Call::MovePages, 1);
              auto* grown = static_cast<unsigned char*>(test::calls::reallocate(block, 40 * mib));
              if (grown == nullptr) return "no memory";
              if (!mock_os::has_failed()) return "no page was to be moved";
              for (size_t i = 0; i < 4 * mib; ++i)
                if (grown[i] != static_cast<unsigned char>(i * 7 + i / 4096)) return "contents lost";
              test::calls::free(grown);
              test::calls::free(obstacle);
              const char* wrong = heap::validate().what;
              return wrong != nullptr ? wrong : "";
            }),
            "");
}

// The address space that a move had prepared loses its mapping when the system refuses the move, and the new mapping
// too.
TEST(HeapFault, a_span_that_lost_its_mapping_serves_again) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              size_t committed = 0;
              for (unsigned round = 0; round < 60; ++round) {
                void* block = test::allocate(4 * mib);
                memset(block, 1, 4 * mib);
                void* obstacle = test::allocate(100'000);
                mock_os::fail_from(mock_os::any, 1 + round % 6);
                void* grown = test::calls::reallocate(block, 40 * mib);
                mock_os::never_fail();
                test::calls::free(grown != nullptr ? grown : block);
                test::calls::free(obstacle);
                (void)heap::trim(0);
                const MutexLock held(region::mutex());
                if (round == 11) committed = region::figures().committed_bytes;
                if (round > 11 && region::figures().committed_bytes > 2 * committed) return "address space leaked";
              }
              return "";
            }),
            "");
}

// After a purge that failed half way the pages are dirty for the heap: calloc clears them.
TEST(HeapFault, calloc_is_zero_after_a_purge_that_failed) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              options.retain = 0;
              mock_os::fail_from(Call::Purge, 1);
              for (unsigned round = 0; round < 60; ++round) {
                void* block = test::allocate(mib);
                std::memset(block, 0xff, mib);
                test::calls::free(block);
                (void)heap::trim(0);
                auto* zeroed = static_cast<unsigned char*>(test::calls::allocate_zeroed(1, mib));
                for (size_t i = 0; i < mib; ++i)
                  if (zeroed[i] != 0) return "not zero";
                test::calls::free(zeroed);
              }
              if (!mock_os::has_failed()) return "nothing was to be purged";
              const char* wrong = heap::validate().what;
              return wrong != nullptr ? wrong : "";
            }),
            "");
}

// As above for spans whose mapping was to be renewed because pages were moved there.
TEST(HeapFault, calloc_is_zero_after_a_renewal_that_failed) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::fail_from(Call::Renew, 1);
              auto* block = static_cast<unsigned char*>(test::allocate(4 * mib));
              std::memset(block, 0xff, 4 * mib);
              void* obstacle = test::allocate(100'000);
              auto* moved = static_cast<unsigned char*>(test::calls::reallocate(block, 20 * mib));
              std::memset(moved, 0xff, 20 * mib);
              test::calls::free(moved);
              auto* zeroed = static_cast<unsigned char*>(test::calls::allocate_zeroed(1, 20 * mib));
              for (size_t i = 0; i < 20 * mib; ++i)
                if (zeroed[i] != 0) return "not zero";
              test::calls::free(zeroed);
              test::calls::free(obstacle);
              const char* wrong = heap::validate().what;
              return wrong != nullptr ? wrong : "";
            }),
            "");
}

TEST(HeapFault, renewing_may_fail_when_the_old_mapping_is_gone) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the heap has no place of its own here: others map what it has lost";
#endif
  EXPECT_EQ(survive([] {
              mock_os::unmap_on_failure();
              mock_os::fail_from(Call::Renew, 1);
            }),
            "");
}

// A block whose pages were moved, so that its mapping is to be renewed when it ends or becomes shorter.
unsigned char* moved_block(size_t size) {
  void* const block = test::allocate(4 * mib);
  std::memset(block, 1, 4 * mib);
  void* const obstacle = test::allocate(100'000);
  auto* const moved = static_cast<unsigned char*>(test::calls::reallocate(block, size));
  std::memset(moved, 2, size);
  test::calls::free(obstacle);
  return moved;
}

// Uses as much memory as was given back, and more.
std::string use_much() {
  std::vector<void*> blocks;
  for (int i = 0; i < 100; ++i)
    blocks.push_back(std::memset(test::allocate(mib), 3, mib));
  for (void* const block : blocks)
    test::calls::free(block);
  const char* const wrong = heap::validate().what;
  return wrong != nullptr ? wrong : "";
}

TEST(HeapFault, a_block_whose_mapping_is_lost_when_it_ends_is_not_used_before_it_has_one_again) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              unsigned char* const block = moved_block(20 * mib);
              mock_os::unmap_on_failure();
              mock_os::fail_from(Call::Renew, 1);
              test::calls::free(block);
              (void)heap::trim(0);
              if (!mock_os::has_failed()) return "no mapping was renewed";
              if (std::string wrong = use_much(); !wrong.empty()) return wrong;
              mock_os::never_fail();
              (void)heap::trim(0);
              const MutexLock held(region::mutex());
              const region::Figures now = region::figures();
              return now.committed_bytes - now.free_clean_bytes < 2 * mib ? "" : "address space leaked";
            }),
            "");
}

TEST(HeapFault, a_block_that_loses_the_mapping_of_its_end_when_it_shrinks_stays_whole) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              unsigned char* const block = moved_block(20 * mib);
              mock_os::unmap_on_failure();
              mock_os::fail_from(Call::Renew, 1);
              if (test::calls::reallocate(block, 2 * mib) != block) return "it was moved";
              (void)heap::trim(0);
              if (!mock_os::has_failed()) return "no mapping was renewed";
              if (std::string wrong = use_much(); !wrong.empty()) return wrong;
              for (size_t i = 0; i < 2 * mib; ++i)
                if (block[i] != 2) return "contents lost";
              auto* const grown = static_cast<unsigned char*>(test::calls::reallocate(block, 10 * mib));
              std::memset(grown, 4, 10 * mib);
              mock_os::never_fail();
              test::calls::free(grown);
              (void)heap::trim(0);
              const MutexLock held(region::mutex());
              const region::Figures now = region::figures();
              return now.committed_bytes - now.free_clean_bytes < 2 * mib ? "" : "address space leaked";
            }),
            "");
}

// A system with 3 GiB: what is more is refused, however it is asked for, and what a block grows by counts alone.
TEST(HeapFault, what_the_system_would_not_promise_is_refused) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              constexpr size_t gib = 1024 * mib;
              const auto refused = [](void* block) { return block == nullptr && errno == ENOMEM; };
              mock_os::set_all_memory(3 * gib);
              void* const small = test::allocate(100);
              void* const large = test::allocate(4 * mib);
              void* const obstacle = test::allocate(100'000);
              void* const grown = test::allocate(2 * gib);
              errno = 0;
              if (!refused(test::allocate(3 * gib + 1))) return "malloc";
              errno = 0;
              if (!refused(test::calls::allocate_zeroed(1, 3 * gib + 1))) return "calloc";
              errno = 0;
              if (!refused(test::calls::allocate_aligned(mib, 3 * gib + 1))) return "aligned_alloc";
              errno = 0;
              if (!refused(test::calls::reallocate(small, 3 * gib + 1))) return "realloc";
              errno = 0;
              if (!refused(test::calls::reallocate(large, 4 * gib))) return "realloc of pages";
              errno = 0;
              if (!refused(test::calls::reallocate(grown, 6 * gib))) return "realloc of many pages";
              void* const more = test::calls::reallocate(grown, 4 * gib);
              if (more == nullptr) return "growth by less is refused";
              void* const most = test::allocate(3 * gib - 4096);
              if (most == nullptr) return "nearly all there is is refused";
              for (void* const block : {small, large, obstacle, more, most})
                test::calls::free(block);
              const char* const wrong = heap::validate().what;
              return wrong != nullptr ? wrong : "";
            }),
            "");
}

}  // namespace
