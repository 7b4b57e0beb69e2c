// See quarantine.hpp. Compiled into libsluice-secure.so alone.
#include "heap/quarantine.hpp"

#include <atomic>

#include "heap/region.hpp"
#include "os/memory.hpp"

namespace sluice::quarantine {
namespace {

constexpr uint32_t waiting_slots = 16;
constexpr size_t most_kept_units = 16 + guard_units;              // of a span that is kept for its like
constexpr uint32_t kept_slots = 32;                               // for each length
constexpr uint32_t most_kept = (uint32_t{16} << 20) / unit_size;  // units, of all lengths together
constexpr size_t most_resident = (size_t{4} << 20) / unit_size;   // units; what longer spans hold goes back at once

using Slot = std::atomic<uint32_t>;  // first unit of a span; unit_index_none: empty

constinit Slot waiting[waiting_slots]{};
constinit Slot kept[most_kept_units + 1][kept_slots]{};
constinit std::atomic<uint32_t> next_waiting{0};
constinit std::atomic<uint32_t> kept_units{0};  // about as many: it is counted after the fact

// Acquire and release: what the thread that put a span there did to it is seen by the one that takes it out.
uint32_t exchange(Slot& slot, size_t index) noexcept {
  return slot.exchange(static_cast<uint32_t>(index), std::memory_order_acq_rel);
}

bool give_back(uint32_t index) noexcept {
  if (index == unit_index_none) return false;
  region::free(index, region::unit_at(index)->units, false);
  return true;
}

// Keeps a span for its like, if there is room. Requires: its state is Large.
void keep(uint32_t index) noexcept {
  const uint32_t length = region::unit_at(index)->units;
  if (length > most_kept_units || kept_units.load(std::memory_order_relaxed) + length > most_kept) {
    (void)give_back(index);
    return;
  }
  for (Slot& slot : kept[length]) {
    uint32_t empty = unit_index_none;
    // Release: pairs with the exchange in take.
    if (slot.load(std::memory_order_relaxed) != unit_index_none ||
        !slot.compare_exchange_strong(empty, index, std::memory_order_release, std::memory_order_relaxed))
      continue;
    kept_units.fetch_add(length, std::memory_order_relaxed);
    return;
  }
  (void)give_back(index);
}

// A kept span of so many units.
uint32_t take_kept(size_t length) noexcept {
  for (Slot& slot : kept[length]) {
    if (slot.load(std::memory_order_relaxed) == unit_index_none) continue;
    const uint32_t index = exchange(slot, unit_index_none);
    if (index == unit_index_none) continue;
    kept_units.fetch_sub(static_cast<uint32_t>(length), std::memory_order_relaxed);
    return index;
  }
  return unit_index_none;
}

size_t lesser(size_t a, size_t b) noexcept {
  return a < b ? a : b;
}

}  // namespace

void put(size_t index) noexcept {
  const size_t units = region::unit_at(index)->units;
  if (units > most_resident) (void)os::purge(region::address_of(index), (units - guard_units) * unit_size);
  if (units > most_kept_units) region::shut(index);
  const uint32_t oldest =
      exchange(waiting[next_waiting.fetch_add(1, std::memory_order_relaxed) % waiting_slots], index);
  if (oldest != unit_index_none) keep(oldest);
}

void put_unused(size_t index) noexcept {
  if (region::mutex().held_by_this_thread()) return region::free(index, region::unit_at(index)->units, false);
  region::change_use(index, UnitState::Large);
  keep(static_cast<uint32_t>(index));
}

size_t take(size_t units, UnitState use) noexcept {
  if (units > most_kept_units || region::mutex().held_by_this_thread()) return unit_index_none;
  const size_t longest = use == UnitState::Large ? lesser(units + units / 4, most_kept_units) : units;
  for (size_t length = units; length <= longest; ++length) {
    const uint32_t index = take_kept(length);
    if (index == unit_index_none) continue;
    if (use != UnitState::Large) region::change_use(index, use);
    return index;
  }
  return unit_index_none;
}

bool release_all() noexcept {
  bool any = false;
  for (Slot& slot : waiting)
    any |= give_back(exchange(slot, unit_index_none));
  for (auto& slots : kept)
    for (Slot& slot : slots)
      if (const uint32_t index = exchange(slot, unit_index_none); index != unit_index_none) {
        kept_units.fetch_sub(region::unit_at(index)->units, std::memory_order_relaxed);
        any |= give_back(index);
      }
  return any;
}

}  // namespace sluice::quarantine
