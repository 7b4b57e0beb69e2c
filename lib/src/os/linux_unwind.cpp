// See unwind.hpp.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "os/frame_rules.hpp"
#include "os/known_stacks.hpp"
#include "os/linux_own_code.hpp"
#include "os/memory.hpp"
#include "os/objects.hpp"
#include "os/process.hpp"
#include "os/trace.hpp"
#include "os/unwind.hpp"

namespace sluice::os {
namespace {

constexpr uintptr_t near_pages = 64;                     // what lies farther off is looked at by itself
constexpr uintptr_t largest_frame = uintptr_t{1} << 30;  // bytes

constinit OwnCode own{};

// Null where frames are found without rules: there is nothing to save.
constinit KnownStacks* known_stacks = nullptr;

uintptr_t page_of(uintptr_t address) noexcept {
  return address & ~(page_size() - 1);
}

// Reads words of a stack, of which some are known to be readable.
class Stack {
 public:
  Stack(const StackBounds& bounds, uintptr_t pointer) noexcept : bounds_(bounds) { begin(pointer); }

  const StackBounds& bounds() const noexcept { return bounds_; }

  // The stack goes on at `pointer`, or another one does.
  void begin(uintptr_t pointer) noexcept {
    if (pointer >= bounds_.low && pointer < bounds_.high) return;
    const uintptr_t page = page_of(pointer);
    uintptr_t end = page;
    if (pointer < bounds_.low && bounds_.low - page <= near_pages * page_size()) {
      while (end != bounds_.low && is_readable(end))
        end += page_size();
      if (end == bounds_.low) end = bounds_.high;
    }
    bounds_ = {page, end};
  }

  __attribute__((no_sanitize("address"))) bool word(uintptr_t address, uintptr_t* value) noexcept {
    if (address % sizeof *value != 0 || !can_read(address)) return false;
    *value = *reinterpret_cast<const volatile uintptr_t*>(address);
    return true;
  }

 private:
  bool can_read(uintptr_t address) noexcept {
    if (address >= bounds_.low && address < bounds_.high) [[likely]]
      return true;
    if (address < bounds_.low || address - bounds_.high >= near_pages * page_size()) return is_readable(address);
    while (address >= bounds_.high) {
      if (!is_readable(bounds_.high)) return false;
      bounds_.high += page_size();
    }
    return true;
  }

