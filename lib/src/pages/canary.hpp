// Bytes that must read as they were left, in a secure build: canaries behind blocks, zeros in what is free; and what is
// said when they do not. Open it to see what an overflow or a write after free must not change. Compiled in secure
// builds alone.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/layout.hpp"
#include "base/secrets.hpp"

namespace sluice::hardened {

inline constexpr size_t cleared_size = 48;  // bytes of a freed block; all with SLUICE_ZERO_ON_FREE

// SLUICE_ZERO_ON_FREE as it was at start: an option that is read later must not change what blocks that were freed
// before are checked for.
extern bool clear_all __attribute__((visibility("hidden")));

// A block's canary. No byte is 0, so that a string's end is found too. What a product spreads best, its highest bits,
// are the first byte.
inline uint64_t canary_of(const void* block) noexcept {
  const uint64_t mixed = (secrets.canary + reinterpret_cast<uintptr_t>(block)) * secrets.factor;
  return __builtin_bswap64(mixed) | secrets.marks;
}

// Which byte of a block's canary stands at an address follows from the address alone: two canaries of one block that
// overlap (behind its bytes, and at the end of its class) agree there.
inline uint64_t rotated_for(const char* at, uint64_t canary) noexcept {
  unsigned bits = 8 * static_cast<unsigned>(reinterpret_cast<uintptr_t>(at));
  asm("" : "+r"(bits));  // keeps the compiler from taking a remainder that the rotation takes anyway
  return std::rotr(canary, static_cast<int>(bits % (8 * sizeof canary)));
}
inline void write_canary(char* at, uint64_t canary) noexcept {
  canary = rotated_for(at, canary);
  __builtin_memcpy(at, &canary, sizeof canary);
}
inline bool canary_holds(const char* at, uint64_t canary) noexcept {
  uint64_t found;
  __builtin_memcpy(&found, at, sizeof found);
  return found == rotated_for(at, canary);
}

// 16 bytes at once.
using Granule = uint64_t __attribute__((vector_size(16), may_alias));
inline Granule& granule_at(const void* block, size_t offset) noexcept {
  return *reinterpret_cast<Granule*>(const_cast<char*>(static_cast<const char*>(block)) + offset);
}
inline size_t lesser(size_t a, size_t b) noexcept {
  return a < b ? a : b;
}

// Reads 16 bytes at once, and nothing behind `to`.
bool reads_as_zero(const char* from, const char* to) noexcept;

// Effects: reports a block that was written to behind its `size` bytes, which is what was asked for.
[[gnu::cold]] void report_overflow(const void* block, size_t size) noexcept;
// Likewise one that was written to while it was free. Requires: class bytes and descriptor say what it was.
[[gnu::cold]] void report_write_to_free(const void* block) noexcept;

// Effects: reports what is wrong with an address, as "double free: 0x7f… is a block of 48 bytes".
[[gnu::cold]] void report(const char* what, const void* address, const char* is, size_t bytes) noexcept;

}  // namespace sluice::hardened
