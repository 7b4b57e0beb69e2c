// Buffers of 2 KiB to 256 KiB, 256 of them alive, replaced at random, and the first half of each one written
// to: images, network buffers, column blocks. Open it for how larger blocks are found again, and how often
// their pages go back to the system only to be faulted in once more.
#include "common.hpp"

namespace {

constexpr std::uint32_t live_blocks = 256;
constexpr std::size_t touch_step = 4096;

std::uint32_t buffer_size(scenario::Random& random) {
  return random.by_doubling(11, 18);
}
std::uint32_t slot_number(scenario::Random& random) {
  return random.below(live_blocks);
}

void* build_buffer(std::size_t size, std::uint64_t tag) {
  void* const block = scenario::allocate_tagged(size, tag);
  for (std::size_t offset = touch_step; offset < size / 2; offset += touch_step) {
    static_cast<unsigned char*>(block)[offset] = static_cast<unsigned char>(tag);
  }
  return block;
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = scenario::parse_arguments(argc, argv, "buffers replaced", 2'000'000);
  const scenario::SizeCycle sizes(16384, arguments.seed, buffer_size);
  const scenario::SizeCycle slots(65536, arguments.seed + 1, slot_number);
  scenario::Table<void*> blocks(live_blocks);
  scenario::Table<std::uint64_t> tags(live_blocks);
  scenario::Report report("larger");

  std::uint64_t damage = 0;
  report.measure("larger", arguments.ops, [&] {
    for (std::uint64_t i = 0; i < arguments.ops; ++i) {
      const std::uint32_t slot = slots[i];
      if (blocks[slot] != nullptr) damage |= scenario::tag_of(blocks[slot]) ^ tags[slot];
      std::free(blocks[slot]);
      blocks[slot] = build_buffer(sizes[i], i);
      tags[slot] = i;
    }
  });

  for (std::size_t slot = 0; slot < live_blocks; ++slot)
    std::free(blocks[slot]);
  report.require(damage == 0);
  return report.finish(arguments);
}
