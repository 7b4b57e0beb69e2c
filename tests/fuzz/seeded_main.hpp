// The main of a fuzz target that is built without libFuzzer: it runs seeded sequences, or the files and folders of
// files named. Open it to change how a found input is run again. Included last by the target.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "random_blocks.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

#if defined(SLUICE_FUZZ_SEQUENCES)

namespace {

// Returns: the path itself, or the files of the folder that it names, by their names.
inline std::vector<std::filesystem::path> inputs_at(const std::filesystem::path& path) {
  if (!std::filesystem::is_directory(path)) return {path};
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(path))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

// Returns: whether the file could be read.
inline bool run_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return false;
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  return true;
}

}  // namespace

int main(int count, char** arguments) {
  for (int i = 1; i < count; ++i) {
    const std::vector<std::filesystem::path> inputs = inputs_at(arguments[i]);
    for (const std::filesystem::path& input : inputs) {
      if (run_file(input)) continue;
      std::fprintf(stderr, "%s: %s: cannot be read\n", arguments[0], input.c_str());
      return 1;
    }
    if (inputs.empty()) {
      std::fprintf(stderr, "%s: %s: no inputs\n", arguments[0], arguments[i]);
      return 1;
    }
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
