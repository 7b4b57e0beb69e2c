// A thousand small blocks allocated, then freed, again and again: what fifo and lifo are made of. Open it to change
// their workload.
#pragma once

#include "common.hpp"
#include "shared_clock.hpp"

namespace scenario {

constexpr std::size_t batch = 1000;

enum class Order { of_allocation, reverse };

/// One thread with sizes and blocks of its own. Returns: non-zero bits when a block lost its tag.
template <Order order>
std::uint64_t free_batches(const Share& share, SharedClock& clock) {
  const std::uint64_t rounds = share.ops / batch;
  const SizeCycle sizes(4096, share.seed, small_size);
  Table<void*> blocks(batch);

  std::uint64_t damage = 0;
  clock.start();
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::uint64_t first = round * batch;
    for (std::size_t i = 0; i < batch; ++i)
      blocks[i] = allocate_tagged(sizes[first + i], first + i);
    for (std::size_t step = 0; step < batch; ++step) {
      const std::size_t i = order == Order::of_allocation ? step : batch - 1 - step;
      damage |= tag_of(blocks[i]) ^ (first + i);
      std::free(blocks[i]);
    }
  }
  clock.stop();
  return damage;
}

/// The program of that name.
template <Order order>
int run_batches(int argc, char** argv, const char* name) {
  const auto arguments = parse_arguments(
      argc, argv, {.unit = "blocks allocated and freed", .ops = 16'000'000, .least_ops = batch, .threads = 1});
  Report report(name);
  measure_workers(report, name, arguments, free_batches<order>, batch);
  return report.finish(arguments);
}

}  // namespace scenario
