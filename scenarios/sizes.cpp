// Eight blocks of one size taken, a byte of each written, and given back, for sizes of 1 KiB to 1 MiB: buffers of
// requests, pages of databases, images. Open it for the size from which on a malloc is slower.
#include "common.hpp"
#include "shared_clock.hpp"

namespace {

constexpr std::size_t live_blocks = 8;

struct Size {
  const char* name;
  std::size_t bytes;
};
constexpr Size block_sizes[] = {{"sizes_1k", 1024},      {"sizes_8k", 8192},      {"sizes_64k", 65536},
                                {"sizes_100k", 100'000}, {"sizes_200k", 200'000}, {"sizes_400k", 400'000},
                                {"sizes_1m", 1'048'576}};

/// Returns: non-zero bits when a block lost its tag.
std::uint64_t take_and_give_back(const scenario::Share& share, scenario::SharedClock& clock, std::size_t bytes) {
  std::uint64_t damage = 0;
  clock.start();
  for (std::uint64_t i = 0; i < share.ops; i += live_blocks) {
    void* blocks[live_blocks];
    for (std::size_t k = 0; k < live_blocks; ++k)
      blocks[k] = scenario::allocate_tagged(bytes, i + k);
    for (std::size_t k = 0; k < live_blocks; ++k) {
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
      {.unit = "blocks of each size taken and given back", .ops = 400'000, .least_ops = live_blocks, .threads = 1});
  scenario::Report report("sizes");
  for (const Size& size : block_sizes)
    scenario::measure_workers(
        report, size.name, arguments,
        [&size](const scenario::Share& share, scenario::SharedClock& clock) {
          return take_and_give_back(share, clock, size.bytes);
        },
        live_blocks);
  return report.finish(arguments);
}
