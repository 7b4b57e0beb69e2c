// See zero.hpp. Compiled into libsluice-secure.so alone.
#include "secure/zero.hpp"

#include <atomic>
#include <bit>

namespace sluice::hardened::zero {
namespace {

constexpr uint16_t state_live = canary_size;  // as that of any block that is live
constexpr unsigned most_spans = 16;
constexpr size_t blocks_per_unit = unit_size / min_alignment;

constinit std::atomic<uint32_t> spans[most_spans]{};  // first units; the n-th has 2^n units
constinit std::atomic<unsigned> span_count{0};
constinit std::atomic<size_t> next_number{0};
constinit std::atomic<size_t> live_count{0};

constexpr size_t capacity_of(unsigned count) noexcept {
  return ((size_t{1} << count) - 1) * blocks_per_unit;
}

// False when there is no memory, or no room for one more.
bool add_span(unsigned number) noexcept {
  if (number == most_spans) return false;
  const size_t units = size_t{1} << number;
  bool clean = false;
  const size_t index = region::allocate(units, 1, UnitState::Zero, &clean);
  if (index == unit_index_none) return false;
  (void)region::shut(index);
  // The region has set those of the ends.
  for (size_t i = 1; i + 1 < units; ++i)
    region::unit_at(index + i)->set_use(UnitState::Zero);
  // Release: pairs with address_of. Where another thread was faster, its span serves, and this one is left alone.
  uint32_t none = unit_index_none;
  (void)spans[number].compare_exchange_strong(none, static_cast<uint32_t>(index), std::memory_order_release,
                                              std::memory_order_relaxed);
  unsigned before = number;
  (void)span_count.compare_exchange_strong(before, number + 1, std::memory_order_release, std::memory_order_relaxed);
  return true;
}

void* address_of(size_t number) noexcept {
  const size_t unit = number / blocks_per_unit + 1;
  const auto span = static_cast<unsigned>(std::bit_width(unit)) - 1;
  const size_t first = spans[span].load(std::memory_order_acquire);
  return region::address_of(first + unit - std::bit_floor(unit)) + number % blocks_per_unit * min_alignment;
}

bool take(std::atomic<uint16_t>& state) noexcept {
  uint16_t seen = state.load(std::memory_order_relaxed);
  return seen < canary_size && state.compare_exchange_strong(seen, state_live, std::memory_order_acq_rel);
}

// The next free address at a multiple of `step` blocks, or null: more threads may look at once than there are such.
void* take_next(size_t step) noexcept {
  const size_t capacity = capacity_of(span_count.load(std::memory_order_acquire));
  for (size_t tries = 0; tries < capacity; tries += step) {
    const size_t number = next_number.fetch_add(step, std::memory_order_relaxed) / step * step % capacity;
    void* const address = address_of(number);
    if (!take(state_of(address))) continue;
    live_count.fetch_add(1, std::memory_order_relaxed);
    return address;
  }
  return nullptr;
}

}  // namespace

void* allocate(size_t alignment) noexcept {
  if (region_base == nullptr) return nullptr;
  const unsigned count = span_count.load(std::memory_order_acquire);
  const size_t live = live_count.load(std::memory_order_relaxed);
  if (live * 2 >= capacity_of(count) && !add_span(count) && live >= capacity_of(count)) return nullptr;
  do {
    if (void* const address = take_next(alignment / min_alignment)) return address;
    // Few addresses have a large alignment: all of them may be in use when most of the others are free.
  } while (add_span(span_count.load(std::memory_order_acquire)));
  return nullptr;
}

bool is_live(const void* address) noexcept {
  return reinterpret_cast<uintptr_t>(address) % min_alignment == 0 &&
         state_of(address).load(std::memory_order_relaxed) == state_live;
}

bool give_back(void* address) noexcept {
  uint16_t live = state_live;
  if (reinterpret_cast<uintptr_t>(address) % min_alignment != 0 ||
      !state_of(address).compare_exchange_strong(live, state_freed, std::memory_order_acq_rel))
    return false;
  live_count.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

}  // namespace sluice::hardened::zero
