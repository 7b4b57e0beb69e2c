// A queue of a hundred thousand small blocks: each step frees the oldest and allocates a new one, as a broker
// or an LRU cache does. Open it for the cost of freeing in order when the live set is far larger than any
// cache of blocks.
#include "common.hpp"
#include "shared_clock.hpp"

namespace {

constexpr std::size_t window = 100'000;

/// One thread with sizes and blocks of its own. Returns: non-zero bits when a block lost its tag.
std::uint64_t replace_oldest(const scenario::Share& share, scenario::SharedClock& clock) {
  const scenario::SizeCycle sizes(16384, share.seed, scenario::small_size);
  scenario::Table<void*> queue(window);

  for (std::size_t i = 0; i < window; ++i)
    queue[i] = scenario::allocate_tagged(sizes[i], i);

  std::uint64_t damage = 0;
  std::size_t oldest = 0;
  clock.start();
  for (std::uint64_t i = window; i < window + share.ops; ++i) {
    damage |= scenario::tag_of(queue[oldest]) ^ (i - window);
    std::free(queue[oldest]);
    queue[oldest] = scenario::allocate_tagged(sizes[i], i);
    if (++oldest == window) oldest = 0;
  }
  clock.stop();

  for (std::uint64_t i = share.ops; i < share.ops + window; ++i) {
    damage |= scenario::tag_of(queue[oldest]) ^ i;
    std::free(queue[oldest]);
    if (++oldest == window) oldest = 0;
  }
  return damage;
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments =
      scenario::parse_arguments(argc, argv, {.unit = "blocks replaced", .ops = 20'000'000, .threads = 1});
  scenario::Report report("fifo_large_window");
  scenario::measure_workers(report, "fifo_large_window", arguments, replace_oldest);
  return report.finish(arguments);
}
