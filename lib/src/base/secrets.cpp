// See secrets.hpp. Compiled into libsluice-secure.so alone.
#include "base/secrets.hpp"

#include <unistd.h>

#include "base/print.hpp"
#include "os/memory.hpp"

namespace sluice {

constinit Secrets secrets{};

namespace {

// Modulo 2^64, by Newton's method: three bits are right at first, and each step doubles them.
uintptr_t inverse_of(uintptr_t odd) noexcept {
  uintptr_t inverse = odd;
  for (int right = 3; right < 64; right *= 2)
    inverse *= 2 - odd * inverse;
  return inverse;
}

__attribute__((noinline, cold)) void warn_of_weak_secrets() noexcept {
  char buffer[128];
  (void)Print(buffer, sizeof buffer, STDERR_FILENO)
      .text("sluice: the system gives no random numbers (getrandom fails): canaries and links are easier to guess\n")
      .finish();
}

}  // namespace

void draw_secrets() noexcept {
  bool weak = false;
  secrets.link = os::secret_bits(&weak);
  secrets.canary = os::secret_bits(&weak);
  secrets.factor = os::secret_bits(&weak) | 1;
  if (weak) warn_of_weak_secrets();
  secrets.inverse = inverse_of(secrets.factor);
  secrets.marks = 0x8080808080808080u;
}

}  // namespace sluice
