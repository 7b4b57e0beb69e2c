// The figures that are compared, and what is made of their samples. Open it to add one.
#include <algorithm>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "compare.hpp"
#include "measure/tables.hpp"

namespace sluice::cli {
namespace {

std::string count_text(double value) {
  return value >= 1e6 ? fmt::format("{:.2f} M", value / 1e6) : fmt::format("{:.0f}", value);
}

std::string figure_text(double value) {
  return value >= 1e6 ? count_text(value) : bench::time_text(value);
}

std::string milliseconds_text(double seconds) {
  return bench::time_text(seconds * 1000);
}

}  // namespace

std::vector<Metric> metrics_of(const Comparison& comparison) {
  const Metric wall = {"wall_seconds",
                       "wall, ms",
                       [](const Sample& s) { return s.usage.wall_seconds; },
                       milliseconds_text,
                       "faster",
                       "slower",
                       "Fastest",
                       bench::Center::faster_half};
  const Metric load = {"load_seconds",
                       "load, ms",
                       [](const Sample& s) { return s.load_seconds; },
                       milliseconds_text,
                       "faster",
                       "slower",
                       "Fastest",
                       bench::Center::faster_half};
  const Metric figure = {"load_figure", "load's figure", [](const Sample& s) { return s.load_figure; },
                         figure_text,   "lower",         "higher",
                         nullptr};
  std::vector<Metric> all = {comparison.is_service ? load : wall};
  if (comparison.has_figure) all.push_back(figure);
  all.push_back({"user_seconds", "user, ms", [](const Sample& s) { return s.usage.user_seconds; }, milliseconds_text,
                 nullptr, nullptr, nullptr});
  all.push_back({"system_seconds", "system, ms", [](const Sample& s) { return s.usage.system_seconds; },
                 milliseconds_text, nullptr, nullptr, nullptr});
  all.push_back({"peak_rss_kib", "peak RSS, MiB", [](const Sample& s) { return static_cast<double>(s.usage.peak_kib); },
                 bench::memory_text, "less", "more", "Least memory"});
  all.push_back({"minor_faults", "page faults",
                 [](const Sample& s) { return static_cast<double>(s.usage.minor_faults); }, count_text, nullptr,
                 nullptr, nullptr});
  all.push_back({"major_faults", "with input",
                 [](const Sample& s) { return static_cast<double>(s.usage.major_faults); }, count_text, nullptr,
                 nullptr, nullptr});
  all.push_back(
      {"context_switches", "switches",
       [](const Sample& s) { return static_cast<double>(s.usage.voluntary_switches + s.usage.involuntary_switches); },
       count_text, nullptr, nullptr, nullptr});
  return all;
}

std::vector<double> samples_of(const Contender& contender, const Metric& metric) {
  std::vector<double> samples;
  for (const std::optional<Sample>& run : contender.runs)
    if (run) samples.push_back(metric.of(*run));
  return samples;
}

std::optional<bench::Ratio> ratio_of(const Contender& ours, const Contender& other, const Metric& metric) {
  std::vector<double> left, right;
  for (std::size_t round = 0; round < std::min(ours.runs.size(), other.runs.size()); ++round) {
    if (!ours.runs[round] || !other.runs[round]) continue;
    left.push_back(metric.of(*ours.runs[round]));
    right.push_back(metric.of(*other.runs[round]));
  }
  return bench::paired_ratio(left, right, metric.center);
}

}  // namespace sluice::cli
