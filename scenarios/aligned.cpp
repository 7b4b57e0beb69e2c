// Buffers of 128 KiB to 8 MiB whose addresses are multiples of a power of two, 2 MiB at most and no more than their
// size: 24 of them alive, replaced at random, each page written to. Open it for whether what such a buffer leaves
// serves the next one: a malloc that asks for more than it needs, and cuts the ends off, finds no room there.
#include <algorithm>
#include <bit>

#include "common.hpp"
#include "shared_clock.hpp"

namespace {

constexpr std::uint32_t live_buffers = 24;
constexpr std::size_t page = 4096;
constexpr std::size_t most_alignment = std::size_t{2} << 20;

std::uint32_t buffer_size(scenario::Random& random) {
  return random.by_doubling(17, 23);
}
std::uint32_t slot_number(scenario::Random& random) {
  return random.below(live_buffers);
}

void* build_buffer(std::size_t size, std::uint64_t tag) {
  const std::size_t alignment = std::min(std::bit_floor(size), most_alignment);
  void* block = nullptr;
  if (posix_memalign(&block, alignment, size) != 0) {
    std::fprintf(stderr, "aligned: posix_memalign(%zu, %zu) failed\n", alignment, size);
    std::_Exit(1);
  }
  for (std::size_t offset = page; offset < size; offset += page)
    static_cast<unsigned char*>(block)[offset] = static_cast<unsigned char>(tag);
  std::memcpy(block, &tag, sizeof tag);
  scenario::escape(block);
  return block;
}

/// One thread with sizes and buffers of its own. Returns: non-zero bits when a buffer lost its tag.
std::uint64_t replace_buffers(const scenario::Share& share, scenario::SharedClock& clock) {
  const scenario::SizeCycle sizes(4096, share.seed, buffer_size);
  const scenario::SizeCycle slots(16384, share.seed + 1, slot_number);
  scenario::Table<void*> buffers(live_buffers);
  scenario::Table<std::uint64_t> tags(live_buffers);

  std::uint64_t damage = 0;
  clock.start();
  for (std::uint64_t i = 0; i < share.ops; ++i) {
    const std::uint32_t slot = slots[i];
    if (buffers[slot] != nullptr) damage |= scenario::tag_of(buffers[slot]) ^ tags[slot];
    std::free(buffers[slot]);
    buffers[slot] = build_buffer(sizes[i], i);
    tags[slot] = i;
  }
  clock.stop();

  for (std::size_t slot = 0; slot < live_buffers; ++slot)
    std::free(buffers[slot]);
  return damage;
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments =
      scenario::parse_arguments(argc, argv, {.unit = "buffers replaced", .ops = 20'000, .threads = 1});
  scenario::Report report("aligned");
  scenario::measure_workers(report, "aligned", arguments, replace_buffers);
  return report.finish(arguments);
}
