// `sluice compare --diff`: two comparisons of the same program at different times, and what has changed between them.
// Open it to change what counts as a regression.
#include <algorithm>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "command.hpp"
#include "compare.hpp"
#include "measure/tables.hpp"

namespace sluice::cli {
namespace {

using nlohmann::json;

// A comparison as its file tells of it.
struct Report {
  std::string file;
  json document;

  const json* allocator(const std::string& name) const {
    for (const json& each : document.at("allocators"))
      if (each.at("name") == name) return &each;
    return nullptr;
  }
};

// Throws: CommandError when it is no report of a comparison.
Report read_report(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) throw CommandError(exit_usage, fmt::format("{}: cannot be read", file));
  Report report{file, json::parse(stream, nullptr, false)};
  const bool is_report = report.document.is_object() && report.document.contains("schema") &&
                         report.document["schema"] == "sluice-compare 1";
  if (!is_report)
    throw CommandError(exit_usage, fmt::format("{}: not written by `sluice compare --json` of this version", file));
  return report;
}

std::vector<double> samples_in(const json& allocator, const Metric& metric) {
  const json& metrics = allocator.at("metrics");
  return metrics.contains(metric.name) ? metrics.at(metric.name).at("samples").get<std::vector<double>>()
                                       : std::vector<double>();
}

// What differs in the circumstances, so that the figures may not be compared.
std::vector<std::string> caveats_of(const Report& before, const Report& after) {
  std::vector<std::string> caveats;
  if (before.document.at("command") != after.document.at("command")) caveats.emplace_back("the commands differ");
  if (before.document.at("machine") != after.document.at("machine")) caveats.emplace_back("the machines differ");
  for (const Report* const each : {&before, &after}) {
    if (each->document.at("partial").get<bool>())
      caveats.push_back(fmt::format("{} is partial: it was interrupted", each->file));
  }
  return caveats;
}

bool compare_read(const Report& before, const Report& after) {
  bench::Grid grid{{"from " + before.file, "figure", "before", "after", "ratio", "verdict"}};
  bool is_worse = false;
  Comparison service;  // has all metrics that there are
  service.has_figure = true;
  std::vector<Metric> metrics = metrics_of(service);
  service.is_service = true;
  metrics.push_back(metrics_of(service).front());
  for (const json& each : after.document.at("allocators")) {
    const std::string name = each.at("name").get<std::string>();
    const json* const other = before.allocator(name);
    if (other == nullptr) continue;
    for (const Metric& metric : metrics) {
      if (metric.less == nullptr) continue;
      const std::vector<double> now = samples_in(each, metric), then = samples_in(*other, metric);
      if (now.empty() || then.empty()) continue;
      const std::optional<bench::Ratio> ratio = bench::unpaired_ratio(now, then);
      is_worse = is_worse || (metric.best != nullptr && bench::verdict_of(ratio) == bench::Verdict::more);
      grid.push_back({name, metric.title, metric.text(bench::median(then)), metric.text(bench::median(now)),
                      ratio_text(ratio), verdict_text(ratio, metric, std::min(now.size(), then.size()))});
    }
  }
  if (grid.size() == 1)
    throw CommandError(exit_usage, fmt::format("{} and {} have no allocator in common", before.file, after.file));
  fmt::print("{}\n", bench::text_table(grid));
  for (const std::string& caveat : caveats_of(before, after))
    fmt::print("Note: {}.\n", caveat);
  fmt::print("{}\n",
             is_worse ? "Something is slower or takes more memory than before." : "Nothing is worse than before.");
  return !is_worse;
}

}  // namespace

bool compare_reports(const std::string& before, const std::string& after) {
  const Report reports[] = {read_report(before), read_report(after)};
  try {
    return compare_read(reports[0], reports[1]);
  } catch (const json::exception& problem) {
    throw CommandError(exit_usage, fmt::format("{} or {} is damaged: {}", before, after, problem.what()));
  }
}

}  // namespace sluice::cli
