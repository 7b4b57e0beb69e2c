// A heap of 300,000 blocks of 512 bytes to 2 KiB, of which all but every 20th are freed in random order; then the
// program rests. Open it for memory between blocks that stay: whole pages are free, and no whole slab is.
//
// The blocks of one size are allocated one after the other. What stays has 14 MB and lies on 15,000 pages of 4 KiB,
// which are 4.4 times as much. With `--company asleep` the program has a second thread, which does nothing.
#include <atomic>
#include <thread>
#include <utility>

#include "common.hpp"
#include "filled.hpp"

namespace {

constexpr std::uint64_t one_stays_of = 20;

/// What each block is. Half of them have 512 bytes, a third 1 KiB, the rest 2 KiB.
class Blocks {
 public:
  explicit Blocks(std::uint64_t count) : count_(count), blocks_(count) {}

  void fill() {
    for (std::uint64_t i = 0; i < count_; ++i)
      blocks_[i] = scenario::allocate_filled(size(i), i).block;
  }

  std::uint64_t damage() const {
    std::uint64_t found = 0;
    for (std::uint64_t i = 0; i < count_; ++i)
      found |= filled(i).damage();
    return found;
  }

  std::uint64_t most() const { return count_ - staying(); }

  std::uint64_t live_bytes() const {
    std::uint64_t bytes = 0;
    for (std::uint64_t i = 0; i < count_; ++i)
      bytes += blocks_[i] != nullptr ? size(i) : 0;
    return bytes;
  }

  void release(std::uint64_t i) {
    std::free(blocks_[i]);
    blocks_[i] = nullptr;
  }

  void release_all() {
    for (std::uint64_t i = 0; i < count_; ++i)
      release(i);
  }

 private:
  std::uint64_t staying() const { return (count_ + one_stays_of - 1) / one_stays_of; }

  std::uint32_t size(std::uint64_t i) const {
    if (i < count_ / 2) return 512;
    return i < count_ / 2 + count_ / 3 ? 1024 : 2048;
  }

  scenario::Filled filled(std::uint64_t i) const { return {blocks_[i], size(i), static_cast<std::uint32_t>(i)}; }

  const std::uint64_t count_;
  scenario::Table<void*> blocks_;  // null once freed
};

/// The numbers of the blocks that do not stay, in random order.
class Order {
 public:
  Order(std::uint64_t blocks, std::uint64_t most, std::uint64_t seed) : numbers_(most) {
    std::uint64_t next = 0;
    for (std::uint32_t i = 0; i < blocks; ++i)
      if (i % one_stays_of != 0) numbers_[next++] = i;
    scenario::Random random(seed);
    for (std::uint64_t i = most; i > 1; --i)
      std::swap(numbers_[i - 1], numbers_[random.below(static_cast<std::uint32_t>(i))]);
  }

  std::uint32_t operator[](std::uint64_t position) const { return numbers_[position]; }

 private:
  scenario::Table<std::uint32_t> numbers_;
};

/// A thread that allocates a block, frees it, and sleeps until the end.
class Sleeper {
 public:
  Sleeper()
      : thread_([this] {
          scenario::release(scenario::allocate_filled(100, 0));
          is_over_.wait(false);
        }) {}
  ~Sleeper() {
    is_over_.store(true);
    is_over_.notify_one();
    thread_.join();
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

 private:
  std::atomic<bool> is_over_{false};
  std::thread thread_;
};

struct CaseNames {
  const char* fill;
  const char* free;
};

/// Returns: the program's exit status.
int run(const scenario::Arguments& arguments, const CaseNames& names) {
  scenario::Report report("holes");
  Blocks blocks(arguments.ops);
  const long before_kib = scenario::kib_in_status("VmRSS:");
  const auto resident = [&](long kib) {
    return static_cast<double>(kib - before_kib) * 1024 / static_cast<double>(blocks.live_bytes());
  };
  report.measure(names.fill, arguments.ops, [&] { blocks.fill(); });
  report.note("resident_full", resident(scenario::kib_in_status("VmRSS:")));
  report.require(blocks.damage() == 0);
  {
    const Order order(arguments.ops, blocks.most(), arguments.seed);
    report.measure(names.free, blocks.most(), [&] {
      for (std::uint64_t i = 0; i < blocks.most(); ++i)
        blocks.release(order[i]);
    });
  }
  report.note("resident_sparse", resident(scenario::kib_in_status("VmRSS:")));
  report.require(blocks.damage() == 0);
  const int status = report.finish(arguments, [&](long kib) {
    report.note("resident_at_rest", resident(kib));
    report.require(blocks.damage() == 0);
  });
  blocks.release_all();
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  scenario::Choice company("--company", "none|asleep");
  const auto arguments =
      scenario::parse_arguments(argc, argv, "blocks allocated", 300'000, 2 * one_stays_of, {&company});
  if (company.chosen() == "none") return run(arguments, {"holes_fill", "holes_free"});
  const Sleeper sleeper;
  return run(arguments, {"holes_with_thread_fill", "holes_with_thread_free"});
}
