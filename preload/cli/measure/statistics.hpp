// Medians, spreads, and what may be said of a ratio of two rows of samples. Open it to see how a verdict is made.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

namespace bench {

/// The median; of an even number of values the mean of the middle two. Requires: there is one.
double median(std::vector<double> values);

/// Half of the distance between the first and the third quartile, as linear interpolation between the values gives
/// them. Requires: there is a value.
double half_quartile_range(std::vector<double> values);

struct Interval {
  double low, high;
};

/// The interval that holds the median with the confidence below; nothing for fewer than five values, or where one is
/// not above 0. It is made as that of `unpaired_ratio`.
std::optional<Interval> median_interval(const std::vector<double>& values);

struct Ratio {
  double value;      // by how much ours is larger than the other: 1.05 is 5 % more
  double low, high;  // its confidence interval
};

/// The confidence that intervals have. One in a hundred of all comparisons of a thing with itself misses 1.
constexpr double confidence = 0.99;
/// Differences below this are none, however sure: no two installations of one program are more alike.
constexpr double smallest_difference = 0.005;
/// With fewer pairs nothing is said.
constexpr std::size_t fewest_pairs = 5;

/// What stands for a row of samples in a ratio.
enum class Center {
  median,
  /// The mean of the lesser half. For times: what disturbs a program only adds to them, so that the faster runs lie
  /// close together and tell a difference that the median of as many runs does not.
  faster_half,
};

/// The ratio of two rows of samples that were taken in pairs, one after another: what slows a machine down for seconds
/// meets both of a pair. Of medians it is the median of the pairs' ratios, which disturbed runs do not move; of faster
/// halves it is that of their means. The interval comes from 4,000 resamples of the pairs (bootstrap), drawn from a
/// fixed seed, and is widened as Student's distribution is, since few samples look too much alike. Nothing for fewer
/// than `fewest_pairs` pairs, or where a sample is not above 0.
std::optional<Ratio> paired_ratio(const std::vector<double>& ours, const std::vector<double>& others, Center center);

/// The same of samples that were not taken in pairs, as before and after a change: the ratio of the centers, and each
/// row is drawn from by itself.
std::optional<Ratio> unpaired_ratio(const std::vector<double>& ours, const std::vector<double>& others, Center center);

enum class Verdict { less, more, no_difference, unknown };

/// What the interval says: nothing, when it holds 1 or a difference that is too small to speak of.
Verdict verdict_of(const std::optional<Ratio>& ratio);

}  // namespace bench
