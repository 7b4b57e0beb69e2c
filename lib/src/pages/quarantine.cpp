// See quarantine.hpp. Compiled into libsluice-secure.so alone.
#include "pages/quarantine.hpp"

#include <atomic>

#include "base/options.hpp"
#include "os/memory.hpp"
#include "pages/fence.hpp"
#include "pages/nodes.hpp"
#include "pages/region.hpp"

namespace sluice::quarantine {
namespace {

constexpr uint32_t waiting_slots = 16;
constexpr size_t most_retained_units = 16 + guard_units;  // of a span that is retained for its like

using Slot = std::atomic<uint32_t>;  // first unit of a span; unit_index_none: empty

constinit Slot waiting[waiting_slots]{};
// A stack of spans for each memory node and length, linked by `next_unused`: the first unit of the uppermost one, and
// above it a number that each change of the stack counts up, so that a thread that was stopped does not take an old one
// for the present one.
using Stack = std::atomic<uint64_t>;
constinit Stack retained[most_nodes][most_retained_units + 1]{};
constinit std::atomic<uint32_t> next_waiting{0};
constinit std::atomic<uint32_t> retained_units{0};  // without guards; about as many: a fork may leave it too high

constinit std::atomic<uint32_t> fewest_retained{0};  // the lowest value of retained_units since…
constinit std::atomic<uint64_t> last_look_ms{0};     // …purge_aged last looked

// Acquire and release: what the thread that put a span there did to it is seen by the one that takes it out.
uint32_t exchange_index(Slot& slot, size_t index) noexcept {
  return slot.exchange(static_cast<uint32_t>(index), std::memory_order_acq_rel);
}

// Effects: the span goes back to the region; one that was written to is left alone for ever. False when there is none.
bool give_back(uint32_t index) noexcept {
  if (index == unit_index_none) return false;
  if (hardened::is_as_left(index)) region::give_back(index, region::unit_at(index)->units, false);
  return true;
}

uint32_t top_of(uint64_t stack) noexcept {
  return static_cast<uint32_t>(stack);
}
uint64_t changed_to(uint64_t stack, uint32_t index) noexcept {
  return ((stack >> 32) + 1) << 32 | index;
}

// The link of a span on a stack. A thread that is about to find that another one was faster reads it at any time.
AtomicField<uint32_t>& link_of(uint32_t index) noexcept {
  return region::unit_at(index)->next_unused;
}

constexpr size_t most_retained_bytes = size_t{32} << 20;

size_t lesser(size_t a, size_t b) noexcept {
  return a < b ? a : b;
}

// Half of the free memory that a heap may retain; the region keeps the other half.
size_t most_retained() noexcept {
  return lesser(options.retain / 2, most_retained_bytes) / unit_size;
}

// A retained span of so many units, of the node.
uint32_t take_retained(size_t length, unsigned node) noexcept {
  Stack& spans = retained[node][length];
  uint64_t stack = spans.load(std::memory_order_acquire);
  while (top_of(stack) != unit_index_none) {
    const uint32_t below = link_of(top_of(stack)).load(std::memory_order_relaxed);
    if (!spans.compare_exchange_weak(stack, changed_to(stack, below), std::memory_order_acquire,
                                     std::memory_order_acquire))
      continue;
    const uint32_t taken = static_cast<uint32_t>(length) - guard_units;
    const uint32_t left = retained_units.fetch_sub(taken, std::memory_order_relaxed) - taken;
    if (left < fewest_retained.load(std::memory_order_relaxed)) fewest_retained.store(left, std::memory_order_relaxed);
    return top_of(stack);
  }
  return unit_index_none;
}

// Likewise, of any node.
uint32_t take_retained(size_t length) noexcept {
  uint32_t index = unit_index_none;
  for (unsigned node = 0; index == unit_index_none && node < nodes::count.load(std::memory_order_relaxed); ++node)
    index = take_retained(length, node);
  return index;
}

// Makes room for a span by giving back what is retained of other lengths: what was freed last is most likely needed
// next.
bool make_room(uint32_t length) noexcept {
  const auto fits = [length] {
    return retained_units.load(std::memory_order_relaxed) + length - guard_units <= most_retained();
  };
  for (uint32_t other = guard_units + 1; other <= most_retained_units && !fits(); ++other)
    while (other != length && !fits() && give_back(take_retained(other)))
      continue;
  return fits();
}

// Keeps a span for its like, if there is room. Requires: its state is Large or Retained.
void retain(uint32_t index) noexcept {
  const uint32_t length = region::unit_at(index)->units;
  if (length > most_retained_units || !make_room(length)) {
    (void)give_back(index);
    return;
  }
  // Before, so that it is never below 0. Sequentially consistent: pairs with retains_any.
  retained_units.fetch_add(length - guard_units, std::memory_order_seq_cst);
  Stack& spans = retained[nodes::of(index)][length];
  uint64_t stack = spans.load(std::memory_order_relaxed);
  do {
    link_of(index).store(top_of(stack), std::memory_order_relaxed);
    // Release: pairs with the acquiring exchange in take_retained.
  } while (!spans.compare_exchange_weak(stack, changed_to(stack, index), std::memory_order_release,
                                        std::memory_order_relaxed));
  if (region::rest::word.load(std::memory_order_seq_cst) == region::rest::asleep) [[unlikely]]
    region::rest::wake();
}

// Makes a retained span serve for something, with `needed` bytes that can be touched.
hardened::Reopened reuse(size_t index, UnitState use, size_t needed, bool* clean) noexcept {
  if (region::unit_at(index)->use() == UnitState::Retained) {
    region::change_use(index, use);
    if (use != UnitState::Large) return hardened::Reopened::Ready;  // all but the guard can be touched
    hardened::note_open(index);
  }
  const hardened::Reopened reopened = hardened::reopen(index, needed, clean);
  if (reopened == hardened::Reopened::Ready && use != UnitState::Large) region::change_use(index, use);
  return reopened;
}

}  // namespace

void purge_aged() noexcept {
  if (retained_units.load(std::memory_order_relaxed) == 0) return;
  const uint64_t now = os::clock_ms();
  uint64_t last = last_look_ms.load(std::memory_order_relaxed);
  if (now < last || now - last < options.purge_delay ||
      !last_look_ms.compare_exchange_strong(last, now, std::memory_order_relaxed))
    return;
  uint32_t unneeded = fewest_retained.load(std::memory_order_relaxed);
  for (uint32_t length = most_retained_units; length > guard_units; --length)
    while (unneeded >= length - guard_units && give_back(take_retained(length)))
      unneeded -= length - guard_units;
  fewest_retained.store(retained_units.load(std::memory_order_relaxed), std::memory_order_relaxed);
}

void put(size_t index) noexcept {
  const size_t units = region::unit_at(index)->units;
  hardened::close(index, units > most_retained_units);
  const uint32_t oldest =
      exchange_index(waiting[next_waiting.fetch_add(1, std::memory_order_relaxed) % waiting_slots], index);
  if (oldest != unit_index_none) retain(oldest);
  purge_aged();
}

void put_unused(size_t index) noexcept {
  if (region::mutex().held_by_this_thread()) return region::give_back(index, region::unit_at(index)->units, false);
  region::change_use(index, UnitState::Retained);
  retain(static_cast<uint32_t>(index));
  purge_aged();
}

size_t take(size_t units, UnitState use, size_t needed, bool* clean) noexcept {
  if (units > most_retained_units || region::mutex().held_by_this_thread()) return unit_index_none;
  const unsigned node = nodes::own();
  const size_t longest = use == UnitState::Large ? lesser(units + units / 4, most_retained_units) : units;
  for (size_t length = units; length <= longest;) {
    const uint32_t index = take_retained(length, node);
    if (index == unit_index_none) {
      if (nodes::are_several()) (void)give_back(take_retained(length));  // lest as much is retained for each node
      ++length;
      continue;
    }
    const hardened::Reopened reopened = reuse(index, use, needed, clean);
    if (reopened == hardened::Reopened::Damaged) continue;
    if (reopened == hardened::Reopened::Refused) {
      (void)give_back(index);
      return unit_index_none;
    }
    return index;
  }
  return unit_index_none;
}

size_t take(size_t units, UnitState use) noexcept {
  bool clean;  // of no account: who takes a span for blocks or frames clears them
  return take(units, use, (units - guard_units) * unit_size, &clean);
}

bool retains_any() noexcept {
  return retained_units.load(std::memory_order_seq_cst) != 0;
}

bool release_all() noexcept {
  bool any = false;
  for (Slot& slot : waiting)
    any |= give_back(exchange_index(slot, unit_index_none));
  for (size_t length = 0; length <= most_retained_units; ++length)
    while (give_back(take_retained(length)))
      any = true;
  return any;
}

}  // namespace sluice::quarantine
