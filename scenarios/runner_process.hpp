// Runs one scenario program under one allocator and believes its figures only when that allocator really
// served it. Open it to change how the children of sluice-bench are started, limited or checked.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "measure/allocators.hpp"

namespace bench {

struct CaseSample {
  std::string name;
  std::uint64_t ops;
  double ns_per_op;
};

/// What one run of a scenario said about itself.
struct Sample {
  std::vector<CaseSample> cases;
  std::int64_t peak_rss_kib;
  bool memory_in_effect;  // false: the kind of memory asked for was plain malloc under this allocator
};

/// Runs `program` with these arguments, the allocator preloaded and every other preload removed. Throws
/// std::runtime_error with one line when it cannot be started, fails, takes longer than `limit`, or was served by
/// another malloc.
Sample run_scenario(const std::filesystem::path& program, const std::vector<std::string>& arguments,
                    const Allocator& allocator, std::chrono::seconds limit);

}  // namespace bench
