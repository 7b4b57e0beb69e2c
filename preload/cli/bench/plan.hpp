// What a benchmark will do, and how long that takes: told before it starts. Open it when a pass is added.
#pragma once

#include <cstddef>
#include <string>

#include "bench/results.hpp"

namespace bench {

struct Plan {
  std::size_t watched = 0;  // runs in which memory is read
  std::size_t rests = 0;    // that end so many of them
  std::size_t timed = 0;
  std::size_t with_latency = 0;
  double rest_seconds = 0;      // of one rest
  double seconds_of_a_run = 1;  // about, beside its rest

  std::size_t runs() const { return watched + timed + with_latency; }
  double rest() const { return static_cast<double>(rests) * rest_seconds; }
};

/// Whether a scenario rests in the run in which its memory is read.
bool rests(const Scenario& scenario, const RunSettings& settings);

Plan plan_of(const Results& results, bool has_latency);

/// "2 scenarios under 5 allocators: 10 runs in which memory is read, 10 of them with 10 s of rest at the end
/// (--quiesce); 50 timed runs; 10 runs in which each call is timed. About 2:50 min if a run takes 1 s, 1:40 min of it
/// rest."
std::string plan_text(const Results& results, const Plan& plan);

}  // namespace bench
