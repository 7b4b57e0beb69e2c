// The shortest life there is: allocate one small block, write to it, free it. Open it for the cost of the two
// fast paths with nothing else around them.
//
// One block of every sixteenth size stays alive, as in any program that has run for a while: otherwise each
// free would empty a page, and some allocators then do work that a program hardly ever meets.
#include "common.hpp"

int main(int argc, char** argv) {
  const auto arguments = scenario::parse_arguments(argc, argv, "blocks allocated and freed", 40'000'000);
  const scenario::SizeCycle sizes(4096, arguments.seed, scenario::small_size);
  constexpr std::size_t largest = 1024;
  constexpr std::size_t step = 16;
  scenario::Table<void*> alive(largest / step);
  for (std::size_t i = 0; i < alive.length(); ++i)
    alive[i] = scenario::allocate_tagged((i + 1) * step, i);
  scenario::Report report("pair");

  std::uint64_t damage = 0;
  report.measure("pair", arguments.ops, [&] {
    for (std::uint64_t i = 0; i < arguments.ops; ++i) {
      void* const block = scenario::allocate_tagged(sizes[i], i);
      damage |= scenario::tag_of(block) ^ i;
      std::free(block);
    }
  });
  for (std::size_t i = 0; i < alive.length(); ++i) {
    damage |= scenario::tag_of(alive[i]) ^ i;
    std::free(alive[i]);
  }
  report.require(damage == 0);
  return report.finish(arguments);
}
