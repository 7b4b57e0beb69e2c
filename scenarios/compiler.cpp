// A compiler: each function passes through tokens, tree and instructions, which end with it, and leaves symbols among
// them that live until the end of the translation unit. Open it for what survivors between temporaries cost a scope.
#include "common.hpp"
#include "memory.hpp"
#include "texts.hpp"

namespace {

constexpr std::uint32_t tokens = 400;
constexpr std::uint32_t tree_nodes = 250;
constexpr std::uint32_t instructions = 300;
constexpr std::uint32_t objects_per_symbol = 20;  // tokens and tree nodes
constexpr std::uint32_t function_symbols = tokens / objects_per_symbol + tree_nodes / objects_per_symbol;
constexpr std::uint32_t function_blocks = tokens + tree_nodes + instructions + 2 * function_symbols;
constexpr std::uint64_t unit_functions = 200;
constexpr std::uint32_t buckets = 4096;

/// What every temporary begins with. Its last byte is written too.
struct Object {
  Object* next;
  std::uint64_t tag;
  std::uint32_t size;
};

/// Sizes are of sixteen steps, so that one stream of numbers serves every phase.
std::uint32_t size_step(scenario::Random& random) {
  return random.below(16);
}
constexpr std::uint32_t token_size(std::uint32_t step) {
  return 24 + 2 * step;
}
constexpr std::uint32_t tree_node_size(std::uint32_t step) {
  return 32 + 8 * step;
}
constexpr std::uint32_t instruction_size(std::uint32_t step) {
  return 48 + 12 * step;
}

struct Symbol {
  Symbol* next;  // of its bucket
  char* name;
  std::uint32_t length;
  std::uint32_t function;
  std::uint64_t key;
  std::uint64_t type[3];
};

template <class Memory>
class Compiler {
 public:
  Compiler(Memory& memory, std::uint64_t seed)
      : memory_(memory), steps_(16384, seed, size_step), name_lengths_(4096, seed + 1, name_length), table_(buckets) {}

  void compile_function() {
    const typename Memory::Unit unit(memory_);
    Object* const first_token = in_order(tokens, token_size);
    Object* const newest_node = reversed(tree_nodes, tree_node_size);
    end_all(first_token);
    Object* const first_instruction = in_order(instructions, instruction_size);
    end_all(newest_node);
    end_all(first_instruction);
    ++function_;
  }

  /// Symbols end in the order of the table, which is nothing to the allocator.
  void end_translation_unit() {
    for (std::uint32_t bucket = 0; bucket < buckets; ++bucket) {
      for (Symbol* symbol = table_[bucket]; symbol != nullptr;) {
        Symbol* const next = symbol->next;
        const std::string_view name = scenario::text_piece(symbol->key, name_lengths_[symbol->key]);
        intact_ = intact_ && std::string_view(symbol->name, symbol->length) == name && symbol->type[2] == ~symbol->key;
        memory_.release_lasting(symbol->name);
        memory_.release_lasting(symbol);
        symbol = next;
      }
      table_[bucket] = nullptr;
    }
  }

  /// Whether every object and symbol held what was written to it, and every list was complete.
  bool intact() const { return intact_ && ended_sum_ == made_sum_; }

 private:
  static std::uint32_t name_length(scenario::Random& random) { return random.between(4, 40); }

  static unsigned char& last_byte(Object* object) { return reinterpret_cast<unsigned char*>(object)[object->size - 1]; }

  Object* object(std::uint32_t (*size_of)(std::uint32_t)) {
    const std::uint32_t size = size_of(steps_[position_]);
    auto* const made = static_cast<Object*>(memory_.allocate(size));
    *made = {nullptr, position_, size};
    last_byte(made) = static_cast<unsigned char>(position_);
    scenario::escape(made);
    made_sum_ += position_++;
    return made;
  }

  /// Objects whose list begins with the oldest.
  Object* in_order(std::uint32_t count, std::uint32_t (*size_of)(std::uint32_t)) {
    Object* first = nullptr;
    Object** end = &first;
    for (std::uint32_t i = 1; i <= count; ++i) {
      *end = object(size_of);
      end = &(*end)->next;
      if (size_of == token_size && i % objects_per_symbol == 0) declare();
    }
    return first;
  }

  /// Objects whose list begins with the newest.
  Object* reversed(std::uint32_t count, std::uint32_t (*size_of)(std::uint32_t)) {
    Object* newest = nullptr;
    for (std::uint32_t i = 1; i <= count; ++i) {
      Object* const made = object(size_of);
      made->next = newest;
      newest = made;
      if (i % objects_per_symbol == 0) declare();
    }
    return newest;
  }

  /// The next phase reads what the one before it made, then it goes, in the order of its list.
  void end_all(Object* first) {
    for (Object* read = first; read != nullptr; read = read->next) {
      ended_sum_ += read->tag;
      intact_ = intact_ && last_byte(read) == static_cast<unsigned char>(read->tag);
    }
    if constexpr (Memory::frees_objects) {
      while (first != nullptr) {
        Object* const next = first->next;
        memory_.release(first);
        first = next;
      }
    }
  }

  void declare() {
    const std::string_view name = scenario::text_piece(symbols_, name_lengths_[symbols_]);
    auto* const symbol = static_cast<Symbol*>(memory_.allocate_lasting(sizeof(Symbol)));
    auto* const copy = static_cast<char*>(memory_.allocate_lasting(name.size() + 1));
    scenario::copy_bytes(copy, name.data(), name.size());
    copy[name.size()] = '\0';
    Symbol*& bucket = table_[(symbols_ * 0x9e3779b97f4a7c15u) >> 52];
    *symbol = {bucket, copy, static_cast<std::uint32_t>(name.size()), function_, symbols_, {0, 0, ~symbols_}};
    scenario::escape(symbol);
    bucket = symbol;
    ++symbols_;
  }

  Memory& memory_;
  const scenario::SizeCycle steps_;
  const scenario::SizeCycle name_lengths_;
  scenario::Table<Symbol*> table_;
  std::uint32_t function_ = 0;
  std::uint64_t position_ = 0;
  std::uint64_t symbols_ = 0;
  std::uint64_t made_sum_ = 0;
  std::uint64_t ended_sum_ = 0;
  bool intact_ = true;
};
static_assert(buckets == 1u << (64 - 52));

}  // namespace

int main(int argc, char** argv) {
  scenario::Choice memory("--memory", "plain|scope|noroute|frame");
  const auto arguments = scenario::parse_arguments(argc, argv, "functions", 20'000, 1, {&memory});
  scenario::Report report("compiler");
  scenario::with_memory<scenario::PlainMemory, scenario::ScopeMemory, scenario::NorouteMemory, scenario::FrameMemory>(
      memory, report, [&](auto& kind) {
        Compiler compiler(kind, arguments.seed);
        report.measure("compiler", arguments.ops * function_blocks, [&] {
          for (std::uint64_t function = 1; function <= arguments.ops; ++function) {
            compiler.compile_function();
            if (function % unit_functions == 0) compiler.end_translation_unit();
          }
          compiler.end_translation_unit();
        });
        report.require(compiler.intact());
      });
  return report.finish(arguments);
}
