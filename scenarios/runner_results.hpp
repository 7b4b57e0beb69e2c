// The figures of a whole benchmark: samples per row and allocator, their medians, and the ratio of each
// allocator to the best of the others. Open it to see exactly how a number in the tables is made.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runner_process.hpp"
#include "runner_scenarios.hpp"

namespace bench {

/// One row of a table: a timed case or the peak memory of a scenario, with the samples of every allocator.
struct Row {
  std::string name;  // of the case, and the kind of memory where there are several
  std::string scenario;
  std::string case_name;  // the same for all kinds of memory
  std::string memory;
  std::string component;                          // of the library, that the case is also run with
  std::uint64_t ops = 0;                          // 0 for memory
  std::vector<std::vector<double>> samples = {};  // by allocator, in the order of the rounds
};

/// A table with one column per allocator. Smaller is better in every row.
class Table {
 public:
  explicit Table(std::size_t allocators) : allocators_(allocators) {}

  /// Adds a sample to the row of that name, which is `fresh` if there is none yet.
  void add(const Row& fresh, std::size_t allocator, double value);

  const std::vector<Row>& rows() const { return rows_; }

  /// The median of the samples of one cell.
  std::optional<double> median(const Row& row, std::size_t allocator) const;

  /// The cell's median divided by the smallest median among the other allocators.
  std::optional<double> ratio(const Row& row, std::size_t allocator) const;

  /// The geometric mean of an allocator's ratios over the rows with malloc and free, or new and delete, for each
  /// object; nothing when one of them is missing.
  std::optional<double> mean_ratio(std::size_t allocator) const;

 private:
  std::size_t allocators_;
  std::vector<Row> rows_;
};

struct Results {
  std::vector<Allocator> allocators;
  unsigned rounds;
  Table time;    // ns per operation
  Table memory;  // KiB
  /// Scenarios and allocators under which their kind of memory is plain malloc, and which therefore were not measured.
  std::set<std::pair<std::string, std::size_t>> without_effect;

  Results(std::vector<Allocator> names, unsigned round_count)
      : allocators(std::move(names)), rounds(round_count), time(allocators.size()), memory(allocators.size()) {}

  void add(const Scenario& scenario, std::size_t allocator, const Sample& sample);
};

}  // namespace bench
