// See check.hpp.
#include "base/check.hpp"

#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "base/print.hpp"

namespace sluice {

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
