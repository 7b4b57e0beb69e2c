// The figures of a whole benchmark: samples per row and allocator, their medians, and the ratio of each allocator to
// the best of the others. Open it to see exactly how a number in the tables is made.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/runs.hpp"
#include "bench/scenarios.hpp"
#include "measure/machine.hpp"
#include "measure/statistics.hpp"

namespace bench {

/// One row of a table: a timed case or the memory of a scenario, with the samples of every allocator.
struct Row {
  std::string name;  // of the case, and the kind of memory where there are several
  std::string scenario;
  std::string case_name;  // the same for all kinds of memory
  std::string memory;
  std::string component;                          // of the library, that the case is also run with
  bool is_real = false;                           // of a real program
  std::uint64_t ops = 0;                          // 0 for memory
  std::vector<std::vector<double>> samples = {};  // by allocator, in the order of the rounds
};

/// A table with one column per allocator. Smaller is better in every row.
class Table {
 public:
  explicit Table(std::size_t allocators) : allocators_(allocators) {}

  /// Adds a sample to the row of that name, which is `fresh` if there is none yet.
  void add(const Row& fresh, std::size_t allocator, double value);

  /// Forgets an allocator's samples of a scenario.
  void drop(const std::string& scenario, std::size_t allocator);

  const std::vector<Row>& rows() const { return rows_; }

  /// The median of the samples of one cell.
  std::optional<double> median(const Row& row, std::size_t allocator) const;

  /// The cell's median divided by the smallest median among the other allocators.
  std::optional<double> ratio(const Row& row, std::size_t allocator) const;

  /// The allocator that surely has less than each of the others; nothing where there is none, or too few samples to
  /// tell.
  std::optional<std::size_t> best(const Row& row, Center center) const;

  /// The geometric mean of an allocator's ratios over the rows of built-in scenarios with malloc and free, or new and
  /// delete, for each object, or over those of real programs; nothing when one of them is missing.
  std::optional<double> mean_ratio(std::size_t allocator, bool of_real) const;

 private:
  std::size_t allocators_;
  std::vector<Row> rows_;
};

/// What the runs apart from the timed ones showed.
struct Observed {
  Timeline timeline = {};
  std::map<std::string, double> figures = {};
  std::optional<Latency> latency = {};
};

struct Results {
  /// A scenario by its name, under an allocator.
  using Cell = std::pair<std::string, std::size_t>;

  std::vector<Scenario> scenarios;
  std::vector<Allocator> allocators;
  std::size_t baseline = 0;
  unsigned rounds;  // that were asked for
  RunSettings settings;
  bool interrupted = false;
  Machine machine = this_machine();
  long processors = processors_at_hand();
  std::vector<std::string> command_line = {};

  Table time;     // ns per operation
  Table memory;   // KiB at the peak
  Table quiet;    // KiB after a rest; one sample
  Table largest;  // KiB of a real program's largest process at its peak
  Table mean;     // KiB of a real program's processes together, on the average of the time
  std::map<Cell, Observed> observed = {};
  std::map<Cell, std::string> failures = {};
  /// Where the kind of memory is plain malloc, and which therefore were not measured.
  std::map<Cell, bool> without_effect = {};

  Results(std::vector<Scenario> chosen, std::vector<Allocator> names, unsigned round_count,
          const RunSettings& run_settings);

  /// Takes the figures of a timed run.
  void add(const Scenario& scenario, std::size_t allocator, const Sample& sample);
  /// Takes what a run apart showed.
  void observe(const Scenario& scenario, std::size_t allocator, const Sample& sample);
  /// An allocator that fails a scenario has no figures in it.
  void fail(const Scenario& scenario, std::size_t allocator, const std::string& why);

  bool is_given_up(const Scenario& scenario, std::size_t allocator) const;
};

}  // namespace bench
