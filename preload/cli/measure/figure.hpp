// Finds a figure in what a program printed. Open it to change where and how it is looked for.
#pragma once

#include <regex>
#include <string>

namespace bench {

struct Figure {
  double value = 0;
  std::string before = {}, after = {};  // what stands around it in its line
};

/// The figure that the first group of `expression` finds, in the first line of the output that it matches. Throws
/// RunError that names the expression as `name` and who printed as `who` when there is none.
Figure figure_in(const std::string& output, const std::regex& expression, const char* name,
                 const char* who = "the load");

}  // namespace bench
