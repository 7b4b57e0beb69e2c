// A thousand small blocks allocated, then freed in reverse order, again and again: a call tree that unwinds.
// Open it for what a cache of freed blocks gains when the last one freed is the first one wanted.
#include "common.hpp"
#include "shared_clock.hpp"

namespace {

constexpr std::size_t batch = 1000;

/// One thread with sizes and blocks of its own. Returns: non-zero bits when a block lost its tag.
std::uint64_t free_in_reverse(const scenario::Share& share, scenario::SharedClock& clock) {
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
    for (std::size_t i = batch; i-- > 0;) {
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
  scenario::Report report("lifo");
  scenario::measure_workers(report, "lifo", arguments, free_in_reverse, batch);
  return report.finish(arguments);
}
