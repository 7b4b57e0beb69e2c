// The secrets of a process in a secure build, which links of free lists and canaries are made of. Open it to see how
// hard they are to guess. Compiled in secure builds alone.
#pragma once

#include <cstdint>

namespace sluice {

// Random bits, different in each process; set once before the first block exists.
struct Secrets {
  uintptr_t link;
  uintptr_t canary;
  uintptr_t factor;   // odd
  uintptr_t inverse;  // factor * inverse == 1
  uintptr_t marks;    // no secret: the highest bit of each byte, at hand without an instruction of its own
};
extern constinit Secrets secrets __attribute__((visibility("hidden")));

// Effects: draws them from the system; says on stderr when it gives weak ones only. Called once.
void draw_secrets() noexcept;

}  // namespace sluice
