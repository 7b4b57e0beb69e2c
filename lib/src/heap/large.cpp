// See large.hpp.
#include "heap/large.hpp"

#include <atomic>

#include "heap/region.hpp"
#include "os/memory.hpp"

namespace sluice::large {
namespace {

// Each move leaves mappings that do not merge with their neighbours; a process may have some 65,000. From this many
// moves on the pages of a span that was moved are not kept when it is freed: a new mapping takes their place, which
// merges.
constexpr uint32_t moves_to_tolerate = 4096;
constinit std::atomic<uint32_t> moves{0};

constexpr size_t pages_worth_moving = 1024 * 1024;  // bytes; below it copying is cheaper than remapping

size_t units_for(size_t size) noexcept {
  return (size + unit_size - 1) >> unit_shift;
}

char* address_of(const Unit* span) noexcept {
  return region::address_of(region::index_of(span));
}

}  // namespace

void* allocate(size_t size, size_t alignment, bool zeroed) noexcept {
  if (size > PTRDIFF_MAX || alignment > PTRDIFF_MAX) return nullptr;
  const size_t units = units_for(size);
  const size_t align_units = alignment > unit_size ? alignment >> unit_shift : 1;
  bool clean = false;
  const size_t index = region::allocate(units, align_units, UnitState::Large, &clean);
  if (index == unit_index_none) return nullptr;
  Unit* span = region::unit_at(index);
  span->moved = false;
  span->large_bytes = size;
  class_bytes()[index] = class_byte_large;
  char* block = region::address_of(index);
  if (zeroed && !clean) __builtin_memset(block, 0, size);
  return block;
}

Unit* find(const void* block) noexcept {
  const size_t index = unit_index_of(block);
  if (index >= region_window_units || class_bytes()[index] != class_byte_large) return nullptr;
  return region::address_of(index) == block ? region::unit_at(index) : nullptr;
}

size_t usable_size(const Unit& span) noexcept {
  const size_t page = os::page_size();
  return (span.large_bytes + page - 1) / page * page;
}

void free(Unit* span) noexcept {
  const size_t index = region::index_of(span);
  class_bytes()[index] = class_byte_none;
  const bool clean = span->moved && moves.load(std::memory_order_relaxed) > moves_to_tolerate &&
                     os::renew(region::address_of(index), span->units * unit_size);
  region::free(index, span->units, clean);
}

bool resize_in_place(Unit* span, size_t size) noexcept {
  if (size > PTRDIFF_MAX) return false;
  const size_t units = units_for(size);
  if (units != span->units && !region::resize(region::index_of(span), units)) return false;
  span->large_bytes = size;
  return true;
}

void* move(Unit* span, size_t size) noexcept {
  if (span->large_bytes < pages_worth_moving || size > PTRDIFF_MAX) return nullptr;
  const size_t slack = size / 8;  // address space only: the next growth may find it
  const size_t units = units_for(size + slack);
  bool clean = false;
  const size_t index = region::allocate(units, 1, UnitState::Large, &clean, region::Prefer::Clean);
  if (index == unit_index_none) return nullptr;
  const size_t old_index = region::index_of(span);
  const size_t old_bytes = span->units * unit_size;
  if (!os::move_pages(address_of(span), region::address_of(index), old_bytes)) {
    // The new span may have lost its mapping. If it cannot be had again, the span is never used.
    if (os::renew(region::address_of(index), units * unit_size)) region::free(index, units, true);
    return nullptr;
  }
  Unit* moved = region::unit_at(index);
  moved->moved = true;
  moves.fetch_add(1, std::memory_order_relaxed);
  moved->large_bytes = size;
  class_bytes()[old_index] = class_byte_none;
  class_bytes()[index] = class_byte_large;
  region::free(old_index, span->units, true);
  return region::address_of(index);
}

}  // namespace sluice::large
