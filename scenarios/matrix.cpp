// Matrices of doubles as an array of rows, each of them a block of its own, of which columns are added up: numeric
// programs in C, tables kept as rows and read by columns, pictures walked downwards. What counts is where blocks of one
// size lie: in the caches, addresses that are multiples of 4 KiB apart compete for a few places. Open it for how much
// slower a program's own reads are where a malloc puts blocks at round addresses.
#include "common.hpp"
#include "shared_clock.hpp"

namespace {

struct Matrix {
  const char* name;
  std::size_t rows;
  std::size_t columns;  // of a row; the first of them are read
};

constexpr std::size_t columns_read = 500;  // 4,000 bytes of each row: one page, or two

double* build_row(std::size_t columns, std::size_t number) {
  auto* const row = static_cast<double*>(scenario::allocate_tagged(columns * sizeof(double), number));
  for (std::size_t column = 0; column < columns_read; ++column)
    row[column] = static_cast<double>(number + column);
  return row;
}

/// One thread with a matrix of its own. Returns: non-zero bits when a sum was wrong.
std::uint64_t add_columns(const scenario::Share& share, scenario::SharedClock& clock, const Matrix& matrix) {
  scenario::Table<double*> rows(matrix.rows);
  for (std::size_t row = 0; row < matrix.rows; ++row)
    rows[row] = build_row(matrix.columns, row);
  const auto last = static_cast<double>(matrix.rows - 1);
  std::uint64_t damage = 0;
  clock.start();
  for (std::uint64_t done = 0, column = 0; done < share.ops;
       done += matrix.rows, column = (column + 1) % columns_read) {
    double sum = 0;
    for (std::size_t row = 0; row < matrix.rows; ++row)
      sum += rows[row][column];
    const auto expected = static_cast<double>(matrix.rows) * (last / 2 + static_cast<double>(column));
    damage |= static_cast<std::uint64_t>(sum != expected);
  }
  clock.stop();
  for (std::size_t row = 0; row < matrix.rows; ++row)
    std::free(rows[row]);
  return damage;
}

}  // namespace

int main(int argc, char** argv) {
  // Rows of 4,000, 8,000, 40,000, 100,000 and 262,152 bytes; the last is a power of two and one double.
  static constexpr Matrix matrices[] = {{"matrix_4k", 1000, 500},
                                        {"matrix_8k", 1000, 1000},
                                        {"matrix_40k", 250, 5000},
                                        {"matrix_100k", 250, 12'500},
                                        {"matrix_256k", 250, 32'769}};
  const auto arguments = scenario::parse_arguments(
      argc, argv, {.unit = "elements of each matrix added", .ops = 10'000'000, .least_ops = 1000, .threads = 1});
  scenario::Report report("matrix");
  for (const Matrix& matrix : matrices)
    scenario::measure_workers(
        report, matrix.name, arguments,
        [&matrix](const scenario::Share& share, scenario::SharedClock& clock) {
          return add_columns(share, clock, matrix);
        },
        1000);
  return report.finish(arguments);
}
