// Lays the tables out. Open it with report.hpp.
#include "bench/report.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "bench/benefit.hpp"
#include "bench/curves.hpp"
#include "measure/latency_tables.hpp"
#include "measure/tables.hpp"

namespace bench {
namespace {

std::string ratio_text(std::optional<double> ratio) {
  return ratio ? fmt::format("{:.2f}", *ratio) : "-";
}

/// What stands in a cell without a sample: a kind of memory that this allocator does not know was not measured.
const char* empty_text(const Results& results, const Row& row, std::size_t allocator) {
  return results.failures.contains({row.scenario, allocator}) ? "failed" : "-";
}

struct TableOfKind {
  const Table& table;
  const char* title;
  std::string (*text)(double);
  Center center;
  bool of_real;  // of real programs, or of built-in scenarios
};

/// A header row, a row per case, and the geometric means; the cells that are surely the best of their row.
struct Sheet {
  Grid grid;
  CellSet best;
};

std::vector<std::string> heading_of(const Results& results, const std::string& title) {
  std::vector<std::string> heading = {title};
  for (const Allocator& allocator : results.allocators)
    heading.push_back(allocator.name);
  return heading;
}

Sheet sheet_of(const Results& results, const TableOfKind& kind) {
  Sheet sheet{{heading_of(results, kind.title)}, {}};
  bool variants = false;
  for (const Row& row : kind.table.rows()) {
    if (row.is_real != kind.of_real) continue;
    variants = variants || !row.memory.empty();
    const std::optional<std::size_t> best = kind.table.best(row, kind.center);
    sheet.grid.push_back({row.name});
    for (std::size_t i = 0; i < results.allocators.size(); ++i) {
      const std::optional<double> median = kind.table.median(row, i);
      const std::optional<double> ratio = kind.table.ratio(row, i);
      if (i == best) sheet.best.emplace(sheet.grid.size() - 1, i + 1);
      sheet.grid.back().push_back(median ? fmt::format("{} ({})", kind.text(*median), ratio_text(ratio))
                                         : empty_text(results, row, i));
    }
  }
  if (sheet.grid.size() == 1) return {};
  sheet.grid.push_back({variants ? "geometric mean of plain rows" : "geometric mean"});
  for (std::size_t i = 0; i < results.allocators.size(); ++i)
    sheet.grid.back().push_back(fmt::format("({})", ratio_text(kind.table.mean_ratio(i, kind.of_real))));
  return sheet;
}

std::string point_text(const CurveFigures& figures) {
  const std::string time = time_text(*figures.nanoseconds);
  if (!figures.speed_up) return fmt::format("{} (-)", time);
  return fmt::format("{} ({:.2f}×, {:.0f} %)", time, *figures.speed_up, *figures.of_linear * 100);
}

/// A row for each number of threads that a case ran with.
Sheet curve_sheet(const Results& results, const Curve& curve) {
  Sheet sheet{{heading_of(results, fmt::format("{} by threads: ns per operation (speed-up, of linear)", curve.name))},
              {}};
  for (const CurvePoint& point : curve.points) {
    const std::optional<std::size_t> best = results.time.best(*point.row, Center::faster_half);
    sheet.grid.push_back(
        {fmt::format("{}{}", point.threads, is_over_committed(results, point) ? ", over-committed" : "")});
    for (std::size_t i = 0; i < results.allocators.size(); ++i) {
      if (i == best) sheet.best.emplace(sheet.grid.size() - 1, i + 1);
      sheet.grid.back().push_back(point.allocators[i].nanoseconds ? point_text(point.allocators[i])
                                                                  : empty_text(results, *point.row, i));
    }
  }
  return sheet;
}

constexpr const char* curves_legend =
    "Speed-up: the throughput with so many threads, divided by that of the same allocator with the fewest. Of linear: "
    "the speed-up, divided by how many times as many threads there are.";

/// Empty unless there are more threads than processors somewhere.
std::string over_committed_text(const Results& results, const std::vector<Curve>& curves) {
  const auto has_more = [&](const Curve& curve) { return is_over_committed(results, curve.points.back()); };
  if (!std::any_of(curves.begin(), curves.end(), has_more)) return {};
  return fmt::format("Over-committed: there {} here, and more threads than that take turns.",
                     results.processors == 1 ? "is 1 processor" : fmt::format("are {} processors", results.processors));
}

/// Percentiles of malloc and of free, for the scenarios with plain malloc; and of realloc, where it does the work.
Sheet latency_sheet(const Results& results) {
  struct Kind {
    const char* name;
    LatencyCurve Latency::*curve;
  };
  constexpr Kind kinds[] = {{"malloc", &Latency::allocate}, {"free", &Latency::release}, {"realloc", &Latency::resize}};
  Sheet sheet{{heading_of(results, percentiles_title)}, {}};
  for (const Scenario& scenario : results.scenarios) {
    for (const Kind& kind : kinds) {
      std::vector<std::string> row = {fmt::format("{}, {}", scenario.name, kind.name)};
      bool is_worth_it = false;
      for (std::size_t i = 0; i < results.allocators.size(); ++i) {
        const auto place = results.observed.find({scenario.name, i});
        const bool has = place != results.observed.end() && place->second.latency;
        row.push_back(has ? percentiles_text((*place->second.latency).*kind.curve) : "-");
        is_worth_it =
            is_worth_it || (has && (kind.curve != &Latency::resize ||
                                    place->second.latency->resize.count > place->second.latency->allocate.count));
      }
      if (is_worth_it) sheet.grid.push_back(std::move(row));
    }
  }
  return sheet.grid.size() == 1 ? Sheet{} : sheet;
}

std::string latency_legend(const Results& results) {
  std::vector<Latency> all;
  for (const auto& [cell, observed] : results.observed)
    if (observed.latency) all.push_back(*observed.latency);
  return latency_method(all);
}

/// Empty where each scenario had its own number of threads.
std::string threads_text(const Results& results) {
  const ThreadCounts& counts = results.settings.threads;
  if (counts.empty()) return {};
  if (counts.size() == 1) return fmt::format(" Scenarios with threads to choose ran on {}.", counts.front());
  return fmt::format(" Behind @ stands the number of threads: {}.", counts_text(counts));
}

std::string method_text(const Results& results) {
  std::string text = fmt::format(
      "Medians of {} round{}; in brackets the ratio to the best other allocator (below 1: the lowest median).",
      results.rounds, results.rounds == 1 ? "" : "s");
  text += threads_text(results);
  if (results.interrupted) text += " Partial: it was interrupted.";
  return text;
}

/// The same in a line, where nobody asked for an explanation.
std::string rounds_text(const Results& results) {
  return fmt::format("Medians of {} round{} (ratio to the best other); --explain tells what they mean.{}{}",
                     results.rounds, results.rounds == 1 ? "" : "s",
                     results.settings.threads.size() > 1 ? threads_text(results) : "",
                     results.interrupted ? " Partial: it was interrupted." : "");
}

/// The columns of sluice and of the baseline; in tables that compare kinds of memory, the last one, which sums up.
std::set<std::size_t> kept_columns(const Results& results, const Grid& grid) {
  const std::vector<std::string>& heading = grid.front();
  std::set<std::size_t> kept;
  for (std::size_t i = 1; i < heading.size(); ++i)
    if (heading[i] == "sluice" || heading[i] == results.allocators[results.baseline].name) kept.insert(i);
  if (heading.size() != results.allocators.size() + 1) kept.insert(heading.size() - 1);
  return kept;
}

/// The tables of curves, and whether there were processors for all threads.
template <class Write, class Explain, class Tell>
std::string curve_tables(const Results& results, Write&& write, Explain&& explain, Tell&& tell) {
  const std::vector<Curve> curves = curves_of(results);
  if (curves.empty()) return {};
  std::string text = explain(curves_legend);
  for (const Curve& each : curves)
    text += fmt::format("{}\n", write(curve_sheet(results, each)));
  const std::string remark = over_committed_text(results, curves);
  return remark.empty() ? text : text + tell(remark);
}

/// The tables that `write` lays out, with the legends of those that there are as `explain` tells them; what must be
/// known in any case, `tell` tells.
template <class Write, class Explain, class Tell>
std::string all_tables(const Results& results, Write&& write, Explain&& explain, Tell&& tell) {
  const std::string at_rest =
      fmt::format("RSS after {:g} s of rest, MiB", static_cast<double>(results.settings.quiet.count()) / 1000);
  const TableOfKind kinds[] = {
      {results.time, "ns per operation", time_text, Center::faster_half, false},
      {results.memory, "peak RSS, MiB", memory_text, Center::median, false},
      {results.quiet, at_rest.c_str(), memory_text, Center::median, false},
      {results.time, "real programs, time per operation (ns, where no unit stands)", duration_text, Center::faster_half,
       true},
      {results.memory, "real programs, peak memory of all processes, MiB", memory_text, Center::median, true},
      {results.mean, "real programs, average memory of all processes, MiB", memory_text, Center::median, true},
      {results.largest, "real programs, peak RSS of the largest process, MiB", memory_text, Center::median, true}};
  std::string text;
  for (const TableOfKind& kind : kinds) {
    const Sheet sheet = sheet_of(results, kind);
    if (!sheet.grid.empty()) text += fmt::format("{}\n", write(sheet));
  }
  text += curve_tables(results, write, explain, tell);
  if (const Sheet sheet = latency_sheet(results); !sheet.grid.empty())
    text += fmt::format("{}{}\n", explain(latency_legend(results)), write(sheet));
  for (const Benefit& benefit : benefits_of(results))
    text += fmt::format("{}{}\n{}\n", explain(benefit.legend), write(Sheet{benefit.time, {}}),
                        write(Sheet{benefit.memory, {}}));
  return text;
}

}  // namespace

std::string results_as_text(const Results& results, const Look& look) {
  const auto write = [&](const Sheet& sheet) {
    return text_table(sheet.grid, look, sheet.best, kept_columns(results, sheet.grid));
  };
  const auto tell = [&](const std::string& remark) { return wrapped(remark, look.width) + "\n\n"; };
  const auto explain = [&](const std::string& legend) { return look.explain ? tell(legend) : std::string(); };
  const std::string method = wrapped(look.explain ? method_text(results) : rounds_text(results), look.width);
  const std::string versions = wrapped(versions_text(results.allocators), look.width);
  return fmt::format("{}{}\n{}\n", all_tables(results, write, explain, tell), method, versions);
}

std::string results_as_markdown(const Results& results) {
  const auto write = [](const Sheet& sheet) { return markdown_table(sheet.grid); };
  const auto tell = [](const std::string& legend) { return legend + "\n\n"; };
  std::string text = fmt::format("{}. {}\n\nVersions: {}.\n\n{}", machine_text(results.machine), method_text(results),
                                 versions_text(results.allocators), all_tables(results, write, tell, tell));
  for (const auto& [cell, why] : results.failures)
    text += fmt::format("- {} under {}: {}\n", cell.first, results.allocators[cell.second].name, why);
  return text;
}

}  // namespace bench
