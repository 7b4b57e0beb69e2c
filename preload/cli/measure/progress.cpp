// Draws the line of progress. Open it with progress.hpp.
#include "progress.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "terminal.hpp"

namespace bench {
namespace {

constexpr std::size_t bar_width = 20;

std::size_t terminal_width() {
  const std::size_t columns = terminal_columns(STDERR_FILENO);
  return columns > 1 ? columns - 1 : 79;
}

}  // namespace

double seconds_left(const Work& all, std::size_t done, double rested, double elapsed) {
  const auto steps = static_cast<double>(all.steps - std::min(done, all.steps));
  const double of_a_step = done == 0 ? 0 : std::max(elapsed - rested, 0.0) / static_cast<double>(done);
  return of_a_step * steps + std::max(all.rest - rested, 0.0);
}

std::string time_left_text(double seconds) {
  const long whole = std::lround(seconds);
  return whole < 60 ? fmt::format("{} s", whole) : fmt::format("{}:{:02} min", whole / 60, whole % 60);
}

Progress::Progress(const Work& work)
    : work_{std::max<std::size_t>(work.steps, 1), work.rest},
      begin_(std::chrono::steady_clock::now()),
      shown_(is_smart_terminal(STDERR_FILENO)) {}

void Progress::next(const std::string& what, double rest) {
  const std::size_t done = started_++;
  rested_ = rests_;
  rests_ += rest;
  if (!shown_) return;
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  const double left = seconds_left(work_, done, rested_, elapsed);
  // By the time where that is known better than by the steps: a few that rest may take as long as all others.
  const double part = work_.rest > 0 && done != 0 ? elapsed / (elapsed + left)
                                                  : static_cast<double>(done) / static_cast<double>(work_.steps);
  const auto filled = static_cast<std::size_t>(std::clamp(part, 0.0, 1.0) * static_cast<double>(bar_width));
  std::string line = fmt::format("[{}{}] {}/{}{} {}", std::string(filled, '#'), std::string(bar_width - filled, '.'),
                                 std::min(done + 1, work_.steps), work_.steps,
                                 left > 1 ? ", " + time_left_text(left) + " left:" : ":", what);
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
