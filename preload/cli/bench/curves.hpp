// How the speed of a case grows with the number of threads. Open it to see what a speed-up is relative to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench/results.hpp"

namespace bench {

/// The figures of one allocator with one number of threads. Nothing where it has no time, or none to compare with.
struct CurveFigures {
  std::optional<double> nanoseconds;  // per operation: the median
  std::optional<double> speed_up;     // the throughput by that of the same allocator with the fewest threads
  std::optional<double> of_linear;    // the speed-up by how many times as many threads there are: 1 is linear
};

struct CurvePoint {
  std::uint64_t threads;
  const Row* row;                        // of the table of times
  std::vector<CurveFigures> allocators;  // in the order of the results
};

struct Curve {
  std::string scenario;            // without a number of threads
  std::string name;                // of the case, likewise
  std::vector<CurvePoint> points;  // two or more, by threads, the fewest first
};

/// The figures of one allocator on a curve; `fewest` has the fewest threads, and nothing where that is not known.
CurveFigures figures_at(std::uint64_t threads, std::optional<double> nanoseconds, std::uint64_t fewest_threads,
                        std::optional<double> fewest_nanoseconds);

/// A curve for each case that ran with several numbers of threads. They refer to the rows of `results`.
std::vector<Curve> curves_of(const Results& results);

/// Whether the point has more threads than there are processors for them.
bool is_over_committed(const Results& results, const CurvePoint& point);

}  // namespace bench
