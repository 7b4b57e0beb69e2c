// Threads that do the same work side by side. Open it to change how a scenario with --threads starts and is timed.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "report.hpp"

namespace scenario {

/// The share of `total` that falls to one of `threads`; the shares add up to the total.
inline std::uint64_t share_of(std::uint64_t total, std::uint64_t threads, std::uint64_t index) {
  return total / threads + (index < total % threads ? 1 : 0);
}

/// Calls `work(index)` on so many threads, which begin together; on this one, if it is one only. Whatever it needs is
/// best built beforehand, since all of it is timed.
template <class Work>
void run_workers(std::uint64_t threads, Work&& work) {
  if (threads == 1) return work(std::uint64_t{0});
  std::atomic<std::uint64_t> waiting{threads};
  std::vector<std::thread> workers;
  workers.reserve(threads);
  for (std::uint64_t index = 0; index < threads; ++index) {
    workers.emplace_back([&, index] {
      waiting.fetch_sub(1, std::memory_order_acq_rel);
      while (waiting.load(std::memory_order_acquire) != 0)
        std::this_thread::yield();
      work(index);
    });
  }
  for (std::thread& worker : workers)
    worker.join();
}

/// What several workers find out about their blocks: whether all held what was written to them.
class Damage {
 public:
  void note(std::uint64_t bits) {
    if (bits != 0) is_any_.store(true, std::memory_order_relaxed);
  }
  bool none() const { return !is_any_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> is_any_{false};  // read after the workers were joined
};

}  // namespace scenario
