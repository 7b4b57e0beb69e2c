// Eight blocks of one size taken, a byte of each written, and given back, for sizes of 1 KiB to 1 MiB: buffers of
// requests, pages of databases, images. Open it for the size from which on a malloc is slower.
#include "same_size.hpp"

int main(int argc, char** argv) {
  static constexpr scenario::SameSize sizes[] = {
      {"sizes_1k", 1024},      {"sizes_8k", 8192},      {"sizes_64k", 65536},   {"sizes_100k", 100'000},
      {"sizes_200k", 200'000}, {"sizes_400k", 400'000}, {"sizes_1m", 1'048'576}};
  return scenario::measure_sizes<8, scenario::GivenBack::FirstOneFirst>(argc, argv, "sizes", sizes);
}
