// The comparison as JSON: every sample, and what was made of them. Open it to add a field; README.md of measure
// describes it.
#include <string>

#include <nlohmann/json.hpp>

#include "compare.hpp"
#include "sluice/sluice.h"

namespace sluice::cli {
namespace {

using nlohmann::ordered_json;

const char* verdict_name(bench::Verdict verdict) {
  switch (verdict) {
    case bench::Verdict::less:
      return "less";
    case bench::Verdict::more:
      return "more";
    case bench::Verdict::no_difference:
      return "no difference";
    case bench::Verdict::unknown:
      break;
  }
  return "unknown";
}

ordered_json metric_json(const Comparison& comparison, const Contender& contender, const Metric& metric) {
  const std::vector<double> samples = samples_of(contender, metric);
  ordered_json entry = {{"median", nullptr}, {"half_quartile_range", nullptr}, {"samples", samples}};
  if (!samples.empty()) {
    entry["median"] = bench::median(samples);
    entry["half_quartile_range"] = bench::half_quartile_range(samples);
  }
  const Contender& baseline = comparison.contenders[comparison.baseline];
  if (&contender == &baseline) return entry;
  const std::optional<bench::Ratio> ratio = ratio_of(contender, baseline, metric);
  if (ratio) entry["ratio"] = {{"value", ratio->value}, {"low", ratio->low}, {"high", ratio->high}};
  entry["verdict"] = verdict_name(bench::verdict_of(ratio));
  return entry;
}

}  // namespace

std::string comparison_as_json(const Comparison& comparison) {
  ordered_json contenders = ordered_json::array();
  for (const Contender& each : comparison.contenders) {
    ordered_json entry = {{"name", each.allocator.name}, {"library", each.allocator.library.string()}};
    entry["failure"] = each.failure.empty() ? ordered_json(nullptr) : ordered_json(each.failure);
    entry["wait_status"] = each.status ? ordered_json(*each.status) : ordered_json(nullptr);
    for (const Metric& metric : metrics_of(comparison))
      entry["metrics"][metric.name] = metric_json(comparison, each, metric);
    contenders.push_back(std::move(entry));
  }
  const ordered_json document = {{"schema", "sluice-compare 1"},
                                 {"sluice_version", SLUICE_VERSION},
                                 {"command", comparison.command},
                                 {"machine",
                                  {{"system", comparison.machine.system},
                                   {"processor", comparison.machine.processor},
                                   {"processors", comparison.machine.processors},
                                   {"memory_mib", comparison.machine.memory_mib},
                                   {"transparent_huge_pages", comparison.machine.huge_pages}}},
                                 {"rounds", comparison.rounds},
                                 {"warmup", comparison.warmup},
                                 {"confidence", bench::confidence},
                                 {"baseline", comparison.contenders[comparison.baseline].allocator.name},
                                 {"partial", comparison.interrupted},
                                 {"output_compared", !comparison.output_ignored && !comparison.output_varies},
                                 {"differences", comparison.differences},
                                 {"remarks", comparison.remarks},
                                 {"allocators", contenders}};
  return document.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace sluice::cli
