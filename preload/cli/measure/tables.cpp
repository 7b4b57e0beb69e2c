// Lays tables out. Open it with tables.hpp.
#include "tables.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace bench {
namespace {

/// Letters that a terminal shows: bytes that do not continue a UTF-8 sequence.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char byte) { return (static_cast<unsigned char>(byte) & 0xc0) != 0x80; }));
}

std::vector<std::size_t> widths_of(const Grid& grid) {
  std::vector<std::size_t> widths(grid.front().size(), 0);
  for (const auto& row : grid) {
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], width_of(row[i]));
  }
  return widths;
}

/// Bars end a cell, and backticks begin code.
std::string escaped(const std::string& cell) {
  std::string text;
  for (const char letter : cell) {
    if (letter == '|' || letter == '`') text += '\\';
    text += letter;
  }
  return text;
}

}  // namespace

std::string text_table(const Grid& grid, const CellSet& best) {
  const std::vector<std::size_t> widths = widths_of(grid);
  std::string text;
  for (std::size_t line = 0; line < grid.size(); ++line) {
    text += fmt::format("{:<{}}", grid[line][0], widths[0]);
    for (std::size_t i = 1; i < grid[line].size(); ++i) {
      const std::string cell = fmt::format("{:>{}}", grid[line][i], widths[i]);
      text += best.contains({line, i}) ? fmt::format("  \033[32m{}\033[0m", cell) : "  " + cell;
    }
    text += '\n';
  }
  return text;
}

std::string markdown_table(const Grid& plain) {
  Grid grid = plain;
  for (auto& row : grid)
    for (std::string& cell : row)
      cell = escaped(cell);
  const std::vector<std::size_t> widths = widths_of(grid);
  std::string text;
  for (std::size_t line = 0; line < grid.size(); ++line) {
    text += fmt::format("| {:<{}} |", grid[line][0], widths[0]);
    for (std::size_t i = 1; i < widths.size(); ++i)
      text += fmt::format(" {:>{}} |", grid[line][i], widths[i]);
    text += '\n';
    if (line != 0) continue;
    text += fmt::format("|{:-<{}}|", "", widths[0] + 2);
    for (std::size_t i = 1; i < widths.size(); ++i)
      text += fmt::format("{:-<{}}:|", "", widths[i] + 1);
    text += '\n';
  }
  return text;
}

std::string time_text(double value) {
  return fmt::format("{:.{}f}", value, value >= 100 ? 0 : value >= 10 ? 1 : 2);
}

std::string duration_text(double nanoseconds) {
  if (nanoseconds >= 1e7) return fmt::format("{} ms", time_text(nanoseconds / 1e6));
  if (nanoseconds >= 1e4) return fmt::format("{} µs", time_text(nanoseconds / 1e3));
  return time_text(nanoseconds);
}

std::string memory_text(double kib) {
  return fmt::format("{:.1f}", kib / 1024);
}

}  // namespace bench
