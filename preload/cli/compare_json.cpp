// The comparison as JSON: every sample, and what was made of them. Open it to add a field; README.md of measure
// describes it.
#include <string>

#include <nlohmann/json.hpp>

#include "compare.hpp"
#include "json_parts.hpp"
#include "sluice/sluice.h"

namespace sluice::cli {
namespace {

using nlohmann::ordered_json;

ordered_json metric_json(const Comparison& comparison, const Contender& contender, const Metric& metric) {
  const std::vector<double> samples = samples_of(contender, metric);
  ordered_json entry = {
      {"median", nullptr}, {"half_quartile_range", nullptr}, {"interval", nullptr}, {"samples", samples}};
  if (!samples.empty()) {
    entry["median"] = bench::median(samples);
    entry["interval"] = bench::interval_json(bench::median_interval(samples));
    entry["half_quartile_range"] = bench::half_quartile_range(samples);
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
          {"allocators", contenders}};
}

}  // namespace sluice::cli
