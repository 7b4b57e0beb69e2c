// What a program that runs for long asks of malloc: which sizes, and how long the blocks live. Open it to see where the
// mixture of `churn` comes from, or to change it.
#pragma once

#include <cstdint>

#include "common.hpp"

namespace scenario {

/// How long a block lives, in blocks allocated meanwhile by the program.
enum Lifetime : std::uint32_t { up_to_16, up_to_256, up_to_4096, up_to_65536, up_to_1048576, longer, lifetimes };

struct SizeBand {
  std::uint32_t least, most;
  std::uint32_t weights[lifetimes];  // in 10,000 blocks
};

/// Measured on 2026-11-21 by recording every call of malloc, calloc, realloc and free of seven programs under the
/// workloads in scenarios/programs (40 million blocks): clang++ 14, cc1plus 12, cmake, lua 5.4, node, python 3.11 with
/// PYTHONMALLOC=malloc, and sqlite3. Each program has the same weight. A realloc ends one block and begins another. One
/// block in a thousand is larger than 64 KiB; they count in the last band here, and are the matter of `large_buffers`.
/// What lives longer than a million blocks includes what was never freed. Beside each band stands its share of all.
inline constexpr SizeBand service_bands[] = {
    {8, 16, {891, 159, 47, 63, 29, 8}},        // 12.0 %
    {17, 32, {1106, 283, 145, 283, 287, 28}},  // 21.3 %
    {33, 48, {777, 157, 68, 212, 290, 10}},    // 15.1 %
    {49, 64, {550, 110, 90, 319, 463, 50}},    // 15.8 %
    {65, 96, {409, 303, 97, 93, 207, 21}},     // 11.3 %
    {97, 128, {442, 107, 35, 48, 51, 15}},     // 7.0 %
    {129, 192, {219, 146, 28, 19, 15, 10}},    // 4.4 %
    {193, 256, {144, 53, 12, 12, 20, 4}},      // 2.5 %
    {257, 384, {94, 48, 5, 5, 4, 1}},          // 1.6 %
    {385, 512, {134, 41, 3, 2, 5, 0}},         // 1.9 %
    {513, 1024, {141, 75, 10, 7, 6, 1}},       // 2.4 %
    {1025, 2048, {182, 20, 8, 11, 2, 0}},      // 2.2 %
    {2049, 4096, {48, 33, 4, 16, 2, 0}},       // 1.0 %
    {4097, 16384, {63, 14, 10, 33, 12, 0}},    // 1.3 %
    {16385, 65536, {15, 3, 2, 1, 0, 0}},       // 0.2 %
};

/// A size, and how long the block with it lives.
struct Draw {
  std::uint32_t size;
  std::uint32_t lifetime;
};

/// The sum of the weights of the lifetimes from `first` up to, not including, `end`.
constexpr std::uint32_t weight_of(std::uint32_t first, std::uint32_t end) {
  std::uint32_t sum = 0;
  for (const SizeBand& band : service_bands) {
    for (std::uint32_t lifetime = first; lifetime < end; ++lifetime)
      sum += band.weights[lifetime];
  }
  return sum;
}

/// Draws from all blocks of the mixture, or from those of these lifetimes.
inline Draw draw_block(Random& random, std::uint32_t first = 0, std::uint32_t end = lifetimes) {
  std::uint32_t left = random.below(weight_of(first, end));
  for (const SizeBand& band : service_bands) {
    for (std::uint32_t lifetime = first; lifetime < end; ++lifetime) {
      if (left < band.weights[lifetime]) return {random.between(band.least, band.most), lifetime};
      left -= band.weights[lifetime];
    }
  }
  return {service_bands[0].least, first};  // not reached: `left` is below the sum
}

}  // namespace scenario
