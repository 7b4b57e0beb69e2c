// What memory a program and all that it has started hold resident, again and again while it runs. Open it to change how
// often it is read.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <vector>

namespace bench {

struct Timeline {
  double interval_milliseconds = 0;
  std::vector<double> rss_kib = {};  // at the start, one interval later, and so on
};

/// Reads the resident memory of a process and its descendants, added up: pages that several share count in each. It
/// begins with every second millisecond and keeps a few hundred readings: when there are more, every second one is
/// dropped and the interval doubled.
class MemoryTimeline {
 public:
  using Clock = std::chrono::steady_clock;

  /// Begins anew, with this process.
  void watch(pid_t program);

  /// How long to wait for the next reading.
  std::chrono::milliseconds until_due() const;

  /// Reads when it is time to; where readings were missed, this one stands for them too.
  void read_if_due();

  const Timeline& timeline() const { return timeline_; }

 private:
  Clock::time_point due() const;

  pid_t program_ = 0;
  Clock::time_point start_;
  std::chrono::milliseconds interval_{};
  Timeline timeline_;
};

}  // namespace bench
