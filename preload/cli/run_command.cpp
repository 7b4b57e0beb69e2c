// `sluice run`: sets the environment up and becomes the program. There is no parent that waits, so the exit
// status, signals, job control and the process id are the program's own. Open it to change what the program
// is started with.
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include <fmt/core.h>

#include "command.hpp"
#include "installation.hpp"
#include "option_table.hpp"
#include "preloading.hpp"
#include "program.hpp"

namespace sluice::cli {
namespace {

namespace fs = std::filesystem;

// Returns: the value of the variable with the library first and what is there already behind it.
std::string preload_list(const std::string& library) {
  const char* const existing = getenv(preload_variable);
  if (existing == nullptr || *existing == '\0') return library;
  const std::string_view list = existing;
  const bool is_first = list.starts_with(library) &&
                        (list.size() == library.size() || strchr(preload_separators, list[library.size()]) != nullptr);
  return is_first ? std::string(list) : fmt::format("{}:{}", library, list);
}

// The program may change its folder before it ends, so a file for statistics is named from the root.
std::string stats_value(const std::string& format) {
  const size_t colon = format.find(':');
  if (colon == std::string::npos) return format;
  return format.substr(0, colon + 1) + fs::absolute(format.substr(colon + 1)).string();
}

void set_variable(const std::string& name, const std::string& value) {
  if (setenv(name.c_str(), value.c_str(), 1) != 0)
    throw CommandError(exit_failure, fmt::format("cannot set {}: {}", name, std::strerror(errno)));
}

void set_option(const OptionRow& row, const std::string& value) {
  check_value(row, value);
  set_variable(row.variable(), row.name == "STATS" ? stats_value(value) : value);
}

void set_option(const std::string& assignment) {
  const size_t equals = assignment.find('=');
  if (equals == std::string::npos)
    throw CommandError(exit_usage, fmt::format("--option {}: expected NAME=VALUE", assignment));
  set_option(find_option(std::string_view(assignment).substr(0, equals)), assignment.substr(equals + 1));
}

std::string_view value_of(const char* variable) {
  const char* const value = getenv(variable);
  return value != nullptr ? value : "";
}

// By its own variable, or in SLUICE_OPTIONS.
bool is_set(const OptionRow& row) {
  if (getenv(row.variable().c_str()) != nullptr) return !value_of(row.variable().c_str()).empty();
  const std::string list = fmt::format(",{},", value_of("SLUICE_OPTIONS"));
  const std::string entry = fmt::format(",{}=", row.name);
  const size_t at = list.rfind(entry);
  return at != std::string::npos && list[at + entry.size()] != ',';
}

// Who names programs wants their statistics, also without saying how.
void set_only(const RunRequest& request) {
  set_option(find_option("STATS_PROGRAM"), request.only);
  if (!is_set(find_option("STATS")) && !is_set(find_option("STATS_SIGNAL"))) set_option(find_option("STATS"), "text");
}

// Where the program asks for none of these, the library that is preloaded does not tell of the program's own copy.
bool reports_are_wanted() {
  constexpr std::string_view names[] = {"STATS", "STATS_SIGNAL", "PROFILE", "GUARD_RATE", "ATTACH"};
  return std::any_of(std::begin(names), std::end(names),
                     [](std::string_view name) { return is_set(find_option(name)); });
}

// A copy in the program serves it, whatever is preloaded. It takes the same options, but is no other library.
void consider_linked_copy(const RunRequest& request, const std::string& path) {
  const auto linked = linked_with_sluice(request.command.front(), path);
  if (!linked) return;
  if (request.secure || !request.library.empty())
    throw CommandError(exit_cannot_preload, fmt::format("{}: the preload cannot work", *linked));
  if (!reports_are_wanted()) fmt::print(stderr, "sluice: {}; the preload stands aside\n", printable(*linked));
}

}  // namespace

void run_program(const RunRequest& request) {
  if (!request.stats.empty()) set_option(find_option("STATS"), request.stats);
  for (const std::string& assignment : request.options)
    set_option(assignment);
  if (!request.only.empty()) set_only(request);

  const std::string& name = request.command.front();
  const std::string path = find_program(name);
  const std::string library = find_library(request.library, request.secure ? secure_library : default_library);
  if (!request.force) {
    check_can_preload(name, path, library);
    consider_linked_copy(request, path);
  }
  set_variable(preload_variable, preload_list(library));

  std::vector<char*> arguments;
  for (const std::string& argument : request.command)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(path.c_str(), arguments.data());  // with a path, its use is to run a script without #! by the shell
  const int error = errno;
  throw CommandError(error == ENOENT ? exit_not_found : exit_cannot_execute,
                     fmt::format("{}: cannot be executed: {}", name, std::strerror(error)));
}

}  // namespace sluice::cli
