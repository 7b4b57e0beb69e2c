// A server's requests: each builds 200…2,000 objects of mixed sizes, some of them linked, and drops them at its end.
// Open it for what frames and scopes gain where many objects end together.
#include "common.hpp"
#include "memory.hpp"

namespace {

/// A request is a number of groups of objects, three in each triple, of which the middle one is a temporary that ends
/// with the group.
constexpr std::uint32_t triples = 4;
constexpr std::uint32_t fewest_groups = 17;
constexpr std::uint32_t most_groups = 166;
constexpr std::uint32_t most_kept = most_groups * triples * 2;

/// One request in so many is checked, off the clock.
constexpr std::uint64_t checked_every = 16;

std::uint32_t group_count(scenario::Random& random) {
  return random.between(fewest_groups, most_groups);
}

enum class Writes { first_word, all_bytes };

template <class Memory, Writes writes>
class Handler {
 public:
  Handler(Memory& memory, const scenario::SizeCycle& sizes, scenario::Table<void*>& kept)
      : memory_(memory), sizes_(sizes), kept_(kept) {}

  /// Of each three objects the first is kept by itself, the second is a temporary, and the third is linked to the one
  /// before it. The temporaries of a group are freed in the order of their allocation.
  void build(std::uint32_t groups) {
    first_ = position_;
    kept_count_ = 0;
    void* newest = nullptr;
    for (std::uint32_t group = 0; group < groups; ++group) {
      void* temporaries[triples];
      for (std::uint32_t triple = 0; triple < triples; ++triple) {
        kept_[kept_count_++] = object(position_);
        temporaries[triple] = object(position_);
        newest = object(reinterpret_cast<std::uintptr_t>(newest));
        kept_[kept_count_++] = newest;
      }
      for (void* const temporary : temporaries)
        memory_.release(temporary);
    }
  }

  /// Whether all objects kept hold what was written to them.
  bool intact() const {
    std::uint64_t position = first_;
    std::uint64_t newest = 0;
    for (std::uint32_t i = 0; i < kept_count_; i += 2, position += 3) {
      if (!holds(kept_[i], position, position) || !holds(kept_[i + 1], newest, position + 2)) return false;
      newest = reinterpret_cast<std::uintptr_t>(kept_[i + 1]);
    }
    return true;
  }

  /// What was built last goes first, in reverse order, down to the middle; then the older half in the order of its
  /// allocation: locals that unwind, then containers that are emptied from their beginnings.
  void discard() {
    if constexpr (Memory::frees_objects) {
      const std::uint32_t middle = kept_count_ / 2;
      for (std::uint32_t i = kept_count_; i > middle; --i)
        memory_.release(kept_[i - 1]);
      for (std::uint32_t i = 0; i < middle; ++i)
        memory_.release(kept_[i]);
    }
  }

  std::uint64_t objects() const { return position_; }

 private:
  void* object(std::uint64_t word) {
    const std::uint32_t size = sizes_[position_];
    void* const block = memory_.allocate(size);
    if constexpr (writes == Writes::all_bytes) scenario::fill_bytes(block, static_cast<unsigned char>(position_), size);
    std::memcpy(block, &word, sizeof word);
    scenario::escape(block);
    ++position_;
    return block;
  }

  bool holds(const void* block, std::uint64_t word, std::uint64_t position) const {
    if (scenario::tag_of(block) != word) return false;
    if constexpr (writes == Writes::all_bytes) {
      const auto* const bytes = static_cast<const unsigned char*>(block);
      for (std::uint32_t i = sizeof word; i < sizes_[position]; ++i)
        if (bytes[i] != static_cast<unsigned char>(position)) return false;
    }
    return true;
  }

  Memory& memory_;
  const scenario::SizeCycle& sizes_;
  scenario::Table<void*>& kept_;
  std::uint32_t kept_count_ = 0;
  std::uint64_t first_ = 0;
  std::uint64_t position_ = 0;
};

template <Writes writes, class Memory>
void serve(const char* name, Memory& memory, const scenario::Arguments& arguments, scenario::Report& report) {
  const scenario::SizeCycle sizes(16384, arguments.seed, scenario::small_size);
  const scenario::SizeCycle groups(4096, arguments.seed + 1, group_count);
  scenario::Table<void*> kept(most_kept);
  Handler<Memory, writes> handler(memory, sizes, kept);
  scenario::Stopwatch watch;
  watch.start();
  for (std::uint64_t request = 0; request < arguments.ops; ++request) {
    const typename Memory::Unit unit(memory);
    handler.build(groups[request]);
    if (request % checked_every == 0) {
      watch.stop();
      report.require(handler.intact());
      watch.start();
    }
    handler.discard();
  }
  watch.stop();
  report.add(name, handler.objects(), watch.nanoseconds());
}

}  // namespace

int main(int argc, char** argv) {
  scenario::Choice memory("--memory", "plain|scope|frame|monotonic");
  const auto arguments = scenario::parse_arguments(argc, argv, "requests", 25'000, 1, {&memory});
  scenario::Report report("request");
  scenario::with_memory<scenario::PlainMemory, scenario::ScopeMemory, scenario::FrameMemory, scenario::MonotonicMemory>(
      memory, report, [&](auto& kind) {
        serve<Writes::first_word>("request_touch", kind, arguments, report);
        serve<Writes::all_bytes>("request_fill", kind, arguments, report);
      });
  return report.finish(arguments);
}
