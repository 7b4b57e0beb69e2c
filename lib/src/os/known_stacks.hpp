// Stacks that were followed last, so that the next one is read again only as far as it is the same: samples that follow
// one another share most of their calls. Used by unwind.hpp's implementation alone. Open it when a stack is told that
// is not there.
//
// What a frame's caller is follows from the frame's registers, the rule for its instruction, and the words that the
// rule says to read. So where the registers are those of a known frame, and the same words stand at the same places,
// the caller is the known one: no rule is looked up. The frame pointer may differ where no rule uses it before another
// one is loaded: compilers keep anything in it. Where a library was closed and another build of it loaded in its place,
// an address may have another rule: a stack may be wrong then, as with the rules that linux_unwind.cpp keeps.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "os/unwind.hpp"

namespace sluice::os {

// How a frame was reached from the one that it called.
class Reached {
 public:
  Reached() noexcept = default;

  // By a rule, which needs no word of the stack but the return address and, at `frame_pointer_at`, the frame pointer;
  // 0: that is the one of the frame that was called. `uses_pointer`: the rule needs the value of that.
  static Reached by_rule(uintptr_t frame_pointer_at, bool uses_pointer) noexcept {
    return Reached{frame_pointer_at | (uses_pointer ? uses : 0)};
  }
  static constexpr Reached otherwise() noexcept { return Reached{1}; }
  static constexpr Reached exactly() noexcept { return Reached{2}; }  // its instruction is not a return address

  bool is_by_rule() const noexcept { return (word_ & 3) == 0; }
  bool is_exactly() const noexcept { return word_ == exactly().word_; }
  bool uses_pointer() const noexcept { return (word_ & uses) != 0; }
  uintptr_t frame_pointer_at() const noexcept { return word_ & ~uintptr_t{7}; }

 private:
  static constexpr uintptr_t uses = 4;
  explicit constexpr Reached(uintptr_t word) noexcept : word_(word) {}

  uintptr_t word_;  // places are multiples of 8
};

struct KnownFrame {
  Registers registers;
  Reached reached;
};

class KnownStack {
 public:
  static constexpr size_t most = 144;

  // The known frame with these registers, if it lies beyond those that were found before. Called with growing stack
  // pointers. Null when there is none.
  KnownFrame* find(const Registers& registers, bool exact) noexcept {
    KnownFrame* const known = frames_[old_];
    while (at_ < count_ && known[at_].registers.stack < registers.stack)
      ++at_;
    if (at_ == count_) return nullptr;
    KnownFrame& frame = known[at_];
    const bool found = frame.registers.stack == registers.stack &&
                       frame.registers.instruction == registers.instruction && frame.reached.is_exactly() == exact &&
                       may_have_pointer(frame, registers.frame);
    return found ? &frame : nullptr;
  }

  // Whether a known frame leads to its known caller also with this frame pointer, which is the known one then.
  bool may_have_pointer(KnownFrame& frame, uintptr_t pointer) noexcept {
    if (frame.registers.frame == pointer) return true;
    if (needs_pointer(&frame)) return false;
    frame.registers.frame = pointer;
    return true;
  }

  // Behind the last known frame. What lies before it, from a frame on that was found, are its callers.
  KnownFrame* end() noexcept { return frames_[old_] + count_; }

  // Whether the last known frame is the outermost one.
  bool is_complete() const noexcept { return complete_; }

  // Frames of the stack that is being followed: one that was not known, and some that were.
  void note(const KnownFrame& frame) noexcept {
    if (noted_ < most) frames_[1 - old_][noted_] = frame;
    ++noted_;
  }
  void note_all(const KnownFrame* first, const KnownFrame* behind) noexcept {
    for (; first != behind; ++first)
      note(*first);
  }

  void begin() noexcept { at_ = noted_ = 0; }

  // The stack has been followed to its end: what was noted is known.
  void become_known(bool complete) noexcept {
    old_ = 1 - old_;
    complete_ = complete && noted_ <= most;
    count_ = noted_ <= most ? noted_ : most;
  }

  // The same where the end of the stack is the known one, from a frame on.
  void become_known_up_to(const KnownFrame* frame) noexcept {
    KnownFrame* const known = frames_[old_];
    const auto kept = static_cast<size_t>(end() - frame);
    const size_t noted = noted_;
    if (noted + kept > most) {
      count_ = 0;
      return;
    }
    if (known + noted != frame) memmove(known + noted, frame, kept * sizeof *frame);
    memcpy(known, frames_[1 - old_], noted * sizeof *frame);
    count_ = noted + kept;
  }

 private:
  // Whether the value of the frame pointer is used on the way out before another one is loaded.
  bool needs_pointer(const KnownFrame* frame) noexcept {
    const KnownFrame* const behind = end();
    while (++frame != behind) {
      if (!frame->reached.is_by_rule() || frame->reached.uses_pointer()) return true;
      if (frame->reached.frame_pointer_at() != 0) return false;
    }
    return true;
  }

  KnownFrame frames_[2][most];  // of the stack before, and of this one; innermost first
  size_t old_, count_, at_, noted_;
  bool complete_;
};

// One for each of some threads: found by something that is the thread's own. Where two threads share one, neither knows
// much of its stack.
class KnownStacks {
 public:
  // Zeroes. Async-signal-safe, as all here. Returns: null where another thread, or what this one interrupts, has it.
  KnownStack* take(const void* of_thread) noexcept {
    Entry& entry = entries_[index_of(of_thread)];
    if (entry.taken.exchange(true, std::memory_order_acquire)) return nullptr;
    entry.stack.begin();
    return &entry.stack;
  }
  void give_back(const void* of_thread) noexcept {
    entries_[index_of(of_thread)].taken.store(false, std::memory_order_release);
  }

 private:
  static constexpr unsigned bits = 3;
  struct Entry {
    KnownStack stack;
    std::atomic<bool> taken;
  };

  static size_t index_of(const void* of_thread) noexcept {
    return reinterpret_cast<uintptr_t>(of_thread) * 0x9e3779b97f4a7c15 >> (64 - bits);
  }

  Entry entries_[size_t{1} << bits];
};

}  // namespace sluice::os
