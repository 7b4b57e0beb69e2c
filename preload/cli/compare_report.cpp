// The comparison as tables, in text and in Markdown, and in words. Open it to change what a verdict sounds like.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <map>
#include <set>
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
    const std::string title = metric.title;
    grid.front().push_back(fmt::format("{} verdict", title.substr(0, title.find(','))));
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

// "a", "a and b", "a, b and c".
std::string enumeration(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == names.size() ? " and " : ", ", names[i]);
  return text;
}

// "Fastest: sluice, then mimalloc and system." Empty when there are too few runs to tell.
std::string summary_line(const Comparison& comparison, const Metric& metric) {
  const std::vector<std::optional<unsigned>> places = places_of(comparison, metric);
  std::map<unsigned, std::vector<std::string>> ranked;
  std::size_t count = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (!places[i]) continue;
    ranked[*places[i]].push_back(comparison.contenders[i].allocator.name);
    ++count;
  }
  if (count < 2) return {};
  if (ranked.size() == 1)
    return fmt::format("No significant difference in {} between {}.", metric.noun, enumeration(ranked.begin()->second));
  std::string text = fmt::format("{}: {}", metric.best, enumeration(ranked.begin()->second));
  if (ranked.begin()->second.size() > 1) text += ", without a significant difference";
  for (auto place = std::next(ranked.begin()); place != ranked.end(); ++place)
    text += fmt::format(", then {}", enumeration(place->second));
  return text + ".";
}

std::vector<std::string> lines_of(const Comparison& comparison) {
  std::vector<std::string> lines;
  for (const std::string& line : summary_of(comparison))
    lines.push_back(printable(line));
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
      "the faster half of the runs; in brackets the interval that holds the ratio with 99 % confidence. Peak memory is "
      "what all processes held at once: that of a single one as the system counts it, of several the sum of their "
      "shares "
      "(PSS), read {} ms apart at most; a process that lived for less may have been missed. Average memory is the mean "
      "of these readings over the time that the program ran, its rests included; programs of less than 0.1 s have "
      "none.",
      comparison.rounds, comparison.rounds == 1 ? "" : "s", comparison.warmup, memory_gap_of(comparison).count());
}

std::string versions_of(const Comparison& comparison) {
  std::vector<bench::Allocator> allocators;
  for (const Contender& each : comparison.contenders)
    allocators.push_back(each.allocator);
  return bench::versions_text(allocators);
}

// That in a line, where nobody asked for an explanation.
std::string runs_text(const Comparison& comparison) {
  return fmt::format("{} run{} each after {} to warm up; --explain tells what the figures mean.", comparison.rounds,
                     comparison.rounds == 1 ? "" : "s", comparison.warmup);
}

// Figures that have a word for their ratio are what the comparison is about; the others explain them.
std::set<std::size_t> columns_with_verdict(const Comparison& comparison) {
  std::set<std::size_t> columns;
  const std::vector<Metric> metrics = metrics_of(comparison);
  for (std::size_t i = 0; i < metrics.size(); ++i)
    if (metrics[i].less != nullptr) columns.insert(i + 1);
  return columns;
}

// Of a ratio and its verdict, the verdict.
std::set<std::size_t> verdict_columns(const Grid& verdicts) {
  std::set<std::size_t> columns;
  for (std::size_t i = 2; i < verdicts.front().size(); i += 2)
    columns.insert(i);
  return columns;
}

std::string painted(const std::string& text, const char* code, bool colour) {
  return colour ? fmt::format("\033[{}m{}\033[0m", code, text) : text;
}

// Green is for who is best, and for nothing else.
const char* colour_of(const std::string& line) {
  return line.starts_with("Error")            ? "31"
         : line.starts_with("Note")           ? "33"
         : line.starts_with("No significant") ? "0"
         : line.starts_with("Which")          ? "1"
                                              : "32";
}

// Who is by nobody surely beaten at a metric, as places in the comparison.
std::set<std::size_t> leaders_of(const Comparison& comparison, const Metric& metric) {
  const std::vector<std::optional<unsigned>> places = places_of(comparison, metric);
  std::set<std::size_t> leaders;
  for (std::size_t i = 0; i < places.size(); ++i)
    if (places[i] == 1u) leaders.insert(i);
  return leaders;
}

