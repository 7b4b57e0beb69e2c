// Buffers of 2 KiB to 256 KiB, 256 of them alive, replaced at random, and the first half of each one written
// to: images, network buffers, column blocks. Open it for how larger blocks are found again, and how often
// their pages go back to the system only to be faulted in once more.
#include "common.hpp"
#include "shared_clock.hpp"

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

/// One thread with sizes and blocks of its own. Returns: non-zero bits when a block lost its tag.
std::uint64_t replace_buffers(const scenario::Share& share, scenario::SharedClock& clock) {
  const scenario::SizeCycle sizes(16384, share.seed, buffer_size);
  const scenario::SizeCycle slots(65536, share.seed + 1, slot_number);
  scenario::Table<void*> blocks(live_blocks);
  scenario::Table<std::uint64_t> tags(live_blocks);

  std::uint64_t damage = 0;
  clock.start();
  for (std::uint64_t i = 0; i < share.ops; ++i) {
    const std::uint32_t slot = slots[i];
    if (blocks[slot] != nullptr) damage |= scenario::tag_of(blocks[slot]) ^ tags[slot];
    std::free(blocks[slot]);
    blocks[slot] = build_buffer(sizes[i], i);
    tags[slot] = i;
  }
  clock.stop();

  for (std::size_t slot = 0; slot < live_blocks; ++slot)
    std::free(blocks[slot]);
  return damage;
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments =
      scenario::parse_arguments(argc, argv, {.unit = "buffers replaced", .ops = 2'000'000, .threads = 1});
  scenario::Report report("larger");
  scenario::measure_workers(report, "larger", arguments, replace_buffers);
  return report.finish(arguments);
}
