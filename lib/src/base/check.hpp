// Checks of the heap and of what the program gives back. Open it to see what happens when one fails.
//
// check() is for debug and secure builds and costs nothing in others. A double free that a flush finds stops the
// process in every build, as in other mallocs: otherwise the same block would be handed out twice. With
// SLUICE_ABORT_ON_CORRUPTION=0 the block is never used again instead, and the process goes on.
#pragma once

#include "base/policy.hpp"
#include "base/print.hpp"

namespace sluice {

// One line on stderr about something that the program did to the heap:
//
//   Corruption line("double free");
//   line.out().text(" at 0x").hexadecimal(address);
//
// Its end aborts the process, unless the options say that it goes on.
class Corruption {
 public:
  explicit Corruption(const char* what) noexcept;
  ~Corruption();
  Corruption(const Corruption&) = delete;
  Corruption& operator=(const Corruption&) = delete;

  Print& out() noexcept { return out_; }

 private:
  char buffer_[256];
  Print out_;
};

// Effects: reports a Corruption in one line, `what` and the address.
void report_corruption(const char* what, const void* address) noexcept;

// Effects: writes one line, `what` and the address, to stderr, and aborts the process, whatever the options say: the
// heap cannot go on.
[[noreturn]] void fail_check(const char* what, const void* address) noexcept;

// Effects: fails the check in checked and secure builds, unless `holds`.
inline void check(bool holds, const char* what, const void* address) noexcept {
  if ((checked || checks_metadata) && !holds) [[unlikely]]
    fail_check(what, address);
}

}  // namespace sluice
