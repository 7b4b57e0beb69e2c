// One thread on one side and several on the other, with a bounded queue between it and each of them: `--shape out` is a
// dispatcher with its workers, `--shape in` are sources with one that collects. Messages are written whole by the one
// who allocates them, checked and freed by the one who takes them. Open it for blocks that all flow in one direction.
#include "common.hpp"
#include "filled.hpp"
#include "ring.hpp"
#include "shared_clock.hpp"

namespace {

using Queue = scenario::Ring<1024>;

/// One for each of the threads on the side of the many.
Queue queues[scenario::most_threads];

std::uint32_t message_size(scenario::Random& random) {
  const std::uint32_t kind = random.below(100);
  if (kind < 60) return random.between(32, 256);
  if (kind < 90) return random.between(257, 1024);
  if (kind < 99) return random.between(1025, 4096);
  return random.between(4097, 16'384);
}

/// Every so many of all messages. Message `number` goes through queue `number % many`.
struct Messages {
  std::uint64_t first, step, end;
  std::uint64_t many;
  const scenario::SizeCycle& sizes;
};

void send(const Messages& messages) {
  for (std::uint64_t number = messages.first; number < messages.end; number += messages.step)
    queues[number % messages.many].push(scenario::allocate_filled(messages.sizes[number], number).block);
  for (std::uint64_t i = messages.first; i < messages.many; i += messages.step)
    queues[i].close();
}

/// Returns: non-zero bits when a message does not hold what was sent.
std::uint64_t receive(const Messages& messages) {
  std::uint64_t damage = 0;
  for (std::uint64_t number = messages.first; number < messages.end; number += messages.step) {
    void* const block = queues[number % messages.many].pop();
    damage |= scenario::release({block, messages.sizes[number], static_cast<std::uint32_t>(number)});
  }
  return damage;
}

}  // namespace

int main(int argc, char** argv) {
  scenario::Choice shape("--shape", "out|in");
  const auto arguments = scenario::parse_arguments(
      argc, argv, {.unit = "messages passed", .ops = 3'000'000, .choices = {&shape}, .threads = 4, .least_threads = 2});
  const bool is_out = shape.chosen() == "out";
  const char* const name = is_out ? "fan_out" : "fan_in";
  const scenario::SizeCycle sizes(65536, arguments.seed, message_size);
  const std::uint64_t many = arguments.threads - 1;
  const Messages all{0, 1, arguments.ops, many, sizes};
  scenario::Report report(name);
  scenario::measure_workers(report, name, arguments, [&](const scenario::Share& share, scenario::SharedClock& clock) {
    const bool is_one = share.index == many;
    const Messages messages = is_one ? all : Messages{share.index, many, arguments.ops, many, sizes};
    std::uint64_t damage = 0;
    clock.start();
    if (is_one == is_out)
      send(messages);
    else
      damage = receive(messages);
    clock.stop();
    return damage;
  });
  return report.finish(arguments);
}
