// Random numbers of a thread cache, cheap and good enough to spread what lies side by side. Open it to change the
// generator.
#pragma once

#include <cstdint>

#include "base/layout.hpp"

namespace sluice::cache {

// Bits from the cache's own generator. Not for cryptography. Requires: its thread, or its lock.
inline uint64_t random_bits(ThreadCache& c) noexcept {
  c.random = c.random * 0x5851f42d4c957f2du + 0x14057b7ef767814fu;
  return c.random ^ c.random >> 32;  // the lower bits of the product alone repeat soon
}

}  // namespace sluice::cache
