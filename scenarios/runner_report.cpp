// Writes the tables. Open it with runner_report.hpp.
#include "runner_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "measure/machine.hpp"
#include "measure/tables.hpp"
#include "runner_benefit.hpp"

namespace bench {
namespace {

std::string ratio_text(std::optional<double> ratio) {
  return ratio ? fmt::format("{:.2f}", *ratio) : "-";
}

/// What stands in a cell without a sample: a kind of memory that this allocator does not know was not measured.
const char* empty_text(const Results& results, const Row& row, std::size_t allocator) {
  return results.without_effect.contains({row.scenario, allocator}) ? "-" : "failed";
}

/// A header row, a row per case, and the geometric means.
Grid grid_of(const Results& results, const Table& table, const std::string& title, std::string (*value_text)(double)) {
  Grid grid;
  grid.push_back({title});
  for (const Allocator& allocator : results.allocators)
    grid.back().push_back(allocator.name);
  for (const Row& row : table.rows()) {
    grid.push_back({row.name});
    for (std::size_t i = 0; i < results.allocators.size(); ++i) {
      const std::optional<double> median = table.median(row, i);
      grid.back().push_back(median ? fmt::format("{} ({})", value_text(*median), ratio_text(table.ratio(row, i)))
                                   : empty_text(results, row, i));
    }
  }
  const auto has_memory = [](const Row& row) { return !row.memory.empty(); };
  const bool variants = std::any_of(table.rows().begin(), table.rows().end(), has_memory);
  grid.push_back({variants ? "geometric mean of plain rows" : "geometric mean"});
  for (std::size_t i = 0; i < results.allocators.size(); ++i) {
    grid.back().push_back(fmt::format("({})", ratio_text(table.mean_ratio(i))));
  }
  return grid;
}

Grid time_grid(const Results& results) {
  return grid_of(results, results.time, "ns per operation", time_text);
}
Grid memory_grid(const Results& results) {
  return grid_of(results, results.memory, "peak RSS, MiB", memory_text);
}

std::string method_text(const Results& results) {
  return fmt::format("Medians of {} round{}; in brackets the ratio to the best other allocator (below 1: the best).",
                     results.rounds, results.rounds == 1 ? "" : "s");
}

/// The tables that `write` lays out, with the legends of those that there are.
std::string all_tables(const Results& results, std::string (*write)(const Grid&)) {
  std::string text = fmt::format("{}\n{}", write(time_grid(results)), write(memory_grid(results)));
  for (const Benefit& benefit : benefits_of(results))
    text += fmt::format("\n{}\n\n{}\n{}", benefit.legend, write(benefit.time), write(benefit.memory));
  return text;
}

nlohmann::ordered_json json_or_null(std::optional<double> value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

nlohmann::ordered_json json_table(const Results& results, const Table& table) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const Row& row : table.rows()) {
    nlohmann::ordered_json entry = {{"name", row.name}, {"scenario", row.scenario}};
    if (!row.memory.empty()) {
      entry["case"] = row.case_name;
      entry["memory"] = row.memory;
      if (!row.component.empty()) entry["component"] = row.component;
    }
    if (row.ops != 0) entry["ops"] = row.ops;
    for (std::size_t i = 0; i < results.allocators.size(); ++i) {
      entry["allocators"][results.allocators[i].name] = {{"median", json_or_null(table.median(row, i))},
                                                         {"ratio", json_or_null(table.ratio(row, i))},
                                                         {"samples", row.samples[i]}};
    }
    rows.push_back(std::move(entry));
  }
  nlohmann::ordered_json means;
  for (std::size_t i = 0; i < results.allocators.size(); ++i) {
    means[results.allocators[i].name] = json_or_null(table.mean_ratio(i));
  }
  return {{"rows", rows}, {"geometric_mean", means}};
}

}  // namespace

std::string as_text(const Results& results) {
  return fmt::format("{}\n{}\n", all_tables(results, text_table), method_text(results));
}

std::string as_markdown(const Results& results) {
  return fmt::format("{}. {}\n\n{}", machine_text(this_machine()), method_text(results),
                     all_tables(results, markdown_table));
}

std::string as_json(const Results& results) {
  const Machine machine = this_machine();
  nlohmann::ordered_json allocators = nlohmann::ordered_json::array();
  for (const Allocator& allocator : results.allocators) {
    allocators.push_back({{"name", allocator.name}, {"library", allocator.library.string()}});
  }
  const nlohmann::ordered_json document = {{"schema", "sluice-bench 1"},
                                           {"sluice_version", SLUICE_VERSION},
                                           {"machine",
                                            {{"system", machine.system},
                                             {"processor", machine.processor},
                                             {"processors", machine.processors},
                                             {"transparent_huge_pages", machine.huge_pages}}},
                                           {"rounds", results.rounds},
                                           {"allocators", allocators},
                                           {"time_ns_per_op", json_table(results, results.time)},
                                           {"peak_rss_kib", json_table(results, results.memory)}};
  return document.dump(2) + "\n";
}

}  // namespace bench
