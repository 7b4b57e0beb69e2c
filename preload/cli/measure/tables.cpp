// Lays tables out. Open it with tables.hpp.
#include "tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <numeric>

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

std::vector<std::size_t> all_columns(const Grid& grid) {
  std::vector<std::size_t> columns(grid.front().size());
  std::iota(columns.begin(), columns.end(), std::size_t{0});
  return columns;
}

std::size_t total_width(const Grid& grid, const std::vector<std::size_t>& columns) {
  const std::vector<std::size_t> widths = widths_of(grid);
  std::size_t total = 2 * (columns.size() - 1);
  for (const std::size_t each : columns)
    total += widths[each];
  return total;
}

/// Takes the first heading out of the table, if it is the widest cell of its column. Returns: its line, or nothing.
std::string taken_title(Grid& grid) {
  const std::string title = grid.front().front();
  const auto is_narrower = [&](const auto& row) { return width_of(row.front()) < width_of(title); };
  if (!std::all_of(grid.begin() + 1, grid.end(), is_narrower)) return {};
  grid.front().front().clear();
  return title + '\n';
}

std::vector<std::size_t> fitting_columns(const Grid& grid, std::size_t width, const std::set<std::size_t>& kept) {
  std::vector<std::size_t> columns = all_columns(grid);
  for (std::size_t each = columns.size() - 1; each > 0 && total_width(grid, columns) > width; --each)
    if (!kept.contains(each)) columns.erase(columns.begin() + static_cast<std::ptrdiff_t>(each));
  return columns;
}

/// The headings of the columns that are not there.
std::string left_out(const Grid& grid, const std::vector<std::size_t>& columns) {
  std::string names;
  for (std::size_t i = 0; i < grid.front().size(); ++i)
    if (!std::binary_search(columns.begin(), columns.end(), i))
      names += fmt::format("{}{}", names.empty() ? "" : "; ", grid.front()[i]);
  return names;
}

/// Where a line's words begin; where that is too far to the right, its first letter.
std::size_t begin_of_words(const std::string& line, std::size_t columns) {
  const std::size_t first = std::min(line.find_first_not_of(' '), line.size());
  const std::size_t words = line.find_first_not_of(' ', std::min(line.find("  ", first), line.size()));
  return words < columns / 2 ? words : first;
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

std::string text_table(const Grid& plain, const Look& look, const CellSet& best, const std::set<std::size_t>& kept) {
  const bool is_limited = look.width != 0;
  std::string text;
  Grid grid = plain;
  if (is_limited && total_width(grid, all_columns(grid)) > look.width) text = taken_title(grid);
  const std::vector<std::size_t> columns = is_limited ? fitting_columns(grid, look.width, kept) : all_columns(grid);
  const std::vector<std::size_t> widths = widths_of(grid);
  for (std::size_t line = 0; line < grid.size(); ++line) {
    text += fmt::format("{:<{}}", grid[line][0], widths[0]);
    for (const std::size_t i : columns) {
      if (i == 0) continue;
      const std::string cell = fmt::format("{:>{}}", grid[line][i], widths[i]);
      const bool is_green = look.colour && best.contains({line, i});
      text += is_green ? fmt::format("  \033[32m{}\033[0m", cell) : "  " + cell;
    }
    text += '\n';
  }
  if (const std::string names = left_out(grid, columns); !names.empty())
    text += wrapped(fmt::format("(left out, for --wide: {})", names), look.width) + '\n';
  return text;
}

std::string wrapped(std::string_view words, std::size_t columns, std::size_t indent) {
  std::string text;
  for (std::size_t column = 0; !words.empty();) {
    const std::string_view word = words.substr(0, words.find(' '));
    const std::size_t width = width_of(std::string(word));
    if (column != 0 && columns != 0 && column + 1 + width > columns) {
      text += '\n' + std::string(indent, ' ');
      column = 0;
    } else if (column != 0) {
      text += ' ';
      ++column;
    }
    text += word;
    column += width;
    words.remove_prefix(std::min(word.size() + 1, words.size()));
  }
  return text;
}

std::string fitted(std::string_view text, std::size_t columns) {
  std::string lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string line(text.substr(0, end));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t begin = begin_of_words(line, columns);
    const bool fits = columns == 0 || width_of(line) <= columns;
    lines += fits ? line : line.substr(0, begin) + wrapped(line.substr(begin), columns - begin, begin);
    if (end != std::string_view::npos) lines += '\n';
  }
  return lines;
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
