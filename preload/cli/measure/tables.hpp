// Tables of text: cells, and how they are laid out on a terminal and in Markdown. Open it to change how a table or a
// figure looks.
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "terminal.hpp"

namespace bench {

/// Rows of cells; the first row is the heading, and all are of its length.
using Grid = std::vector<std::vector<std::string>>;

/// Rows and columns of cells.
using CellSet = std::set<std::pair<std::size_t, std::size_t>>;

/// Columns aligned by blanks. A table that is wider than `look` allows first puts its title on a line of its own, then
/// leaves columns out, the last ones first, but none of those in `kept` and not the first one; a line below names them.
/// Cells that are the best of something are green where there are colours.
std::string text_table(const Grid& grid, const Look& look = {}, const CellSet& best = {},
                       const std::set<std::size_t>& kept = {});

/// Words in lines of at most so many columns, if that is not 0; all but the first line are indented, beside that.
std::string wrapped(std::string_view words, std::size_t columns, std::size_t indent = 0);

/// The text with lines of at most so many columns, if that is not 0: what does not fit goes on below the words, which
/// begin behind the first two blanks of a line ("  label  words") or with it.
std::string fitted(std::string_view text, std::size_t columns);

/// What Markdown would take for marks of its own is escaped.
std::string markdown_table(const Grid& grid);

/// Three significant digits, without an exponent.
std::string time_text(double value);

/// The same of nanoseconds, in microseconds or milliseconds where there are many, with the unit's name.
std::string duration_text(double nanoseconds);

/// Mebibytes from KiB.
std::string memory_text(double kib);

}  // namespace bench
