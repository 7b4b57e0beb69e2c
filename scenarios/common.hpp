// What every scenario program shares: random numbers, size mixes, tables outside the heap and tagged blocks; with
// arguments.hpp and report.hpp. Open it to change what sizes a workload asks for.
//
// A scenario measures whatever malloc the process was started with. So nothing here allocates from the heap
// before the report is complete: tables come straight from mmap, and the peak of memory is read before a line
// is formatted.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "arguments.hpp"
#include "report.hpp"

namespace scenario {

/// Makes the compiler believe that the block is read and written elsewhere: it can neither drop the
/// allocation nor remember what was stored in it.
inline void escape(void* block) {
  asm volatile("" : : "r"(block) : "memory");
}

/// The C library's memcpy and memset, called for certain. A compiler puts a copy of its own into one variant of a
/// workload and not into another, and what then differs is not the memory.
inline void* (*const volatile copy_bytes)(void*, const void*, std::size_t) = std::memcpy;
inline void* (*const volatile fill_bytes)(void*, int, std::size_t) = std::memset;

/// SplitMix64: a counter put through a mixing function. The same seed gives the same workload under every
/// allocator.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t mixed = (state_ += 0x9e3779b97f4a7c15u);
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
  }

  /// A number in [0, bound).
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(((next() >> 32) * bound) >> 32); }

  /// A number in [low, high].
  std::uint32_t between(std::uint32_t low, std::uint32_t high) { return low + below(high - low + 1); }

  /// A number in [2^low, 2^high), every doubling equally likely.
  std::uint32_t by_doubling(std::uint32_t low, std::uint32_t high) {
    const std::uint32_t power = 1u << between(low, high - 1);
    return power + below(power);
  }

 private:
  std::uint64_t state_;
};

/// Sizes of 8…1024 bytes as programs ask for them: half of them at most 64, one in seven above 256.
inline std::uint32_t small_size(Random& random) {
  const std::uint32_t kind = random.below(100);
  if (kind < 50) return random.between(8, 64);
  if (kind < 85) return random.between(65, 256);
  return random.between(257, 1024);
}

/// Sizes of a long-lived heap: mostly 16…512 bytes, three in a hundred up to 4 KiB.
inline std::uint32_t object_size(Random& random) {
  const std::uint32_t kind = random.below(100);
  if (kind < 55) return random.between(16, 64);
  if (kind < 85) return random.between(65, 160);
  if (kind < 97) return random.between(161, 512);
  if (kind < 99) return random.between(513, 1024);
  return random.between(1025, 4096);
}

/// A fixed-length array outside the heap, its pages present from the start: no fault of its own falls into
/// the measured part, and it weighs the same in the memory of every allocator.
template <class T>
class Table {
 public:
  explicit Table(std::size_t length) : length_(length) {
    void* const pages = mmap(nullptr, length * sizeof(T), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) {
      std::perror("scenario: cannot map a table");
      std::exit(1);
    }
    std::memset(pages, 0, length * sizeof(T));
    items_ = static_cast<T*>(pages);
  }
  ~Table() { munmap(items_, length_ * sizeof(T)); }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  T& operator[](std::size_t index) { return items_[index]; }
  const T& operator[](std::size_t index) const { return items_[index]; }
  std::size_t length() const { return length_; }

 private:
  T* items_;
  std::size_t length_;
};

/// A power-of-two cycle of sizes, drawn before the clock starts.
class SizeCycle {
 public:
  SizeCycle(std::size_t length, std::uint64_t seed, std::uint32_t (*draw)(Random&)) : sizes_(length) {
    Random random(seed);
    for (std::size_t i = 0; i < length; ++i)
      sizes_[i] = draw(random);
  }
  std::uint32_t operator[](std::uint64_t position) const { return sizes_[position & (sizes_.length() - 1)]; }

 private:
  Table<std::uint32_t> sizes_;
};

/// malloc that ends the scenario when it fails, writes `tag` into the first eight bytes and the block's last
/// byte. The size is at least eight.
inline void* allocate_tagged(std::size_t size, std::uint64_t tag) {
  void* const block = std::malloc(size);
  if (block == nullptr) {
    std::fprintf(stderr, "scenario: malloc(%zu) failed\n", size);
    std::_Exit(1);
  }
  static_cast<unsigned char*>(block)[size - 1] = static_cast<unsigned char>(tag);
  std::memcpy(block, &tag, sizeof tag);
  escape(block);
  return block;
}

/// The tag in the first eight bytes of the block.
inline std::uint64_t tag_of(const void* block) {
  std::uint64_t tag;
  std::memcpy(&tag, block, sizeof tag);
  return tag;
}

}  // namespace scenario
