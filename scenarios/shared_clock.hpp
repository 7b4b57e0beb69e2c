// One stopwatch for several threads, each of which builds what it needs before it starts. Open it to change how a
// scenario with --threads keeps its preparations out of the time.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "report.hpp"
#include "workers.hpp"

namespace scenario {

/// Starts once the last of the threads is ready, and stops once the last has finished: the time in between is that of
/// all operations together, waiting for the slowest included. It takes nothing from the heap.
class SharedClock {
 public:
  explicit SharedClock(std::uint64_t threads) : threads_(threads) {}

  /// Both wait until every thread has called.
  void start() {
    meet([this] { watch_.start(); });
  }
  void stop() {
    meet([this] { watch_.stop(); });
  }

  /// Requires: no thread is between start and stop.
  double nanoseconds() const { return watch_.nanoseconds(); }

 private:
  /// The last thread to arrive turns the clock, and only then the others go on.
  template <class Turn>
  void meet(Turn&& turn) {
    std::unique_lock lock(mutex_);
    if (++arrived_ == threads_) {
      arrived_ = 0;
      ++meetings_;
      turn();
      met_.notify_all();
      return;
    }
    met_.wait(lock, [this, seen = meetings_] { return meetings_ != seen; });
  }

  const std::uint64_t threads_;
  std::mutex mutex_;
  std::condition_variable met_;
  std::uint64_t arrived_ = 0;
  std::uint64_t meetings_ = 0;
  Stopwatch watch_;
};

/// What one of the threads is to do.
struct Share {
  std::uint64_t index;
  std::uint64_t ops;
  std::uint64_t seed;  // the first of some of its own
};

/// The first thread has the workload of a scenario that runs on one, and no other has the same.
inline Share share_of(const Arguments& arguments, std::uint64_t batch, std::uint64_t index) {
  constexpr std::uint64_t seeds_of_each = 64;
  return {index, share_of(arguments.ops / batch, arguments.threads, index) * batch,
          arguments.seed + index * seeds_of_each};
}

/// Runs `work(share, clock)` on each thread, and records the time between its calls of start and stop. What it returns
/// is non-zero where a block did not hold what was written to it. Operations are divided in whole batches.
template <class Work>
void measure_workers(Report& report, const char* name, const Arguments& arguments, Work&& work,
                     std::uint64_t batch = 1) {
  SharedClock clock(arguments.threads);
  Damage damage;
  run_workers(arguments.threads,
              [&](std::uint64_t index) { damage.note(work(share_of(arguments, batch, index), clock)); });
  report.add(name, arguments.ops / batch * batch, clock.nanoseconds());
  report.require(damage.none());
}

}  // namespace scenario
