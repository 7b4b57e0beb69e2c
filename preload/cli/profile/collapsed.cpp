// Writes stacks as flamegraph.pl reads them. Open it with exports.hpp.
#include <algorithm>
#include <map>
#include <string>

#include <fmt/core.h>

#include "command.hpp"
#include "exports.hpp"

namespace sluice::cli::profile {

std::string collapsed_text(const Stacks& stacks, Measure measure) {
  std::map<std::string, double> lines;
  for (const Stack& stack : stacks.stacks) {
    if (stack.values[measure] <= 0) continue;
    std::string line;
    for (size_t i = stack.frames.size(); i-- > 0;) {
      std::string name = printable(stacks.function_of(stack.frames[i]).name);
      std::replace(name.begin(), name.end(), ';', ':');  // it parts the functions
      line += fmt::format("{}{}", line.empty() ? "" : ";", name);
    }
    lines[line] += stack.values[measure];
  }
  std::string text;
  for (const auto& [line, value] : lines)
    text += fmt::format("{} {:.0f}\n", line, value);
  return text;
}

}  // namespace sluice::cli::profile
