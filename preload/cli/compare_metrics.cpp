// The figures that are compared, and what is made of their samples. Open it to add one.
#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
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

using bench::Better;

Metric time_metric(const char* name, const char* title, std::function<double(const Sample&)> of) {
  return {name,     title,        std::move(of), milliseconds_text, "faster",
          "slower", Better::less, "time",        "Fastest",         bench::Center::faster_half};
}

// The figures that the program, or its load, prints itself.
std::vector<Metric> own_metrics(const Comparison& comparison) {
  std::vector<Metric> metrics;
  for (std::size_t i = 0; i < comparison.figures.size(); ++i) {
    const OwnFigure& figure = comparison.figures[i];
    Metric metric = {i == 0 ? "load_figure" : fmt::format("load_figure_{}", i + 1),
                     figure.title,
                     [i](const Sample& sample) { return sample.figures[i]; },
                     figure_text,
                     "lower",
                     "higher"};
    if (figure.better != Better::unknown) {
      const bool is_less = figure.better == Better::less;
      metric.less = is_less ? "lower, better" : "lower, worse";
      metric.more = is_less ? "higher, worse" : "higher, better";
      metric.better = figure.better;
      metric.noun = figure.title;
      metric.best = fmt::format("Best by {}", figure.title);
    }
    metrics.push_back(std::move(metric));
  }
  return metrics;
}

// Whether all runs took so long that memory was read often enough for a mean.
bool has_means(const Comparison& comparison) {
  constexpr double least_seconds = 0.1;
  for (const Contender& each : comparison.contenders)
    for (const std::optional<Sample>& run : each.runs)
      if (run && (run->usage.wall_seconds < least_seconds || run->usage.mean_all_kib == 0)) return false;
  return true;
}

// Whether `ratio` to another one is surely the better one's.
bool is_surely_better(const std::optional<bench::Ratio>& ratio, Better better) {
  return bench::verdict_of(ratio) == (better == Better::less ? bench::Verdict::less : bench::Verdict::more);
}

}  // namespace

std::vector<Metric> metrics_of(const Comparison& comparison) {
  Metric time = comparison.is_service
                    ? time_metric("load_seconds", "load, ms", [](const Sample& s) { return s.load_seconds; })
                    : time_metric("wall_seconds", "wall, ms", [](const Sample& s) { return s.usage.wall_seconds; });
  std::vector<Metric> all = own_metrics(comparison);
  // Who is measured by a figure of its own is not ranked by its time as well: a load may run for a given time.
  if (std::any_of(all.begin(), all.end(), [](const Metric& own) { return own.better != Better::unknown; }))
    time.best.clear();
  all.push_back(std::move(time));
  all.push_back({"user_seconds", "user, ms", [](const Sample& s) { return s.usage.user_seconds; }, milliseconds_text});
  all.push_back(
      {"system_seconds", "system, ms", [](const Sample& s) { return s.usage.system_seconds; }, milliseconds_text});
  all.push_back({"peak_all_kib", "peak memory, MiB",
                 [](const Sample& s) { return static_cast<double>(s.usage.peak_all_kib); }, bench::memory_text, "less",
                 "more", Better::less, "memory", "Least memory"});
  if (has_means(comparison))
    all.push_back({"mean_all_kib", "average memory, MiB", [](const Sample& s) { return s.usage.mean_all_kib; },
                   bench::memory_text, "less", "more", Better::less});
  all.push_back({"peak_rss_kib", "largest process, MiB",
                 [](const Sample& s) { return static_cast<double>(s.usage.peak_kib); }, bench::memory_text});
  all.push_back({"minor_faults", "page faults",
                 [](const Sample& s) { return static_cast<double>(s.usage.minor_faults); }, count_text});
  all.push_back({"major_faults", "major faults",
                 [](const Sample& s) { return static_cast<double>(s.usage.major_faults); }, count_text});
  all.push_back(
      {"context_switches", "switches",
       [](const Sample& s) { return static_cast<double>(s.usage.voluntary_switches + s.usage.involuntary_switches); },
       count_text});
  return all;
}

std::chrono::milliseconds memory_gap_of(const Comparison& comparison) {
  std::chrono::milliseconds longest{};
  for (const Contender& each : comparison.contenders)
    longest = std::max(longest, each.memory_gap);
  return longest;
}

Metric deciding_metric(const Comparison& comparison) {
  const std::vector<Metric> metrics = metrics_of(comparison);
  return *std::find_if(metrics.begin(), metrics.end(), [](const Metric& each) { return !each.best.empty(); });
}

std::vector<std::optional<unsigned>> places_of(const Comparison& comparison, const Metric& metric) {
  const std::vector<Contender>& all = comparison.contenders;
  const auto takes_part = [&](const Contender& each) {
    return each.failure.empty() && !each.differs && !samples_of(each, metric).empty();
  };
  std::vector<std::optional<unsigned>> places(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!takes_part(all[i])) continue;
    unsigned place = 1;
    for (const Contender& other : all) {
      if (&other == &all[i] || !takes_part(other)) continue;
      const std::optional<bench::Ratio> ratio = ratio_of(other, all[i], metric);
      if (!ratio) return std::vector<std::optional<unsigned>>(all.size());
      place += is_surely_better(ratio, metric.better);
    }
    places[i] = place;
  }
  return places;
}

bool is_best(const std::vector<std::optional<unsigned>>& places, std::size_t contender) {
  return places[contender] == 1u && std::count(places.begin(), places.end(), 1u) == 1 &&
         std::count(places.begin(), places.end(), std::nullopt) + 1 < static_cast<std::ptrdiff_t>(places.size());
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
