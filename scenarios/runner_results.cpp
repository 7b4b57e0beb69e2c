// Medians and ratios. Open it with runner_results.hpp.
#include "runner_results.hpp"

#include <algorithm>
#include <cmath>

namespace bench {

void Table::add(const Row& fresh, std::size_t allocator, double value) {
  auto place = std::find_if(rows_.begin(), rows_.end(), [&](const Row& known) { return known.name == fresh.name; });
  if (place == rows_.end()) {
    place = rows_.insert(rows_.end(), fresh);
    place->samples.resize(allocators_);
  }
  place->samples[allocator].push_back(value);
}

std::optional<double> Table::median(const Row& row, std::size_t allocator) const {
  std::vector<double> sorted = row.samples[allocator];
  if (sorted.empty()) return std::nullopt;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

std::optional<double> Table::ratio(const Row& row, std::size_t allocator) const {
  const std::optional<double> own = median(row, allocator);
  std::optional<double> best;
  for (std::size_t other = 0; other < allocators_; ++other) {
    if (other == allocator) continue;
    const std::optional<double> value = median(row, other);
    if (value && (!best || *value < *best)) best = value;
  }
  if (!own || !best || *best <= 0) return std::nullopt;
  return *own / *best;
}

std::optional<double> Table::mean_ratio(std::size_t allocator) const {
  double logarithms = 0;
  std::size_t rows = 0;
  for (const Row& row : rows_) {
    if (!row.memory.empty() && row.memory != "plain") continue;
    const std::optional<double> value = ratio(row, allocator);
    if (!value || *value <= 0) return std::nullopt;
    logarithms += std::log(*value);
    ++rows;
  }
  if (rows == 0) return std::nullopt;
  return std::exp(logarithms / static_cast<double>(rows));
}

void Results::add(const Scenario& scenario, std::size_t allocator, const Sample& sample) {
  const std::string suffix = scenario.memory.empty() ? "" : "_" + scenario.memory;
  for (const CaseSample& timed : sample.cases)
    time.add({timed.name + suffix, scenario.name, timed.name, scenario.memory, scenario.component, timed.ops},
             allocator, timed.ns_per_op);
  memory.add({scenario.name, scenario.name, scenario.group, scenario.memory, scenario.component}, allocator,
             static_cast<double>(sample.peak_rss_kib));
}

}  // namespace bench
