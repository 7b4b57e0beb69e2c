// Finds the allocators that are asked for. Open it with allocator_choice.hpp.
#include "allocator_choice.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/core.h>
#include <gnu/libc-version.h>

#include "command.hpp"
#include "installation.hpp"
#include "measure/names.hpp"
#include "option_table.hpp"
#include "sluice/sluice.h"

namespace sluice::cli {
namespace {

using bench::Allocator;

std::vector<Allocator> known_allocators(const AllocatorChoice& choice) {
  std::vector<Allocator> known = {{"system", {}, fmt::format("glibc {}", gnu_get_libc_version())}};
  known.push_back({"sluice", find_library(choice.library), choice.library.empty() ? SLUICE_VERSION : ""});
  for (Allocator& each : bench::installed_allocators(peers_folder()))
    known.push_back(std::move(each));
  return known;
}

// Versions that only dpkg knows, which takes a moment for each.
void find_versions(std::vector<Allocator>& allocators) {
  for (Allocator& each : allocators)
    if (each.version.empty() && !each.library.empty()) each.version = bench::packaged_version(each.library);
}

// "NAME" or "NAME=PATH", and what stands behind a colon: "OPTION=VALUE", several joined by '+'.
struct Wanted {
  std::string allocator;
  std::vector<std::pair<std::string, std::string>> options;

  // As it is called in tables, and given again in --with: each option by its own name.
  std::string suffix() const {
    std::string text;
    for (const auto& [name, value] : options)
      text += fmt::format("{}{}={}", text.empty() ? ":" : "+", name, value);
    return text;
  }
};

// Throws: CommandError for an option that Sluice does not have, or a value that it does not take.
Wanted parse_wanted(const std::string& text) {
  const std::size_t colon = text.find(':');
  Wanted wanted{text.substr(0, colon), {}};
  for (std::size_t start = colon; start != std::string::npos;) {
    const std::size_t end = text.find('+', start + 1);
    const std::string assignment = text.substr(start + 1, end == std::string::npos ? end : end - start - 1);
    const std::size_t equals = assignment.find('=');
    if (equals == std::string::npos)
      throw CommandError(exit_usage, fmt::format("expected OPTION=VALUE behind the colon, not '{}'", assignment));
    const OptionRow& row = find_option(assignment.substr(0, equals));
    const std::string value = assignment.substr(equals + 1);
    check_value(row, value);
    const auto same = [&](const auto& each) { return each.first == row.name; };
    if (std::any_of(wanted.options.begin(), wanted.options.end(), same))
      throw CommandError(exit_usage, fmt::format("option {} is given twice", row.name));
    wanted.options.emplace_back(row.name, value);
    start = end;
  }
  return wanted;
}

// The allocator of a name or path, with its options. Throws: CommandError, std::invalid_argument.
Allocator allocator_of(const std::string& text, const std::vector<Allocator>& known,
                       const std::vector<std::string>& names) {
  const Wanted wanted = parse_wanted(text);
  const bool has_path = wanted.allocator.find('=') != std::string::npos;
  Allocator allocator = has_path ? bench::parse_allocator(wanted.allocator)
                                 : known[bench::index_of(wanted.allocator, names, "allocator")];
  if (wanted.options.empty()) return allocator;
  if (!has_path && allocator.name != "sluice" && allocator.name != "secure")
    throw std::invalid_argument(
        fmt::format("only sluice, secure and NAME=PATH take options, not '{}'", allocator.name));
  for (const auto& [name, value] : wanted.options)
    allocator.variables.emplace_back("SLUICE_" + name, value);
  allocator.name += wanted.suffix();
  return allocator;
}

std::vector<std::string> names_of(const std::vector<Allocator>& allocators) {
  std::vector<std::string> names(allocators.size());
  std::transform(allocators.begin(), allocators.end(), names.begin(), [](const Allocator& each) { return each.name; });
  return names;
}

}  // namespace

std::vector<Allocator> chosen_allocators(const AllocatorChoice& choice, const char* subcommand) {
  std::vector<Allocator> known = known_allocators(choice);
  if (choice.with.empty()) {
    known.erase(std::remove_if(known.begin(), known.end(), bench::is_older_of_its_kind), known.end());
    find_versions(known);
    return known;
  }
  const auto is_secure = [](const std::string& wanted) { return wanted.substr(0, wanted.find(':')) == "secure"; };
  if (std::any_of(choice.with.begin(), choice.with.end(), is_secure))
    known.push_back({"secure", find_library({}, secure_library), SLUICE_VERSION});
  const std::vector<std::string> names = names_of(known);
  std::vector<Allocator> chosen;
  for (const std::string& wanted : choice.with) {
    try {
      chosen.push_back(allocator_of(wanted, known, names));
    } catch (const std::invalid_argument& problem) {
      throw CommandError(exit_usage, fmt::format("{}: {}", subcommand, problem.what()));
    } catch (const CommandError& problem) {
      throw CommandError(exit_usage, fmt::format("{}: --with {}: {}", subcommand, wanted, problem.what()));
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
  find_versions(chosen);
  return chosen;
}

std::size_t baseline_among(const std::vector<Allocator>& allocators, const AllocatorChoice& choice,
                           const char* subcommand) {
  if (choice.baseline.empty()) return 0;
  try {
    const Wanted wanted = parse_wanted(choice.baseline);
    return bench::index_of(wanted.allocator + wanted.suffix(), names_of(allocators), "allocator for --baseline");
  } catch (const std::runtime_error& problem) {
    throw CommandError(exit_usage, fmt::format("{}: --baseline: {}", subcommand, problem.what()));
  } catch (const std::invalid_argument& problem) {
    throw CommandError(exit_usage, fmt::format("{}: {}", subcommand, problem.what()));
  }
}

}  // namespace sluice::cli
