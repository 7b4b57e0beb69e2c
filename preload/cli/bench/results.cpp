// Medians and ratios. Open it with results.hpp.
#include "bench/results.hpp"

#include <algorithm>
#include <cmath>

namespace bench {
namespace {

Row row_of_memory(const Scenario& scenario) {
  return {scenario.name,   scenario.name,      scenario.group + scenario.point(),
          scenario.memory, scenario.component, scenario.real.has_value()};
}

}  // namespace

void Table::add(const Row& fresh, std::size_t allocator, double value) {
  auto place = std::find_if(rows_.begin(), rows_.end(), [&](const Row& known) { return known.name == fresh.name; });
  if (place == rows_.end()) {
    place = rows_.insert(rows_.end(), fresh);
    place->samples.resize(allocators_);
  }
  place->samples[allocator].push_back(value);
}

std::optional<double> Table::median(const Row& row, std::size_t allocator) const {
  const std::vector<double>& samples = row.samples[allocator];
  if (samples.empty()) return std::nullopt;
  return bench::median(samples);
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

std::optional<std::size_t> Table::best(const Row& row, Center center) const {
  std::optional<std::size_t> least;
  for (std::size_t i = 0; i < allocators_; ++i)
    if (median(row, i) && (!least || *median(row, i) < *median(row, *least))) least = i;
  std::size_t beaten = 0;
  for (std::size_t i = 0; i < allocators_; ++i) {
    if (i == least || row.samples[i].empty()) continue;
    if (verdict_of(paired_ratio(row.samples[*least], row.samples[i], center)) != Verdict::less) return std::nullopt;
    ++beaten;
  }
  return beaten != 0 ? least : std::nullopt;
}

std::optional<double> Table::mean_ratio(std::size_t allocator, bool of_real) const {
  double logarithms = 0;
  std::size_t rows = 0;
  for (const Row& row : rows_) {
    if (row.is_real != of_real || (!row.memory.empty() && row.memory != "plain")) continue;
    const std::optional<double> value = ratio(row, allocator);
    if (!value || *value <= 0) return std::nullopt;
    logarithms += std::log(*value);
    ++rows;
  }
  if (rows == 0) return std::nullopt;
  return std::exp(logarithms / static_cast<double>(rows));
}

void Table::drop(const std::string& scenario, std::size_t allocator) {
  for (Row& row : rows_)
    if (row.scenario == scenario) row.samples[allocator].clear();
}

Results::Results(std::vector<Scenario> chosen, std::vector<Allocator> names, unsigned round_count,
                 const RunSettings& run_settings)
    : scenarios(std::move(chosen)),
      allocators(std::move(names)),
      rounds(round_count),
      settings(run_settings),
      time(allocators.size()),
      memory(allocators.size()),
      quiet(allocators.size()),
      largest(allocators.size()),
      mean(allocators.size()) {}

void Results::add(const Scenario& scenario, std::size_t allocator, const Sample& sample) {
  const std::string suffix = scenario.memory.empty() ? "" : "_" + scenario.memory;
  for (const CaseSample& timed : sample.cases) {
    time.add({timed.name + suffix + scenario.point(), scenario.name, timed.name + scenario.point(), scenario.memory,
              scenario.component, scenario.real.has_value(), timed.ops},
             allocator, timed.ns_per_op);
  }
  const Row row = row_of_memory(scenario);
  memory.add(row, allocator, static_cast<double>(sample.peak_rss_kib));
  if (sample.largest_kib) largest.add(row, allocator, static_cast<double>(*sample.largest_kib));
  if (sample.mean_kib) mean.add(row, allocator, *sample.mean_kib);
}

void Results::observe(const Scenario& scenario, std::size_t allocator, const Sample& sample) {
  Observed& place = observed[{scenario.name, allocator}];
  if (!sample.timeline.rss_kib.empty()) place.timeline = sample.timeline;
  if (sample.latency && sample.latency->processes != 0) place.latency = sample.latency;
  if (!sample.figures.empty()) place.figures = sample.figures;
  if (!sample.quiet_rss_kib) return;
  quiet.add(row_of_memory(scenario), allocator, static_cast<double>(*sample.quiet_rss_kib));
}

void Results::fail(const Scenario& scenario, std::size_t allocator, const std::string& why) {
  failures[{scenario.name, allocator}] = why;
  for (Table* const table : {&time, &memory, &quiet, &largest, &mean})
    table->drop(scenario.name, allocator);
}

bool Results::is_given_up(const Scenario& scenario, std::size_t allocator) const {
  const Cell cell(scenario.name, allocator);
  return failures.contains(cell) || without_effect.contains(cell);
}

}  // namespace bench
