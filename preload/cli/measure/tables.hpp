// Tables of text: cells, and how they are laid out on a terminal and in Markdown. Open it to change how a table or a
// figure looks.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace bench {

/// Rows of cells; the first row is the heading, and all are of its length.
using Grid = std::vector<std::vector<std::string>>;

/// Rows and columns of cells.
using CellSet = std::set<std::pair<std::size_t, std::size_t>>;

/// Columns aligned by blanks. Cells that are the best of something are green on a terminal; none on anything else.
std::string text_table(const Grid& grid, const CellSet& best = {});

/// What Markdown would take for marks of its own is escaped.
std::string markdown_table(const Grid& grid);

/// Three significant digits, without an exponent.
std::string time_text(double value);

/// The same of nanoseconds, in microseconds or milliseconds where there are many, with the unit's name.
std::string duration_text(double nanoseconds);

/// Mebibytes from KiB.
std::string memory_text(double kib);

}  // namespace bench
