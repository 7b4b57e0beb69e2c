// Looks names up. Open it with names.hpp.
#include "names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <numeric>
#include <stdexcept>

namespace bench {
namespace {

/// How many letters must be inserted, dropped or replaced to turn `from` into `to`.
std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= from.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t replaced = diagonal + (from[i - 1] == to[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::size_t index_of(const std::string& name, const std::vector<std::string>& known, std::string_view kind) {
  const auto place = std::find(known.begin(), known.end(), name);
  if (place != known.end()) return static_cast<std::size_t>(place - known.begin());
  const auto nearest = std::min_element(known.begin(), known.end(), [&](const auto& left, const auto& right) {
    return edit_distance(name, left) < edit_distance(name, right);
  });
  throw std::invalid_argument(fmt::format("unknown {} '{}'; did you mean '{}'?", kind, name, *nearest));
}

int signal_named(const std::string& name) {
  const std::string plain = name.starts_with("SIG") ? name.substr(3) : name;
  for (int number = 1; number < NSIG; ++number) {
    const char* const known = sigabbrev_np(number);
    if (plain == std::to_string(number) || (known != nullptr && plain == known)) return number;
  }
  return 0;
}

}  // namespace bench
