// A heap that has been used for long: three million objects built, 60 % of them freed at random, then a
// linked list of nodes with a string each built, traversed and freed among the holes. Open it for what
// fragmentation costs, in time (where the new nodes land decides how fast the list is walked) and in memory.
#include <string>
#include <string_view>
#include <utility>

#include "common.hpp"

namespace {

constexpr std::uint64_t nodes = 200'000;
constexpr std::uint64_t passes = 5;

struct Node {
  Node* next;
  std::string text;
  std::uint64_t key;
};

/// Every string is longer than what std::string keeps inside itself, so each node is two blocks.
constexpr std::uint32_t longest_text = 120;
std::uint32_t text_length(scenario::Random& random) {
  return random.between(24, longest_text);
}

std::uint64_t weight(std::uint64_t key, std::string_view text) {
  return key + text.size() + static_cast<unsigned char>(text.back());
}

/// The text of a node is a piece of one long line, from one of its first `starts` letters on.
constexpr std::uint32_t starts = 32;
std::string_view text_of(std::uint64_t key, const scenario::SizeCycle& lengths) {
  static constexpr std::string_view line =
      "It was the kind of river that nobody measured: broad and slow above the weir, quick and brown below "
      "it, and the "
      "lock-keeper let the boats through in the order in which they had come.";
  static_assert(line.size() >= starts + longest_text);
  return line.substr(key % starts, lengths[key]);
}

/// Puts the blocks in random order, so that the timed part reads their addresses in sequence and every cache
/// miss in it is the allocator's. tags[i] becomes the tag of blocks[i].
void shuffle(scenario::Table<void*>& blocks, scenario::Table<std::uint32_t>& tags, std::uint64_t seed) {
  scenario::Random random(seed);
  for (std::size_t i = 0; i < blocks.length(); ++i)
    tags[i] = static_cast<std::uint32_t>(i);
  for (std::size_t i = blocks.length() - 1; i > 0; --i) {
    const std::size_t other = random.below(static_cast<std::uint32_t>(i + 1));
    std::swap(blocks[i], blocks[other]);
    std::swap(tags[i], tags[other]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = scenario::parse_arguments(argc, argv, "objects that litter the heap", 3'000'000, 10);
  const std::uint64_t objects = arguments.ops;
  const std::uint64_t freed = objects * 6 / 10;
  const scenario::SizeCycle sizes(65536, arguments.seed, scenario::object_size);
  const scenario::SizeCycle lengths(4096, arguments.seed + 1, text_length);
  scenario::Table<void*> blocks(objects);
  scenario::Table<std::uint32_t> tags(objects);
  scenario::Report report("littered_heap");

  report.measure("littered_build", objects, [&] {
    for (std::uint64_t i = 0; i < objects; ++i)
      blocks[i] = scenario::allocate_tagged(sizes[i], i);
  });
  shuffle(blocks, tags, arguments.seed + 2);
  report.measure("littered_free", freed, [&] {
    for (std::uint64_t i = 0; i < freed; ++i)
      std::free(blocks[i]);
  });

  Node* head = nullptr;
  report.measure("littered_nodes_build", nodes, [&] {
    for (std::uint64_t key = 0; key < nodes; ++key)
      head = new Node{head, std::string(text_of(key, lengths)), key};
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
    expected += weight(key, text_of(key, lengths)) * passes;
  report.require(sum == expected);
  std::uint64_t damage = 0;
  for (std::uint64_t i = freed; i < objects; ++i)
    damage |= scenario::tag_of(blocks[i]) ^ tags[i];
  report.require(damage == 0);
  return report.finish();
}
