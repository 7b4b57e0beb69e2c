// A document is parsed into a tree of nodes with a text each, traversed once and discarded, on a clean heap or among
// the holes of one that has been used for long. Open it for what it is worth that a document lies in one piece.
#include <optional>

#include "common.hpp"
#include "litter.hpp"
#include "memory.hpp"
#include "texts.hpp"

namespace {

constexpr std::uint32_t nodes = 200'000;
constexpr std::uint32_t deepest = 24;
constexpr std::uint64_t litter_objects = 3'000'000;

struct Node {
  Node* next;
  Node* child;
  char* text;
  std::uint32_t length;
  std::uint32_t key;
};

std::uint32_t text_length(scenario::Random& random) {
  return random.between(24, scenario::longest_text);
}

/// What a parser would find in its input: how deep each node lies and how long its text is.
struct Input {
  explicit Input(std::uint64_t seed) : depths(nodes), lengths(4096, seed, text_length) {
    scenario::Random random(seed + 1);
    std::uint32_t depth = 0;
    for (std::uint32_t i = 0; i < nodes; ++i) {
      depth = random.between(depth > 3 ? depth - 3 : 1, depth < deepest ? depth + 1 : deepest);
      depths[i] = static_cast<std::uint8_t>(depth);
    }
  }
  scenario::Table<std::uint8_t> depths;
  scenario::SizeCycle lengths;
};

template <class Memory>
Node* parse(Memory& memory, const Input& input) {
  Node* first = nullptr;
  Node** ends[deepest + 2];  // where the next node of each depth is linked in
  ends[1] = &first;
  for (std::uint32_t key = 0; key < nodes; ++key) {
    const std::string_view text = scenario::text_piece(key, input.lengths[key]);
    auto* const node = static_cast<Node*>(memory.allocate(sizeof(Node)));
    auto* const copy = static_cast<char*>(memory.allocate(text.size() + 1));
    scenario::copy_bytes(copy, text.data(), text.size());
    copy[text.size()] = '\0';
    *node = {nullptr, nullptr, copy, static_cast<std::uint32_t>(text.size()), key};
    scenario::escape(node);
    const std::uint32_t depth = input.depths[key];
    *ends[depth] = node;
    ends[depth] = &node->next;
    ends[depth + 1] = &node->child;
  }
  return first;
}

std::uint64_t weight(std::uint32_t key, const char* text, std::uint32_t length) {
  return (key + 1) *
         (std::uint64_t{length} + static_cast<unsigned char>(text[0]) + static_cast<unsigned char>(text[length - 1]));
}

std::uint64_t traverse(const Node* first) {
  std::uint64_t sum = 0;
  for (const Node* node = first; node != nullptr; node = node->next) {
    sum += weight(node->key, node->text, node->length);
    if (node->child != nullptr) sum += traverse(node->child);
  }
  return sum;
}

template <class Memory>
void discard(Memory& memory, Node* first) {
  while (first != nullptr) {
    Node* const next = first->next;
    discard(memory, first->child);
    memory.release(first->text);
    memory.release(first);
    first = next;
  }
}

template <class Memory>
void run(Memory& memory, const scenario::Arguments& arguments, scenario::Report& report, bool littered) {
  const Input input(arguments.seed);
  std::uint64_t expected = 0;
  for (std::uint32_t key = 0; key < nodes; ++key)
    expected += weight(key, scenario::text_piece(key, input.lengths[key]).data(), input.lengths[key]);

  scenario::Stopwatch building;
  scenario::Stopwatch traversing;
  scenario::Stopwatch discarding;
  for (std::uint64_t document = 0; document < arguments.ops; ++document) {
    std::optional<typename Memory::Unit> unit;
    building.start();
    unit.emplace(memory);
    Node* const first = parse(memory, input);
    building.stop();

    traversing.start();
    const std::uint64_t sum = traverse(first);
    traversing.stop();
    report.require(sum == expected);

    discarding.start();
    if constexpr (Memory::frees_objects) discard(memory, first);
    unit.reset();
    discarding.stop();
  }

  const std::uint64_t ops = arguments.ops * nodes;
  const double times[] = {building.nanoseconds(), traversing.nanoseconds(), discarding.nanoseconds()};
  report.add(littered ? "document_littered_build" : "document_clean_build", ops, times[0]);
  report.add(littered ? "document_littered_traverse" : "document_clean_traverse", ops, times[1]);
  report.add(littered ? "document_littered_discard" : "document_clean_discard", ops, times[2]);
  report.add(littered ? "document_littered_sum" : "document_clean_sum", ops, times[0] + times[1] + times[2]);
}

}  // namespace

int main(int argc, char** argv) {
  scenario::Choice memory("--memory", "plain|scope|frame");
  scenario::Choice heap("--heap", "clean|littered");
  const auto arguments = scenario::parse_arguments(argc, argv, "documents", 20, 1, {&memory, &heap});
  scenario::Report report("document");
  std::optional<scenario::Litter> litter;
  if (heap.chosen() == "littered") {
    litter.emplace(litter_objects, arguments.seed);
    litter->build();
    litter->shuffle(arguments.seed + 2);
    litter->free_most();
  }
  scenario::with_memory<scenario::PlainMemory, scenario::ScopeMemory, scenario::FrameMemory>(
      memory, report, [&](auto& kind) { run(kind, arguments, report, litter.has_value()); });
  if (litter) report.require(litter->intact());
  return report.finish(arguments);
}
