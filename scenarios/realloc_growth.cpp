// Sixty-four arrays that grow side by side with realloc, by half each time, from 128 bytes to between 1 KiB
// and 1 MiB, and then start anew: strings, buffers and tables of programs written in C. Open it for how often
// growth moves a block and what the move costs.
#include "common.hpp"
#include "shared_clock.hpp"

namespace {

constexpr std::uint32_t arrays = 64;
constexpr std::uint32_t first_capacity = 16;

/// Elements at which an array is dropped.
std::uint32_t target_length(scenario::Random& random) {
  return random.by_doubling(7, 17);
}

struct Array {
  std::uint64_t* items;
  std::uint32_t capacity;
  std::uint32_t target;
};

/// Grows the array by half and fills the new part. Returns non-zero bits when an element changed on the way.
std::uint64_t grow(Array& array) {
  const std::uint32_t before = array.capacity;
  const std::uint32_t after = before == 0 ? first_capacity : before + before / 2;
  void* const moved = std::realloc(array.items, after * sizeof(std::uint64_t));
  if (moved == nullptr) {
    std::fprintf(stderr, "realloc_growth: realloc to %u elements failed\n", after);
    std::_Exit(1);
  }
  scenario::escape(moved);
  array.items = static_cast<std::uint64_t*>(moved);
  array.capacity = after;
  for (std::uint32_t i = before; i < after; ++i)
    array.items[i] = i;
  scenario::escape(moved);
  return before == 0
             ? 0
             : array.items[0] | (array.items[before / 2] ^ (before / 2)) | (array.items[before - 1] ^ (before - 1));
}

/// One thread with arrays of its own. Returns: non-zero bits when an element changed on the way.
std::uint64_t grow_arrays(const scenario::Share& share, scenario::SharedClock& clock) {
  const scenario::SizeCycle targets(4096, share.seed, target_length);
  scenario::Table<Array> growing(arrays);

  std::uint64_t damage = 0;
  std::uint64_t started = 0;
  for (std::uint32_t i = 0; i < arrays; ++i)
    growing[i] = {nullptr, 0, targets[started++]};
  clock.start();
  for (std::uint64_t i = 0; i < share.ops; ++i) {
    Array& array = growing[i % arrays];
    damage |= grow(array);
    if (array.capacity >= array.target) {
      std::free(array.items);
      array = {nullptr, 0, targets[started++]};
    }
  }
  clock.stop();

  for (std::uint32_t i = 0; i < arrays; ++i)
    std::free(growing[i].items);
  return damage;
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments =
      scenario::parse_arguments(argc, argv, {.unit = "calls of realloc", .ops = 200'000, .threads = 1});
  scenario::Report report("realloc_growth");
  scenario::measure_workers(report, "realloc_growth", arguments, grow_arrays);
  return report.finish(arguments);
}
