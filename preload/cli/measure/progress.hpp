// What is being done and how long it will take, on one line of standard error that vanishes; nothing where that is no
// terminal. Open it to change how progress looks.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

namespace bench {

class Progress {
 public:
  explicit Progress(std::size_t steps);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Shows the next step. From the second on it says how long all that is left may take, if that is over a second.
  void next(const std::string& what);
  /// Shows what is done before the first step.
  void note(const std::string& what);
  void clear();

 private:
  std::size_t steps_, started_ = 0;
  std::chrono::steady_clock::time_point begin_;
  bool shown_;
};

}  // namespace bench
