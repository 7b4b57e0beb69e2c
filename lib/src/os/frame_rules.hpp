// Frame rules: how to come from a function's frame to its caller's, as the compiler has written it down in .eh_frame.
// Open it when stacks of x86-64 end too early, or to know which rules are understood.
//
// A rule says where the frame begins (the canonical frame address, CFA: the stack pointer of the caller) and where the
// caller's frame pointer is saved. The return address lies below the CFA. Other registers are not followed: compilers
// compute the CFA from the stack pointer or the frame pointer wherever a call may be made. Of DWARF's expressions those
// are understood that occur in such places: a word at an offset from a register (functions that align their stack), and
// that of the procedure linkage table.
#pragma once

#include <cstdint>

#include "os/objects.hpp"

namespace sluice::os {

struct FrameRule {
  enum class Cfa : uint8_t {
    Unknown,    // no rule, or one that is not understood
    Stack,      // the stack pointer and an offset
    Frame,      // the frame pointer and an offset
    AtStack,    // the word there
    AtFrame,    // the word there
    LinkTable,  // of an entry of the procedure linkage table
    Signal,     // the frame was pushed by the system for a signal handler
    Outermost   // there is no caller
  };
  enum class Saved : uint8_t { Same, AtCfa, AtFrame };  // the caller's frame pointer

  Cfa cfa;
  Saved frame_pointer;
  int16_t frame_pointer_offset;
  int32_t cfa_offset;
};

// Returns: the rule at an address of code. Requires: the object covers it. Reads the object's tables, nothing else.
FrameRule find_frame_rule(uintptr_t address, const LoadedObject& object) noexcept;

}  // namespace sluice::os
