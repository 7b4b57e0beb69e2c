// Stacks that share calls with the one before are told as libgcc tells them, whatever changed in between. Where frames
// are found without rules none is kept, so that there is nothing to test.
#if defined(__x86_64__)
#include <execinfo.h>

#include <csignal>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "os/known_stacks.hpp"
#include "os/unwind.hpp"

namespace {

using namespace sluice;

constexpr unsigned most = 400;

// One thread's walk through calls that it chooses at random, and what it found wrong.
struct Calls {
  uint64_t random;
  os::StackBounds bounds{};
  size_t compared = 0, longest = 0;
  std::string wrong{};
  volatile unsigned used = 0;  // what the functions below compute
  bool from_handlers = false;

  unsigned below(unsigned end) {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    return static_cast<unsigned>(random % end);
  }
};

// The two lists from the frame of the caller on. An address of ours lies in the call; what a signal has interrupted is
// told exactly.
__attribute__((noinline)) void compare(Calls& calls) {
  uintptr_t frames[most];
  const os::Unwound found = os::unwind(frames, most, calls.bounds);
  void* expected[most];
  const auto count = static_cast<unsigned>(backtrace(expected, most));
  if (found.count < 3 || count < 3) {
    calls.wrong = "there are fewer calls than three";
    return;
  }
  // Ours begins in unwind(), theirs here or in a sanitizer's backtrace(), and both go on with this function's caller.
  const auto is_same = [](uintptr_t ours, const void* theirs) {
    const auto address = reinterpret_cast<uintptr_t>(theirs);
    return ours == address - 1 || ours == address;
  };
  unsigned caller = 1;
  while (caller < 4 && caller < count && !is_same(frames[2], expected[caller]))
    ++caller;
  for (unsigned i = caller; i < count; ++i) {
    if (2 + i - caller >= found.count || !is_same(frames[2 + i - caller], expected[i])) {
      calls.wrong = "call " + std::to_string(i) + " of " + std::to_string(count) + " differs after " +
                    std::to_string(calls.compared) + " stacks";
      return;
    }
  }
  if (!found.complete) calls.wrong = "a stack is not complete";
  ++calls.compared;
  if (count > calls.longest) calls.longest = count;
}

thread_local Calls* of_handler = nullptr;
void handle(int) {
  compare(*of_handler);
}

void choose(Calls& calls, unsigned depth);

// Functions that find their frames in different ways, of which some have frames of one size.
template <unsigned kind>
__attribute__((noinline)) void plain(Calls& calls, unsigned depth) {
  choose(calls, depth);
  calls.used = calls.used + kind;
}
template <unsigned bytes>
__attribute__((noinline)) void aligned(Calls& calls, unsigned depth) {
  alignas(64) volatile char filled[bytes];
  filled[depth % bytes] = 1;
  choose(calls, depth);
  calls.used = calls.used + static_cast<unsigned char>(filled[0]);
}
__attribute__((noinline)) void sized(Calls& calls, unsigned depth) {
  auto* const memory = static_cast<volatile char*>(__builtin_alloca(16 + calls.below(4) * 32));
  memory[0] = 1;
  choose(calls, depth);
  calls.used = calls.used + static_cast<unsigned char>(memory[0]);
}
// Keeps many values in registers, the frame pointer's among them, over calls of its own.
__attribute__((noinline)) void busy(Calls& calls, unsigned depth) {
  const uint64_t a = calls.random, b = a * 3, c = b ^ a, d = c * 5, e = d ^ b, f = e + a;
  for (unsigned i = calls.below(3) + 1; i != 0; --i) {
    choose(calls, depth);
    calls.used = calls.used + static_cast<unsigned>(a ^ b ^ c ^ d ^ e ^ f) * i;
  }
}

void choose(Calls& calls, unsigned depth) {
  if (!calls.wrong.empty()) return;
  if (depth == 0) {
    if (calls.from_handlers && calls.below(4) == 0)
      raise(SIGUSR1);
    else
      compare(calls);
    return;
  }
  // Few ways near the root, so that stacks share it.
  switch (calls.below(depth > 6 ? 2 : 7)) {
    case 0:
      return plain<1>(calls, depth - 1);
    case 1:
      return busy(calls, depth - 1);
    case 2:
      return plain<2>(calls, depth - 1);
    case 3:
      return aligned<64>(calls, depth - 1);
    case 4:
      return aligned<128>(calls, depth - 1);
    case 5:
      return sized(calls, depth - 1);
    default:
      return plain<3>(calls, 0);
  }
}

std::string walk_at_random(uint64_t seed, unsigned rounds, bool from_handlers) {
  Calls calls{seed};
  calls.from_handlers = from_handlers;
  of_handler = &calls;
  for (unsigned i = 0; i < rounds && calls.wrong.empty(); ++i)
    choose(calls, 3 + calls.below(10));
  if (calls.wrong.empty() && calls.compared < rounds) return "there are too few stacks";
  return calls.wrong;
}

class KnownStacks : public testing::Test {
 protected:
  static void SetUpTestSuite() { os::prepare_unwinding(); }
};

TEST_F(KnownStacks, StacksThatShareCallsAreToldWhole) {
  for (uint64_t seed = 1; seed <= 20; ++seed)
    ASSERT_EQ(walk_at_random(seed, 100, false), "") << seed;
}

TEST_F(KnownStacks, SoAreThoseOfHandlers) {
  struct sigaction action {};
  action.sa_handler = handle;
  ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
  for (uint64_t seed = 1; seed <= 10; ++seed)
    ASSERT_EQ(walk_at_random(seed, 50, true), "") << seed;
}

TEST_F(KnownStacks, SoAreThoseOfManyThreads) {
  std::vector<std::string> wrong(24);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < wrong.size(); ++i)
    threads.emplace_back([&wrong, i] { wrong[i] = walk_at_random(i + 1, 100, false); });
  for (std::thread& thread : threads)
    thread.join();
  for (const std::string& what : wrong)
    EXPECT_EQ(what, "");
}

