// The arithmetic of sampling by bytes: how far it is to the next sample, and how many blocks a sample stands for. Open
// it to see why the profile's sums are right on average.
//
// Points lie at random on the line of all bytes that are allocated, on average one in `rate` bytes (a Poisson process:
// the distance to the next one is exponential, whatever came before). A block is sampled when a point lies in it. Each
// block counts as 15 bytes more than was asked for, so that blocks of no bytes take part: malloc's fast path needs that
// sum anyway, to find the class. So the probability is 1 - exp(-(size + 15) / rate), and each sample is counted 1 /
// probability times: the expected value of every sum over samples is the sum over all blocks. At a rate of 1 each block
// is sampled and counts once.
//
// No library of mathematics: malloc may not depend on one. Both functions are right to 12 digits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/size_class.hpp"

namespace sluice::profile {

// Bytes up to the next point. `random`: 64 random bits. 0 at a rate of 1.
int64_t distance_to_next(uint64_t rate, uint64_t random) noexcept;

// How many blocks a sampled block of `size` bytes stands for.
double weight_of(size_t size, uint64_t rate) noexcept;

// What a block counts as on the line: so much more than was asked for. For those of malloc's fast path, whose sizes are
// small, and for all.
inline constexpr size_t added_bytes = min_alignment - 1;
inline constexpr size_t counted_bytes_of_small(size_t size) noexcept {
  return size + added_bytes;
}
inline constexpr size_t counted_bytes(size_t size) noexcept {
  return size < PTRDIFF_MAX / 2 ? counted_bytes_of_small(size) : PTRDIFF_MAX / 2;
}

}  // namespace sluice::profile
