// The calls that a stack consists of, without the innermost ones inside this library. For what follows stacks
// (os/unwind.hpp); open it to change which frames a trace leaves out.
#pragma once

#include <cstdint>

namespace sluice::os {

// OwnCode covers the addresses of this library's code; it outlives the trace.
template <typename OwnCode>
class Trace {
 public:
  Trace(uintptr_t* frames, unsigned most, const OwnCode& own) noexcept : frames_(frames), most_(most), own_(own) {}

  unsigned count() const noexcept { return count_; }

  // False where there is no more room.
  bool add(uintptr_t place) noexcept {
    in_own_code_ = in_own_code_ && own_.covers(place) && ++own_frames_ < most_;
    if (in_own_code_) return true;
    if (count_ == most_) return false;
    frames_[count_++] = place;
    return true;
  }

 private:
  uintptr_t* const frames_;
  const unsigned most_;
  const OwnCode& own_;
  unsigned count_ = 0, own_frames_ = 0;
  bool in_own_code_ = true;
};

}  // namespace sluice::os
