// Tables of text: cells, and how they are laid out on a terminal and in Markdown. Open it to change how a table or a
// figure looks.
#pragma once

#include <string>
#include <vector>

namespace bench {

/// Rows of cells; the first row is the heading, and all are of its length.
using Grid = std::vector<std::vector<std::string>>;

/// Columns aligned by blanks.
std::string text_table(const Grid& grid);

std::string markdown_table(const Grid& grid);

/// Three significant digits, without an exponent.
std::string time_text(double value);

/// Mebibytes from KiB.
std::string memory_text(double kib);

}  // namespace bench
