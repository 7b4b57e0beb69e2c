// One thread only allocates, another only frees, and a bounded queue lies between them: a reader feeding a
// worker. Open it for the cost of a block that dies on another thread than the one it was born on.
#include <sched.h>

#include <atomic>
#include <thread>

#include "common.hpp"

namespace {

/// A ring with one writer and one reader. Both publish their progress once per batch, so that the queue
/// itself moves one cache line between the cores per batch rather than per block.
class Ring {
 public:
  void push(void* block) {
    if (written_ - read_seen_ == capacity) wait_for([&] { return refresh(read_seen_, read_) != written_ - capacity; });
    slots_[written_ % capacity] = block;
    if (++written_ % batch == 0) written_published_.store(written_, std::memory_order_release);
  }

  void close() { written_published_.store(written_, std::memory_order_release); }

  void* pop() {
    if (taken_ == written_seen_) wait_for([&] { return refresh(written_seen_, written_published_) != taken_; });
    void* const block = slots_[taken_ % capacity];
    if (++taken_ % batch == 0) read_.store(taken_, std::memory_order_release);
    return block;
  }

 private:
  static constexpr std::uint64_t capacity = 8192;
  static constexpr std::uint64_t batch = 64;

  static std::uint64_t refresh(std::uint64_t& seen, const std::atomic<std::uint64_t>& published) {
    return seen = published.load(std::memory_order_acquire);
  }

  /// Polls, and yields between polls once the other side is clearly not running.
  template <class Condition>
  static void wait_for(Condition&& holds) {
    for (int polls = 0; !holds(); ++polls) {
      if (polls > 200) sched_yield();
    }
  }

  alignas(64) std::uint64_t written_ = 0;
  std::uint64_t read_seen_ = 0;
  alignas(64) std::uint64_t taken_ = 0;
  std::uint64_t written_seen_ = 0;
  alignas(64) std::atomic<std::uint64_t> written_published_{0};
  alignas(64) std::atomic<std::uint64_t> read_{0};
  alignas(64) void* slots_[capacity] = {};
};

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = scenario::parse_arguments(argc, argv, "blocks passed from thread to thread", 4'000'000);
  const scenario::SizeCycle sizes(4096, arguments.seed, scenario::small_size);
  Ring ring;
  scenario::Report report("producer_consumer");

  std::uint64_t damage = 0;
  report.measure("producer_consumer", arguments.ops, [&] {
    std::thread consumer([&] {
      for (std::uint64_t i = 0; i < arguments.ops; ++i) {
        void* const block = ring.pop();
        damage |= scenario::tag_of(block) ^ i;
        std::free(block);
      }
    });
    std::thread producer([&] {
      for (std::uint64_t i = 0; i < arguments.ops; ++i)
        ring.push(scenario::allocate_tagged(sizes[i], i));
      ring.close();
    });
    producer.join();
    consumer.join();
  });
  report.require(damage == 0);
  return report.finish(arguments);
}
