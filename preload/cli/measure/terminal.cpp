// Asks terminals and the environment. Open it with terminal.hpp.
#include "terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace bench {
namespace {

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

bool is_smart_terminal(int descriptor) {
  return isatty(descriptor) != 0 && variable("TERM") != "dumb";
}

bool wants_colour(int descriptor) {
  if (!variable("NO_COLOR").empty()) return false;
  if (const std::string_view forced = variable("CLICOLOR_FORCE"); !forced.empty() && forced != "0") return true;
  return variable("CLICOLOR") != "0" && is_smart_terminal(descriptor);
}

std::size_t terminal_columns(int descriptor) {
  winsize size{};
  if (isatty(descriptor) == 0) return 0;
  if (ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return std::strtoul(std::string(variable("COLUMNS")).c_str(), nullptr, 10);
}

Look look_of_output(bool wide, bool explain) {
  return {wants_colour(STDOUT_FILENO), wide ? 0 : terminal_columns(STDOUT_FILENO), explain};
}

}  // namespace bench
