// Blocks whose contents tell when anybody else wrote into them, and the random numbers and sizes that choose them. Open
// it to change what the stress, fuzz and unit tests write and how they check it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace sluice::test {

// A small generator (splitmix64): the same seed gives the same test on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) noexcept : state_(seed) {}
  uint64_t next() noexcept {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // Requires: limit > 0.
  uint64_t below(uint64_t limit) noexcept { return next() % limit; }
  bool chance(unsigned percent) noexcept { return below(100) < percent; }

  // Sizes as programs ask for them: mostly small, some to 128 KiB, one in 500 up to `most` bytes.
  size_t size(size_t most = size_t{4} << 20) noexcept {
    const uint64_t kind = below(1000);
    const size_t limit = kind < 800 ? 256 : kind < 960 ? 4096 : kind < 998 ? 128 * 1024 : most;
    return below(std::min(limit, most) + 1);
  }

 private:
  uint64_t state_;
};

// Everything that a test knows of a block it holds.
struct Block {
  unsigned char* data = nullptr;
  size_t size = 0;
  unsigned char seed = 0;
};

// Blocks up to this size are written and checked whole; of larger ones both ends and a byte in each page.
inline constexpr size_t whole_limit = 1024;  // bytes
inline constexpr size_t end_bytes = 64;
inline constexpr size_t stride = 4096;  // bytes

// Calls visit(first, last) for each stretch of the block's first `size` bytes that is written and checked.
template <typename Visit>
bool for_each_stretch(size_t size, Visit visit) {
  if (size <= whole_limit) return visit(size_t{0}, size);
  if (!visit(size_t{0}, end_bytes)) return false;
  for (size_t at = stride; at < size; at += stride)
    if (!visit(at, at + 1)) return false;
  return visit(size - end_bytes, size);
}

inline void fill(const Block& block) noexcept {
  for_each_stretch(block.size, [&](size_t first, size_t last) {
    std::memset(block.data + first, block.seed, last - first);
    return true;
  });
}

inline bool holds(const unsigned char* data, size_t size, unsigned char value) noexcept {
  return for_each_stretch(size, [&](size_t first, size_t last) {
    return std::all_of(data + first, data + last, [value](unsigned char byte) { return byte == value; });
  });
}

inline bool intact(const Block& block) noexcept {
  return holds(block.data, block.size, block.seed);
}

// Whether the first `size` bytes are still those of a block that was filled when it was `block.size` long.
inline bool intact_after_resize(const Block& block, size_t size) noexcept {
  if (block.size <= whole_limit) return holds(block.data, std::min(block.size, size), block.seed);
  for (size_t at = 0; at < end_bytes && at < size; ++at)
    if (block.data[at] != block.seed) return false;
  for (size_t at = stride; at < std::min(block.size, size); at += stride)
    if (block.data[at] != block.seed) return false;
  return true;
}

}  // namespace sluice::test
