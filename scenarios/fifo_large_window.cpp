// A queue of a hundred thousand small blocks: each step frees the oldest and allocates a new one, as a broker
// or an LRU cache does. Open it for the cost of freeing in order when the live set is far larger than any
// cache of blocks.
#include "common.hpp"

int main(int argc, char** argv) {
  constexpr std::size_t window = 100'000;
  const auto arguments = scenario::parse_arguments(argc, argv, "blocks replaced", 20'000'000);
  const scenario::SizeCycle sizes(16384, arguments.seed, scenario::small_size);
  scenario::Table<void*> queue(window);
  scenario::Report report("fifo_large_window");

  for (std::size_t i = 0; i < window; ++i)
    queue[i] = scenario::allocate_tagged(sizes[i], i);

  std::uint64_t damage = 0;
  std::size_t oldest = 0;
  report.measure("fifo_large_window", arguments.ops, [&] {
    for (std::uint64_t i = window; i < window + arguments.ops; ++i) {
      damage |= scenario::tag_of(queue[oldest]) ^ (i - window);
      std::free(queue[oldest]);
      queue[oldest] = scenario::allocate_tagged(sizes[i], i);
      if (++oldest == window) oldest = 0;
    }
  });

  for (std::uint64_t i = arguments.ops; i < arguments.ops + window; ++i) {
    damage |= scenario::tag_of(queue[oldest]) ^ i;
    std::free(queue[oldest]);
    if (++oldest == window) oldest = 0;
  }
  report.require(damage == 0);
  return report.finish(arguments);
}
