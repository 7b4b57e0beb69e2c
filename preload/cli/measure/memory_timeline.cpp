// Reads memory from /proc. Open it with memory_timeline.hpp.
#include "memory_timeline.hpp"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <ratio>
#include <string>
#include <system_error>

namespace bench {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr std::size_t most_readings = 512;
constexpr milliseconds first_interval{2};
/// So many times as long as a reading has taken of a processor, there is nothing read; but never for longer than this.
constexpr int part_of_time = 50;
constexpr milliseconds longest_pause{200};
constexpr milliseconds least_pause{1};  // where there is nothing to be read, and the launcher has yet to say why
/// Deeper trees, and larger ones, are read in part.
constexpr int deepest = 16;

/// What this thread has had of a processor: unlike the time by the clock it does not grow while others have it.
std::chrono::nanoseconds processor_time() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

/// 0 when there is no such process, or it has ended and nobody has waited for it.
double rss_kib(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/statm", process));
  long size = 0, resident = 0;
  file >> size >> resident;
  static const long page_kib = sysconf(_SC_PAGESIZE) / 1024;
  return static_cast<double>(resident * page_kib);
}

/// A process's share of what it holds resident: of a page that several have, each has a part. What may not be looked at
/// counts in full.
double pss_kib(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/smaps_rollup", process));
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("Pss:")) return std::strtod(line.c_str() + 4, nullptr);
  return rss_kib(process);
}

void add_descendants(pid_t process, int depth, std::vector<pid_t>& found) {
  if (depth == deepest) return;
  // Each thread has the children that it forked.
  std::error_code error;
  for (fs::directory_iterator thread(fmt::format("/proc/{}/task", process), error), end; !error && thread != end;
       thread.increment(error)) {
    std::ifstream children(thread->path() / "children");
    for (pid_t child = 0; children >> child;) {
      found.push_back(child);
      add_descendants(child, depth + 1, found);
    }
  }
}

double sum_of(const std::vector<pid_t>& processes, double (*kib)(pid_t)) {
  return std::accumulate(processes.begin(), processes.end(), 0.0,
                         [&](double sum, pid_t process) { return sum + kib(process); });
}

}  // namespace

void MemoryTimeline::watch(pid_t launcher, bool has_curve) {
  *this = {};
  launcher_ = launcher;
  has_curve_ = has_curve;
  start_ = last_ = next_ = Clock::now();
  interval_ = first_interval;
  if (has_curve) timeline_.interval_milliseconds = static_cast<double>(interval_.count());
}

void MemoryTimeline::end() {
  if (launcher_ != 0) note_time(Clock::now());
  launcher_ = 0;
}

MemoryTimeline::Clock::time_point MemoryTimeline::due() const {
  return start_ + interval_ * timeline_.rss_kib.size();
}

milliseconds MemoryTimeline::until_due() const {
  if (launcher_ == 0) return milliseconds::max();
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(next_ - Clock::now()));
}

void MemoryTimeline::note_time(Clock::time_point now) {
  gap_ = std::max(gap_, std::chrono::ceil<milliseconds>(now - last_));
  if (held_kib_ != 0) {
    const double seconds = std::chrono::duration<double>(now - last_).count();
    kib_seconds_ += held_kib_ * seconds;
    seen_seconds_ += seconds;
  }
  last_ = now;
}

void MemoryTimeline::read_if_due() {
  const Clock::time_point begin = Clock::now();
  if (launcher_ == 0 || begin < next_) return;
  const std::chrono::nanoseconds used = processor_time();
  std::vector<pid_t> processes;
  add_descendants(launcher_, 0, processes);
  if (has_curve_) {
    const double kib = sum_of(processes, rss_kib);
    if (kib != 0) add_to_curve(kib);
  }
  note_time(begin);
  if (processes.size() > 1) {
    held_kib_ = sum_of(processes, pss_kib);
    peak_kib_ = std::max(peak_kib_, held_kib_);
  } else if (const double kib = sum_of(processes, rss_kib); kib != 0) {  // else it has just ended
    held_kib_ = kib;
  }
  const Clock::time_point now = Clock::now();
  const auto pause = std::min<Clock::duration>(part_of_time * (processor_time() - used), longest_pause);
  next_ = has_curve_ ? std::max<Clock::time_point>(due(), now + least_pause)
                     : std::max(begin + first_interval, now + pause);
}

void MemoryTimeline::add_to_curve(double kib) {
  std::vector<double>& readings = timeline_.rss_kib;
  for (const Clock::time_point now = Clock::now(); due() <= now;) {
    readings.push_back(kib);
    if (readings.size() < most_readings) continue;
    for (std::size_t i = 0; i < readings.size() / 2; ++i)
      readings[i] = readings[2 * i];
    readings.resize(readings.size() / 2);
    interval_ *= 2;
    timeline_.interval_milliseconds = static_cast<double>(interval_.count());
  }
}

}  // namespace bench
