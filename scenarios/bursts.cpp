// A hundred blocks of one size taken, a tag written to each, and given back, the last one first, for sizes of 2 KiB to
// 60,000 bytes: packets of a burst, pages that a query reads, rows of a result. Open it for how much it costs a malloc
// when a program has more of such blocks at a time than a cache holds.
#include "same_size.hpp"

int main(int argc, char** argv) {
  static constexpr scenario::SameSize sizes[] = {
      {"bursts_2k", 2048}, {"bursts_4k", 4096}, {"bursts_10k", 10'000}, {"bursts_30k", 30'000}, {"bursts_60k", 60'000}};
  return scenario::measure_sizes<100, scenario::GivenBack::LastOneFirst>(argc, argv, "bursts", sizes);
}
