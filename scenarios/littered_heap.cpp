// A heap that has been used for long: three million objects built, 60 % of them freed at random, then a
// linked list of nodes with a string each built, traversed and freed among the holes. Open it for what
// fragmentation costs, in time (where the new nodes land decides how fast the list is walked) and in memory.
#include <string>
#include <string_view>

#include "common.hpp"
#include "litter.hpp"
#include "texts.hpp"

namespace {

constexpr std::uint64_t nodes = 200'000;
constexpr std::uint64_t passes = 5;

struct Node {
  Node* next;
  std::string text;
  std::uint64_t key;
};

/// Every string is longer than what std::string keeps inside itself, so each node is two blocks.
std::uint32_t text_length(scenario::Random& random) {
  return random.between(24, scenario::longest_text);
}

std::uint64_t weight(std::uint64_t key, std::string_view text) {
  return key + text.size() + static_cast<unsigned char>(text.back());
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = scenario::parse_arguments(argc, argv, "objects that litter the heap", 3'000'000, 10);
  const scenario::SizeCycle lengths(4096, arguments.seed + 1, text_length);
  scenario::Litter litter(arguments.ops, arguments.seed);
  scenario::Report report("littered_heap");

  report.measure("littered_build", litter.objects(), [&] { litter.build(); });
  litter.shuffle(arguments.seed + 2);
  report.measure("littered_free", litter.freed(), [&] { litter.free_most(); });

  Node* head = nullptr;
  report.measure("littered_nodes_build", nodes, [&] {
    for (std::uint64_t key = 0; key < nodes; ++key)
      head = new Node{head, std::string(scenario::text_piece(key, lengths[key])), key};
  });
  std::uint64_t sum = 0;
  report.measure("littered_nodes_traverse", nodes * passes, [&] {
    for (std::uint64_t pass = 0; pass < passes; ++pass) {
      for (const Node* node = head; node != nullptr; node = node->next)
        sum += weight(node->key, node->text);
      scenario::escape(head);
    }
  });
  report.measure("littered_nodes_free", nodes, [&] {
    while (head != nullptr) {
      Node* const next = head->next;
      delete head;
      head = next;
    }
  });

  std::uint64_t expected = 0;
  for (std::uint64_t key = 0; key < nodes; ++key)
    expected += weight(key, scenario::text_piece(key, lengths[key])) * passes;
  report.require(sum == expected);
  report.require(litter.intact());
  return report.finish(arguments);
}
