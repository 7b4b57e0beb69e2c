// Threads that each take 8 MiB in blocks of mixed sizes, free all of it in random order, and sleep: workers after a
// burst of load. Open it for what the caches of threads hold that make no call any more.
#include <algorithm>
#include <atomic>
#include <utility>

#include "common.hpp"
#include "filled.hpp"
#include "phases.hpp"

namespace {

using scenario::Filled;

enum Kind : std::size_t { fill, free_all, kinds };
constexpr std::size_t not_measured = kinds;
constexpr std::uint32_t least_size = 16;
constexpr std::uint32_t most_size = 4096;
constexpr std::uint64_t least_mean_size = 512;  // far below the truth, 1,160

/// Half of the blocks have at most 512 bytes.
std::uint32_t block_size(scenario::Random& random) {
  return random.between(least_size, random.below(2) == 0 ? 512 : most_size);
}

/// The blocks of one thread.
class Heap {
 public:
  Heap(std::uint64_t bytes, std::uint64_t seed)
      : most_bytes_(bytes), blocks_(bytes / least_mean_size + 1), sizes_(4096, seed, block_size), random_(seed + 1) {}

  /// Returns: how many blocks were allocated.
  std::uint64_t fill() {
    for (std::uint64_t bytes = 0; bytes < most_bytes_ && count_ < blocks_.length(); ++count_) {
      blocks_[count_] = scenario::allocate_filled(sizes_[count_], count_);
      bytes += sizes_[count_];
    }
    return count_;
  }

  /// Puts the blocks in random order. Returns: non-zero bits when one was damaged.
  std::uint64_t check_and_shuffle() {
    std::uint64_t damage = 0;
    for (std::uint64_t i = 0; i < count_; ++i)
      damage |= blocks_[i].damage();
    for (std::uint64_t i = count_; i > 1; --i)
      std::swap(blocks_[i - 1], blocks_[random_.below(static_cast<std::uint32_t>(i))]);
    return damage;
  }

  void free_all() {
    while (count_ > 0)
      std::free(blocks_[--count_].block);
  }

 private:
  const std::uint64_t most_bytes_;
  std::uint64_t count_ = 0;
  scenario::Table<Filled> blocks_;
  scenario::SizeCycle sizes_;
  scenario::Random random_;
};

/// Fills and empties a heap. Returns: how many blocks it had.
std::uint64_t work(scenario::PhaseClock& clock, scenario::Damage& damage, std::uint64_t bytes, std::uint64_t seed) {
  Heap heap(bytes, seed);
  clock.end(not_measured);
  const std::uint64_t blocks = heap.fill();
  clock.end(fill);
  damage.note(heap.check_and_shuffle());
  clock.end(not_measured);
  heap.free_all();
  clock.end(free_all);
  return blocks;
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments =
      scenario::parse_arguments(argc, argv, {.unit = "MiB alive when all heaps are full", .ops = 512, .threads = 64});
  scenario::Report report("idle_threads");
  const long before_kib = scenario::kib_in_status("VmRSS:");
  scenario::PhaseClock clock(arguments.threads);
  scenario::Damage damage;
  std::atomic<std::uint64_t> blocks{0};  // the meetings of the threads order it
  int status = 1;
  scenario::run_workers(arguments.threads, [&](std::uint64_t index) {
    const std::uint64_t bytes = scenario::share_of(arguments.ops << 20, arguments.threads, index);
    blocks.fetch_add(work(clock, damage, bytes, scenario::seed_of(arguments, index)), std::memory_order_relaxed);
    clock.end(not_measured);
    // The others sleep at their next meeting, while this one rests and reports.
    if (index == 0) {
      report.add("idle_threads_fill", blocks.load(), clock.nanoseconds(fill));
      report.add("idle_threads_free", blocks.load(), clock.nanoseconds(free_all));
      report.require(damage.none());
      status = report.finish(arguments, [&](long kib) {
        const auto threads = static_cast<double>(arguments.threads);
        report.note("kib_per_thread_at_rest", static_cast<double>(kib - before_kib) / threads);
      });
    }
    clock.end(not_measured);
  });
  return status;
}
