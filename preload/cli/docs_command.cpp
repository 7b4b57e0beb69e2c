// `sluice docs`: opens the installed web site, or says where it lies. Open it to change how a browser is found.
#include <cerrno>
#include <cstring>
#include <string>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/core.h>

#include "command.hpp"
#include "installation.hpp"
#include "program.hpp"

namespace sluice::cli {
namespace {

constexpr const char* opener = "xdg-open";

// Returns: the exit status of the program, 128 and more after a signal. Throws: CommandError.
int status_of(const std::string& program, const std::string& page) {
  std::string name = opener, argument = page;
  char* const words[] = {name.data(), argument.data(), nullptr};
  pid_t child = 0;
  const int error = posix_spawn(&child, program.c_str(), nullptr, nullptr, words, environ);
  if (error != 0)
    throw CommandError(exit_failure,
                       fmt::format("docs: cannot start {}: {}; the pages are {}", program, std::strerror(error), page));
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return exit_failure;
  return WIFEXITED(status) ? WEXITSTATUS(status) : exit_interrupted + WTERMSIG(status);
}

std::string found_opener(const std::string& page) {
  try {
    return find_program(opener);
  } catch (const CommandError&) {
    throw CommandError(
        exit_failure,
        fmt::format("docs: there is no {} to open a browser (Debian: xdg-utils); the pages are {}", opener, page));
  }
}

}  // namespace

void show_documents(bool only_path) {
  const std::string page = documents_page();
  if (only_path) {
    fmt::print("{}\n", page);
    return;
  }
  const int status = status_of(found_opener(page), page);
  if (status != 0)
    throw CommandError(exit_failure,
                       fmt::format("docs: {} failed (exit status {}); the pages are {}", opener, status, page));
}

}  // namespace sluice::cli
