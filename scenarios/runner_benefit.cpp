// Puts the variants of a case side by side. Open it with runner_benefit.hpp.
#include "runner_benefit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>

namespace bench {
namespace {

struct Kind {
  const char* memory;
  const char* heading;
};

/// The kinds of memory besides plain malloc, in the order of their columns.
constexpr Kind kinds[] = {{"scope", "scopes"},
                          {"noroute", "scopes, lasting outside"},
                          {"frame", "frames"},
                          {"monotonic", "std::pmr::monotonic"}};

const Row* find_row(const Table& table, const std::string& case_name, const char* memory) {
  const auto& rows = table.rows();
  const auto place = std::find_if(rows.begin(), rows.end(),
                                  [&](const Row& row) { return row.case_name == case_name && row.memory == memory; });
  return place == rows.end() ? nullptr : &*place;
}

struct Best {
  double value;
  std::string allocator;
};

std::optional<Best> best_of_others(const Results& results, const Table& table, const Row& row, std::size_t own) {
  std::optional<Best> best;
  for (std::size_t i = 0; i < results.allocators.size(); ++i) {
    const std::optional<double> value = i == own ? std::nullopt : table.median(row, i);
    if (value && (!best || *value < best->value)) best = Best{*value, results.allocators[i].name};
  }
  return best;
}

/// The median of a case with one kind of memory under the allocator.
std::optional<double> median_of(const Table& table, const std::string& case_name, const char* memory,
                                std::size_t allocator) {
  const Row* const row = find_row(table, case_name, memory);
  return row == nullptr ? std::nullopt : table.median(*row, allocator);
}

using Writer = std::string (*)(double);

Grid grid_of(const Results& results, const Table& table, std::size_t sluice, const std::string& title, Writer write) {
  Grid grid = {{title, "best other, plain", "sluice, plain"}};
  std::vector<Kind> shown;
  for (const Kind& kind : kinds) {
    const auto& rows = table.rows();
    const auto ran = [&](const Row& row) { return row.memory == kind.memory && table.median(row, sluice); };
    if (std::any_of(rows.begin(), rows.end(), ran)) shown.push_back(kind);
  }
  if (shown.empty()) return {};
  for (const Kind& kind : shown)
    grid[0].emplace_back(kind.heading);
  grid[0].emplace_back("scopes : sluice, plain");

  for (const Row& plain : table.rows()) {
    if (plain.memory != "plain") continue;
    const std::optional<Best> best = best_of_others(results, table, plain, sluice);
    const auto cell = [&](std::optional<double> value) {
      if (!value) return std::string("-");
      return best ? fmt::format("{} ({:.2f}×)", write(*value), best->value / *value) : write(*value);
    };
    const std::optional<double> pools = table.median(plain, sluice);
    const std::optional<double> scopes = median_of(table, plain.case_name, "scope", sluice);
    grid.push_back({plain.case_name, best ? fmt::format("{} {}", write(best->value), best->allocator) : "-"});
    grid.back().push_back(cell(pools));
    for (const Kind& kind : shown)
      grid.back().push_back(cell(median_of(table, plain.case_name, kind.memory, sluice)));
    grid.back().push_back(pools && scopes ? fmt::format("{:.2f}", *scopes / *pools) : "-");
  }
  return grid.size() > 1 ? grid : Grid{};
}

}  // namespace

Benefit benefit_of(const Results& results) {
  const auto place = std::find_if(results.allocators.begin(), results.allocators.end(),
                                  [](const Allocator& allocator) { return allocator.name == "sluice"; });
  if (place == results.allocators.end()) return {};
  const auto sluice = static_cast<std::size_t>(std::distance(results.allocators.begin(), place));
  return {grid_of(results, results.time, sluice, "benefit, ns per operation", time_text),
          grid_of(results, results.memory, sluice, "benefit, peak RSS in MiB", memory_text)};
}

std::string benefit_legend() {
  return "Benefit: each case with malloc and free for each object (plain) under the best of the other allocators, and "
         "under "
         "sluice; in brackets how many times better than that best one (above 1: better). The last column is the "
         "figure "
         "inside scopes divided by that of plain malloc, both under sluice (below 1: scopes gain).";
}

}  // namespace bench
