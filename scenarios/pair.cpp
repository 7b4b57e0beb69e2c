// The shortest life there is: allocate one small block, write to it, free it. Open it for the cost of the two
// fast paths with nothing else around them.
//
// One block of every sixteenth size stays alive, as in any program that has run for a while: otherwise each
// free would empty a page, and some allocators then do work that a program hardly ever meets.
#include "common.hpp"
#include "shared_clock.hpp"

namespace {

/// One thread with sizes and blocks of its own. Returns: non-zero bits when a block lost its tag.
std::uint64_t allocate_and_free(const scenario::Share& share, scenario::SharedClock& clock) {
  const scenario::SizeCycle sizes(4096, share.seed, scenario::small_size);
  constexpr std::size_t largest = 1024;
  constexpr std::size_t step = 16;
  scenario::Table<void*> alive(largest / step);
  for (std::size_t i = 0; i < alive.length(); ++i)
    alive[i] = scenario::allocate_tagged((i + 1) * step, i);

  std::uint64_t damage = 0;
  clock.start();
  for (std::uint64_t i = 0; i < share.ops; ++i) {
    void* const block = scenario::allocate_tagged(sizes[i], i);
    damage |= scenario::tag_of(block) ^ i;
    std::free(block);
  }
  clock.stop();
  for (std::size_t i = 0; i < alive.length(); ++i) {
    damage |= scenario::tag_of(alive[i]) ^ i;
    std::free(alive[i]);
  }
  return damage;
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments =
      scenario::parse_arguments(argc, argv, {.unit = "blocks allocated and freed", .ops = 40'000'000, .threads = 1});
  scenario::Report report("pair");
  scenario::measure_workers(report, "pair", arguments, allocate_and_free);
  return report.finish(arguments);
}
