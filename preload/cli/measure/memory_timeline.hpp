// What memory a program and all that it has started hold, read again and again while they run: the curve of a run that
// is observed, and the most at once and the mean of any run. Open it to change how often it is read, or what is added
// up.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <vector>

namespace bench {

struct Timeline {
  double interval_milliseconds = 0;
  std::vector<double> rss_kib = {};  // at the start, one interval later, and so on
};

/// Reads the memory of the descendants of a launcher, which has started them and nothing else.
///
/// The curve adds up what each holds resident: pages that several share count in each. It begins with every second
/// millisecond and keeps a few hundred readings: when there are more, every second one is dropped and the interval
/// doubled.
///
/// The peak adds up their shares (PSS), in which a page of several processes counts once, whenever there are several.
/// Of a run whose time counts it takes readings only: about every second millisecond, and more seldom where one takes
/// long, so that a fiftieth of a processor goes into them; but at least five in a second, if this process gets to run.
/// What comes and goes between two readings is missed: the peak is a lower bound, and `longest_gap` says how long a
/// process may have lived unseen.
///
/// The mean over time takes each reading to hold until the next one: shares where there are several processes, and all
/// that is resident where there is one.
class MemoryTimeline {
 public:
  using Clock = std::chrono::steady_clock;

  /// Begins anew, with the descendants of this process; without a curve unless it is asked for.
  void watch(pid_t launcher, bool has_curve);

  /// Takes note that the descendants have ended.
  void end();

  /// How long to wait for the next reading.
  std::chrono::milliseconds until_due() const;

  /// Reads when it is time to; where readings were missed, this one stands for them too.
  void read_if_due();

  const Timeline& timeline() const { return timeline_; }

  /// The most that several processes were seen to hold together, in KiB; 0 where there was but one at a time.
  double peak_kib() const { return peak_kib_; }

  /// What the processes were seen to hold together, on the average of the time until end(), in KiB; 0 where nobody
  /// looked.
  double mean_kib() const { return seen_seconds_ > 0 ? kib_seconds_ / seen_seconds_ : 0; }

  /// The longest time from one reading to the next, or to the end.
  std::chrono::milliseconds longest_gap() const { return gap_; }

 private:
  Clock::time_point due() const;
  void note_time(Clock::time_point now);
  void add_to_curve(double kib);

  pid_t launcher_ = 0;
  bool has_curve_ = false;
  double peak_kib_ = 0;
  double held_kib_ = 0;  // at the last reading
  double kib_seconds_ = 0, seen_seconds_ = 0;
  Clock::time_point start_, last_, next_;
  std::chrono::milliseconds gap_{};
  std::chrono::milliseconds interval_{};
  Timeline timeline_;
};

}  // namespace bench
