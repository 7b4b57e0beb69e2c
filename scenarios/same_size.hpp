// Blocks of one size, taken and given back again and again: the common part of sizes.cpp and bursts.cpp. Open it to
// change what is done with such a block.
#pragma once

#include <span>

#include "common.hpp"
#include "shared_clock.hpp"

namespace scenario {

struct SameSize {
  const char* name;
  std::size_t bytes;
};

enum class GivenBack : std::uint8_t { FirstOneFirst, LastOneFirst };

/// Takes `count` blocks of a size, tags them, and gives them back. Returns: non-zero bits when a block lost its tag.
template <std::size_t count, GivenBack order>
std::uint64_t take_and_give_back(const Share& share, SharedClock& clock, std::size_t bytes) {
  std::uint64_t damage = 0;
  clock.start();
  for (std::uint64_t i = 0; i < share.ops; i += count) {
    void* blocks[count];
    for (std::size_t k = 0; k < count; ++k)
      blocks[k] = allocate_tagged(bytes, i + k);
    for (std::size_t k = 0; k < count; ++k) {
      const std::size_t at = order == GivenBack::FirstOneFirst ? k : count - 1 - k;
      damage |= tag_of(blocks[at]) ^ (i + at);
      std::free(blocks[at]);
    }
  }
  clock.stop();
  return damage;
}

/// The program: a case for each size. Returns: its exit status.
template <std::size_t count, GivenBack order>
int measure_sizes(int argc, char** argv, const char* scenario_name, std::span<const SameSize> sizes) {
  const auto arguments = parse_arguments(
      argc, argv,
      {.unit = "blocks of each size taken and given back", .ops = 400'000, .least_ops = count, .threads = 1});
  Report report(scenario_name);
  for (const SameSize& size : sizes)
    measure_workers(
        report, size.name, arguments,
        [&size](const Share& share, SharedClock& clock) {
          return take_and_give_back<count, order>(share, clock, size.bytes);
        },
        count);
  return report.finish(arguments);
}

}  // namespace scenario
