// Stacks as the profile takes them: whole ones, those that signals interrupted, and damaged ones, which fault nowhere.
#include <csignal>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "os/memory.hpp"
#include "os/objects.hpp"
#include "os/unwind.hpp"

namespace {

using namespace sluice;

struct Trace {
  uintptr_t frames[256];
  os::Unwound found;

  bool passes(const void* function, size_t length = 256) const {
    for (unsigned i = 0; i < found.count; ++i)
      if (frames[i] - reinterpret_cast<uintptr_t>(function) < length) return true;
    return false;
  }
};

__attribute__((noinline)) void take(Trace& trace) {
  static thread_local os::StackBounds bounds{};
  trace.found = os::unwind(trace.frames, 256, bounds);
}

__attribute__((noinline)) int level(Trace& trace, int depth) {
  if (depth == 0) {
    take(trace);
    return 0;
  }
  return level(trace, depth - 1) + 1;  // no tail call
}

// Its frame is aligned, so that the compiler saves where it began on the stack.
__attribute__((noinline)) int aligned_level(Trace& trace, int depth) {
  alignas(128) volatile char filled[256];
  filled[depth] = 1;
  return level(trace, depth) + filled[depth];
}

// Its frame has a size that is known only when it runs.
__attribute__((noinline)) int sized_level(Trace& trace, size_t bytes) {
  auto* const memory = static_cast<volatile char*>(__builtin_alloca(bytes));
  memory[0] = 1;
  return aligned_level(trace, 3) + memory[0];
}

class Unwind : public testing::Test {
 protected:
  static void SetUpTestSuite() { os::prepare_unwinding(); }
};

TEST_F(Unwind, AStackReachesTheOutermostCall) {
  Trace trace{};
  EXPECT_EQ(level(trace, 20), 20);
  EXPECT_TRUE(trace.found.complete);
  EXPECT_GT(trace.found.count, 21U);
  EXPECT_TRUE(trace.passes(reinterpret_cast<const void*>(&level)));
}

// Else each stack would ask the system about its pages anew.
TEST_F(Unwind, WhatIsReadableOfAWholeStackIsKept) {
  Trace trace{};
  os::StackBounds bounds{};
  trace.found = os::unwind(trace.frames, 256, bounds);
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));  // sanitizers move what is local
  EXPECT_LE(bounds.low, here);
  EXPECT_GT(bounds.high, here);
}

TEST_F(Unwind, FramesThatAreAlignedOrOfAnySizeArePassed) {
  for (const size_t bytes : {size_t{16}, size_t{5000}, size_t{400'000}}) {
    Trace trace{};
    EXPECT_EQ(sized_level(trace, bytes), 5);
    EXPECT_TRUE(trace.found.complete) << bytes;
    EXPECT_TRUE(trace.passes(reinterpret_cast<const void*>(&sized_level), 1024)) << bytes;
  }
}

TEST_F(Unwind, AShorterListEndsWithTheInnermostCalls) {
  Trace whole{};
  Trace part{};
  (void)level(whole, 10);
  os::StackBounds bounds{};
  part.found = os::unwind(part.frames, 4, bounds);
  EXPECT_EQ(part.found.count, 4U);
  EXPECT_FALSE(part.found.complete);
}

Trace of_handler{};
void handle(int) {
  take(of_handler);
}

TEST_F(Unwind, AHandlersStackGoesOnWithWhatItInterrupted) {
  std::vector<char> memory(size_t{1} << 16);
  stack_t other{};
  other.ss_sp = memory.data();
  other.ss_size = memory.size();
  ASSERT_EQ(sigaltstack(&other, nullptr), 0);
  for (const int flags : {0, SA_ONSTACK}) {
    struct sigaction action {};
    action.sa_handler = handle;
    action.sa_flags = flags;
    ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
    of_handler = {};
    raise(SIGUSR1);
    EXPECT_TRUE(of_handler.found.complete) << flags;
    EXPECT_TRUE(of_handler.passes(reinterpret_cast<const void*>(&handle))) << flags;
    Trace direct{};
    take(direct);
    // What lies beyond this function is the same.
    ASSERT_GT(of_handler.found.count, 4U);
    EXPECT_EQ(of_handler.frames[of_handler.found.count - 1], direct.frames[direct.found.count - 1]) << flags;
  }
  other.ss_flags = SS_DISABLE;
  sigaltstack(&other, nullptr);
}

// Any words as a stack, with nothing behind them, and registers that point anywhere.
TEST_F(Unwind, ADamagedStackFaultsNowhere) {
  const size_t page = os::page_size();
  auto* const memory =
      static_cast<char*>(mmap(nullptr, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(mprotect(memory, page, PROT_NONE), 0);
  ASSERT_EQ(mprotect(memory + 3 * page, page, PROT_NONE), 0);
  char* const stack = memory + page;
  const auto start = reinterpret_cast<uintptr_t>(stack);
  Trace whole{};
  (void)level(whole, 5);
  uint64_t random = 1;
  const auto next = [&random]() {
    random = random * 6364136223846793005 + 1442695040888963407;
    return random >> 33;
  };
  unsigned longest = 0;
  for (int round = 0; round < 20'000; ++round) {
    for (size_t at = 0; at < 2 * page; at += sizeof(uintptr_t)) {
      uintptr_t word = 0;
      switch (next() % 4) {
        case 0:
          word = whole.frames[next() % whole.found.count] + 1;
          break;
        case 1:
          word = start + next() % (5 * page) - page;
          break;
        case 2:
          word = next() << 32 | next();
          break;
        default:
          break;
      }
      memcpy(stack + at, &word, sizeof word);
      if (round % 50 != 0 && at > page) break;
    }
    Trace trace{};
    os::StackBounds bounds{};
    const os::Registers registers{whole.frames[next() % whole.found.count], start + next() % (2 * page) / 8 * 8,
                                  start + next() % (3 * page)};
    trace.found = os::unwind_from(registers, trace.frames, 256, bounds);
    ASSERT_LE(trace.found.count, 256U);
    if (trace.found.count > longest) longest = trace.found.count;
  }
  EXPECT_GT(longest, 2U) << "nothing was followed";
  munmap(memory, 4 * page);
}

TEST_F(Unwind, MemoryIsAskedAboutBeforeItIsRead) {
  const size_t page = os::page_size();
  auto* const memory =
      static_cast<char*>(mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(mprotect(memory + page, page, PROT_NONE), 0);
  const auto address = reinterpret_cast<uintptr_t>(memory);
  EXPECT_TRUE(os::is_readable(address));
  EXPECT_FALSE(os::is_readable(address + page));
  char copy[16];
  EXPECT_TRUE(os::copy_if_readable(copy, address + page - sizeof copy, sizeof copy));
  EXPECT_FALSE(os::copy_if_readable(copy, address + page - 1, sizeof copy));
  const std::unique_ptr<char[]> block(new char[sizeof copy]());
  EXPECT_TRUE(os::copy_if_readable(copy, reinterpret_cast<uintptr_t>(block.get()) - 8, sizeof copy))
      << "what lies between objects is readable, too";
  munmap(memory, 2 * page);
  EXPECT_FALSE(os::is_readable(address));
  // To the system call that is asked, no address means that there is nothing to read.
  EXPECT_FALSE(os::is_readable(0));
  EXPECT_FALSE(os::is_readable(1));
  EXPECT_FALSE(os::copy_if_readable(copy, 1, sizeof copy));
}

}  // namespace
