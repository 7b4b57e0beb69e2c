// The main of a fuzz target that is built without libFuzzer: it runs seeded sequences, or the files named. Open it to
// change how a found input is run again. Included last by the target.
#pragma once

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <vector>

#include "random_blocks.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

#if defined(SLUICE_FUZZ_SEQUENCES)

int main(int count, char** arguments) {
  for (int i = 1; i < count; ++i) {
    std::ifstream file(arguments[i], std::ios::binary);
    const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    if (!file.good() && bytes.empty()) {
      std::fprintf(stderr, "%s: %s: cannot be read\n", arguments[0], arguments[i]);
      return 1;
    }
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  }
  if (count > 1) return 0;
  for (uint64_t seed = 1; seed <= SLUICE_FUZZ_SEQUENCES; ++seed) {
    sluice::test::Random random(seed);
    std::vector<uint8_t> bytes(random.below(1500));
    for (uint8_t& byte : bytes)
      byte = static_cast<uint8_t>(random.next());
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
  return 0;
}

#endif
