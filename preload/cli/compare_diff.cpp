// `sluice compare --diff`: two reports of the same comparison, or of the same scenarios, at different times, and what
// has changed between them. Open it to change what counts as a regression.
#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
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

std::vector<double> samples_in(const json& allocator, const std::string& metric) {
  const json& metrics = allocator.at("metrics");
  return metrics.contains(metric) ? metrics.at(metric).at("samples").get<std::vector<double>>() : std::vector<double>();
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
bool conclude(const Report& before, const Report& after, bench::Grid grid, bool is_worse, const bench::Look& look) {
  for (auto& row : grid)
    std::transform(row.begin(), row.end(), row.begin(), [](const std::string& cell) { return printable(cell); });
  // The ratio, which stands before the verdict, is left out first, then the two figures before it.
  const std::size_t columns = grid.front().size();
  std::set<std::size_t> kept = {columns - 1};
  for (std::size_t i = 1; i + 4 < columns; ++i)
    kept.insert(i);
  if (grid.size() > 1) fmt::print("{}\n", bench::text_table(grid, look, {}, kept));
  for (const std::string& caveat : caveats_of(before, after))
    fmt::print("Note: {}.\n", printable(caveat));
  fmt::print("{}\n", is_worse ? "Something is worse than before." : "Nothing is worse than before.");
  return !is_worse;
}

// The figures of the program's own that a report tells of. One that does not say which they are has one at most, of
// which nobody knows whether more or less of it is better.
std::vector<OwnFigure> own_figures(const Report& report) {
  if (!report.document.contains("metrics")) return {{"", "load's figure"}};
  std::vector<OwnFigure> figures;
  for (const json& each : report.document.at("metrics")) {
    if (!each.contains("expression")) continue;
    const json& better = each.at("better");
    figures.push_back({each.at("expression").get<std::string>(), each.at("title").get<std::string>(),
                       better == "less"   ? bench::Better::less
                       : better == "more" ? bench::Better::more
                                          : bench::Better::unknown});
  }
  return figures;
}

// Returns: the name in `before` of what `metric` is in `after`; empty where it is not there.
std::string name_before(const Report& before, const std::vector<OwnFigure>& figures, std::size_t metric,
                        const std::string& name) {
  if (metric >= figures.size() || figures[metric].expression.empty() || !before.document.contains("metrics"))
    return name;
  for (const json& each : before.document.at("metrics"))
    if (each.value("expression", "") == figures[metric].expression) return each.at("name").get<std::string>();
  return {};
}

// Whether a verdict on a figure that somebody is best at says that it is worse.
bool is_regression(bench::Verdict verdict, const Metric& metric) {
  return !metric.best.empty() &&
         verdict == (metric.better == bench::Better::more ? bench::Verdict::less : bench::Verdict::more);
}

// All metrics that a report may hold; those of its own figures come first. That of the largest process is judged where
// a report, of an earlier version, does not know the memory of all.
std::vector<Metric> metrics_in(const std::vector<OwnFigure>& figures) {
  Comparison service;
  service.figures = figures;
  std::vector<Metric> metrics = metrics_of(service);
  service.is_service = true;
  const std::vector<Metric> of_service = metrics_of(service);
  metrics.push_back(of_service[figures.size()]);
  const auto called = [&](const char* name) {
    return std::find_if(metrics.begin(), metrics.end(), [&](const Metric& each) { return each.name == name; });
  };
  const auto all = called("peak_all_kib"), largest = called("peak_rss_kib");
  std::tie(largest->less, largest->more, largest->better, largest->best) =
      std::tie(all->less, all->more, all->better, all->best);
  return metrics;
}

bool compare_comparisons(const Report& before, const Report& after, const bench::Look& look) {
  bench::Grid grid{{"from " + before.file, "figure", "before", "after", "ratio", "verdict"}};
  bool is_worse = false;
  const std::vector<OwnFigure> figures = own_figures(after);
  const std::vector<Metric> metrics = metrics_in(figures);
  for (const json& each : after.document.at("allocators")) {
    const std::string name = each.at("name").get<std::string>();
    const json* const other = before.allocator(name);
    if (other == nullptr) continue;
    const bool knows_all = !samples_in(each, "peak_all_kib").empty() && !samples_in(*other, "peak_all_kib").empty();
    for (std::size_t i = 0; i < metrics.size(); ++i) {
      const Metric& metric = metrics[i];
      if (metric.name == "peak_rss_kib" && knows_all) continue;
      if (metric.less == nullptr) continue;
      const std::vector<double> now = samples_in(each, metric.name);
      const std::vector<double> then = samples_in(*other, name_before(before, figures, i, metric.name));
      if (now.empty() || then.empty()) continue;
      const std::optional<bench::Ratio> ratio = bench::unpaired_ratio(now, then, metric.center);
      is_worse = is_worse || is_regression(bench::verdict_of(ratio), metric);
      grid.push_back({name, metric.title, metric.text(bench::median(then)), metric.text(bench::median(now)),
                      ratio_text(ratio), verdict_text(ratio, metric, std::min(now.size(), then.size()))});
    }
  }
  if (grid.size() == 1)
    throw CommandError(exit_usage, fmt::format("{} and {} have no allocator in common", before.file, after.file));
  return conclude(before, after, grid, is_worse, look);
}

// The figures of a report of scenarios that are compared: samples by scenario or case, figure and allocator.
using Figures = std::map<std::array<std::string, 3>, std::vector<double>>;

constexpr const char* time_title = "ns per operation";
constexpr const char* memory_title = "peak memory, MiB";
constexpr const char* largest_title = "largest process, MiB";

// Of a real program an earlier version knew its largest process only.
void add_memory(const json& scenario, const std::string& allocator, const json& place, Figures& figures) {
  const std::string name = scenario.at("name").get<std::string>();
  const bool is_real = scenario.value("kind", "") == "program";
  const json* const largest = place.contains("largest_process_kib") && !place.at("largest_process_kib").is_null()
                                  ? &place.at("largest_process_kib")
                                  : nullptr;
  const bool is_of_all = !is_real || largest != nullptr;
  figures[{name, is_of_all ? memory_title : largest_title, allocator}] =
      place.at("peak_kib").at("samples").get<std::vector<double>>();
  if (largest != nullptr) figures[{name, largest_title, allocator}] = largest->at("samples").get<std::vector<double>>();
}

Figures figures_in(const Report& report) {
  Figures figures;
  for (const json& scenario : report.document.at("scenarios")) {
    for (const json& each : scenario.at("cases"))
      for (const auto& [allocator, place] : each.at("allocators").items())
        figures[{each.at("name").get<std::string>(), time_title, allocator}] =
            place.at("samples").get<std::vector<double>>();
    for (const auto& [allocator, place] : scenario.at("memory").items())
      add_memory(scenario, allocator, place, figures);
  }
  return figures;
}

// Reads all that is compared. Throws: CommandError that names the file when a part is missing or of another kind.
void check_is_whole(const Report& report) {
  try {
    (void)report.document.at("machine");
    (void)report.document.at("partial").get<bool>();
    if (report.document.at("schema") == bench_schema) {
      (void)figures_in(report);
      return;
    }
    const std::vector<Metric> metrics = metrics_in(own_figures(report));
    for (const json& each : report.document.at("allocators")) {
      (void)each.at("name").get<std::string>();
      for (const Metric& metric : metrics)
        (void)samples_in(each, metric.name);
    }
  } catch (const json::exception& problem) {
    const std::string what = problem.what();  // "[json.exception.type_error.302] type must be array, but is null"
    throw CommandError(exit_usage, fmt::format("{}: is damaged: {}", report.file, what.substr(what.find("] ") + 2)));
  }
}

bool compare_scenarios(const Report& before, const Report& after, const bench::Look& look) {
  Comparison program;
  const std::vector<Metric> metrics = metrics_of(program);
  const Metric& time = metrics.front();
  const Metric& memory =
      *std::find_if(metrics.begin(), metrics.end(), [](const Metric& each) { return each.name == "peak_all_kib"; });
  bench::Grid grid{{"from " + before.file, "figure", "under", "before", "after", "ratio", "verdict"}};
  bool is_worse = false;
  std::size_t compared = 0, too_few = 0;
  const Figures then = figures_in(before), now = figures_in(after);
  for (const auto& [key, samples] : now) {
    const auto other = then.find(key);
    const std::array<std::string, 3> of_all = {key[0], memory_title, key[2]};
    if (key[1] == largest_title && then.contains(of_all) && now.contains(of_all)) continue;
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
  return conclude(before, after, grid, is_worse, look);
}

}  // namespace

bool compare_reports(const std::string& before, const std::string& after, const bench::Look& look) {
  const Report reports[] = {read_report(before), read_report(after)};
  const json& schema = reports[0].document.at("schema");
  if (schema != reports[1].document.at("schema"))
    throw CommandError(exit_usage,
                       fmt::format("{} is of a program and {} of scenarios, or the reverse", before, after));
  for (const Report& each : reports)
    check_is_whole(each);
  return schema == bench_schema ? compare_scenarios(reports[0], reports[1], look)
                                : compare_comparisons(reports[0], reports[1], look);
}

}  // namespace sluice::cli
