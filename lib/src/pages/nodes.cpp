// See nodes.hpp.
#include "pages/nodes.hpp"

#include "base/options.hpp"
#include "os/memory.hpp"

namespace sluice::nodes {
namespace {

// What the system calls them, plus 1; 0 for the first one where it is not yet known.
constinit std::atomic<uint32_t> names[most_nodes]{};

uint32_t own_name() noexcept {
  return os::memory_node() + 1;
}

// Those beyond the last that can be told apart are one with others.
unsigned find_named(uint32_t name, unsigned known) noexcept {
  for (unsigned node = 0; node < known; ++node)
    if (names[node].load(std::memory_order_relaxed) == name) return node;
  return known < most_nodes ? known : name % known;
}

}  // namespace

constinit std::atomic<unsigned> count{1};

void note_first() noexcept {
  uint32_t unknown = 0;
  if (options.numa && names[0].load(std::memory_order_relaxed) == unknown)
    (void)names[0].compare_exchange_strong(unknown, own_name(), std::memory_order_relaxed);
}

unsigned several::note_own() noexcept {
  if (!options.numa) return 0;
  note_first();
  const unsigned known = count.load(std::memory_order_relaxed);
  const uint32_t name = own_name();
  const unsigned node = find_named(name, known);
  if (node == known) {
    names[node].store(name, std::memory_order_relaxed);
    count.store(known + 1, std::memory_order_release);
    os::call_counts.memory_nodes.store(known + 1, std::memory_order_relaxed);
  }
  return node;
}

unsigned several::own() noexcept {
  const unsigned known = count.load(std::memory_order_acquire);  // pairs with note_own
  const unsigned node = find_named(own_name(), known);
  return node < known ? node : 0;
}

unsigned several::of(size_t index) noexcept {
  return region::node_mark_of(index);
}

bool several::is_far(size_t index) noexcept {
  return of(index) != own();
}

void several::set(size_t index, unsigned node) noexcept SLUICE_UNCHECKED_LOCKS {
  region::set_node_mark(index, node);
}

}  // namespace sluice::nodes