__attribute__((noinline)) void go_down(Calls& calls, unsigned depth) {
  if (depth == 0)
    compare(calls);
  else
    go_down(calls, depth - 1);
  calls.used = calls.used + 1;  // no tail call
}

// More calls than are kept, and fewer again.
TEST_F(KnownStacks, DeepStacksAreToldWhole) {
  Calls calls{1};
  for (const unsigned depth : {5U, 130U, 138U, 140U, 300U, 301U, 300U, 40U, 41U, 140U, 139U, 5U})
    for (unsigned i = 0; i < 3; ++i) {
      go_down(calls, depth);
      ASSERT_EQ(calls.wrong, "") << depth;
    }
  EXPECT_GT(calls.longest, 300U);
}

// A list that is too short for the stack says so, also where the stack is known.
TEST_F(KnownStacks, AShortListIsNotComplete) {
  os::StackBounds bounds{};
  uintptr_t whole[most];
  uintptr_t part[most];
  const os::Unwound all = os::unwind(whole, most, bounds);
  ASSERT_TRUE(all.complete);
  for (unsigned shorter = 1; shorter < all.count; ++shorter) {
    for (unsigned i = 0; i < 2; ++i) {
      const os::Unwound found = os::unwind(part, shorter, bounds);
      EXPECT_EQ(found.count, shorter);
      EXPECT_FALSE(found.complete) << shorter << " of " << all.count;
    }
    EXPECT_TRUE(os::unwind(part, most, bounds).complete) << shorter;
  }
}

// Two callees of one call instruction, of which the first saves the frame pointer where the second has a variable,
// which holds an address of the stack; and two callers of that, of which the second finds its frame by the frame
// pointer.
extern "C" {
void known_leaf_saves(Calls* calls);
void known_leaf_keeps(Calls* calls);
void known_top_by_stack(void (*leaf)(Calls*), Calls* calls);
void known_top_by_frame(void (*leaf)(Calls*), Calls* calls);
void known_compare(Calls* calls) {
  compare(*calls);
}
}
asm(R"(
  .text
known_leaf_saves:
  .cfi_startproc
  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset 6, -16
  movl $1, %ebp
  call known_compare
  popq %rbp
  .cfi_def_cfa_offset 8
  .cfi_restore 6
  ret
  .cfi_endproc
known_leaf_keeps:
  .cfi_startproc
  subq $8, %rsp
  .cfi_def_cfa_offset 16
  movq %rdi, (%rsp)
  call known_compare
  addq $8, %rsp
  .cfi_def_cfa_offset 8
  ret
  .cfi_endproc
known_middle:
  .cfi_startproc
  subq $8, %rsp
  .cfi_def_cfa_offset 16
  movq %rdi, %rax
  movq %rsi, %rdi
  call *%rax
  addq $8, %rsp
  .cfi_def_cfa_offset 8
  ret
  .cfi_endproc
known_top_by_stack:
  .cfi_startproc
  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset 6, -16
  movl $7, %ebp
  call known_middle
  popq %rbp
  .cfi_def_cfa_offset 8
  .cfi_restore 6
  ret
  .cfi_endproc
known_top_by_frame:
  .cfi_startproc
  pushq %rbp
  .cfi_def_cfa_offset 16
  .cfi_offset 6, -16
  movq %rsp, %rbp
  .cfi_def_cfa_register 6
  call known_middle
  popq %rbp
  .cfi_def_cfa 7, 8
  ret
  .cfi_endproc
)");

