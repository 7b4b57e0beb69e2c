// A heap that is filled with blocks of one band of sizes, loses nine in ten of them at random, and is filled again with
// blocks of other sizes, larger and then smaller ones, several times over. Open it for how much memory an allocator
// holds that nobody uses, once the blocks that pin it are spread over everything.
//
// The figures are what is resident at the end of each phase, the tables here excluded, divided by what is alive then.
// At rest (--quiesce) a tenth of the last filling is alive, and what is left of those before.
#include <atomic>
#include <deque>
#include <utility>

#include "common.hpp"
#include "filled.hpp"
#include "phases.hpp"

namespace {

using scenario::Filled;

enum Kind : std::size_t { fill_first, fill_larger, fill_smaller, free_most, kinds };
constexpr const char* case_names[kinds] = {"fragmentation_fill_first", "fragmentation_fill_larger",
                                           "fragmentation_fill_smaller", "fragmentation_free"};

struct Filling {
  Kind kind;
  std::uint32_t least, most;  // of the sizes
  const char* full;           // the figures at its end, and after most of it was freed
  const char* sparse;
};
constexpr Filling fillings[] = {{fill_first, 64, 192, "resident_full_1", "resident_sparse_1"},
                                {fill_larger, 512, 2048, "resident_full_2", "resident_sparse_2"},
                                {fill_smaller, 40, 96, "resident_full_3", "resident_sparse_3"},
                                {fill_larger, 2048, 8192, "resident_full_4", "resident_sparse_4"},
                                {fill_smaller, 96, 320, "resident_full_5", "resident_sparse_5"}};
constexpr std::uint64_t least_mean_size = 60;  // of what is alive when a heap is full; somewhat below the truth
constexpr std::size_t numbers = 65'536;

/// The blocks of one thread, in cache lines of its own.
class alignas(64) Heap {
 public:
  Heap(std::uint64_t bytes, std::uint64_t seed)
      : most_bytes_(bytes), blocks_(bytes / least_mean_size + 1), numbers_(numbers), random_(seed) {
    for (std::size_t i = 0; i < numbers; ++i)
      numbers_[i] = static_cast<std::uint32_t>(random_.next());
  }

  std::uint64_t bytes() const { return bytes_; }

  /// Returns: how many blocks were allocated.
  std::uint64_t fill(const Filling& filling) {
    const std::uint64_t before = count_;
    const std::uint64_t range = filling.most - filling.least + 1;
    while (bytes_ < most_bytes_ && count_ < blocks_.length()) {
      const auto size = filling.least + static_cast<std::uint32_t>((numbers_[count_ % numbers] * range) >> 32);
      blocks_[count_] = scenario::allocate_filled(size, count_);
      bytes_ += size;
      ++count_;
    }
    return count_ - before;
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

  /// Returns: how many blocks were freed, the last nine in ten.
  std::uint64_t free_most() {
    const std::uint64_t kept = count_ / 10;
    const std::uint64_t freed = count_ - kept;
    for (; count_ > kept; --count_) {
      std::free(blocks_[count_ - 1].block);
      bytes_ -= blocks_[count_ - 1].size;
    }
    return freed;
  }

  void free_all() {
    while (count_ > 0)
      std::free(blocks_[--count_].block);
  }

 private:
  const std::uint64_t most_bytes_;
  std::uint64_t bytes_ = 0;
  std::uint64_t count_ = 0;
  scenario::Table<Filled> blocks_;
  scenario::Table<std::uint32_t> numbers_;
  scenario::Random random_;
};

/// What all threads go through together.
class Course {
 public:
  Course(scenario::Report& report, std::uint64_t threads) : report_(report), clock_(threads) {}

  /// Calls `work`, which returns how many blocks it allocated or freed, and has thread 0 record what is resident
  /// then. No thread goes on to the next phase before that.
  template <class Work>
  void phase(Kind kind, Heap& heap, bool is_first_thread, const char* figure, Work&& work) {
    const std::uint64_t bytes = heap.bytes();
    clock_.end(not_measured);
    ops_[kind].fetch_add(work(), std::memory_order_relaxed);
    live_bytes_.fetch_add(heap.bytes() - bytes, std::memory_order_relaxed);  // modulo 2^64 where it becomes less
    clock_.end(kind);
    if (is_first_thread) note_resident(figure);
  }

  /// Requires: all threads have ended.
  void report_times() {
    for (std::size_t kind = 0; kind < kinds; ++kind)
      report_.add(case_names[kind], ops_[kind].load(), clock_.nanoseconds(kind));
  }

 private:
  static constexpr std::size_t not_measured = kinds;

  void note_resident(const char* figure) {
    const long kib = scenario::kib_in_status("VmRSS:") - resident_before_kib_;
    report_.note(figure, static_cast<double>(kib) * 1024 / static_cast<double>(live_bytes_.load()));
  }

  scenario::Report& report_;
  const long resident_before_kib_ = scenario::kib_in_status("VmRSS:");
  std::atomic<std::uint64_t> live_bytes_{0};  // the meetings of the threads order these
  std::atomic<std::uint64_t> ops_[kinds] = {};
  scenario::PhaseClock clock_;
};

}  // namespace

int main(int argc, char** argv) {
  const auto arguments =
      scenario::parse_arguments(argc, argv, {.unit = "MiB alive when the heap is full", .ops = 80, .threads = 1});
  std::deque<Heap> heaps;
  for (std::uint64_t index = 0; index < arguments.threads; ++index) {
    const std::uint64_t bytes = scenario::share_of(arguments.ops << 20, arguments.threads, index);
    heaps.emplace_back(bytes, scenario::seed_of(arguments, index));
  }
  scenario::Report report("fragmentation");
  Course course(report, arguments.threads);
  const bool is_intact = scenario::are_all_right(arguments.threads, [&](std::uint64_t index) {
    Heap& heap = heaps[index];
    std::uint64_t damage = 0;
    for (const Filling& filling : fillings) {
      course.phase(filling.kind, heap, index == 0, filling.full, [&] { return heap.fill(filling); });
      damage |= heap.check_and_shuffle();
      course.phase(free_most, heap, index == 0, filling.sparse, [&] { return heap.free_most(); });
    }
    return damage == 0;
  });
  course.report_times();
  report.require(is_intact);
  const int status = report.finish(arguments);
  for (Heap& heap : heaps)
    heap.free_all();
  return status;
}
