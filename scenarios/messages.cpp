// Threads that each write messages of 128 bytes to 128 KiB and take those of others, which they check and free: the
// workers and connections of a server, where whoever is free takes the next message. Open it for what blocks above 8
// KiB take in the caches of many threads: look at the peak of memory.
#include <atomic>

#include "common.hpp"
#include "filled.hpp"
#include "shared_clock.hpp"

namespace {

constexpr std::uint32_t most_in_flight = 128;  // messages
constexpr std::uint32_t fields = 4;            // small blocks of a message, of which its writer needs one at a time

/// The messages on their way, null where there is none. A message's first word is its number, which says its size.
std::atomic<void*> in_flight[most_in_flight];

std::uint32_t message_size(scenario::Random& random) {
  return random.by_doubling(7, 17);
}
std::uint32_t place_number(scenario::Random& random) {
  return random.below(most_in_flight);
}

/// What all threads have in common.
struct Plan {
  explicit Plan(std::uint64_t seed)
      : sizes(65536, seed, message_size),
        places(65536, seed + 1, place_number),
        fields(65536, seed + 2, scenario::small_size) {}

  scenario::SizeCycle sizes;
  scenario::SizeCycle places;
  scenario::SizeCycle fields;
};

/// Returns: non-zero bits when the message does not hold what was sent.
std::uint64_t receive(const Plan& plan, void* message) {
  if (message == nullptr) return 0;
  const std::uint64_t number = scenario::tag_of(message);
  return scenario::release({message, plan.sizes[number], static_cast<std::uint32_t>(number)});
}

/// Sends message `number`. Returns: the message whose place it takes.
void* send(const Plan& plan, std::uint64_t number) {
  void* const message = scenario::allocate_filled(plan.sizes[number], number).block;
  return in_flight[plan.places[number]].exchange(message, std::memory_order_acq_rel);
}

/// Returns: non-zero bits when a field was damaged.
std::uint64_t build_fields(const Plan& plan, std::uint64_t number) {
  std::uint64_t damage = 0;
  for (std::uint64_t i = fields * number; i < fields * (number + 1); ++i)
    damage |= scenario::release(scenario::allocate_filled(plan.fields[i], i));
  return damage;
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments =
      scenario::parse_arguments(argc, argv, {.unit = "messages passed", .ops = 400'000, .threads = 16});
  const Plan plan(arguments.seed);
  const auto pass_messages = [&](const scenario::Share& share, scenario::SharedClock& clock) {
    std::uint64_t damage = 0;
    clock.start();
    for (std::uint64_t i = 0; i < share.ops; ++i) {
      const std::uint64_t number = i * arguments.threads + share.index;
      damage |= build_fields(plan, number);
      damage |= receive(plan, send(plan, number));
    }
    clock.stop();
    return damage;
  };
  scenario::Report report("messages");
  scenario::measure_workers(report, "messages", arguments, pass_messages);
  std::uint64_t damage = 0;
  for (std::atomic<void*>& message : in_flight)
    damage |= receive(plan, message.exchange(nullptr, std::memory_order_relaxed));
  report.require(damage == 0);
  return report.finish(arguments);
}
