// See check.hpp.
#include "base/check.hpp"

#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "base/options.hpp"

namespace sluice {

Corruption::Corruption(const char* what) noexcept : out_(buffer_, sizeof buffer_, STDERR_FILENO) {
  out_.text("sluice: ").text(what);
}

Corruption::~Corruption() {
  out_.text(options.abort_on_corruption ? "; the process is stopped\n"
                                        : "; the process goes on (SLUICE_ABORT_ON_CORRUPTION=0)\n");
  (void)out_.finish();
  if (options.abort_on_corruption) std::abort();
}

void report_corruption(const char* what, const void* address) noexcept {
  Corruption(what).out().text(" at 0x").hexadecimal(reinterpret_cast<uintptr_t>(address));
}

void fail_check(const char* what, const void* address) noexcept {
  char buffer[256];
  Print(buffer, sizeof buffer, STDERR_FILENO)
      .text("sluice: ")
      .text(what)
      .text(" at 0x")
      .hexadecimal(reinterpret_cast<uintptr_t>(address))
      .text("; the heap is damaged, the process is stopped\n");
  std::abort();
}

}  // namespace sluice
