// The hardened front while the system refuses: pages that cannot be protected, or not be opened again. The program gets
// a block or null with ENOMEM, and afterwards all is served. Open it when a limit of mappings or of memory breaks
// libsluice-secure.so; other calls that fail are those of heap_fault_test.cpp. Each case is a process of its own.
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "arena/frame.hpp"
#include "base/options.hpp"
#include "fault_stride.hpp"
#include "heap_program.hpp"
#include "in_child.hpp"
#include "mock_os.hpp"
#include "pages/region.hpp"
#include "secure/hardened.hpp"

namespace {

using namespace sluice;
using mock_os::Call;
using test::HeapProgram;

constexpr size_t mib = size_t{1} << 20;
const char nothing_failed[] = "nothing failed";

std::string use(HeapProgram& program, bool may_run_out) {
  program.may_run_out(may_run_out);
  for (int i = 0; i < 150; ++i)
    program.step();
  program.allocate(0, 2 * mib);
  program.allocate(1, 70'000);
  for (const size_t size : {9 * mib, 20 * mib, 3 * mib, size_t{100'000}, size_t{50}, 2 * mib})
    program.reallocate(0, size);
  std::thread([&] {
    program.release(2);
    program.allocate(3, 5'000);
  }).join();
  (void)heap::trim(0);
  for (int i = 0; i < 50; ++i)
    program.step();
  const char* const invalid = heap::validate().what;
  return program.wrong().empty() && invalid != nullptr ? invalid : program.wrong();
}

template <typename Arm>
std::string survive(Arm arm) {
  return test::in_child([&arm]() -> std::string {
    options.purge_delay = 0;
    arm();
    HeapProgram program(40, 11, 3 * mib);
    std::string wrong = use(program, true);
    if (!wrong.empty()) return wrong;
    const bool failed = mock_os::has_failed();
    mock_os::never_fail();
    wrong = use(program, false);
    program.release_all();
    if (!wrong.empty()) return "afterwards: " + wrong;
    return failed ? "" : nothing_failed;
  });
}

unsigned sweep(Call call, void (*arm)(Call, unsigned)) {
  const unsigned stride = test::fault_stride(5);
  for (unsigned n = 1;; n += stride) {
    const std::string result = survive([=] { arm(call, n); });
    if (result == nothing_failed) return n;
    EXPECT_EQ(result, "") << "call " << n << " of kind " << static_cast<int>(call);
    if (!result.empty() || n > 5000) return n;
  }
}

TEST(HardenedFault, AnyOneProtectionMayFail) {
  EXPECT_GT(sweep(Call::Protect, mock_os::fail_nth), 20u);
}

TEST(HardenedFault, ProtectionMayFailFromAnyPointOn) {
  EXPECT_GT(sweep(Call::Protect, mock_os::fail_from), 20u);
}

TEST(HardenedFault, AnyOneOpeningMayFail) {
  EXPECT_GT(sweep(Call::Commit, mock_os::fail_nth), 20u);
}

TEST(HardenedFault, OpeningMayFailFromAnyPointOn) {
  EXPECT_GT(sweep(Call::Commit, mock_os::fail_from), 20u);
}

// A block that becomes shorter needs no memory that there is not.
TEST(HardenedFault, MakingABlockSmallerNeverFails) {
  for (const size_t from : {600, 60'000, 200'000, 5'000'000}) {
    for (const size_t to : {1, 200, 40'000, 150'000}) {
      if (to > from) continue;
      EXPECT_EQ(test::in_child([=]() -> std::string {
                  auto* const block = static_cast<char*>(test::allocate(from));
                  memset(block, 's', from);
                  mock_os::fail_from(mock_os::any, 1);
                  auto* const shorter = static_cast<char*>(hardened::reallocate(block, to));
                  if (shorter == nullptr) return "null";
                  if (hardened::usable_size(shorter) < to) return "too short";
                  for (size_t i = 0; i < to; ++i)
                    if (shorter[i] != 's') return "contents lost";
                  hardened::free(shorter);
                  return "";
                }),
                "")
          << from << " " << to;
    }
  }
}

// What waits in the quarantine is there when nothing else is.
TEST(HardenedFault, MemoryThatWaitsServesSmallBlocksToo) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_address_space_limit(128 * mib);
              std::vector<void*> large, small;
              for (void* block; (block = test::allocate(8 * mib)) != nullptr;)
                large.push_back(block);
              for (size_t size = 60'000; size != 0; size /= 4)
                for (void* block; (block = test::allocate(size)) != nullptr;)
                  small.push_back(block);
              if (large.size() < 3) return "few large blocks";
              for (void* block : large)
                hardened::free(block);
              for (size_t size = 1; size < 60'000; size = size * 2 + 1)
                if (test::allocate(size) == nullptr) return "no block of " + std::to_string(size);
              std::string wrong;
              std::thread([&wrong] {
                if (test::allocate(100) == nullptr) wrong = "no block for a new thread";
              }).join();
              return wrong;
            }),
            "");
}

// Frames likewise: those of a thread that has some, and the first of one that has none.
TEST(HardenedFault, MemoryThatWaitsServesFramesToo) {
  for (const bool first_of_thread : {false, true}) {
    EXPECT_EQ(test::in_child([=]() -> std::string {
                mock_os::set_address_space_limit(128 * mib);
                sluice_frame_state frames{};
                if (!first_of_thread && arena::get_chunk(&frames, unit_size) == nullptr) return "no frame at first";
                std::vector<void*> large;
                large.reserve(100'000);
                for (size_t size = 8 * mib; size > 60'000; size /= 2)
                  for (void* block; (block = test::allocate(size)) != nullptr;)
                    large.push_back(block);
                // What is left for the heap's own structures, too.
                for (size_t bytes = unit_size; bytes >= sizeof(Unit); bytes /= 2)
                  while (region::allocate_metadata(bytes) != nullptr)
                    continue;
                for (void* block : large)
                  hardened::free(block);
                return arena::get_chunk(&frames, 100'000) != nullptr ? "" : "no frame";
              }),
              "")
        << first_of_thread;
  }
}

}  // namespace
