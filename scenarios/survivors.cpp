// Units of work with a thousand objects each, of which one survives to the end of the program. Open it for the memory
// that survivors pin: the peak of this scenario is what matters, not its time.
#include "common.hpp"
#include "memory.hpp"

namespace {

constexpr std::uint32_t unit_objects = 1'000;
constexpr std::uint32_t batch = 100;

struct Survivor {
  void* block;
  std::uint64_t tag;
};

/// Zero if the first word and the last byte of a block hold its tag.
std::uint64_t difference(const void* block, std::uint32_t size, std::uint64_t tag) {
  const unsigned char last = static_cast<const unsigned char*>(block)[size - 1];
  const unsigned expected = size > sizeof tag ? static_cast<unsigned char>(tag) : last;
  return (scenario::tag_of(block) ^ tag) | (last ^ expected);
}

template <class Memory>
void run(Memory& memory, const scenario::Arguments& arguments, scenario::Report& report) {
  const std::uint64_t units = arguments.ops / unit_objects;
  const scenario::SizeCycle sizes(16384, arguments.seed, scenario::small_size);
  scenario::Table<Survivor> survivors(units);
  scenario::Table<void*> blocks(batch);
  scenario::Random random(arguments.seed + 1);
  std::uint64_t damage = 0;

  report.measure("survivors", units * unit_objects, [&] {
    std::uint64_t tag = 0;
    for (std::uint64_t number = 0; number < units; ++number) {
      const typename Memory::Unit unit(memory);
      const std::uint32_t survivor = random.below(unit_objects);
      for (std::uint32_t begun = 0; begun < unit_objects; begun += batch) {
        for (std::uint32_t i = 0; i < batch; ++i, ++tag) {
          const bool lasting = begun + i == survivor;
          blocks[i] = lasting ? memory.allocate_lasting(sizes[tag]) : memory.allocate(sizes[tag]);
          scenario::fill_bytes(blocks[i], static_cast<unsigned char>(tag), sizes[tag]);
          std::memcpy(blocks[i], &tag, sizeof tag);
          scenario::escape(blocks[i]);
          if (lasting) survivors[number] = {blocks[i], tag};
        }
        // In reverse order and in that of their allocation by turns.
        const bool reverse = (begun / batch) % 2 == 0;
        for (std::uint32_t i = 0; i < batch; ++i) {
          const std::uint32_t place = reverse ? batch - 1 - i : i;
          damage |= difference(blocks[place], sizes[tag - batch + place], tag - batch + place);
          if (begun + place != survivor) memory.release(blocks[place]);
        }
      }
    }
  });

  for (std::uint64_t number = 0; number < units; ++number) {
    const Survivor& survivor = survivors[number];
    damage |= scenario::tag_of(survivor.block) ^ survivor.tag;
    const auto* const bytes = static_cast<const unsigned char*>(survivor.block);
    for (std::uint32_t i = sizeof survivor.tag; i < sizes[survivor.tag]; ++i)
      damage |= bytes[i] ^ static_cast<unsigned char>(survivor.tag);
    memory.release_lasting(survivor.block);
  }
  report.require(damage == 0);
}

}  // namespace

int main(int argc, char** argv) {
  scenario::Choice memory("--memory", "plain|scope|frame");
  const auto arguments = scenario::parse_arguments(argc, argv, "objects", 1'000'000, unit_objects, {&memory});
  scenario::Report report("survivors");
  scenario::with_memory<scenario::PlainMemory, scenario::ScopeMemory, scenario::FrameMemory>(
      memory, report, [&](auto& kind) { run(kind, arguments, report); });
  return report.finish(arguments);
}
