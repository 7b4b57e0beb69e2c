// How a program is found, and the interpreters of scripts; see program.hpp.
#include "program.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/core.h>

#include "command.hpp"
#include "preloading.hpp"

namespace sluice::cli {
namespace {

constexpr int max_interpreter_depth = 4;      // scripts whose interpreters are scripts: the kernel's own limit
constexpr size_t script_line_capacity = 256;  // the kernel reads no more of a script's first line

// Returns: the interpreter that a script's first line names, or nothing when the file is no such script.
std::optional<std::string> script_interpreter(const File& file) {
  const std::string start = file.read(0, script_line_capacity);
  if (!start.starts_with("#!")) return std::nullopt;
  const std::string line =
      start.substr(2, start.find('\n') == std::string::npos ? std::string::npos : start.find('\n') - 2);
  const size_t first = line.find_first_not_of(" \t");
  if (first == std::string::npos) return std::nullopt;
  return line.substr(first, line.find_first_of(" \t", first) - first);
}

// Returns: 0 when the file can be executed, else the errno value that execve would give.
int execution_error(const std::string& path) {
  struct stat status;
  if (stat(path.c_str(), &status) != 0) return errno;
  if (S_ISDIR(status.st_mode)) return EISDIR;
  if (!S_ISREG(status.st_mode) || faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) != 0) return EACCES;
  return 0;
}

// What is said of a program that is not there: a whole command line in one word is a common mistake.
std::string not_found(const std::string& name) {
  if (name.find(' ') == std::string::npos) return "not found";
  const std::string to_shell = system_shells_take_preloads ? fmt::format(", or to a shell (-- sh -c '{}')", name) : "";
  return fmt::format("not found; a command line is given word by word (-- {}){}", name, to_shell);
}

// What the kernel executes, and how it is called in messages.
struct ExecutedFile {
  std::string path;
  std::string subject;
};

// Returns: the program, or the interpreter that a script names; nothing where scripts name too many. Throws:
// CommandError (126) when an interpreter is missing.
std::optional<ExecutedFile> executed_file(const std::string& name, const std::string& path) {
  ExecutedFile executed{path, name};
  for (int depth = 0; depth <= max_interpreter_depth; ++depth) {
    const auto interpreter = script_interpreter(File(executed.path));
    if (!interpreter) return executed;
    executed = {*interpreter, fmt::format("{}, the interpreter of {},", *interpreter, name)};
    if (const int error = execution_error(executed.path))
      throw CommandError(exit_cannot_execute,
                         fmt::format("{} cannot be executed: {}", executed.subject, std::strerror(error)));
  }
  return std::nullopt;
}

}  // namespace

std::string find_program(const std::string& name) {
  std::vector<std::string> candidates;
  if (name.find('/') != std::string::npos) {
    candidates.push_back(name);
  } else if (!name.empty()) {
    const char* const variable = getenv("PATH");
    const std::string path = variable != nullptr ? variable : "/bin:/usr/bin";
    for (size_t start = 0; start <= path.size();) {
      const size_t end = std::min(path.find(':', start), path.size());
      const std::string folder = path.substr(start, end - start);
      candidates.push_back((folder.empty() ? "." : folder) + "/" + name);
      start = end + 1;
    }
  }
  int worst = ENOENT;
  for (const std::string& candidate : candidates) {
    const int error = execution_error(candidate);
    if (error == 0) return candidate;
    if (error != ENOENT && error != ENOTDIR) worst = error;
  }
  throw CommandError(worst == ENOENT ? exit_not_found : exit_cannot_execute,
                     fmt::format("{}: {}", name, worst == ENOENT ? not_found(name) : std::strerror(worst)));
}

void check_can_preload(const std::string& name, const std::string& path, const std::string& library) {
  if (!is_library(File(library)))
    throw CommandError(exit_cannot_preload, fmt::format("{} is not a shared library", library));
  const auto executed = executed_file(name, path);
  if (!executed) return;
  if (const auto obstacle = preload_obstacle(executed->path, File(executed->path), library))
    throw CommandError(exit_cannot_preload,
                       fmt::format("{} {}: the preload cannot work", executed->subject, *obstacle));
}

std::optional<std::string> linked_with_sluice(const std::string& name, const std::string& path) {
  const auto executed = executed_file(name, path);
  if (!executed) return std::nullopt;
  const auto version = linked_copy(File(executed->path));
  if (!version) return std::nullopt;
  return fmt::format("{} is linked with Sluice {}, which serves it", executed->subject, *version);
}

}  // namespace sluice::cli
