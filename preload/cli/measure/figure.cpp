// Looks through lines. Open it with figure.hpp.
#include "figure.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "process.hpp"

namespace bench {

Figure figure_in(const std::string& output, const std::regex& expression, const char* name, const char* who) {
  // The search recurses for each letter, so that a line without end would overflow the stack.
  constexpr std::size_t longest_line = 4096;
  std::smatch found;
  std::string line;
  std::istringstream lines(output);
  bool is_found = false;
  while (!is_found && std::getline(lines, line)) {
    line.resize(std::min(line.size(), longest_line));
    is_found = std::regex_search(line, found, expression);
  }
  if (!is_found) throw RunError(fmt::format("{} printed nothing that {} matches", who, name));
  const std::string text = found[1];
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != '\0' || !std::isfinite(value))
    throw RunError(fmt::format("{} found '{}', which is no number", name, text));
  return {value, line.substr(0, static_cast<std::size_t>(found.position(1))),
          line.substr(static_cast<std::size_t>(found.position(1) + found.length(1)))};
}

}  // namespace bench