  StackBounds bounds_;
};

#if defined(__x86_64__)

// Rules that have been looked up, by address. A row is two words; the first is the address and the second, one over the
// other, so that a reader who meets half of another thread's row finds none. The object is part of it: a library that
// was closed leaves rows that no other library's code is taken for, unless that has its place and its size.
struct Row {
  std::atomic<uint64_t> check, data;
};
constexpr size_t row_count = size_t{1} << 14;
constinit Row* rows = nullptr;

constexpr unsigned cfa_bits = 3, saved_bits = 2, offset_bits = 16, cfa_offset_bits = 27;

uint64_t tag_of(const LoadedObject& object) noexcept {
  return ((object.start >> 12) * 0x9e3779b97f4a7c15 ^ reinterpret_cast<uintptr_t>(object.unwind_table)) & 0xffff;
}

bool pack(const FrameRule& rule, const LoadedObject& object, uint64_t* data) noexcept {
  constexpr int32_t most = 1 << (cfa_offset_bits - 1);
  if (rule.cfa_offset >= most || rule.cfa_offset < -most) return false;
  *data = static_cast<uint64_t>(rule.cfa);
  *data |= static_cast<uint64_t>(rule.frame_pointer) << cfa_bits;
  *data |= uint64_t{static_cast<uint16_t>(rule.frame_pointer_offset)} << (cfa_bits + saved_bits);
  *data |= (uint64_t{static_cast<uint32_t>(rule.cfa_offset)} & ((1u << cfa_offset_bits) - 1))
           << (cfa_bits + saved_bits + offset_bits);
  *data |= tag_of(object) << (cfa_bits + saved_bits + offset_bits + cfa_offset_bits);
  return true;
}

FrameRule unpack(uint64_t data) noexcept {
  FrameRule rule{};
  rule.cfa = static_cast<FrameRule::Cfa>(data & 7);
  rule.frame_pointer = static_cast<FrameRule::Saved>(data >> cfa_bits & 3);
  rule.frame_pointer_offset = static_cast<int16_t>(data >> (cfa_bits + saved_bits));
  constexpr unsigned above = 64 - (cfa_bits + saved_bits + offset_bits + cfa_offset_bits);
  rule.cfa_offset = static_cast<int32_t>(static_cast<int64_t>(data << above) >> (64 - cfa_offset_bits));
  return rule;
}

FrameRule rule_at(uintptr_t address, const LoadedObject& object) noexcept {
  if (rows == nullptr) return find_frame_rule(address, object);
  Row& row = rows[address * 0x9e3779b97f4a7c15 >> 50];
  const uint64_t data = row.data.load(std::memory_order_relaxed);
  if ((row.check.load(std::memory_order_relaxed) ^ data) == address && data >> 48 == tag_of(object)) [[likely]]
    return unpack(data);
  const FrameRule rule = find_frame_rule(address, object);
  if (uint64_t packed; pack(rule, object, &packed)) {
    row.data.store(packed, std::memory_order_relaxed);
    row.check.store(packed ^ address, std::memory_order_relaxed);
  }
  return rule;
}

// Where the system puts what a signal interrupted, from the stack pointer of the handler's return on: struct ucontext.
constexpr uintptr_t context_frame = 120, context_stack = 160, context_instruction = 168;

// Whether a call may have led to this address, by the instruction before it: call to a distance, or through a register
// or memory. Code that a program has generated lies in no object.
bool follows_a_call(uintptr_t address) noexcept {
  unsigned char before[7];
  if (address < sizeof before || !copy_if_readable(before, address - sizeof before, sizeof before)) return false;
  const unsigned char* const end = before + sizeof before;
  constexpr unsigned char direct = 0xe8, indirect = 0xff;
  if (end[-5] == direct) return true;
  for (const unsigned length :
       {2u, 3u, 4u, 6u, 7u}) {  // a register; a byte or four of distance, with an index or without
    const unsigned char* const at = end - length;
    const unsigned mode = at[1] >> 6;
    const bool has_index = mode != 3 && (at[1] & 7) == 4;
    const bool is_relative = mode == 0 && (at[1] & 7) == 5;  // to the instruction
    constexpr unsigned distance_bytes[] = {0, 1, 4, 0};
    const unsigned distance = is_relative ? 4 : distance_bytes[mode];
    if (at[0] == indirect && (at[1] >> 3 & 7) == 2 && 2 + has_index + distance == length) return true;
  }
  return false;
}

// What a signal handler returns to, where no table tells: mov $15, %rax; syscall.
bool returns_from_signal(uintptr_t address) noexcept {
  static constexpr unsigned char code[] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 5};
  unsigned char found[sizeof code];
  return copy_if_readable(found, address, sizeof found) && memcmp(found, code, sizeof code) == 0;
}

#endif

using CallTrace = Trace<OwnCode>;

// Goes from frame to frame.
class Walk {
 public:
  Walk(const Registers& registers, const StackBounds& bounds, KnownStack* known) noexcept
      : now_(registers), stack_(bounds, registers.stack), known_(known), exact_(true) {}

  const StackBounds& bounds() const noexcept { return stack_.bounds(); }
  bool is_outermost() const noexcept { return outermost_; }

  // The call, or the instruction that was interrupted.
  uintptr_t place() const noexcept { return now_.instruction - (exact_ ? 0 : 1); }

  // Goes to the caller; past those that are known, which the trace gets. False where there is none, or none can be
  // found, or the trace is full.
  bool step([[maybe_unused]] CallTrace& trace) noexcept {
#if defined(__x86_64__)
    return known_ != nullptr ? step_from_what_is_known(trace) : step_by_rule();
#else
    outermost_ = now_.frame == 0;  // so a stack begins, by the Procedure Call Standard for AArch64
    return !outermost_ && is_in_reach(now_.frame) && follow_frame_pointer();
#endif
  }

  // What was learnt is kept for the next stack.
  void end() noexcept {
    if (known_ == nullptr || ended_in_what_is_known_) return;
    known_->become_known(outermost_ && now_.instruction != 0);  // else a word on the stack says so, and may change
  }

 private:
#if defined(__x86_64__)
  bool step_from_what_is_known(CallTrace& trace) noexcept {
    KnownFrame* const first = known_->find(now_, exact_);
    if (first == nullptr) {
      known_->note({now_, reached_});
      return step_by_rule();
    }
    first->reached = reached_;  // another callee may have led to it
    KnownFrame* last = first;
    const KnownFrame* const end = known_->end();
    bool full = false;
    while (!full && last + 1 != end && leads_to(*last, last[1])) {
      ++last;
      full = !trace.add(last->registers.instruction - 1);
    }
    outermost_ = !full && last + 1 == end && known_->is_complete();
    ended_in_what_is_known_ = full || outermost_;
    if (ended_in_what_is_known_) {
      known_->become_known_up_to(first);
      return false;
    }
    known_->note_all(first, last + 1);
    now_ = last->registers;
    exact_ = exact_ && last == first;
    return step_by_rule();
  }

