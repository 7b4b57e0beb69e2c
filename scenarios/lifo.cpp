// A thousand small blocks allocated, then freed in reverse order, again and again: a call tree that unwinds.
// Open it for what a cache of freed blocks gains when the last one freed is the first one wanted.
#include "common.hpp"

int main(int argc, char** argv) {
  constexpr std::size_t batch = 1000;
  const auto arguments = scenario::parse_arguments(argc, argv, "blocks allocated and freed", 16'000'000, batch);
  const std::uint64_t rounds = arguments.ops / batch;
  const scenario::SizeCycle sizes(4096, arguments.seed, scenario::small_size);
  scenario::Table<void*> blocks(batch);
  scenario::Report report("lifo");

  std::uint64_t damage = 0;
  report.measure("lifo", rounds * batch, [&] {
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const std::uint64_t first = round * batch;
      for (std::size_t i = 0; i < batch; ++i) {
        blocks[i] = scenario::allocate_tagged(sizes[first + i], first + i);
      }
      for (std::size_t i = batch; i-- > 0;) {
        damage |= scenario::tag_of(blocks[i]) ^ (first + i);
        std::free(blocks[i]);
      }
    }
  });
  report.require(damage == 0);
  return report.finish(arguments);
}
