// A scenario of one case that several threads go through side by side, each of which builds what it needs before the
// clock starts. Open it to change how the work is divided among them, or what falls into the time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "phases.hpp"
#include "report.hpp"
#include "workers.hpp"

namespace scenario {

/// Starts once the last of the threads is ready, and stops once the last has finished: the time in between is that of
/// all operations together, waiting for the slowest included.
class SharedClock {
 public:
  explicit SharedClock(std::uint64_t threads) : phases_(threads) {}

  /// Both wait until every thread has called.
  void start() { phases_.end(built); }
  void stop() { phases_.end(measured); }

  /// Requires: all threads have stopped.
  double nanoseconds() const { return phases_.nanoseconds(measured); }

 private:
  enum Kind : std::size_t { built, measured };
  PhaseClock phases_;
};

/// What one of the threads is to do.
struct Share {
  std::uint64_t index;
  std::uint64_t ops;
  std::uint64_t seed;  // thread 0 has that of a scenario that runs on one
};

/// Runs `work(share, clock)` on each thread, and records the time between its calls of start and stop. What it returns
/// is non-zero where a block did not hold what was written to it. Operations are divided in whole batches.
template <class Work>
void measure_workers(Report& report, const char* name, const Arguments& arguments, Work&& work,
                     std::uint64_t batch = 1) {
  SharedClock clock(arguments.threads);
  Damage damage;
  run_workers(arguments.threads, [&](std::uint64_t index) {
    const std::uint64_t batches = share_of(arguments.ops / batch, arguments.threads, index);
    damage.note(work(Share{index, batches * batch, seed_of(arguments, index)}, clock));
  });
  report.add(name, arguments.ops / batch * batch, clock.nanoseconds());
  report.require(damage.none());
}

}  // namespace scenario
