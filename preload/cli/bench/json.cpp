// The results as JSON. Open it to add a field; scenarios/README.md lists them.
#include <nlohmann/json.hpp>

#include "bench/curves.hpp"
#include "bench/report.hpp"
#include "json_parts.hpp"
#include "sluice/sluice.h"

namespace bench {
namespace {

template <class Number>
Json number_or_null(const std::optional<Number>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

Json case_json(const Results& results, const Row& row) {
  Json entry = {{"name", row.name}, {"ops", row.ops}, {"allocators", Json::object()}};
  const std::optional<std::size_t> best = results.time.best(row, Center::faster_half);
  for (std::size_t i = 0; i < results.allocators.size(); ++i) {
    const std::vector<double>& samples = row.samples[i];
    const std::optional<double> median = results.time.median(row, i);
    if (!median) continue;
    const std::optional<Ratio> against =
        i == results.baseline ? std::nullopt
                              : paired_ratio(samples, row.samples[results.baseline], Center::faster_half);
    entry["allocators"][results.allocators[i].name] = {{"median", *median},
                                                       {"ops_per_second", 1e9 / *median},
                                                       {"interval", interval_json(median_interval(samples))},
                                                       {"ratio", number_or_null(results.time.ratio(row, i))},
                                                       {"against_baseline", ratio_json(against)},
                                                       {"verdict", verdict_name(verdict_of(against))},
                                                       {"best", i == best},
                                                       {"samples", samples}};
  }
  return entry;
}

const Row* row_of(const Table& table, const Scenario& scenario) {
  for (const Row& row : table.rows())
    if (row.scenario == scenario.name) return &row;
  return nullptr;
}

Json memory_json(const Results& results, const Scenario& scenario) {
  Json entry = Json::object();
  const Row* const peak = row_of(results.memory, scenario);
  const Row* const quiet = row_of(results.quiet, scenario);
  const auto of_real = [&](const Table& table, std::size_t allocator) -> Json {
    const Row* const row = row_of(table, scenario);
    if (row == nullptr) return nullptr;
    return {{"median", number_or_null(table.median(*row, allocator))}, {"samples", row->samples[allocator]}};
  };
  const std::optional<std::size_t> best = peak == nullptr ? std::nullopt : results.memory.best(*peak, Center::median);
  for (std::size_t i = 0; i < results.allocators.size(); ++i) {
    const std::optional<double> median = peak == nullptr ? std::nullopt : results.memory.median(*peak, i);
    const auto observed = results.observed.find({scenario.name, i});
    if (!median) continue;
    entry[results.allocators[i].name] = {
        {"peak_kib",
         {{"median", *median},
          {"ratio", number_or_null(results.memory.ratio(*peak, i))},
          {"best", i == best},
          {"samples", peak->samples[i]}}},
        {"largest_process_kib", of_real(results.largest, i)},
        {"average_kib", of_real(results.mean, i)},
        {"quiet_kib", quiet == nullptr ? Json(nullptr) : number_or_null(results.quiet.median(*quiet, i))},
        {"timeline", observed == results.observed.end() ? Json(nullptr) : timeline_json(observed->second.timeline)}};
  }
  return entry;
}

Json scenario_json(const Results& results, const Scenario& scenario) {
  Json entry = {{"name", scenario.name},
                {"group", scenario.group},
                {"variant", text_or_null(scenario.memory)},
                {"component", text_or_null(scenario.component)},
                {"kind", scenario.real ? "program" : "built-in"},
                {"summary", scenario.summary},
                {"unit", scenario.real ? Json(scenario.real->unit) : Json(nullptr)},
                {"threads", number_or_null(scenario.threads)},
                {"failures", Json::object()},
                {"not_applicable", Json::array()},
                {"cases", Json::array()},
                {"memory", memory_json(results, scenario)},
                {"figures", Json::object()},
                {"latency", nullptr}};
  for (const Row& row : results.time.rows())
    if (row.scenario == scenario.name) entry["cases"].push_back(case_json(results, row));
  for (std::size_t i = 0; i < results.allocators.size(); ++i) {
    const std::string& name = results.allocators[i].name;
    const Results::Cell cell(scenario.name, i);
    if (const auto failure = results.failures.find(cell); failure != results.failures.end())
      entry["failures"][name] = failure->second;
    if (results.without_effect.contains(cell)) entry["not_applicable"].push_back(name);
    const auto observed = results.observed.find(cell);
    if (observed == results.observed.end()) continue;
    if (!observed->second.figures.empty()) entry["figures"][name] = observed->second.figures;
    if (const Json latency = latency_json(observed->second.latency); !latency.is_null())
      entry["latency"][name] = latency;
  }
  return entry;
}

Json means_json(const Results& results, const Table& table) {
  Json means = Json::object();
  for (std::size_t i = 0; i < results.allocators.size(); ++i)
    means[results.allocators[i].name] = number_or_null(table.mean_ratio(i, false));
  return means;
}

/// What was asked for: one number, or several.
Json threads_json(const ThreadCounts& threads) {
  if (threads.empty()) return nullptr;
  return threads.size() == 1 ? Json(threads.front()) : Json(threads);
}

Json curve_json(const Results& results, const Curve& curve) {
  Json points = Json::array();
  for (const CurvePoint& point : curve.points) {
    Json allocators = Json::object();
    for (std::size_t i = 0; i < results.allocators.size(); ++i) {
      const CurveFigures& figures = point.allocators[i];
      if (!figures.nanoseconds) continue;
      allocators[results.allocators[i].name] = {{"median", *figures.nanoseconds},
                                                {"speed_up", number_or_null(figures.speed_up)},
                                                {"of_linear", number_or_null(figures.of_linear)}};
    }
    points.push_back({{"threads", point.threads},
                      {"over_committed", is_over_committed(results, point)},
                      {"case", point.row->name},
                      {"allocators", allocators}});
  }
  return {{"scenario", curve.scenario}, {"name", curve.name}, {"points", points}};
}

}  // namespace

Json results_as_json(const Results& results) {
  Json allocators = Json::array(), scenarios = Json::array(), curves = Json::array();
  for (const Allocator& each : results.allocators) {
    allocators.push_back({{"name", each.name},
                          {"library", each.library.string()},
                          {"version", each.version.empty() ? Json(nullptr) : Json(each.version)}});
    if (!each.variables.empty())
      allocators.back()["environment"] =
          std::map<std::string, std::string>(each.variables.begin(), each.variables.end());
  }
  for (const Scenario& each : results.scenarios)
    scenarios.push_back(scenario_json(results, each));
  for (const Curve& each : curves_of(results))
    curves.push_back(curve_json(results, each));
  return {{"schema", "sluice-bench 2"},
          {"sluice_version", SLUICE_VERSION},
          {"date", date_text()},
          {"machine", machine_json(results.machine)},
          {"compiler", COMPILER_TEXT},
          {"reproduce", results.command_line},
          {"rounds", results.rounds},
          {"partial", results.interrupted},
          {"quiet_seconds", static_cast<double>(results.settings.quiet.count()) / 1000},
          {"threads", threads_json(results.settings.threads)},
          {"processors", results.processors},
          {"seed", number_or_null(results.settings.seed)},
          {"ops", number_or_null(results.settings.ops)},
          {"confidence", confidence},
          {"baseline", results.allocators[results.baseline].name},
          {"allocators", allocators},
          {"scenarios", scenarios},
          {"curves", curves},
          {"geometric_mean",
           {{"time", means_json(results, results.time)}, {"memory", means_json(results, results.memory)}}}};
}

}  // namespace bench
