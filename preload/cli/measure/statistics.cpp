// Medians and confidence intervals. Open it with statistics.hpp.
#include "statistics.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
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

/// The median of as many values as there are, drawn from them; `drawn` is room for those.
double median_of_draw(const std::vector<double>& values, std::vector<double>& drawn, Random& random) {
  for (double& value : drawn)
    value = values[random.below(values.size())];
  return median_of(drawn);
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
  const auto is_positive = [](double value) { return value > 0; };
  if (values.size() < fewest_pairs || !std::all_of(values.begin(), values.end(), is_positive)) return std::nullopt;
  Random random;
  std::vector<double> drawn(values.size());
  std::vector<double> centers(resamples);
  for (double& each : centers)
    each = std::log(median_of_draw(values, drawn, random));
  const Ratio whole = ratio_in(std::log(median(values)), std::move(centers), values.size());
  return Interval{whole.low, whole.high};
}

std::optional<Ratio> paired_ratio(const std::vector<double>& ours, const std::vector<double>& others) {
  const std::size_t pairs = std::min(ours.size(), others.size());
  if (pairs < fewest_pairs) return std::nullopt;
  std::vector<double> logarithms(pairs);
  for (std::size_t i = 0; i < pairs; ++i) {
    if (!(ours[i] > 0) || !(others[i] > 0)) return std::nullopt;
    logarithms[i] = std::log(ours[i] / others[i]);
  }
  Random random;
  std::vector<double> drawn(pairs);
  std::vector<double> centers(resamples);
  for (double& each : centers)
    each = median_of_draw(logarithms, drawn, random);
  return ratio_in(median(logarithms), std::move(centers), pairs);
}

std::optional<Ratio> unpaired_ratio(const std::vector<double>& ours, const std::vector<double>& others) {
  const std::size_t least = std::min(ours.size(), others.size());
  const auto is_positive = [](double value) { return value > 0; };
  if (least < fewest_pairs || !std::all_of(ours.begin(), ours.end(), is_positive) ||
      !std::all_of(others.begin(), others.end(), is_positive))
    return std::nullopt;
  Random random;
  std::vector<double> left(ours.size()), right(others.size());
  std::vector<double> centers(resamples);
  for (double& each : centers)
    each = std::log(median_of_draw(ours, left, random) / median_of_draw(others, right, random));
  return ratio_in(std::log(median(ours) / median(others)), std::move(centers), least);
}

Verdict verdict_of(const std::optional<Ratio>& ratio) {
  if (!ratio) return Verdict::unknown;
  if (std::abs(ratio->value - 1) < smallest_difference) return Verdict::no_difference;
  if (ratio->high < 1) return Verdict::less;
  if (ratio->low > 1) return Verdict::more;
  return Verdict::no_difference;
}

}  // namespace bench
