// Puts the variants of a case side by side. Open it with benefit.hpp.
#include "bench/benefit.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <utility>

namespace bench {
namespace {

struct Kind {
  const char* memory;
  const char* heading;
};

/// The kinds of memory besides plain malloc of the scenarios for scopes and frames, in the order of their columns.
constexpr Kind scope_kinds[] = {{"scope", "scopes"},
                                {"noroute", "scopes, lasting outside"},
                                {"frame", "frames"},
                                {"monotonic", "std::pmr::monotonic"}};

/// The counterparts of the standard library in the scenarios for the library's own pools, arenas and containers.
constexpr Kind standard_kinds[] = {{"std", "std"}, {"pmr", "std::pmr"}};

const Row* find_row(const Table& table, const std::string& case_name, std::string_view memory) {
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

using Writer = std::string (*)(double);

/// Writes the cells of one table.
class Sheet {
 public:
  Sheet(const Results& results, const Table& table, std::size_t sluice, Writer write)
      : results_(results), table_(table), sluice_(sluice), write_(write) {}

  const Table& table() const { return table_; }

  /// The median of a case with one kind of memory under sluice.
  std::optional<double> median(const std::string& case_name, std::string_view memory) const {
    const Row* const row = find_row(table_, case_name, memory);
    return row == nullptr ? std::nullopt : table_.median(*row, sluice_);
  }

  /// Whether a case of scopes and frames ran with this kind of memory.
  bool any_ran(std::string_view memory) const {
    return std::any_of(table_.rows().begin(), table_.rows().end(), [&](const Row& row) {
      return row.component.empty() && row.memory == memory && table_.median(row, sluice_);
    });
  }

  /// The first cells of a row: the case, the best of the other allocators with plain malloc, and sluice with it.
  std::vector<std::string> begin_row(const Row& plain) {
    best_ = best_of_others(results_, table_, plain, sluice_);
    std::vector<std::string> row = {plain.case_name,
                                    best_ ? fmt::format("{} {}", write_(best_->value), best_->allocator) : "-"};
    row.push_back(cell(table_.median(plain, sluice_)));
    return row;
  }

  /// A figure, what it belongs to, and how many times better it is than the best of the row that was begun.
  std::string cell(std::optional<double> value, const std::string& name = {}) const {
    if (!value) return "-";
    const std::string figure = name.empty() ? write_(*value) : fmt::format("{} {}", write_(*value), name);
    return best_ && *value > 0 ? fmt::format("{} ({:.2f}×)", figure, best_->value / *value) : figure;
  }

 private:
  const Results& results_;
  const Table& table_;
  const std::size_t sluice_;
  const Writer write_;
  std::optional<Best> best_;
};

std::string quotient(std::optional<double> above, std::optional<double> below) {
  return above && below && *below > 0 ? fmt::format("{:.2f}", *above / *below) : "-";
}

Grid scopes_grid(Sheet sheet, const std::string& title) {
  std::vector<Kind> shown;
  std::copy_if(std::begin(scope_kinds), std::end(scope_kinds), std::back_inserter(shown),
               [&](const Kind& kind) { return sheet.any_ran(kind.memory); });
  if (shown.empty()) return {};
  Grid grid = {{title, "best other, plain", "sluice, plain"}};
  for (const Kind& kind : shown)
    grid[0].emplace_back(kind.heading);
  grid[0].emplace_back("scopes : sluice, plain");

  for (const Row& plain : sheet.table().rows()) {
    if (plain.memory != "plain" || !plain.component.empty()) continue;
    grid.push_back(sheet.begin_row(plain));
    for (const Kind& kind : shown)
      grid.back().push_back(sheet.cell(sheet.median(plain.case_name, kind.memory)));
    grid.back().push_back(quotient(sheet.median(plain.case_name, "scope"), sheet.median(plain.case_name, "plain")));
  }
  return grid.size() > 1 ? grid : Grid{};
}

Grid library_grid(Sheet sheet, const std::string& title) {
  Grid grid = {{title, "best other, plain", "sluice, plain", "library"}};
  for (const Kind& kind : standard_kinds)
    grid[0].emplace_back(kind.heading);
  grid[0].emplace_back("library : best of std");

  for (const Row& plain : sheet.table().rows()) {
    if (plain.memory != "plain" || plain.component.empty()) continue;
    const std::optional<double> own = sheet.median(plain.case_name, plain.component);
    std::optional<double> best_standard;
    std::vector<std::string> row = sheet.begin_row(plain);
    row.push_back(sheet.cell(own, plain.component));
    for (const Kind& kind : standard_kinds) {
      const std::optional<double> value = sheet.median(plain.case_name, kind.memory);
      row.push_back(sheet.cell(value));
      if (value && (!best_standard || *value < *best_standard)) best_standard = value;
    }
    if (!own && !best_standard) continue;  // plain malloc alone was run
    grid.push_back(std::move(row));
    grid.back().push_back(quotient(own, best_standard));
  }
  return grid.size() > 1 ? grid : Grid{};
}

constexpr const char* scopes_legend =
    "Benefit: each case with malloc and free for each object (plain) under the best of the other allocators, and "
    "under sluice; in brackets how many times better than that best one (above 1: better). The last column is the "
    "figure inside scopes divided by that of plain malloc, both under sluice (below 1: scopes gain).";

constexpr const char* library_legend =
    "Library: each case with new and delete for each object (plain) under the best of the other allocators; then "
    "under sluice with the same, with the component of the library, and with what the standard library has for it; "
    "in brackets how many times better than that best one (above 1: better). The last column is the figure of the "
    "component divided by the better one of the standard library's (below 1: the component gains).";

}  // namespace

std::vector<Benefit> benefits_of(const Results& results) {
  const auto place = std::find_if(results.allocators.begin(), results.allocators.end(),
                                  [](const Allocator& allocator) { return allocator.name == "sluice"; });
  if (place == results.allocators.end()) return {};
  const auto sluice = static_cast<std::size_t>(std::distance(results.allocators.begin(), place));
  const Sheet time(results, results.time, sluice, time_text);
  const Sheet memory(results, results.memory, sluice, memory_text);
  std::vector<Benefit> benefits = {
      {scopes_legend, scopes_grid(time, "benefit, ns per operation"), scopes_grid(memory, "benefit, peak RSS in MiB")},
      {library_legend, library_grid(time, "library, ns per operation"),
       library_grid(memory, "library, peak RSS in MiB")}};
  std::erase_if(benefits, [](const Benefit& benefit) { return benefit.time.empty() || benefit.memory.empty(); });
  return benefits;
}

}  // namespace bench