TEST_F(KnownStacks, AKnownFrameMayHaveAnotherCallee) {
  using Top = void (*)(void (*)(Calls*), Calls*);
  using Leaf = void (*)(Calls*);
  const Top tops[] = {known_top_by_stack, known_top_by_frame};
  const Leaf leaves[] = {known_leaf_saves, known_leaf_keeps};
  Calls calls{1};
  for (unsigned i = 0; i < 400; ++i) {
    constexpr unsigned first[] = {0, 1, 3};  // leaf and top
    const unsigned choice = i < 3 ? first[i] : calls.below(4);
    const volatile Top top = tops[choice >> 1];
    const volatile Leaf leaf = leaves[choice & 1];
    top(leaf, &calls);
    ASSERT_EQ(calls.wrong, "") << i;
  }
}

TEST_F(KnownStacks, WhatIsTakenIsGivenToOneAlone) {
  static os::KnownStacks stacks{};
  const int thread = 0;
  os::KnownStack* const first = stacks.take(&thread);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(stacks.take(&thread), nullptr);
  stacks.give_back(&thread);
  EXPECT_EQ(stacks.take(&thread), first);
  stacks.give_back(&thread);
}

os::KnownFrame frame_at(uintptr_t stack, uintptr_t pointer, os::Reached reached) {
  return {{stack * 7, stack, pointer}, reached};
}

TEST_F(KnownStacks, AFramePointerThatNoRuleUsesMayDiffer) {
  static os::KnownStack stack{};
  stack.begin();
  stack.note(frame_at(0x1000, 1, os::Reached::exactly()));
  stack.note(frame_at(0x1010, 1, os::Reached::by_rule(0, false)));
  stack.note(frame_at(0x1020, 2, os::Reached::by_rule(0x1018, false)));  // loaded: what it was before does not matter
  stack.note(frame_at(0x1030, 2, os::Reached::by_rule(0, true)));        // found by it
  stack.become_known(true);
  stack.begin();
  EXPECT_NE(stack.find({0x1000 * 7, 0x1000, 9}, true), nullptr);
  EXPECT_NE(stack.find({0x1010 * 7, 0x1010, 9}, false), nullptr);
  EXPECT_EQ(stack.find({0x1020 * 7, 0x1020, 9}, false), nullptr);
  EXPECT_NE(stack.find({0x1020 * 7, 0x1020, 2}, false), nullptr);
  stack.begin();
  EXPECT_EQ(stack.find({0x1000 * 7, 0x1000, 1}, false), nullptr) << "another instruction is meant";
  EXPECT_EQ(stack.find({0x1000 * 7 + 1, 0x1000, 1}, true), nullptr);
  EXPECT_EQ(stack.find({0x1008 * 7, 0x1008, 1}, false), nullptr);
}

TEST_F(KnownStacks, TheInnermostFramesOfADeepStackAreKept) {
  static os::KnownStack stack{};
  stack.begin();
  for (uintptr_t at = 0; at < os::KnownStack::most + 10; ++at)
    stack.note(frame_at(16 * at, 1, os::Reached::by_rule(0, false)));
  stack.become_known(true);
  EXPECT_FALSE(stack.is_complete());
  stack.begin();
  const os::KnownFrame* const first = stack.find({0, 0, 1}, false);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(stack.end() - first, static_cast<ptrdiff_t>(os::KnownStack::most));
}

}  // namespace
#endif
