// Strings built by appending: one at a time, with a realloc for every piece, and eight in turns, each growing by half.
// Open it for what it is worth that the newest block can grow in place.
#include "common.hpp"
#include "memory.hpp"
#include "texts.hpp"

namespace {

constexpr std::uint32_t unit_strings = 64;
constexpr std::uint32_t strings_in_turns = 8;
constexpr std::uint32_t fewest_pieces = 4;
constexpr std::uint32_t most_pieces = 80;
constexpr std::uint32_t first_capacity = 32;

/// One unit of work in so many is checked, off the clock.
constexpr std::uint64_t checked_every = 16;

std::uint32_t piece_length(scenario::Random& random) {
  return random.between(8, 40);
}

std::uint32_t piece_count(scenario::Random& random) {
  return random.between(fewest_pieces, most_pieces);
}

struct String {
  char* text;
  std::uint32_t length;
  std::uint32_t capacity;
  std::uint32_t pieces;
  std::uint64_t first_key;
};

enum class Growth { exact, by_half };

template <class Memory>
class Builder {
 public:
  Builder(Memory& memory, std::uint64_t seed)
      : memory_(memory),
        lengths_(4096, seed, piece_length),
        counts_(4096, seed + 1, piece_count),
        strings_(unit_strings) {}

  /// As C programs do it: the block always has just the room that is needed.
  void build_one_at_a_time() {
    for (std::uint32_t i = 0; i < unit_strings; ++i) {
      String& string = strings_[i];
      string = {nullptr, 0, 0, counts_[drawn_++], key_};
      for (std::uint32_t piece = 0; piece < string.pieces; ++piece)
        append<Growth::exact>(string, key_++);
    }
  }

  void build_in_turns() {
    for (std::uint32_t i = 0; i < unit_strings; i += strings_in_turns) {
      const std::uint32_t pieces = counts_[drawn_++];
      for (std::uint32_t turn = 0; turn < strings_in_turns; ++turn)
        strings_[i + turn] = {nullptr, 0, 0, pieces, key_ + turn * std::uint64_t{pieces}};
      for (std::uint32_t piece = 0; piece < pieces; ++piece) {
        for (std::uint32_t turn = 0; turn < strings_in_turns; ++turn)
          append<Growth::by_half>(strings_[i + turn], strings_[i + turn].first_key + piece);
      }
      key_ += strings_in_turns * std::uint64_t{pieces};
    }
  }

  bool intact() const {
    for (std::uint32_t i = 0; i < unit_strings; ++i) {
      const String& string = strings_[i];
      std::string_view rest(string.text, string.length);
      for (std::uint32_t piece = 0; piece < string.pieces; ++piece) {
        const std::string_view expected = piece_of(string.first_key + piece);
        if (!rest.starts_with(expected)) return false;
        rest.remove_prefix(expected.size());
      }
      if (!rest.empty() || string.text[string.length] != '\0') return false;
    }
    return true;
  }

  void discard() {
    if constexpr (Memory::frees_objects) {
      for (std::uint32_t i = 0; i < unit_strings; ++i)
        memory_.release(strings_[i].text);
    }
  }

  std::uint64_t appends() const { return key_; }

 private:
  std::string_view piece_of(std::uint64_t key) const { return scenario::text_piece(key, lengths_[key]); }

  template <Growth growth>
  void append(String& string, std::uint64_t key) {
    const std::string_view piece = piece_of(key);
    const auto needed = static_cast<std::uint32_t>(string.length + piece.size() + 1);
    if (needed > string.capacity) {
      std::uint32_t capacity = needed;
      if constexpr (growth == Growth::by_half) {
        const std::uint32_t half_more = string.capacity == 0 ? first_capacity : string.capacity + string.capacity / 2;
        capacity = needed > half_more ? needed : half_more;
      }
      string.text = static_cast<char*>(memory_.grow(string.text, string.capacity, capacity));
      string.capacity = capacity;
    }
    scenario::copy_bytes(string.text + string.length, piece.data(), piece.size());
    string.length = needed - 1;
    string.text[string.length] = '\0';
    scenario::escape(string.text);
  }

  Memory& memory_;
  const scenario::SizeCycle lengths_;
  const scenario::SizeCycle counts_;
  scenario::Table<String> strings_;
  std::uint64_t drawn_ = 0;
  std::uint64_t key_ = 0;  // of the next piece: also the number of pieces so far
};

template <class Memory>
void run(const char* name, Memory& memory, const scenario::Arguments& arguments, scenario::Report& report,
         void (Builder<Memory>::*build)()) {
  Builder<Memory> builder(memory, arguments.seed);
  scenario::Stopwatch watch;
  watch.start();
  for (std::uint64_t unit_number = 0; unit_number < arguments.ops; ++unit_number) {
    const typename Memory::Unit unit(memory);
    (builder.*build)();
    if (unit_number % checked_every == 0) {
      watch.stop();
      report.require(builder.intact());
      watch.start();
    }
    builder.discard();
  }
  watch.stop();
  report.add(name, builder.appends(), watch.nanoseconds());
}

}  // namespace

int main(int argc, char** argv) {
  scenario::Choice memory("--memory", "plain|scope|frame");
  const auto arguments = scenario::parse_arguments(argc, argv, "units of 64 strings", 4'000, 1, {&memory});
  scenario::Report report("strings");
  scenario::with_memory<scenario::PlainMemory, scenario::ScopeMemory, scenario::FrameMemory>(
      memory, report, [&]<class Memory>(Memory& kind) {
        run("strings_one", kind, arguments, report, &Builder<Memory>::build_one_at_a_time);
        run("strings_interleaved", kind, arguments, report, &Builder<Memory>::build_in_turns);
      });
  return report.finish(arguments);
}
