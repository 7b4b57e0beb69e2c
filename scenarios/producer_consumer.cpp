// One thread only allocates, another only frees, and a bounded queue lies between them: a reader feeding a
// worker. Open it for the cost of a block that dies on another thread than the one it was born on.
#include <thread>

#include "common.hpp"
#include "ring.hpp"

int main(int argc, char** argv) {
  const auto arguments = scenario::parse_arguments(argc, argv, "blocks passed from thread to thread", 4'000'000);
  const scenario::SizeCycle sizes(4096, arguments.seed, scenario::small_size);
  scenario::Ring<8192> ring;
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
