// Blocks that are written from the first byte to the last, and checked to the last. Open it to change what a scenario
// writes into a block that it uses as a program would.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "common.hpp"

namespace scenario {

/// Writes numbers that count up from `tag`, eight bytes each, and as much of the next one as there is room for.
inline void fill(void* block, std::size_t size, std::uint64_t tag) {
  unsigned char* const bytes = static_cast<unsigned char*>(block);
  const std::size_t words = size / sizeof tag;
  for (std::size_t i = 0; i < words; ++i) {
    const std::uint64_t word = tag + i;
    std::memcpy(bytes + i * sizeof word, &word, sizeof word);
  }
  const std::uint64_t last = tag + words;
  std::memcpy(bytes + words * sizeof last, &last, size % sizeof last);
  escape(block);
}

/// Returns: non-zero bits when the block does not hold what `fill` writes.
inline std::uint64_t damage_in(const void* block, std::size_t size, std::uint64_t tag) {
  const unsigned char* const bytes = static_cast<const unsigned char*>(block);
  const std::size_t words = size / sizeof tag;
  std::uint64_t damage = 0;
  for (std::size_t i = 0; i < words; ++i)
    damage |= tag_of(bytes + i * sizeof tag) ^ (tag + i);
  const std::uint64_t last = tag + words;
  return damage | static_cast<std::uint64_t>(std::memcmp(bytes + words * sizeof last, &last, size % sizeof last) != 0);
}

/// A block of at least eight bytes, or none, and what was written into it.
struct Filled {
  void* block = nullptr;
  std::uint32_t size = 0;
  std::uint32_t tag = 0;

  /// Returns: non-zero bits when the block was damaged.
  std::uint64_t damage() const { return block != nullptr ? damage_in(block, size, tag) : 0; }
};

inline Filled allocate_filled(std::uint32_t size, std::uint64_t number) {
  const Filled filled{allocate_tagged(size, number), size, static_cast<std::uint32_t>(number)};
  fill(filled.block, size, filled.tag);
  return filled;
}

/// Frees the block. Returns: non-zero bits when it was damaged.
inline std::uint64_t release(const Filled& filled) {
  const std::uint64_t damage = filled.damage();
  std::free(filled.block);
  return damage;
}

}  // namespace scenario
