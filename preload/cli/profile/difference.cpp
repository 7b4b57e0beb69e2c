// What changed between two profiles, by site. Open it with text.hpp.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "command.hpp"
#include "measure/tables.hpp"
#include "site_table.hpp"
#include "text.hpp"

namespace sluice::cli::profile {
namespace {

struct Change {
  std::string place;
  double before = 0, after = 0;
  double variance = 0;
  double difference() const { return after - before; }
  // Whether sampling alone may be what made it.
  bool may_be_chance() const {
    constexpr double deviations = 1.96;
    return std::abs(difference()) < deviations * std::sqrt(variance);
  }
};

// A path may differ between two builds, and lines move.
using Changes = std::map<std::pair<std::string, std::string>, Change>;

void take(const Compared& from, Measure measure, double Change::*side, Changes& changes) {
  for (const Site& site : sites_of(*from.stacks, measure)) {
    const StackFunction& function = from.stacks->function_of(site.frame);
    Change& change = changes[{function.full_name, function.file.substr(function.file.rfind('/') + 1)}];
    if (change.place.empty()) change.place = place_text(function, 0);
    change.*side += site.values[measure];
    change.variance += site.values.variance[static_cast<size_t>(measure)];
  }
}

std::string figure(double value, Measure measure) {
  return measure == Measure::short_lived ? count_text(value) : bytes_text(value);
}

std::string signed_figure(double value, Measure measure) {
  return value == 0 ? "=" : (value > 0 ? "+" : "-") + figure(std::abs(value), measure);
}

std::string source_line(const char* name, const Compared& of, Measure measure) {
  return fmt::format("  {}  {}: {}, {} {}{}\n", name, printable(of.source),
                     printable(of.profile->fact("program").value_or("unknown program")),
                     figure(of.stacks->total[measure], measure), title_of(measure),
                     measure == Measure::short_lived ? " (blocks)" : "");
}

}  // namespace

std::string difference_text(const Compared& before, const Compared& after, const TextOptions& options) {
  Changes changes;
  take(before, options.order, &Change::before, changes);
  take(after, options.order, &Change::after, changes);
  std::vector<Change> sorted;
  for (auto& [key, change] : changes)
    if (change.difference() != 0) sorted.push_back(std::move(change));
  std::stable_sort(sorted.begin(), sorted.end(), [](const Change& a, const Change& b) {
    return std::abs(a.difference()) > std::abs(b.difference());
  });
  const double all = after.stacks->total[options.order] - before.stacks->total[options.order];
  std::string text = fmt::format("difference of two heap profiles: {}\n{}{}", signed_figure(all, options.order),
                                 source_line("A", before, options.order), source_line("B", after, options.order));
  if (before.profile->period != after.profile->period)
    text += "  They were sampled at different rates, so that their errors differ.\n";
  if (sorted.empty()) return text + "\nno site differs\n";
  const size_t count = std::min(options.top, sorted.size());
  text += fmt::format("\ntop {} of {} sites that differ\n", count, sorted.size());
  bench::Grid grid = {{"B-A", "A", "B", "sure"}};
  for (size_t i = 0; i < count; ++i)
    grid.push_back({signed_figure(sorted[i].difference(), options.order), figure(sorted[i].before, options.order),
                    figure(sorted[i].after, options.order), sorted[i].may_be_chance() ? "no" : "yes"});
  const SiteTable table(grid, options.look.width);
  text += table.row(0, {"site"});
  for (size_t i = 0; i < count; ++i)
    text += table.row(i + 1, {sorted[i].place});
  text += table.remark();
  return text + "sure: whether more than chance, by which samples are taken, made the difference (95 % confidence)\n";
}

}  // namespace sluice::cli::profile
