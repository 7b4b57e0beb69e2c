// Finds a figure in what a program printed. Open it to change where and how it is looked for.
#pragma once

#include <regex>
#include <string>

namespace bench {

/// The figure that the first group of `expression` finds, in the first line of the output that it matches. Throws
/// RunError that names the expression as `name` when there is none.
double figure_in(const std::string& output, const std::regex& expression, const char* name);

}  // namespace bench
