// Reads suppressions and matches names with them. Open it with suppressions.hpp.
#include "suppressions.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>

#include <sys/stat.h>

#include <fmt/core.h>

#include "command.hpp"

namespace sluice::cli::leaks {
namespace {

constexpr std::string_view kind = "leak:";

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

}  // namespace

// The parts between the stars follow each other in the name, each as early as it can be; but the last one stands at the
// end where $ says so.
bool matches(std::string_view pattern, std::string_view name) {
  if (name.empty()) return false;
  bool is_at_start = pattern.starts_with('^');
  if (is_at_start) pattern.remove_prefix(1);
  const size_t dollar = pattern.find('$');
  const bool is_at_end = dollar != std::string_view::npos;
  pattern = pattern.substr(0, dollar);
  for (bool is_last = false; !is_last;) {
    const size_t star = pattern.find('*');
    is_last = star == std::string_view::npos;
    const std::string_view part = pattern.substr(0, star);
    pattern.remove_prefix(is_last ? pattern.size() : star + 1);
    if (is_last && is_at_end) return is_at_start ? name == part : name.ends_with(part);
    const size_t found = name.find(part);
    if (found == std::string_view::npos || (is_at_start && found != 0)) return false;
    name.remove_prefix(found + part.size());
    is_at_start = false;
  }
  return true;
}

Suppressions Suppressions::parse(const std::string& source, std::string_view text) {
  Suppressions all;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.front() == '#') continue;
    if (!line.starts_with(kind) || line.size() == kind.size())
      throw CommandError(exit_usage,
                         fmt::format("{}:{}: '{}' is no suppression, as in leak:PATTERN", source, number, line));
    all.patterns_.emplace_back(line.substr(kind.size()));
  }
  return all;
}

Suppressions Suppressions::read(const std::string& file) {
  struct stat status {};
  std::ifstream stream(file, std::ios::binary);
  std::stringstream text;
  if (!stream || (stat(file.c_str(), &status) == 0 && S_ISDIR(status.st_mode)))
    throw CommandError(exit_usage, fmt::format("{}: cannot be read: {}", file, std::strerror(stream ? EISDIR : errno)));
  text << stream.rdbuf();
  return parse(file, text.str());
}

bool Suppressions::cover(std::string_view name) const {
  return std::any_of(patterns_.begin(), patterns_.end(),
                     [&](const std::string& pattern) { return matches(pattern, name); });
}

}  // namespace sluice::cli::leaks
