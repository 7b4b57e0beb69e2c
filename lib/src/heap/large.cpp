// See large.hpp.
#include "heap/large.hpp"

#include <atomic>

#include "heap/quarantine.hpp"
#include "heap/region.hpp"
#include "heap/thread_cache.hpp"
#include "os/memory.hpp"

namespace sluice::large {
namespace {

// A span whose pages were moved has a mapping of its own, and a process may have some 65,000: beyond this many pages
// are copied.
constexpr uint32_t most_moved_spans = 2000;
constinit std::atomic<uint32_t> moved_spans{0};

constexpr size_t pages_worth_moving = 1024 * 1024;  // bytes; below it copying is cheaper than remapping

size_t units_for(size_t size) noexcept {
  return ((size + unit_size - 1) >> unit_shift) + guard_units;
}

char* address_of(const Unit* span) noexcept {
  return region::address_of(region::index_of(span));
}

// Several threads may look at it while one of them ends the block.
std::atomic_ref<uint8_t> class_byte_at(size_t index) noexcept {
  return std::atomic_ref(class_bytes()[index]);
}

// What was asked for is written by the block's user and read by whoever takes a snapshot.
void set_bytes(Unit& span, size_t size) noexcept {
  std::atomic_ref<uint64_t>(span.large_bytes).store(size, std::memory_order_relaxed);
}
size_t bytes_of(const Unit& span) noexcept {
  return std::atomic_ref<uint64_t>(const_cast<Unit&>(span).large_bytes).load(std::memory_order_relaxed);
}

// Replaces the mapping of the units from `from` on of a span that was moved, so that it merges with its neighbours.
// They read as zero then. False when that is not possible.
bool forget_mapping(Unit* span, size_t from) noexcept {
  if (from == 0) moved_spans.fetch_sub(1, std::memory_order_relaxed);
  return os::renew(address_of(span) + from * unit_size, (span->units - from) * unit_size);
}

bool reads_as_zero(const char* from, size_t bytes) noexcept {
  for (const char* at = from; at != from + bytes; at += sizeof(uint64_t)) {
    uint64_t word;
    __builtin_memcpy(&word, at, sizeof word);
    if (word != 0) return false;
  }
  return true;
}

// Takes back what of the pages at `block` was moved to `moved` before the system refused the rest.
__attribute__((noinline, cold)) void copy_back(char* block, const char* moved, size_t bytes) noexcept {
  const size_t page = os::page_size();
  for (size_t at = 0; at != bytes; at += page)
    if (os::is_mapped(moved + at, page) && !reads_as_zero(moved + at, page))
      __builtin_memcpy(block + at, moved + at, page);
}

// Spans that lost their mapping while the system had none to give: a list by their first units' `next`.
constinit std::atomic<uint32_t> lost_spans{unit_index_none};

void put_lost(uint32_t index) noexcept {
  uint32_t head = lost_spans.load(std::memory_order_relaxed);
  do
    region::unit_at(index)->next = head;
  while (!lost_spans.compare_exchange_weak(head, index, std::memory_order_release, std::memory_order_relaxed));
}

// Gives back a span whose mapping may have been lost. False when it is, and cannot be had again for now.
__attribute__((noinline, cold)) bool give_up(size_t index) noexcept {
  const size_t units = region::unit_at(index)->units;
  const bool renewed = os::renew(region::address_of(index), units * unit_size);
  if (!renewed && !os::is_mapped(region::address_of(index), units * unit_size)) {
    put_lost(static_cast<uint32_t>(index));
    return false;
  }
  region::free(index, units, renewed);
  return true;
}

// Gives back the lost spans that the system has a mapping for now.
__attribute__((noinline, cold)) void recover_lost() noexcept {
  // Acquire: pairs with put_lost. Nobody else has the list then.
  uint32_t index = lost_spans.exchange(unit_index_none, std::memory_order_acquire);
  for (bool more = true; index != unit_index_none;) {
    const uint32_t next = region::unit_at(index)->next;
    if (more)
      more = give_up(index);
    else
      put_lost(index);
    index = next;
  }
}

// In a secure build the span's last unit cannot be touched.
void guard(size_t index, size_t units) noexcept {
  region::guard(index, (units - guard_units) * unit_size);
}

// A span of a secure build. Inline, since without optimization gcc emits every other function of the file, called or
// not, and there is no quarantine to link in other builds.
inline size_t allocate_guarded(size_t units, size_t align_units, bool* clean) noexcept {
  size_t index = align_units == 1 ? quarantine::take(units, UnitState::Large) : unit_index_none;
  if (index != unit_index_none) return index;
  index = region::allocate(units, align_units, UnitState::Large, clean);
  if (index == unit_index_none && units < region_window_units) {
    cache::flush_idle();  // a block that waits to be used again may keep a slab in the way
    (void)quarantine::release_all();
    index = region::allocate(units, align_units, UnitState::Large, clean);
  }
  if (index != unit_index_none) guard(index, units);
  return index;
}

constexpr size_t worth_purging = (size_t{1} << 20) / unit_size;  // units that a block which shrinks leaves

// Likewise: what grows takes half as many units again, or what it needs, and need not do so again soon, since the guard
// that moves costs two system calls.
inline bool resize_guarded(Unit* span, size_t index, size_t units) noexcept {
  const size_t had = span->units;
  const size_t bytes = bytes_of(*span);
  const size_t most = units + units / 2 + 1;
  if (units <= had && had <= most) {
    const size_t used = units_for(bytes);
    if (used >= units + worth_purging)
      (void)os::purge(address_of(span) + (units - guard_units) * unit_size, (used - units) * unit_size);
    return true;
  }
  if (units > had && !region::resize(index, most) && !region::resize(index, units)) return false;
  if (!region::open(index)) {
    if (span->units != had) {
      (void)region::resize(index, had);
      set_bytes(*span, bytes);
      guard(index, had);
    }
    return false;
  }
  if (units < had) {
    if (span->moved) (void)forget_mapping(span, units);
    (void)region::resize(index, units);
  }
  guard(index, span->units);
  return true;
}

}  // namespace

void* allocate(size_t size, size_t alignment, bool zeroed) noexcept {
  if (size > PTRDIFF_MAX || alignment > PTRDIFF_MAX) return nullptr;
  const size_t units = units_for(size);
  const size_t align_units = alignment > unit_size ? alignment >> unit_shift : 1;
  bool clean = false;
  const size_t index = secure ? allocate_guarded(units, align_units, &clean)
                              : region::allocate(units, align_units, UnitState::Large, &clean);
  if (index == unit_index_none) return nullptr;
  Unit* span = region::unit_at(index);
  span->moved = false;
  set_bytes(*span, size);
  class_bytes()[index] = class_byte_large;
  char* block = region::address_of(index);
  if (zeroed && !clean) __builtin_memset(block, 0, size);
  return block;
}

Unit* find(const void* block) noexcept {
  const size_t index = unit_index_of(block);
  if (index >= region_window_units || class_byte_at(index).load(std::memory_order_relaxed) != class_byte_large)
    return nullptr;
  return region::address_of(index) == block ? region::unit_at(index) : nullptr;
}

size_t requested_bytes(const Unit& span) noexcept {
  return bytes_of(span);
}

size_t usable_size(const Unit& span) noexcept {
  const size_t page = os::page_size();
  return (bytes_of(span) + page - 1) / page * page;
}

Unit* claim(const void* block) noexcept {
  Unit* const span = find(block);
  uint8_t live = class_byte_large;
  // Relaxed: the region's lock orders what is done to the span from here on.
  const bool claimed =
      span != nullptr &&
      class_byte_at(region::index_of(span)).compare_exchange_strong(live, class_byte_none, std::memory_order_relaxed);
  return claimed ? span : nullptr;
}

void free(Unit* span) noexcept {
  const size_t index = region::index_of(span);
  const bool clean = span->moved && forget_mapping(span, 0);
  if (secure && clean) guard(index, span->units);  // the new mapping has none
  if (secure)
    quarantine::put(index);
  else
    region::free(index, span->units, clean);
}

bool resize_in_place(Unit* span, size_t size) noexcept {
  if (size > PTRDIFF_MAX) return false;
  const size_t index = region::index_of(span);
  const size_t units = units_for(size);
  if (secure) {
    if (!resize_guarded(span, index, units)) return false;
  } else if (units != span->units) {
    if (units < span->units && span->moved) (void)forget_mapping(span, units);
    if (!region::resize(index, units)) return false;
  }
  set_bytes(*span, size);
  return true;
}

void* move(Unit* span, size_t size) noexcept {
  // Pages that were moved are a mapping apart from what follows them, and only one mapping can be moved: the next time
  // they are copied, and the time after that moved again.
  if (span->moved || span->large_bytes < pages_worth_moving || size > PTRDIFF_MAX ||
      moved_spans.load(std::memory_order_relaxed) >= most_moved_spans)
    return nullptr;
  if (lost_spans.load(std::memory_order_relaxed) != unit_index_none) recover_lost();
  const size_t slack = size / 8;  // address space only: the next growth may find it
  const size_t units = units_for(size + slack);
  if (units < span->units) return nullptr;  // all of its pages are moved
  bool clean = false;
  const size_t index = region::allocate(units, 1, UnitState::Large, &clean, region::Prefer::Clean);
  if (index == unit_index_none) return nullptr;
  const size_t old_index = region::index_of(span);
  if (secure && !region::open(old_index)) {
    region::free(index, units, clean);
    return nullptr;
  }
  // What does not read as zero there after a failure must have been moved.
  const bool ready = clean || os::renew(region::address_of(index), units * unit_size);
  if (!ready || !os::move_pages(address_of(span), region::address_of(index), span->units * unit_size)) {
    if (ready) copy_back(address_of(span), region::address_of(index), span->units * unit_size);
    (void)give_up(index);
    if (secure) guard(old_index, span->units);
    return nullptr;
  }
  Unit* moved = region::unit_at(index);
  moved->moved = true;
  moved_spans.fetch_add(1, std::memory_order_relaxed);
  set_bytes(*moved, size);
  if (secure) guard(index, units);
  class_bytes()[old_index] = class_byte_none;
  class_bytes()[index] = class_byte_large;
  region::free(old_index, span->units, true);
  return region::address_of(index);
}

}  // namespace sluice::large
