// A thousand small blocks allocated, then freed in the order of their allocation, again and again: requests
// served and dropped in turn. Open it for what flushing and refilling a cache of freed blocks costs.
#include "common.hpp"
#include "shared_clock.hpp"

namespace {

constexpr std::size_t batch = 1000;

/// One thread with sizes and blocks of its own. Returns: non-zero bits when a block lost its tag.
std::uint64_t free_in_order(const scenario::Share& share, scenario::SharedClock& clock) {
  const std::uint64_t rounds = share.ops / batch;
  const scenario::SizeCycle sizes(4096, share.seed, scenario::small_size);
  scenario::Table<void*> blocks(batch);

  std::uint64_t damage = 0;
  clock.start();
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::uint64_t first = round * batch;
    for (std::size_t i = 0; i < batch; ++i) {
      blocks[i] = scenario::allocate_tagged(sizes[first + i], first + i);
    }
    for (std::size_t i = 0; i < batch; ++i) {
      damage |= scenario::tag_of(blocks[i]) ^ (first + i);
      std::free(blocks[i]);
    }
  }
  clock.stop();
  return damage;
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = scenario::parse_arguments(
      argc, argv, {.unit = "blocks allocated and freed", .ops = 16'000'000, .least_ops = batch, .threads = 1});
  scenario::Report report("fifo");
  scenario::measure_workers(report, "fifo", arguments, free_in_order, batch);
  return report.finish(arguments);
}
