// Draws the line of progress. Open it with progress.hpp.
#include "progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace bench {
namespace {

constexpr std::size_t bar_width = 20;

std::string duration_text(double seconds) {
  const long whole = std::lround(seconds);
  return whole < 60 ? fmt::format("{} s", whole) : fmt::format("{}:{:02} min", whole / 60, whole % 60);
}

std::size_t terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col - 1u : 79u;
}

}  // namespace

Progress::Progress(std::size_t steps)
    : steps_(std::max<std::size_t>(steps, 1)),
      begin_(std::chrono::steady_clock::now()),
      shown_(isatty(STDERR_FILENO) != 0) {}

void Progress::next(const std::string& what) {
  const std::size_t done = started_++;
  if (!shown_) return;
  const std::size_t filled = std::min(done * bar_width / steps_, bar_width);
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  const double left =
      done == 0 ? 0 : elapsed / static_cast<double>(done) * static_cast<double>(steps_ - std::min(done, steps_));
  std::string line =
      fmt::format("[{}{}] {}/{}{} {}", std::string(filled, '#'), std::string(bar_width - filled, '.'),
                  std::min(done + 1, steps_), steps_, left > 1 ? ", " + duration_text(left) + " left:" : ":", what);
  line.resize(std::min(line.size(), terminal_width()));
  fmt::print(stderr, "\r\033[K{}", line);
  std::fflush(stderr);
}

void Progress::note(const std::string& what) {
  if (!shown_) return;
  fmt::print(stderr, "\r\033[K{}", what.substr(0, terminal_width()));
  std::fflush(stderr);
}

void Progress::clear() {
  if (shown_) fmt::print(stderr, "\r\033[K");
}

}  // namespace bench
