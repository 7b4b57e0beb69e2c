// The comparison as tables, in text and in Markdown, and in words. Open it to change what a verdict sounds like.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "command.hpp"
#include "compare.hpp"
#include "measure/latency_tables.hpp"
#include "measure/tables.hpp"

namespace sluice::cli {
namespace {

using bench::Grid;
using bench::Ratio;
using bench::Verdict;

bool has_runs(const Contender& contender) {
  return std::any_of(contender.runs.begin(), contender.runs.end(), [](const auto& run) { return run.has_value(); });
}

// Returns: how many rounds both have a sample of.
std::size_t rounds_of(const Contender& ours, const Contender& other) {
  std::size_t count = 0;
  for (std::size_t round = 0; round < std::min(ours.runs.size(), other.runs.size()); ++round)
    count += ours.runs[round] && other.runs[round];
  return count;
}

// Medians of all figures, the spread of the wall time with it.
Grid figures_grid(const Comparison& comparison) {
  Grid grid{{"median of a run"}};
  const std::vector<Metric> metrics = metrics_of(comparison);
  for (const Metric& metric : metrics)
    grid.front().emplace_back(metric.title);
  for (const Contender& each : comparison.contenders) {
    grid.push_back({each.allocator.name});
    for (const Metric& metric : metrics) {
      const std::vector<double> samples = samples_of(each, metric);
      std::string text = samples.empty() ? "-" : metric.text(bench::median(samples));
      if (&metric == metrics.data() && !samples.empty())
        text += fmt::format(" ± {}", metric.text(bench::half_quartile_range(samples)));
      grid.back().push_back(std::move(text));
    }
  }
  return grid;
}

// Ratios to the baseline, and what they mean, for the figures that have a word for it.
Grid verdict_grid(const Comparison& comparison) {
  const Contender& baseline = comparison.contenders[comparison.baseline];
  const std::vector<Metric> metrics = metrics_of(comparison);
  Grid grid{{"against " + baseline.allocator.name}};
  if (!has_runs(baseline)) return grid;
  for (const Metric& metric : metrics) {
    if (metric.less == nullptr) continue;
    grid.front().push_back(fmt::format("{}, ratio", metric.title));
    grid.front().emplace_back("verdict");
  }
  for (const Contender& each : comparison.contenders) {
    if (&each == &baseline || !has_runs(each)) continue;
    grid.push_back({each.allocator.name});
    for (const Metric& metric : metrics) {
      if (metric.less == nullptr) continue;
      const std::optional<Ratio> ratio = ratio_of(each, baseline, metric);
      grid.back().push_back(ratio_text(ratio));
      grid.back().push_back(verdict_text(ratio, metric, rounds_of(each, baseline)));
    }
  }
  return grid;
}

// Percentiles of the calls, of those whose latency was measured.
Grid latency_grid(const Comparison& comparison) {
  Grid grid{{bench::percentiles_title, "malloc", "free", "realloc"}};
  for (const Contender& each : comparison.contenders) {
    if (!each.latency || each.latency->processes == 0) continue;
    grid.push_back({each.allocator.name, bench::percentiles_text(each.latency->allocate),
                    bench::percentiles_text(each.latency->release), bench::percentiles_text(each.latency->resize)});
  }
  return grid;
}

std::string latency_method(const Comparison& comparison) {
  std::vector<bench::Latency> all;
  for (const Contender& each : comparison.contenders)
    if (each.latency && each.latency->processes != 0) all.push_back(*each.latency);
  return bench::latency_method(all);
}

// The one that has the least of a metric; null when none has any.
const Contender* least_of(const Comparison& comparison, const Metric& metric) {
  const Contender* least = nullptr;
  double value = 0;
  for (const Contender& each : comparison.contenders) {
    const std::vector<double> samples = samples_of(each, metric);
    if (samples.empty() || !each.failure.empty() || each.differs) continue;
    if (const double median = bench::median(samples); least == nullptr || median < value) {
      least = &each;
      value = median;
    }
  }
  return least;
}

// "Fastest: sluice; no sure difference to mimalloc." Empty when there are too few runs to tell.
std::string summary_of(const Comparison& comparison, const Metric& metric) {
  const Contender* const best = least_of(comparison, metric);
  if (best == nullptr) return {};
  std::string equals;
  bool is_told = false;
  for (const Contender& each : comparison.contenders) {
    if (&each == best || !each.failure.empty() || each.differs || !has_runs(each)) continue;
    const Verdict verdict = bench::verdict_of(ratio_of(each, *best, metric));
    if (verdict == Verdict::unknown) return {};
    is_told = true;
    if (verdict != Verdict::more) equals += fmt::format("{}{}", equals.empty() ? "" : ", ", each.allocator.name);
  }
  if (!is_told) return {};
  return fmt::format("{}: {}{}.", metric.best, best->allocator.name,
                     equals.empty() ? "" : fmt::format("; no sure difference to {}", equals));
}

std::vector<std::string> lines_of(const Comparison& comparison) {
  std::vector<std::string> lines;
  for (const Metric& metric : metrics_of(comparison)) {
    if (metric.best == nullptr) continue;
    std::string line = summary_of(comparison, metric);
    if (!line.empty()) lines.push_back(std::move(line));
  }
  for (const std::string& remark : comparison.remarks)
    lines.push_back(printable(fmt::format("Note: {}.", remark)));
  for (const Contender& each : comparison.contenders) {
    if (!each.failure.empty())
      lines.push_back(printable(fmt::format("Error: {}: {}.", each.allocator.name, each.failure)));
  }
  for (const std::string& difference : comparison.differences)
    lines.push_back(printable(fmt::format("Error: {}.", difference)));
  return lines;
}

// As a shell reads it.
std::string quoted(const std::string& word) {
  constexpr const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string inside;
  for (const char letter : word) {
    if (letter == '\'') inside += "'\\'";
    inside += letter;
  }
  return fmt::format("'{}'", inside);
}

std::string command_text(const Comparison& comparison) {
  std::string text;
  for (const std::string& word : comparison.command)
    text += fmt::format("{}{}", text.empty() ? "" : " ", printable(quoted(word)));
  return text;
}

std::string method_text(const Comparison& comparison) {
  return fmt::format(
      "{} run{} each after {} to warm up, in turn. ± is half the distance of the quartiles. Ratios of times are those "
      "of "
      "the faster half of the runs; in brackets the interval that holds the ratio with 99 % confidence.",
      comparison.rounds, comparison.rounds == 1 ? "" : "s", comparison.warmup);
}

std::string painted(const std::string& text, const char* code, bool colour) {
  return colour ? fmt::format("\033[{}m{}\033[0m", code, text) : text;
}

}  // namespace

// "7.3 % faster", "no difference", or a dash when there are too few samples.
std::string verdict_text(const std::optional<Ratio>& ratio, const Metric& metric, std::size_t rounds) {
  switch (bench::verdict_of(ratio)) {
    case Verdict::unknown:
      return rounds < bench::fewest_pairs ? "too few runs to tell" : "too little to tell";  // or a sample is 0
    case Verdict::no_difference:
      return "no difference";
    case Verdict::less:
    case Verdict::more:
      break;
  }
  const double change = std::abs(ratio->value - 1) * 100;
  const char* const word = ratio->value < 1 ? metric.less : metric.more;
  if (ratio->value >= 2) return fmt::format("{:.1f} times {}", ratio->value, metric.more);
  return fmt::format("{:.1f} % {}", change, word);
}

std::string ratio_text(const std::optional<Ratio>& ratio) {
  return ratio ? fmt::format("{:.3f} ({:.3f} to {:.3f})", ratio->value, ratio->low, ratio->high) : "-";
}

std::string comparison_as_text(const Comparison& comparison, bool colour) {
  std::string text = fmt::format("{}\n{}\n\n{}\n", painted(command_text(comparison), "1", colour),
                                 method_text(comparison), bench::text_table(figures_grid(comparison)));
  const Grid verdicts = verdict_grid(comparison);
  if (verdicts.size() > 1) text += fmt::format("{}\n", bench::text_table(verdicts));
  if (const Grid latencies = latency_grid(comparison); latencies.size() > 1)
    text += fmt::format("{}\n{}\n\n", bench::text_table(latencies), latency_method(comparison));
  for (const std::string& line : lines_of(comparison))
    text += fmt::format("{}\n", painted(line,
                                        line.starts_with("Error")  ? "31"
                                        : line.starts_with("Note") ? "33"
                                                                   : "32",
                                        colour));
  return text;
}

std::string comparison_as_markdown(const Comparison& comparison) {
  std::string text =
      fmt::format("`{}` on {}. {}\n\n{}\n", command_text(comparison), bench::machine_text(comparison.machine),
                  method_text(comparison), bench::markdown_table(figures_grid(comparison)));
  const Grid verdicts = verdict_grid(comparison);
  if (verdicts.size() > 1) text += fmt::format("{}\n", bench::markdown_table(verdicts));
  if (const Grid latencies = latency_grid(comparison); latencies.size() > 1)
    text += fmt::format("{}\n{}\n\n", bench::markdown_table(latencies), latency_method(comparison));
  for (const std::string& line : lines_of(comparison))
    text += fmt::format("{}\n", line);
  return text;
}

}  // namespace sluice::cli
