// Threads that replace random blocks of an array, and hand it over when they end: the next one frees what others
// allocated, among them threads that are gone. Open it for what becomes of blocks and memory of ended threads, as in a
// server whose connections move from one worker to another.
#include <algorithm>
#include <thread>

#include "common.hpp"
#include "filled.hpp"
#include "shared_clock.hpp"

namespace {

using scenario::Filled;

constexpr std::uint32_t live_blocks = 4096;
constexpr std::uint64_t replaced_in_a_life = 10'000;  // 37 % of these blocks are another thread's

std::uint32_t block_number(scenario::Random& random) {
  return random.below(live_blocks);
}

struct Plan {
  explicit Plan(std::uint64_t seed)
      : sizes(65536, seed, scenario::small_size), numbers(262'144, seed + 1, block_number) {}

  scenario::SizeCycle sizes;
  scenario::SizeCycle numbers;
};

/// What one thread does from its beginning to its end.
std::uint64_t replace(scenario::Table<Filled>& blocks, const Plan& plan, std::uint64_t first, std::uint64_t end) {
  std::uint64_t damage = 0;
  for (std::uint64_t i = first; i < end; ++i) {
    Filled& filled = blocks[plan.numbers[i]];
    damage |= scenario::release(filled);
    filled = scenario::allocate_filled(plan.sizes[i], i);
  }
  return damage;
}

/// One array, and the threads through whose hands it goes.
std::uint64_t hand_over(const scenario::Share& share, scenario::SharedClock& clock) {
  const Plan plan(share.seed);
  scenario::Table<Filled> blocks(live_blocks);
  for (std::uint32_t i = 0; i < live_blocks; ++i)
    blocks[i] = scenario::allocate_filled(plan.sizes[i], i);

  scenario::Damage damage;
  clock.start();
  for (std::uint64_t first = 0; first < share.ops; first += replaced_in_a_life) {
    const std::uint64_t end = std::min(first + replaced_in_a_life, share.ops);
    std::thread([&] { damage.note(replace(blocks, plan, first, end)); }).join();
  }
  clock.stop();

  for (std::uint32_t i = 0; i < live_blocks; ++i)
    damage.note(scenario::release(blocks[i]));
  return damage.none() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments =
      scenario::parse_arguments(argc, argv, {.unit = "blocks replaced", .ops = 16'000'000, .threads = 4});
  scenario::Report report("bleeding");
  scenario::measure_workers(report, "bleeding", arguments, hand_over);
  return report.finish(arguments);
}
