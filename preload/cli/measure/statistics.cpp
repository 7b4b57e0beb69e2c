// Medians and confidence intervals. Open it with statistics.hpp.
#include "statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>

namespace bench {
namespace {

constexpr int resamples = 4000;

/// The value at a part of the way through sorted values, between two of them if need be.
double quantile(const std::vector<double>& sorted, double part) {
  const double place = part * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - static_cast<double>(below)) * (sorted[above] - sorted[below]);
}

/// A generator whose numbers are the same with every standard library (splitmix64).
class Random {
 public:
  std::size_t below(std::size_t limit) {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t bits = state_;
    bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
    bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
    return static_cast<std::size_t>(bits ^ bits >> 31) % limit;
  }

 private:
  std::uint64_t state_ = 1;
};

/// The median of values that may be put into another order.
double median_of(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return values.size() % 2 == 1 ? *middle : (*middle + *std::max_element(values.begin(), middle)) / 2;
}

/// How much wider than of a normal distribution the middle 99 % of Student's are, by degrees of freedom from 4 on.
double student_over_normal(std::size_t freedom) {
  constexpr std::array<double, 7> factors = {1.787, 1.565, 1.439, 1.359, 1.303, 1.262, 1.230};
  if (freedom < 4 + factors.size()) return factors[freedom - 4];
  // The first terms of the expansion of Student's quantiles by 1 / freedom (Fisher and Cornish) at 2.576.
  const double per = 1 / static_cast<double>(freedom);
  return 1 + 1.909 * per + 3.43 * per * per;
}

bool are_positive(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double value) { return value > 0; });
}

/// The mean of the lesser half of values that may be put into another order; the middle one belongs to it.
double mean_of_lesser_half(std::vector<double>& values) {
  const std::size_t half = (values.size() + 1) / 2;
  const auto end = values.begin() + static_cast<std::ptrdiff_t>(half);
  std::nth_element(values.begin(), end - 1, values.end());
  return std::accumulate(values.begin(), end, 0.0) / static_cast<double>(half);
}

double center_of(std::vector<double>& values, Center center) {
  return center == Center::median ? median_of(values) : mean_of_lesser_half(values);
}

/// As many values as there are, drawn from them; `drawn` is room for those.
std::vector<double>& draw(const std::vector<double>& values, std::vector<double>& drawn, Random& random) {
  for (double& value : drawn)
    value = values[random.below(values.size())];
  return drawn;
}

/// The ratio with this logarithm, and the interval that the spread of the centers of resamples gives, if they are
/// spread as a normal distribution.
Ratio normal_ratio_in(double center, const std::vector<double>& centers, std::size_t samples) {
  constexpr double normal_quantile = 2.576;  // of `confidence`
  const auto count = static_cast<double>(centers.size());
  const double mean = std::accumulate(centers.begin(), centers.end(), 0.0) / count;
  double squares = 0;
  for (const double each : centers)
    squares += (each - mean) * (each - mean);
  const double half = normal_quantile * student_over_normal(samples - 1) *
                      std::sqrt(squares / count * static_cast<double>(samples) / static_cast<double>(samples - 1));
  return {std::exp(center), std::exp(center - half), std::exp(center + half)};
}

/// The ratio with this logarithm, and the interval that the centers of resamples of `samples` values give.
Ratio ratio_in(double center, std::vector<double> centers, std::size_t samples) {
  std::sort(centers.begin(), centers.end());
  const double wider =
      student_over_normal(samples - 1) * std::sqrt(static_cast<double>(samples) / static_cast<double>(samples - 1));
  const double low = (quantile(centers, (1 - confidence) / 2) - center) * wider;
  const double high = (quantile(centers, (1 + confidence) / 2) - center) * wider;
  return {std::exp(center), std::exp(center + low), std::exp(center + high)};
}

}  // namespace

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return quantile(values, 0.5);
}

double half_quartile_range(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return (quantile(values, 0.75) - quantile(values, 0.25)) / 2;
}

std::optional<Interval> median_interval(const std::vector<double>& values) {
  if (values.size() < fewest_pairs || !are_positive(values)) return std::nullopt;
  Random random;
  std::vector<double> drawn(values.size());
  std::vector<double> centers(resamples);
  for (double& each : centers)
    each = std::log(median_of(draw(values, drawn, random)));
  const Ratio whole = ratio_in(std::log(median(values)), std::move(centers), values.size());
  return Interval{whole.low, whole.high};
}

std::optional<Ratio> paired_ratio(const std::vector<double>& ours, const std::vector<double>& others, Center center) {
  const std::size_t pairs = std::min(ours.size(), others.size());
  const auto end = static_cast<std::ptrdiff_t>(pairs);
  std::vector<double> left(ours.begin(), ours.begin() + end), right(others.begin(), others.begin() + end);
  if (pairs < fewest_pairs || !are_positive(left) || !are_positive(right)) return std::nullopt;
  std::vector<double> logarithms(pairs);
  for (std::size_t i = 0; i < pairs; ++i)
    logarithms[i] = std::log(ours[i] / others[i]);
  Random random;
  std::vector<double> centers(resamples);
  if (center == Center::median) {
    std::vector<double> drawn(pairs);
    for (double& each : centers)
      each = median_of(draw(logarithms, drawn, random));
    return ratio_in(median(logarithms), std::move(centers), pairs);
  }
  std::vector<double> drawn_left(pairs), drawn_right(pairs);
  for (double& each : centers) {
    for (std::size_t i = 0; i < pairs; ++i) {
      const std::size_t pair = random.below(pairs);
      drawn_left[i] = left[pair];
      drawn_right[i] = right[pair];
    }
    each = std::log(mean_of_lesser_half(drawn_left) / mean_of_lesser_half(drawn_right));
  }
  return normal_ratio_in(std::log(mean_of_lesser_half(left) / mean_of_lesser_half(right)), centers, pairs);
}

std::optional<Ratio> unpaired_ratio(const std::vector<double>& ours, const std::vector<double>& others, Center center) {
  const std::size_t least = std::min(ours.size(), others.size());
  if (least < fewest_pairs || !are_positive(ours) || !are_positive(others)) return std::nullopt;
  Random random;
  std::vector<double> left(ours), right(others);
  const double whole = std::log(center_of(left, center) / center_of(right, center));
  std::vector<double> centers(resamples);
  for (double& each : centers)
    each = std::log(center_of(draw(ours, left, random), center) / center_of(draw(others, right, random), center));
  return center == Center::median ? ratio_in(whole, std::move(centers), least) : normal_ratio_in(whole, centers, least);
}

Verdict verdict_of(const std::optional<Ratio>& ratio) {
  if (!ratio) return Verdict::unknown;
  if (std::abs(ratio->value - 1) < smallest_difference) return Verdict::no_difference;
  if (ratio->high < 1) return Verdict::less;
  if (ratio->low > 1) return Verdict::more;
  return Verdict::no_difference;
}

}  // namespace bench
