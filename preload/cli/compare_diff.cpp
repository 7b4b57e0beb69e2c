// `sluice compare --diff`: two reports of the same comparison, or of the same scenarios, at different times, and what
// has changed between them. Open it to change what counts as a regression.
#include <algorithm>
#include <array>
#include <fstream>
#include <map>
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

constexpr const char* compare_schema = "sluice-compare 1";
constexpr const char* bench_schema = "sluice-bench 2";

// A report as its file tells of it.
struct Report {
  std::string file;
  json document;

  const json* allocator(const std::string& name) const {
    for (const json& each : document.at("allocators"))
      if (each.at("name") == name) return &each;
    return nullptr;
  }
};

// Throws: CommandError when it is no report of `sluice compare` or `sluice bench`.
Report read_report(const std::string& file) {
  std::ifstream stream(file);
  stream.peek();  // a folder can be opened, but not read
  if (!stream.is_open() || stream.bad()) throw CommandError(exit_usage, fmt::format("{}: cannot be read", file));
  Report report{file, json::parse(stream, nullptr, false)};
  const bool is_report = report.document.is_object() && report.document.contains("schema") &&
                         (report.document["schema"] == compare_schema || report.document["schema"] == bench_schema);
  if (!is_report)
    throw CommandError(
        exit_usage,
        fmt::format("{}: not written by `sluice compare --json` or `sluice bench --json` of this version", file));
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
  const bool are_scenarios = before.document.at("schema") == bench_schema;
  for (const char* const each : {"command", "threads", "seed", "ops"}) {
    if (before.document.value(each, json()) != after.document.value(each, json()))
      caveats.push_back(are_scenarios ? fmt::format("--{} differs", each) : "the commands differ");
  }
  if (before.document.at("machine") != after.document.at("machine")) caveats.emplace_back("the machines differ");
  for (const Report* const each : {&before, &after}) {
    if (each->document.at("partial").get<bool>())
      caveats.push_back(fmt::format("{} is partial: it was interrupted", each->file));
  }
  return caveats;
}

// Prints the table, what to keep in mind and the conclusion. Returns: whether nothing is worse.
bool conclude(const Report& before, const Report& after, const bench::Grid& grid, bool is_worse) {
  if (grid.size() > 1) fmt::print("{}\n", bench::text_table(grid));
  for (const std::string& caveat : caveats_of(before, after))
    fmt::print("Note: {}.\n", caveat);
  fmt::print("{}\n",
             is_worse ? "Something is slower or takes more memory than before." : "Nothing is worse than before.");
  return !is_worse;
}

bool compare_comparisons(const Report& before, const Report& after) {
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
      const std::optional<bench::Ratio> ratio = bench::unpaired_ratio(now, then, metric.center);
      is_worse = is_worse || (metric.best != nullptr && bench::verdict_of(ratio) == bench::Verdict::more);
      grid.push_back({name, metric.title, metric.text(bench::median(then)), metric.text(bench::median(now)),
                      ratio_text(ratio), verdict_text(ratio, metric, std::min(now.size(), then.size()))});
    }
  }
  if (grid.size() == 1)
    throw CommandError(exit_usage, fmt::format("{} and {} have no allocator in common", before.file, after.file));
  return conclude(before, after, grid, is_worse);
}

// The figures of a report of scenarios that are compared: samples by scenario or case, figure and allocator.
using Figures = std::map<std::array<std::string, 3>, std::vector<double>>;

constexpr const char* time_title = "ns per operation";
constexpr const char* memory_title = "peak RSS, MiB";

Figures figures_in(const Report& report) {
  Figures figures;
  for (const json& scenario : report.document.at("scenarios")) {
    for (const json& each : scenario.at("cases"))
      for (const auto& [allocator, place] : each.at("allocators").items())
        figures[{each.at("name").get<std::string>(), time_title, allocator}] =
            place.at("samples").get<std::vector<double>>();
    for (const auto& [allocator, place] : scenario.at("memory").items())
      figures[{scenario.at("name").get<std::string>(), memory_title, allocator}] =
          place.at("peak_kib").at("samples").get<std::vector<double>>();
  }
  return figures;
}

bool compare_scenarios(const Report& before, const Report& after) {
  Comparison program;
  const std::vector<Metric> metrics = metrics_of(program);
  const Metric& time = metrics.front();
  const Metric& memory = *std::find_if(metrics.begin(), metrics.end(),
                                       [](const Metric& each) { return each.title == std::string(memory_title); });
  bench::Grid grid{{"from " + before.file, "figure", "under", "before", "after", "ratio", "verdict"}};
  bool is_worse = false;
  std::size_t compared = 0, too_few = 0;
  const Figures then = figures_in(before), now = figures_in(after);
  for (const auto& [key, samples] : now) {
    const auto other = then.find(key);
    if (other == then.end() || samples.empty() || other->second.empty()) continue;
    const bool is_time = key[1] == time_title;
    const std::optional<bench::Ratio> ratio =
        bench::unpaired_ratio(samples, other->second, (is_time ? time : memory).center);
    const bench::Verdict verdict = bench::verdict_of(ratio);
    ++compared;
    too_few += verdict == bench::Verdict::unknown;
    is_worse = is_worse || verdict == bench::Verdict::more;
    if (verdict != bench::Verdict::less && verdict != bench::Verdict::more) continue;
    const auto text = is_time ? bench::time_text : bench::memory_text;
    grid.push_back({key[0], key[1], key[2], text(bench::median(other->second)), text(bench::median(samples)),
                    ratio_text(ratio), verdict_text(ratio, is_time ? time : memory, samples.size())});
  }
  if (compared == 0)
    throw CommandError(exit_usage, fmt::format("{} and {} have no figure in common", before.file, after.file));
  fmt::print("{} figures are in both; {} differ{}.\n\n", compared, grid.size() - 1,
             too_few == 0 ? "" : fmt::format(", and of {} there are too few samples to tell", too_few));
  return conclude(before, after, grid, is_worse);
}

}  // namespace

bool compare_reports(const std::string& before, const std::string& after) {
  const Report reports[] = {read_report(before), read_report(after)};
  try {
    const json& schema = reports[0].document.at("schema");
    if (schema != reports[1].document.at("schema"))
      throw CommandError(exit_usage,
                         fmt::format("{} is of a program and {} of scenarios, or the reverse", before, after));
    return schema == bench_schema ? compare_scenarios(reports[0], reports[1])
                                  : compare_comparisons(reports[0], reports[1]);
  } catch (const json::exception& problem) {
    throw CommandError(exit_usage, fmt::format("{} or {} is damaged: {}", before, after, problem.what()));
  }
}

}  // namespace sluice::cli
