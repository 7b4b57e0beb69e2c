// Finds the allocators that are asked for. Open it with allocator_choice.hpp.
#include "allocator_choice.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>

#include "command.hpp"
#include "installation.hpp"
#include "measure/names.hpp"

namespace sluice::cli {
namespace {

using bench::Allocator;

std::vector<Allocator> known_allocators(const AllocatorChoice& choice) {
  std::vector<Allocator> known = {{"system", {}}};
  known.push_back({"sluice", find_library(choice.library)});
  for (Allocator& each : bench::installed_allocators())
    known.push_back(std::move(each));
  return known;
}

std::vector<std::string> names_of(const std::vector<Allocator>& allocators) {
  std::vector<std::string> names(allocators.size());
  std::transform(allocators.begin(), allocators.end(), names.begin(), [](const Allocator& each) { return each.name; });
  return names;
}

}  // namespace

std::vector<Allocator> chosen_allocators(const AllocatorChoice& choice, const char* subcommand) {
  std::vector<Allocator> known = known_allocators(choice);
  if (choice.with.empty()) return known;
  const auto secure = std::find(choice.with.begin(), choice.with.end(), "secure");
  if (secure != choice.with.end()) known.push_back({"secure", find_library({}, secure_library)});
  const std::vector<std::string> names = names_of(known);
  std::vector<Allocator> chosen;
  for (const std::string& wanted : choice.with) {
    try {
      chosen.push_back(wanted.find('=') != std::string::npos ? bench::parse_allocator(wanted)
                                                             : known[bench::index_of(wanted, names, "allocator")]);
    } catch (const std::invalid_argument& problem) {
      throw CommandError(exit_usage, fmt::format("{}: {}", subcommand, problem.what()));
    }
    const std::string& name = chosen.back().name;
    const auto same = [&](const Allocator& each) { return each.name == name; };
    if (std::count_if(chosen.begin(), chosen.end(), same) != 1)
      throw CommandError(exit_usage, fmt::format("{}: --with names '{}' twice", subcommand, name));
  }
  for (const Allocator& each : chosen) {
    if (each.library.string().find_first_of(": ") != std::string::npos)
      throw CommandError(exit_usage, fmt::format("{}: {}: LD_PRELOAD takes no path with a colon or a space", subcommand,
                                                 each.library.string()));
  }
  return chosen;
}

std::size_t baseline_among(const std::vector<Allocator>& allocators, const AllocatorChoice& choice,
                           const char* subcommand) {
  if (choice.baseline.empty()) return 0;
  try {
    return bench::index_of(choice.baseline, names_of(allocators), "allocator for --baseline");
  } catch (const std::invalid_argument& problem) {
    throw CommandError(exit_usage, fmt::format("{}: {}", subcommand, problem.what()));
  }
}

}  // namespace sluice::cli
