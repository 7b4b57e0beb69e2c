// Looks names up. Open it with names.hpp.
#include "names.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace bench {
namespace {

/// How many letters must be inserted, dropped, replaced, or exchanged with the next one to turn `from` into `to`.
std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> before(to.size() + 1), row(to.size() + 1), next(to.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= from.size(); ++i) {
    next[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      next[j] = std::min({row[j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1), row[j] + 1, next[j - 1] + 1});
      const bool is_exchange = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (is_exchange) next[j] = std::min(next[j], before[j - 2] + 1);
    }
    before.swap(row);
    row.swap(next);
  }
  return row.back();
}

/// The beginning of a name stands for it, and one letter in three may be wrong.
bool is_near(std::string_view name, std::string_view known) {
  constexpr std::size_t shortest_beginning = 3;
  if (name.size() >= shortest_beginning && known.starts_with(name)) return true;
  return edit_distance(name, known) <= std::max<std::size_t>(1, std::min(name.size(), known.size()) / 3);
}

}  // namespace

std::string suggestion(std::string_view name, const std::vector<std::string>& known) {
  const auto nearest = std::min_element(known.begin(), known.end(), [&](const auto& left, const auto& right) {
    return std::pair(!is_near(name, left), edit_distance(name, left)) <
           std::pair(!is_near(name, right), edit_distance(name, right));
  });
  if (nearest == known.end() || name.empty() || !is_near(name, *nearest)) return {};
  return fmt::format("; did you mean '{}'?", *nearest);
}

std::size_t index_of(const std::string& name, const std::vector<std::string>& known, std::string_view kind) {
  const auto place = std::find(known.begin(), known.end(), name);
  if (place != known.end()) return static_cast<std::size_t>(place - known.begin());
  throw std::invalid_argument(fmt::format("unknown {} '{}'{}", kind, name, suggestion(name, known)));
}

}  // namespace bench
