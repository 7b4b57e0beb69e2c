// See quarantine.hpp. Compiled into libsluice-secure.so alone.
#include "heap/quarantine.hpp"

#include <atomic>

#include "heap/region.hpp"
#include "os/memory.hpp"

namespace sluice::quarantine {
namespace {

constexpr uint32_t waiting_slots = 16;
constexpr size_t most_kept_units = 16 + guard_units;             // of a span that is kept for its like
constexpr uint32_t kept_slots = 2;                               // for each length
constexpr size_t most_resident = (size_t{8} << 20) / unit_size;  // units; what longer spans hold goes back at once

using Slot = std::atomic<uint32_t>;  // first unit of a span; unit_index_none: empty

constinit Slot waiting[waiting_slots]{};
constinit Slot kept[most_kept_units + 1][kept_slots]{};
constinit std::atomic<uint32_t> next_waiting{0};
constinit std::atomic<uint32_t> next_kept{0};

// Acquire and release: what the thread that put a span there did to it is seen by the one that takes it out.
uint32_t exchange(Slot& slot, size_t index) noexcept {
  return slot.exchange(static_cast<uint32_t>(index), std::memory_order_acq_rel);
}

bool give_back(uint32_t index) noexcept {
  if (index == unit_index_none) return false;
  region::free(index, region::unit_at(index)->units, false);
  return true;
}

}  // namespace

void put(size_t index) noexcept {
  const size_t units = region::unit_at(index)->units;
  if (units > most_resident) (void)os::purge(region::address_of(index), (units - guard_units) * unit_size);
  if (units > most_kept_units) region::shut(index);
  const uint32_t oldest =
      exchange(waiting[next_waiting.fetch_add(1, std::memory_order_relaxed) % waiting_slots], index);
  if (oldest == unit_index_none) return;
  const size_t length = region::unit_at(oldest)->units;
  if (length > most_kept_units)
    (void)give_back(oldest);
  else
    (void)give_back(exchange(kept[length][next_kept.fetch_add(1, std::memory_order_relaxed) % kept_slots], oldest));
}

size_t take(size_t units) noexcept {
  if (units > most_kept_units) return unit_index_none;
  for (Slot& slot : kept[units]) {
    if (slot.load(std::memory_order_relaxed) == unit_index_none) continue;
    const uint32_t index = exchange(slot, unit_index_none);
    if (index != unit_index_none) return index;
  }
  return unit_index_none;
}

bool release_all() noexcept {
  bool any = false;
  for (Slot& slot : waiting)
    any |= give_back(exchange(slot, unit_index_none));
  for (auto& slots : kept)
    for (Slot& slot : slots)
      any |= give_back(exchange(slot, unit_index_none));
  return any;
}

}  // namespace sluice::quarantine
