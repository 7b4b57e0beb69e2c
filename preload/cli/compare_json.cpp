// The comparison as JSON: every sample, and what was made of them. Open it to add a field;
// lib/docs/command.md describes them.
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "compare.hpp"
#include "json_parts.hpp"
#include "sluice/sluice.h"

namespace sluice::cli {
namespace {

using nlohmann::ordered_json;

// "less", "more" or null.
ordered_json better_json(bench::Better better) {
  if (better == bench::Better::unknown) return nullptr;
  return better == bench::Better::less ? "less" : "more";
}

// What stands for each allocator in `metrics`, and what is better of it. A figure of the program's own has its regular
// expression with it, by which --diff knows it again.
ordered_json metrics_json(const Comparison& comparison) {
  ordered_json all = ordered_json::array();
  const std::string deciding = deciding_metric(comparison).name;
  std::size_t own = 0;
  for (const Metric& metric : metrics_of(comparison)) {
    ordered_json entry = {{"name", metric.name},
                          {"title", metric.title},
                          {"better", better_json(metric.better)},
                          {"decides", metric.name == deciding}};
    if (own < comparison.figures.size()) entry["expression"] = comparison.figures[own++].expression;
    all.push_back(std::move(entry));
  }
  return all;
}

ordered_json metric_json(const Comparison& comparison, const Contender& contender, const Metric& metric) {
  const std::vector<double> samples = samples_of(contender, metric);
  ordered_json entry = {
      {"median", nullptr}, {"half_quartile_range", nullptr}, {"interval", nullptr}, {"samples", samples}};
  if (!samples.empty()) {
    entry["median"] = bench::median(samples);
    entry["interval"] = bench::interval_json(bench::median_interval(samples));
    entry["half_quartile_range"] = bench::half_quartile_range(samples);
  }
  if (!metric.best.empty()) {
    const std::vector<std::optional<unsigned>> places = places_of(comparison, metric);
    const auto index = static_cast<std::size_t>(&contender - comparison.contenders.data());
    entry["place"] = places[index] ? ordered_json(*places[index]) : ordered_json(nullptr);
    entry["best"] = is_best(places, index);
  }
  const Contender& baseline = comparison.contenders[comparison.baseline];
  if (&contender == &baseline) return entry;
  const std::optional<bench::Ratio> ratio = ratio_of(contender, baseline, metric);
  if (ratio) entry["ratio"] = bench::ratio_json(ratio);
  entry["verdict"] = bench::verdict_name(bench::verdict_of(ratio));
  return entry;
}

}  // namespace

nlohmann::ordered_json comparison_as_json(const Comparison& comparison) {
  ordered_json contenders = ordered_json::array();
  for (const Contender& each : comparison.contenders) {
    ordered_json entry = {{"name", each.allocator.name}, {"library", each.allocator.library.string()}};
    entry["version"] = each.allocator.version.empty() ? ordered_json(nullptr) : ordered_json(each.allocator.version);
    if (!each.allocator.variables.empty())
      entry["environment"] =
          std::map<std::string, std::string>(each.allocator.variables.begin(), each.allocator.variables.end());
    entry["failure"] = each.failure.empty() ? ordered_json(nullptr) : ordered_json(each.failure);
    entry["wait_status"] = each.status ? ordered_json(*each.status) : ordered_json(nullptr);
    for (const Metric& metric : metrics_of(comparison))
      entry["metrics"][metric.name] = metric_json(comparison, each, metric);
    entry["timeline"] = bench::timeline_json(each.timeline);
    entry["latency"] = bench::latency_json(each.latency);
    contenders.push_back(std::move(entry));
  }
  return {{"schema", "sluice-compare 1"},
          {"sluice_version", SLUICE_VERSION},
          {"command", comparison.command},
          {"date", bench::date_text()},
          {"reproduce", comparison.command_line},
          {"machine", bench::machine_json(comparison.machine)},
          {"rounds", comparison.rounds},
          {"warmup", comparison.warmup},
          {"confidence", bench::confidence},
          {"baseline", comparison.contenders[comparison.baseline].allocator.name},
          {"partial", comparison.interrupted},
          {"output_compared", !comparison.output_ignored && !comparison.output_varies},
          {"differences", comparison.differences},
          {"remarks", comparison.remarks},
          {"summary", summary_of(comparison)},
          {"metrics", metrics_json(comparison)},
          {"memory_of_all", {{"method", "pss"}, {"longest_gap_ms", memory_gap_of(comparison).count()}}},
          {"allocators", contenders}};
}

}  // namespace sluice::cli
