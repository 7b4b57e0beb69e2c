// Reads memory from /proc. Open it with memory_timeline.hpp.
#include "memory_timeline.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace bench {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr std::size_t most_readings = 512;
constexpr milliseconds first_interval{2};
/// Deeper trees, and larger ones, are read in part.
constexpr int deepest = 16;

/// 0 when there is no such process, or it has ended and nobody has waited for it.
double rss_kib(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/statm", process));
  long size = 0, resident = 0;
  file >> size >> resident;
  static const long page_kib = sysconf(_SC_PAGESIZE) / 1024;
  return static_cast<double>(resident * page_kib);
}

double rss_kib_of_tree(pid_t process, int depth) {
  double sum = rss_kib(process);
  if (depth == deepest) return sum;
  // Each thread has the children that it forked.
  std::error_code error;
  for (fs::directory_iterator thread(fmt::format("/proc/{}/task", process), error), end; !error && thread != end;
       thread.increment(error)) {
    std::ifstream children(thread->path() / "children");
    for (pid_t child = 0; children >> child;)
      sum += rss_kib_of_tree(child, depth + 1);
  }
  return sum;
}

}  // namespace

void MemoryTimeline::watch(pid_t program) {
  program_ = program;
  start_ = Clock::now();
  interval_ = first_interval;
  timeline_ = {static_cast<double>(interval_.count()), {}};
}

MemoryTimeline::Clock::time_point MemoryTimeline::due() const {
  return start_ + interval_ * timeline_.rss_kib.size();
}

milliseconds MemoryTimeline::until_due() const {
  if (program_ == 0) return milliseconds::max();
  return std::max(milliseconds(0), std::chrono::ceil<milliseconds>(due() - Clock::now()));
}

void MemoryTimeline::read_if_due() {
  if (program_ == 0 || Clock::now() < due()) return;
  const double kib = rss_kib_of_tree(program_, 0);
  if (kib == 0) {  // it has ended, or may not be looked at
    program_ = 0;
    return;
  }
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