  // Whether the words that led from one known frame to the next are still there. Requires: the first is on the stack.
  bool leads_to(const KnownFrame& frame, KnownFrame& caller) noexcept {
    if (!caller.reached.is_by_rule()) return false;
    uintptr_t instruction = 0;
    if (!stack_.word(caller.registers.stack - sizeof instruction, &instruction) ||
        instruction != caller.registers.instruction)
      return false;
    uintptr_t pointer = frame.registers.frame;
    const uintptr_t at = caller.reached.frame_pointer_at();
    if (at != 0 && !stack_.word(at, &pointer)) return false;
    return known_->may_have_pointer(caller, pointer);
  }

  bool step_by_rule() noexcept {
    const uintptr_t address = place();
    if ((!object_.covers(address) || object_.is_split) && !find_object(address, &object_)) object_ = {};
    FrameRule rule{};
    if (object_.end != 0) rule = rule_at(address, object_);
    if (rule.cfa == FrameRule::Cfa::Unknown && returns_from_signal_at(now_.instruction))
      rule.cfa = FrameRule::Cfa::Signal;
    switch (rule.cfa) {
      case FrameRule::Cfa::Unknown:
        return step_without_rule();
      case FrameRule::Cfa::Outermost:
        outermost_ = true;
        return false;
      case FrameRule::Cfa::Signal:
        return leave_handler();
      default:
        return follow(rule);
    }
  }
#endif

  bool go_to(uintptr_t instruction, uintptr_t stack, uintptr_t frame, bool exact) noexcept {
    now_ = {instruction, stack, frame};
    exact_ = exact;
    outermost_ = instruction == 0;
    return instruction != 0;
  }

  bool is_in_reach(uintptr_t frame) const noexcept {
    return frame >= now_.stack && frame - now_.stack <= largest_frame;
  }

  bool follow_frame_pointer() noexcept {
    uintptr_t caller = 0;
    uintptr_t instruction = 0;
    const uintptr_t frame = now_.frame;
    if (!is_still_readable(frame) || !stack_.word(frame, &caller) || !stack_.word(frame + sizeof frame, &instruction))
      return false;
    reached_ = Reached::otherwise();
    return go_to(instruction, frame + 2 * sizeof frame, caller, false);
  }

  // Code without tables may keep anything in the register, also a place in another stack that has gone since it was
  // found to be readable. Where all code is followed so, it keeps frame pointers.
  static bool is_still_readable([[maybe_unused]] uintptr_t frame) noexcept {
#if defined(__x86_64__)
    return is_readable(frame) && is_readable(frame + sizeof frame);
#else
    return true;
#endif
  }

#if defined(__x86_64__)
  // A frame pointer of 0 marks the outermost frame (System V ABI for AMD64). Where a file has a table that is silent,
  // the frame pointer may be anything, but code that keeps one may lie there (V8's): it led to a call then. Go's always
  // keeps one, and leads to another stack, which stays for as long as the thread is to return to it.
  bool step_without_rule() noexcept {
    outermost_ = now_.frame == 0;
    if (outermost_) return false;
    const bool has_pointer = object_.unwind_table == nullptr || is_gos(place());
    if (!is_in_reach(now_.frame)) {
      if (!is_gos(place())) return false;
      stack_.begin(now_.frame);
    }
    return follow_frame_pointer() && (has_pointer || follows_a_call(now_.instruction));
  }

  // Only what a handler returns to is asked about, by a system call: an address at which no table covers the call.
  bool returns_from_signal_at(uintptr_t address) const noexcept {
    return !exact_ && returns_from_signal(address);
  }

  bool leave_handler() noexcept {
    uintptr_t instruction = 0;
    uintptr_t stack = 0;
    uintptr_t frame = 0;
    if (!stack_.word(now_.stack + context_instruction, &instruction) ||
        !stack_.word(now_.stack + context_stack, &stack) || !stack_.word(now_.stack + context_frame, &frame))
      return false;
    stack_.begin(stack);  // the handler may have had a stack of its own
    reached_ = Reached::exactly();
    return go_to(instruction, stack, frame, true);
  }

  bool find_cfa(const FrameRule& rule, uintptr_t* cfa) noexcept {
    const auto offset = static_cast<uintptr_t>(intptr_t{rule.cfa_offset});
    switch (rule.cfa) {
      case FrameRule::Cfa::Stack:
        *cfa = now_.stack + offset;
        return true;
      case FrameRule::Cfa::Frame:
        *cfa = now_.frame + offset;
        return true;
      case FrameRule::Cfa::AtStack:
        return stack_.word(now_.stack + offset, cfa);
      case FrameRule::Cfa::AtFrame:
        return stack_.word(now_.frame + offset, cfa);
      case FrameRule::Cfa::LinkTable:
        *cfa = now_.stack + 8 + ((now_.instruction & 15) >= 11 ? 8 : 0);
        return true;
      default:
        return false;
    }
  }

