// Reads lists of numbers of threads. Open it with threads.hpp.
#include "bench/threads.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <system_error>

namespace bench {
namespace {

std::optional<std::uint64_t> count_in(std::string_view text) {
  std::uint64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || end != text.data() + text.size() || count < 1 || count > most_threads)
    return std::nullopt;
  return count;
}

}  // namespace

ThreadCounts parse_thread_counts(const std::string& list) {
  ThreadCounts counts;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string word = list.substr(begin, end - begin);
    const std::optional<std::uint64_t> count = count_in(word);
    if (!count)
      throw std::invalid_argument(fmt::format(
          "'{}' is no number of threads from 1 to {}; several stand between commas, as in 1,2,4", word, most_threads));
    const auto place = std::lower_bound(counts.begin(), counts.end(), *count);
    if (place != counts.end() && *place == *count)
      throw std::invalid_argument(fmt::format("{} is there twice", *count));
    counts.insert(place, *count);
    begin = end + 1;
  }
  return counts;
}

std::string counts_text(const ThreadCounts& counts) {
  std::string text;
  for (std::size_t i = 0; i < counts.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : i + 1 == counts.size() ? " and " : ", ", counts[i]);
  return text;
}

std::vector<Scenario> with_threads(const Scenario& scenario, const ThreadCounts& counts) {
  std::vector<Scenario> all;
  for (const std::uint64_t count : counts) {
    if (!scenario.takes(count)) continue;
    all.push_back(scenario);
    all.back().threads = count;
    if (counts.size() == 1) continue;
    all.back().curve = scenario.name;
    all.back().name += all.back().point();
  }
  if (all.empty() && counts.size() <= 1) all.push_back(scenario);
  return all;
}

}  // namespace bench
