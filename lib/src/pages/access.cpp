// See access.hpp.
#include "pages/access.hpp"

#include <atomic>

#include "os/memory.hpp"
#include "pages/region_state.hpp"

namespace sluice::region {
namespace {

// Each span with a guard costs two mappings, and a process may have some 65,000: half of them stay the program's.
constexpr uint32_t most_guards = 16'000;
constinit std::atomic<uint32_t> guard_count{0};

}  // namespace

bool guard(size_t index, size_t bytes) noexcept {
  Unit& span = region_units[index];
  const size_t from = round_up(bytes, os::page_size());
  const size_t end = span.units * unit_size;
  if (from >= end) return true;
  if (!span.has_guard && guard_count.load(std::memory_order_relaxed) >= most_guards) return false;
  if (!span.has_guard) guard_count.fetch_add(1, std::memory_order_relaxed);
  span.has_guard = true;  // also where the system refuses: some of the pages may have been protected
  return os::protect(address_of(index) + from, end - from);
}

bool shut(size_t index) noexcept {
  return guard(index, 0);
}

bool open(size_t index) noexcept {
  Unit& span = region_units[index];
  if (!span.has_guard) return true;
  if (!os::commit(address_of(index), span.units * unit_size)) return false;
  span.has_guard = false;
  guard_count.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

bool open_front(size_t index, size_t bytes) noexcept {
  return !region_units[index].has_guard || os::commit(address_of(index), round_up(bytes, os::page_size()));
}

}  // namespace sluice::region
