// Vectors that double as they are filled, four side by side, wholly inside one scope. Open it for what a scope costs
// where each block is copied into one of twice its size before it is freed.
#include <vector>

#include "common.hpp"
#include "memory.hpp"

namespace {

constexpr std::uint32_t side_by_side = 4;

/// Up to 32 KiB in a vector: the last doubling goes beyond what a scope places.
std::uint32_t vector_length(scenario::Random& random) {
  return random.by_doubling(4, 12);
}

template <class Memory>
void run(Memory& memory, const scenario::Arguments& arguments, scenario::Report& report) {
  const scenario::SizeCycle lengths(4096, arguments.seed, vector_length);
  std::uint64_t damage = 0;
  const std::uint64_t vectors_filled = arguments.ops - arguments.ops % side_by_side;
  report.measure("misuse_doubling", vectors_filled, [&] {
    const typename Memory::Unit unit(memory);
    for (std::uint64_t done = 0; done < vectors_filled; done += side_by_side) {
      std::vector<std::uint64_t> vectors[side_by_side];
      const std::uint32_t length = lengths[done / side_by_side];
      for (std::uint64_t i = 0; i < length; ++i) {
        for (std::uint64_t v = 0; v < side_by_side; ++v)
          vectors[v].push_back((i << 8) + v);
      }
      for (std::uint64_t v = 0; v < side_by_side; ++v) {
        scenario::escape(vectors[v].data());
        for (std::uint64_t i = 0; i < length; ++i)
          damage |= vectors[v][i] ^ ((i << 8) + v);
      }
    }
  });
  report.require(damage == 0);
}

}  // namespace

int main(int argc, char** argv) {
  scenario::Choice memory("--memory", "plain|scope");
  const auto arguments = scenario::parse_arguments(argc, argv, "vectors filled", 200'000, side_by_side, {&memory});
  scenario::Report report("misuse_doubling");
  scenario::with_memory<scenario::PlainMemory, scenario::ScopeMemory>(
      memory, report, [&](auto& kind) { run(kind, arguments, report); });
  return report.finish(arguments);
}
