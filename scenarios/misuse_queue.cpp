// A queue of 10,000 blocks, the oldest replaced by a new one again and again, wholly inside one scope. Open it for what
// a scope costs a program that it is not made for: nothing here ends in the reverse order of its beginning.
#include "common.hpp"
#include "memory.hpp"

namespace {

constexpr std::uint64_t window = 10'000;

template <class Memory>
void run(Memory& memory, const scenario::Arguments& arguments, scenario::Report& report) {
  const scenario::SizeCycle sizes(65536, arguments.seed, scenario::small_size);
  scenario::Table<void*> blocks(window);
  std::uint64_t damage = 0;
  const auto end = [&](std::uint64_t number) {
    void* const block = blocks[number % window];
    damage |= scenario::tag_of(block) ^ number;
    memory.release(block);
  };
  report.measure("misuse_queue", arguments.ops, [&] {
    const typename Memory::Unit unit(memory);
    for (std::uint64_t i = 0; i < arguments.ops; ++i) {
      if (i >= window) end(i - window);
      void* const block = memory.allocate(sizes[i]);
      static_cast<unsigned char*>(block)[sizes[i] - 1] = static_cast<unsigned char>(i);
      std::memcpy(block, &i, sizeof i);
      scenario::escape(block);
      blocks[i % window] = block;
    }
    for (std::uint64_t i = arguments.ops > window ? arguments.ops - window : 0; i < arguments.ops; ++i)
      end(i);
  });
  report.require(damage == 0);
}

}  // namespace

int main(int argc, char** argv) {
  scenario::Choice memory("--memory", "plain|scope");
  const auto arguments = scenario::parse_arguments(argc, argv, "blocks queued", 30'000'000, 1, {&memory});
  scenario::Report report("misuse_queue");
  scenario::with_memory<scenario::PlainMemory, scenario::ScopeMemory>(
      memory, report, [&](auto& kind) { run(kind, arguments, report); });
  return report.finish(arguments);
}