// "time: 7.3 % faster than system, memory: no difference": of all that can be won.
std::string reasons_text(const Comparison& comparison, std::size_t chosen, std::size_t other) {
  std::string text;
  const Contender &ours = comparison.contenders[chosen], &theirs = comparison.contenders[other];
  for (const Metric& metric : metrics_of(comparison)) {
    if (metric.best.empty()) continue;
    text += fmt::format("{}{} in {} (ratio {})", text.empty() ? "" : ", ",
                        verdict_text(ratio_of(ours, theirs, metric), metric, rounds_of(ours, theirs)), metric.noun,
                        ratio_text(ratio_of(ours, theirs, metric)));
  }
  return fmt::format("against {}: {}", theirs.allocator.name, text);
}

// Which allocator, and why: one that nobody beats at anything, the baseline before others; or one for each metric.
std::string answer_of(const Comparison& comparison) {
  std::vector<Metric> metrics = metrics_of(comparison);
  metrics.erase(std::remove_if(metrics.begin(), metrics.end(), [](const Metric& each) { return each.best.empty(); }),
                metrics.end());
  std::set<std::size_t> everywhere = leaders_of(comparison, metrics.front());
  for (const Metric& metric : metrics)
    std::erase_if(everywhere, [&, leaders = leaders_of(comparison, metric)](auto i) { return !leaders.contains(i); });
  const auto name = [&](std::size_t i) { return comparison.contenders[i].allocator.name; };
  if (everywhere.contains(comparison.baseline))
    return fmt::format("Which allocator? {}: no other is surely better at anything measured here.",
                       name(comparison.baseline));
  if (!everywhere.empty())
    return fmt::format("Which allocator? {}: nobody beats it here; {}.", name(*everywhere.begin()),
                       reasons_text(comparison, *everywhere.begin(), comparison.baseline));
  std::string text;
  for (const Metric& metric : metrics) {
    const std::set<std::size_t> leaders = leaders_of(comparison, metric);
    if (leaders.empty()) continue;
    const std::size_t best = leaders.contains(comparison.baseline) ? comparison.baseline : *leaders.begin();
    const std::string why =
        best == comparison.baseline ? "" : fmt::format(" ({})", reasons_text(comparison, best, comparison.baseline));
    text += fmt::format("{}{} for {}{}", text.empty() ? "" : "; ", name(best), metric.noun, why);
  }
  return fmt::format("Which allocator? It depends: {}.", text);
}

}  // namespace

std::vector<std::string> summary_of(const Comparison& comparison) {
  std::vector<std::string> lines;
  for (const Metric& metric : metrics_of(comparison)) {
    if (metric.best.empty()) continue;
    std::string line = summary_line(comparison, metric);
    if (!line.empty()) lines.push_back(std::move(line));
  }
  if (!lines.empty()) lines.push_back(answer_of(comparison));
  return lines;
}

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

std::string comparison_as_text(const Comparison& comparison, const bench::Look& look) {
  const bool colour = look.colour;
  const std::string method = bench::wrapped(look.explain ? method_text(comparison) : runs_text(comparison), look.width);
  std::string text =
      fmt::format("{}\n{}\n\n{}\n", painted(command_text(comparison), "1", colour), method,
                  bench::text_table(figures_grid(comparison), look, {}, columns_with_verdict(comparison)));
  const Grid verdicts = verdict_grid(comparison);
  if (verdicts.size() > 1)
    text += fmt::format("{}\n", bench::text_table(verdicts, look, {}, verdict_columns(verdicts)));
  if (const Grid latencies = latency_grid(comparison); latencies.size() > 1) {
    text += fmt::format("{}\n", bench::text_table(latencies, look));
    if (look.explain) text += fmt::format("{}\n\n", bench::wrapped(latency_method(comparison), look.width));
  }
  if (const std::string versions = printable(versions_of(comparison)); !versions.empty())
    text += fmt::format("{}\n\n", bench::wrapped(versions, look.width));
  for (const std::string& line : lines_of(comparison))
    text += fmt::format("{}\n", painted(line, colour_of(line), colour));
  return text;
}

std::string comparison_as_markdown(const Comparison& comparison) {
  std::string text = fmt::format("`{}` on {}. {}\n\nVersions: {}.\n\n{}\n", command_text(comparison),
                                 bench::machine_text(comparison.machine), method_text(comparison),
                                 versions_of(comparison), bench::markdown_table(figures_grid(comparison)));
  const Grid verdicts = verdict_grid(comparison);
  if (verdicts.size() > 1) text += fmt::format("{}\n", bench::markdown_table(verdicts));
  if (const Grid latencies = latency_grid(comparison); latencies.size() > 1)
    text += fmt::format("{}\n{}\n\n", bench::markdown_table(latencies), latency_method(comparison));
  for (const std::string& line : lines_of(comparison))
    text += fmt::format("{}\n", line);
  return text;
}

}  // namespace sluice::cli
