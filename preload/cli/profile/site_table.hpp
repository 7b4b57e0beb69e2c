// A table with figures on the left and the names of sites on the right, which may be longer than the terminal is wide.
// Open it to change how it is laid out.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "measure/tables.hpp"

namespace sluice::cli::profile {

class SiteTable {
 public:
  // The first row of the figures is the heading. Columns are left out, the last first and the first two never, until a
  // terminal of that width has room for the sites; 0: any width.
  SiteTable(bench::Grid figures, size_t width);

  // Returns: the line of that row with its texts, one below the other; each is cut where the terminal ends.
  std::string row(size_t index, const std::vector<std::string>& texts) const;

  // Returns: a line that names the columns left out, or nothing.
  std::string remark() const;

 private:
  size_t left_width() const;

  bench::Grid figures_;
  std::vector<size_t> widths_;
  size_t width_;
  std::string left_out_;
};

}  // namespace sluice::cli::profile
