// What is being done and how long it will take, on one line of standard error that vanishes; nothing where that is no
// terminal, or one that cannot go back in a line. Open it to change how progress looks.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace bench {

/// Steps, and the seconds that some of them rest, added up.
struct Work {
  std::size_t steps = 0;
  double rest = 0;
};

/// How many seconds are left after `done` steps of a work, `rested` seconds of whose rests are over, in `elapsed`
/// seconds: steps take as long as those before, and rests as long as they are known to.
double seconds_left(const Work& all, std::size_t done, double rested, double elapsed);

/// "40 s" or "2:50 min".
std::string time_left_text(double seconds);

class Progress {
 public:
  explicit Progress(std::size_t steps) : Progress(Work{steps, 0}) {}
  explicit Progress(const Work& work);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Shows the next step, which rests for so many seconds. From the second on, or where rests are known from the first,
  /// it says how long all that is left may take, if that is over a second.
  void next(const std::string& what, double rest = 0);
  /// Shows what is done before the first step.
  void note(const std::string& what);
  void clear();

 private:
  Work work_;
  std::size_t started_ = 0;
  double rests_ = 0;   // of the steps that were started
  double rested_ = 0;  // of those that are done
  std::chrono::steady_clock::time_point begin_;
  bool shown_;
};

}  // namespace bench