  bool follow(const FrameRule& rule) noexcept {
    uintptr_t cfa = 0;
    uintptr_t instruction = 0;
    uintptr_t frame = now_.frame;
    if (!find_cfa(rule, &cfa) || cfa <= now_.stack || cfa - now_.stack > largest_frame) return false;
    if (!stack_.word(cfa - sizeof cfa, &instruction)) return false;
    const auto offset = static_cast<uintptr_t>(intptr_t{rule.frame_pointer_offset});
    uintptr_t frame_at = 0;  // it stays
    if (rule.frame_pointer == FrameRule::Saved::AtCfa) frame_at = cfa + offset;
    if (rule.frame_pointer == FrameRule::Saved::AtFrame) frame_at = now_.frame + offset;
    const bool is_loaded =
        rule.frame_pointer == FrameRule::Saved::AtCfa || rule.frame_pointer == FrameRule::Saved::AtFrame;
    if (is_loaded && !stack_.word(frame_at, &frame)) return false;
    const bool needs_a_word = rule.cfa == FrameRule::Cfa::AtStack || rule.cfa == FrameRule::Cfa::AtFrame;
    const bool uses_pointer = rule.cfa == FrameRule::Cfa::Frame || rule.frame_pointer == FrameRule::Saved::AtFrame;
    reached_ = needs_a_word ? Reached::otherwise() : Reached::by_rule(frame_at, uses_pointer);
    return go_to(instruction, cfa, frame, false);
  }

  LoadedObject object_{};  // that the last address lay in
#endif

  Registers now_;
  Reached reached_ = Reached::exactly();
  Stack stack_;
  KnownStack* const known_;
  bool exact_;
  bool outermost_ = false;
  bool ended_in_what_is_known_ = false;
};

Unwound walk_from(const Registers& registers, uintptr_t* frames, unsigned most, StackBounds& bounds,
                  KnownStack* known) noexcept {
  Walk walk(registers, bounds, known);
  CallTrace trace(frames, most, own);
  while (trace.add(walk.place()) && walk.step(trace)) {
  }
  walk.end();
  // What a walk has asked about in vain may not be a part of the stack, and may go away.
  if (walk.is_outermost() || trace.count() == most) bounds = walk.bounds();
  return {trace.count(), walk.is_outermost()};
}

// Of the function that this becomes a part of.
__attribute__((always_inline)) inline Registers registers_here() noexcept {
  Registers here{};
#if defined(__x86_64__)
  asm volatile(
      "leaq 0f(%%rip), %0\n"
      "0: movq %%rsp, %1\n"
      "movq %%rbp, %2"
      : "=r"(here.instruction), "=r"(here.stack), "=r"(here.frame));
#else
  here.instruction = reinterpret_cast<uintptr_t>(&prepare_unwinding);
  here.frame = here.stack = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
#endif
  return here;
}

}  // namespace

void prepare_unwinding() noexcept {
  prepare_objects();
  own.find();
#if defined(__x86_64__)
  if (rows == nullptr) rows = static_cast<Row*>(map_scratch(row_count * sizeof(Row)));
  if (known_stacks == nullptr) known_stacks = static_cast<KnownStacks*>(map_scratch(sizeof(KnownStacks)));
#endif
}

bool is_own_code(uintptr_t address) noexcept {
  return own.covers(address);
}

void forget_stacks() noexcept {
  if (known_stacks != nullptr) memset(static_cast<void*>(known_stacks), 0, sizeof *known_stacks);
}

bool unwinds_by_all_tables() noexcept {
#if defined(__x86_64__)
  return knows_later_objects();
#else
  return false;
#endif
}

Unwound unwind_from(const Registers& registers, uintptr_t* frames, unsigned most, StackBounds& bounds) noexcept {
  const void* const of_thread = &bounds;
  KnownStack* const known = known_stacks != nullptr ? known_stacks->take(of_thread) : nullptr;
  const Unwound unwound = walk_from(registers, frames, most, bounds, known);
  if (known != nullptr) known_stacks->give_back(of_thread);
  return unwound;
}

__attribute__((noinline)) Unwound unwind(uintptr_t* frames, unsigned most, StackBounds& bounds) noexcept {
  return unwind_from(registers_here(), frames, most, bounds);
}

__attribute__((noinline)) Unwound unwind(uintptr_t* frames, unsigned most) noexcept {
  StackBounds bounds{};
  return walk_from(registers_here(), frames, most, bounds, nullptr);
}

}  // namespace sluice::os
