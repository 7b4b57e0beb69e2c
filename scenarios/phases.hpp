// Phases of work that several workers go through side by side, each with data of its own. Open it to change how a
// scenario with threads and more than one case is divided into rounds and timed.
#pragma once

#include <atomic>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "report.hpp"
#include "workers.hpp"

namespace scenario {

/// Times what the workers do between two meetings of all of them. A phase lasts until the last worker has ended it, so
/// a case's time is that of the wall, whatever the number of threads.
class PhaseClock {
 public:
  static constexpr std::size_t most_kinds = 8;

  explicit PhaseClock(std::uint64_t workers) : meeting_(static_cast<std::ptrdiff_t>(workers), Turn{this}) {}
  PhaseClock(const PhaseClock&) = delete;
  PhaseClock& operator=(const PhaseClock&) = delete;

  /// Ends a phase: waits for all workers to call this with the same kind, and adds the time since they last met to it.
  /// What precedes the first meeting counts for no kind.
  void end(std::size_t kind) {
    kind_.store(kind, std::memory_order_relaxed);  // the meeting orders it before the turn reads it
    meeting_.arrive_and_wait();
  }

  /// Call it when all workers have ended.
  double nanoseconds(std::size_t kind) const {
    return std::chrono::duration<double, std::nano>(elapsed_[kind]).count();
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// Called by one of the workers when all have come and none has gone on.
  struct Turn {
    void operator()() noexcept { clock->turn(); }
    PhaseClock* clock;
  };

  void turn() noexcept {
    const Clock::time_point now = Clock::now();
    if (has_met_) elapsed_[kind_.load(std::memory_order_relaxed)] += now - met_;
    has_met_ = true;
    met_ = now;
  }

  Clock::duration elapsed_[most_kinds] = {};
  Clock::time_point met_{};
  bool has_met_ = false;
  std::atomic<std::size_t> kind_{0};
  std::barrier<Turn> meeting_;
};

/// One worker's part of the operations, in rounds that all workers go through together.
class Rounds {
 public:
  /// No round has more than `most` operations, those of all workers taken together, but for what division leaves.
  Rounds(const Arguments& arguments, std::uint64_t worker, std::uint64_t most)
      : operations_(share_of(arguments.ops, arguments.threads, worker)), count_((arguments.ops + most - 1) / most) {}

  std::uint64_t count() const { return count_; }
  std::uint64_t operations(std::uint64_t round) const { return share_of(operations_, count_, round); }

 private:
  std::uint64_t operations_, count_;
};

/// Calls `work(worker)` on each worker. Returns whether all of them said that what came out is right.
template <class Work>
bool are_all_right(std::uint64_t workers, Work&& work) {
  Damage damage;
  run_workers(workers, [&](std::uint64_t worker) { damage.note(work(worker) ? 0 : 1); });
  return damage.none();
}

/// The seed of one worker's own random numbers: no two workers of any two seeds have the same.
inline std::uint64_t seed_of(const Arguments& arguments, std::uint64_t worker) {
  static_assert(most_ops <= UINT32_MAX, "seeds are no larger either");
  return arguments.seed | worker << 32;
}

}  // namespace scenario
