// Reads what libsluice-latency.so wrote: how long the calls of malloc, free and realloc of a program took. Open it to
// see how percentiles are made.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace bench {

/// The times of one kind of calls, in ns; what measuring adds is subtracted. All 0 when there was no call.
///
/// A percentile is the least time that so many percent of the calls did not exceed (nearest rank). It is known to 1/64
/// and to the resolution of the timer, whichever is worse: calls whose times could not be told apart are taken to lie
/// evenly where they do. The maximum is exact.
struct LatencyCurve {
  std::uint64_t count = 0;
  double mean = 0, p50 = 0, p90 = 0, p99 = 0, p99_9 = 0, p99_99 = 0, max = 0;
  /// For a chart: percentiles, from 0 to 100, and their times, neither of which ever falls. There are ten
  /// to each nine, up to 99.999, and the last is the maximum. None when there was no call.
  std::vector<std::pair<double, double>> points = {};
};

struct Latency {
  std::string timer = {};    // "tsc", "clock", or "mixed" where the processes differ
  double resolution_ns = 0;  // what the timer moves on by; the largest of all processes, as the next
  double overhead_ns = 0;    // what measuring adds to a call; subtracted from each
  LatencyCurve allocate = {}, release = {}, resize = {};
  int processes = 0;  // that wrote a record: not those that _exit or a signal ended
};

/// Merges the records of all processes in a file; those of none make `processes` 0.
/// Throws: std::runtime_error when the file cannot be read, or is damaged, as by a full disk.
Latency read_latency(const std::filesystem::path& file);

}  // namespace bench
