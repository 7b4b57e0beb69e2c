// Many short threads, one after another and then several at a time (`--threads`), each allocating and freeing a few
// small blocks before it exits: a server with a thread per request. Open it for what a thread's first block and its
// exit cost.
#include <algorithm>
#include <thread>

#include "common.hpp"
#include "workers.hpp"

namespace {

constexpr std::size_t max_blocks = 200;

/// The life of one thread: its blocks live together, and are freed in the order of their allocation. Returns
/// non-zero bits when a block lost its tag.
std::uint64_t live(const scenario::SizeCycle& sizes, std::size_t blocks, std::uint64_t first) {
  void* held[max_blocks];
  std::uint64_t damage = 0;
  for (std::size_t i = 0; i < blocks; ++i)
    held[i] = scenario::allocate_tagged(sizes[first + i], first + i);
  for (std::size_t i = 0; i < blocks; ++i) {
    damage |= scenario::tag_of(held[i]) ^ (first + i);
    std::free(held[i]);
  }
  return damage;
}

std::uint32_t blocks_of_thread(scenario::Random& random) {
  return random.between(20, max_blocks);
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments =
      scenario::parse_arguments(argc, argv, {.unit = "threads in each of the two cases", .ops = 12'000, .threads = 4});
  const scenario::SizeCycle sizes(4096, arguments.seed, scenario::small_size);
  const scenario::SizeCycle counts(1024, arguments.seed + 1, blocks_of_thread);
  scenario::Report report("thread_churn");

  scenario::Damage damage;
  const auto start = [&](std::uint64_t number) {
    return std::thread([&, number] { damage.note(live(sizes, counts[number], number * max_blocks)); });
  };

  report.measure("thread_churn_one", arguments.ops, [&] {
    for (std::uint64_t i = 0; i < arguments.ops; ++i)
      start(i).join();
  });
  report.measure("thread_churn_together", arguments.ops, [&] {
    std::thread threads[scenario::most_threads];
    for (std::uint64_t first = 0; first < arguments.ops; first += arguments.threads) {
      const std::uint64_t together = std::min(arguments.threads, arguments.ops - first);
      for (std::uint64_t i = 0; i < together; ++i)
        threads[i] = start(first + i);
      for (std::uint64_t i = 0; i < together; ++i)
        threads[i].join();
    }
  });
  report.require(damage.none());
  return report.finish(arguments);
}
