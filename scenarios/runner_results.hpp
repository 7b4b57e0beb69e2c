// The figures of a whole benchmark: samples per row and allocator, their medians, and the ratio of each
// allocator to the best of the others. Open it to see exactly how a number in the tables is made.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runner_process.hpp"

namespace bench {

/// One row of a table: a timed case or the peak memory of a scenario, with the samples of every allocator.
struct Row {
  std::string name;
  std::string scenario;
  std::uint64_t ops;                         // 0 for memory
  std::vector<std::vector<double>> samples;  // by allocator, in the order of the rounds; empty where every run failed
};

/// A table with one column per allocator. Smaller is better in every row.
class Table {
 public:
  explicit Table(std::size_t allocators) : allocators_(allocators) {}

  void add(const std::string& scenario, const std::string& row, std::uint64_t ops, std::size_t allocator, double value);

  const std::vector<Row>& rows() const { return rows_; }

  /// The median of the samples of one cell.
  std::optional<double> median(const Row& row, std::size_t allocator) const;

  /// The cell's median divided by the smallest median among the other allocators.
  std::optional<double> ratio(const Row& row, std::size_t allocator) const;

  /// The geometric mean of an allocator's ratios over all rows; nothing when one of them is missing.
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

  Results(std::vector<Allocator> names, unsigned round_count)
      : allocators(std::move(names)), rounds(round_count), time(allocators.size()), memory(allocators.size()) {}

  void add(const std::string& scenario, std::size_t allocator, const Sample& sample);
};

}  // namespace bench
