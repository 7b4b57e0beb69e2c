// A hundred blocks of one size taken, a tag written to each, and given back, the last one first, for sizes of 2 KiB to
// 60,000 bytes: packets of a burst, pages that a query reads, rows of a result. Open it for how much it costs a malloc
// when a program has more of such blocks at a time than a cache holds.
#include "common.hpp"
#include "shared_clock.hpp"

namespace {

constexpr std::size_t burst = 100;  // blocks

struct Size {
  const char* name;
  std::size_t bytes;
};
constexpr Size block_sizes[] = {
    {"bursts_2k", 2048}, {"bursts_4k", 4096}, {"bursts_10k", 10'000}, {"bursts_30k", 30'000}, {"bursts_60k", 60'000}};

/// Returns: non-zero bits when a block lost its tag.
std::uint64_t take_and_give_back(const scenario::Share& share, scenario::SharedClock& clock, std::size_t bytes) {
  std::uint64_t damage = 0;
  clock.start();
  for (std::uint64_t i = 0; i < share.ops; i += burst) {
    void* blocks[burst];
    for (std::size_t k = 0; k < burst; ++k)
      blocks[k] = scenario::allocate_tagged(bytes, i + k);
    for (std::size_t k = burst; k-- != 0;) {
      damage |= scenario::tag_of(blocks[k]) ^ (i + k);
      std::free(blocks[k]);
    }
  }
  clock.stop();
  return damage;
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = scenario::parse_arguments(
      argc, argv,
      {.unit = "blocks of each size taken and given back", .ops = 400'000, .least_ops = burst, .threads = 1});
  scenario::Report report("bursts");
  for (const Size& size : block_sizes)
    scenario::measure_workers(
        report, size.name, arguments,
        [&size](const scenario::Share& share, scenario::SharedClock& clock) {
          return take_and_give_back(share, clock, size.bytes);
        },
        burst);
  return report.finish(arguments);
}
