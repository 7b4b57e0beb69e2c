// A thousand small blocks allocated, then freed in the order of their allocation, again and again: requests
// served and dropped in turn. Open it for what flushing and refilling a cache of freed blocks costs.
#include "common.hpp"

int main(int argc, char** argv) {
  constexpr std::size_t batch = 1000;
  const auto arguments = scenario::parse_arguments(argc, argv, "blocks allocated and freed", 16'000'000, batch);
  const std::uint64_t rounds = arguments.ops / batch;
  const scenario::SizeCycle sizes(4096, arguments.seed, scenario::small_size);
  scenario::Table<void*> blocks(batch);
  scenario::Report report("fifo");

  std::uint64_t damage = 0;
  report.measure("fifo", rounds * batch, [&] {
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
  });
  report.require(damage == 0);
  return report.finish(arguments);
}
