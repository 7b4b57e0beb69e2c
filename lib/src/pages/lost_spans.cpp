// See lost_spans.hpp.
#include "pages/lost_spans.hpp"

#include <atomic>

#include "os/memory.hpp"
#include "pages/mappings.hpp"
#include "pages/region.hpp"

namespace sluice::lost_spans {
namespace {

constinit std::atomic<uint32_t> list{unit_index_none};  // by their first units' `next_unused`

}  // namespace

void put(size_t index) noexcept {
  uint32_t head = list.load(std::memory_order_relaxed);
  do
    region::unit_at(index)->next_unused.store(head, std::memory_order_relaxed);
  while (!list.compare_exchange_weak(head, static_cast<uint32_t>(index), std::memory_order_release,
                                     std::memory_order_relaxed));
}

bool give_back(size_t index) noexcept {
  const size_t units = region::unit_at(index)->units;
  const bool renewed = region::renew(index, units);
  if (!renewed && !os::is_mapped(region::address_of(index), units * unit_size)) {
    put(index);
    return false;
  }
  if (renewed)
    region::give_back_renewed(index, units);
  else
    region::give_back(index, units, false);
  return true;
}

void recover() noexcept {
  if (list.load(std::memory_order_relaxed) == unit_index_none) [[likely]]
    return;
  // Acquire: pairs with put(). Nobody else has the list then.
  uint32_t index = list.exchange(unit_index_none, std::memory_order_acquire);
  for (bool more = true; index != unit_index_none;) {
    const uint32_t next = region::unit_at(index)->next_unused.load(std::memory_order_relaxed);
    if (more)
      more = give_back(index);
    else
      put(index);
    index = next;
  }
}

}  // namespace sluice::lost_spans
