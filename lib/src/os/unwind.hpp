// Stacks of unmodified programs: which calls lead here. For code that runs in malloc, many times a second. Open it when
// a stack is short or wrong. Reports of memory errors have their traces from here, too, where all tables are found.
//
// On Linux and x86-64 the compiler's tables are followed (frame_rules.hpp), since most libraries keep no frame pointer;
// code without tables (what a JIT has made) by frame pointers. Elsewhere by frame pointers alone. No word is read of
// which it is not known that it can be: what of the thread's stack is readable is asked of the system, on Linux page by
// page, and kept (StackBounds). A damaged stack makes a trace short or wrong; it faults nowhere.
//
// Nothing here allocates, waits or changes errno, and all but prepare_unwinding() is async-signal-safe. A trace takes
// at most some hundred nanoseconds for each frame, and a few microseconds where a rule is met for the first time.
#pragma once

#include <cstdint>

namespace sluice::os {

// What is known to be readable of a stack; nothing at first. One for each thread.
struct StackBounds {
  uintptr_t low, high;
};

struct Unwound {
  unsigned count;
  bool complete;  // the outermost frame is among them
};

// Whether tables are followed, those of libraries that are opened later, too. Requires: prepare_unwinding().
bool unwinds_by_all_tables() noexcept;

// Effects: makes unwind() ready; maps a table of rules. Called once, at start; not for signal handlers.
void prepare_unwinding() noexcept;

// Whether code of this library lies there. Where it is linked into a program and cannot be told from it, none does.
// Requires: prepare_unwinding().
bool is_own_code(uintptr_t address) noexcept;

// Effects: writes the addresses of the calls that lead here, innermost first, without those inside this library. They
// are return addresses less one, so that they lie in the call; what a signal has interrupted is told exactly. Returns:
// how many. Requires: prepare_unwinding().
Unwound unwind(uintptr_t* frames, unsigned most, StackBounds& bounds) noexcept;

// The same for a stack that is seldom asked for: nothing of it is kept.
Unwound unwind(uintptr_t* frames, unsigned most) noexcept;

// Effects: forgets what was kept of stacks, which may look like pointers to blocks. In a copy of the process that has
// one thread, which takes no more traces.
void forget_stacks() noexcept;

// The same from registers that are given: for tests of damaged stacks.
struct Registers {
  uintptr_t instruction, stack, frame;
};
Unwound unwind_from(const Registers& registers, uintptr_t* frames, unsigned most, StackBounds& bounds) noexcept;

}  // namespace sluice::os
