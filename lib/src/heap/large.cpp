// See large.hpp.
#include "heap/large.hpp"

#include "os/atomic_ref.hpp"
#include "os/memory.hpp"
#include "pages/fence.hpp"
#include "pages/free_spans.hpp"
#include "pages/lost_spans.hpp"
#include "pages/mappings.hpp"
#include "pages/region.hpp"
#include "pages/spans.hpp"

namespace sluice::large {

constinit std::atomic<size_t> dropped_from{SIZE_MAX};  // see drop_freed()

namespace {

using detail::class_byte_at;

constexpr size_t worth_asking = size_t{1} << 30;  // bytes; the system is asked whether it would give so much

bool can_be_promised(size_t size) noexcept {
  return size < worth_asking || os::can_be_promised(size);
}

// What counts of a block that becomes larger is by how much.
bool can_be_promised(size_t had, size_t size) noexcept {
  return size <= had || can_be_promised(size - had);
}

constexpr size_t pages_worth_moving = 1024 * 1024;  // bytes; below it copying is cheaper than remapping

// Zeroes that are not touched must not cost memory: a program may ask for far more of them than it needs.
constexpr size_t clean_from = size_t{32} << 20;  // bytes
region::Prefer pages_for(size_t size, bool zeroed) noexcept {
  if (!zeroed) return region::Prefer::Dirty;
  return size < clean_from ? region::Prefer::Cleared : region::Prefer::Clean;
}

char* address_of(const Unit* span) noexcept {
  return region::address_of(region::index_of(span));
}

void set_bytes(Unit& span, size_t size) noexcept {
  span.large.bytes.store(size, std::memory_order_relaxed);
}
size_t bytes_of(const Unit& span) noexcept {
  return span.large.bytes.load(std::memory_order_relaxed);
}

// Makes a span shorter; its block stays whole. False in a signal handler that interrupted the region.
bool cut(Unit* span, size_t units) noexcept {
  return region::resize(region::index_of(span), units);
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

constexpr size_t worth_purging = (size_t{1} << 20) / unit_size;  // units that a block which shrinks leaves

// Where spans have guards. Inline, since without optimization gcc emits every other function of the file, called or
// not, and other builds link nothing of it: what grows takes half as many units again, or what it needs, and need not
// do so again soon, since the guard that moves costs two system calls.
inline bool resize_guarded(Unit* span, size_t index, size_t size) noexcept {
  const size_t units = units_for(size);
  const size_t had = span->units;
  const size_t bytes = bytes_of(*span);
  const size_t most = units + units / 2 + 1;
  const size_t needed = hardened::needed_bytes(size);
  if (units <= had && had <= most) {
    if (!hardened::refit(index, needed)) return false;
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
      hardened::fence(index, hardened::needed_bytes(bytes));
    }
    return false;
  }
  if (units < had) {
    (void)cut(span, units);
  }
  hardened::fence(index, needed);
  return true;
}

// Brings free pages to that part of the span at `index` by which the block of another one grows to `size` bytes. False
// if the span has lost its mapping. Not where spans have guards, which lie where the pages would come.
bool fill_moved(size_t index, const Unit& grown, size_t size, bool clean) noexcept {
  if (guards_spans || !clean) return true;
  const size_t needed = units_for(size + lead_of(grown));
  return needed <= grown.units || region::fill_end(index + grown.units, needed - grown.units, grown.units);
}

}  // namespace

void* allocate(size_t size, size_t alignment, bool zeroed) noexcept {
  if (size > PTRDIFF_MAX || alignment > PTRDIFF_MAX || !can_be_promised(size)) return nullptr;
  const size_t units = units_for(size);
  const size_t align_units = alignment > unit_size ? alignment >> unit_shift : 1;
  bool clean = false;
  const size_t index = spans::take_large(units, align_units, size, pages_for(size, zeroed), &clean);
  if (index == unit_index_none) return nullptr;
  auto* const block = static_cast<char*>(begin_block(index, size, alignment));
  if (clean) return block;
  if (!clears_memory && zeroed) __builtin_memset(block, 0, usable_size(*region::unit_at(index)));
  if (clears_memory) hardened::clear_new(block, size, zeroed);
  return block;
}

void* allocate_recent(size_t size, size_t alignment) noexcept {
  if (quarantines_spans || size > FreeSpans::longest_recent * unit_size) return nullptr;
  const size_t index = region::allocate_recent(units_for(size), UnitState::Large);
  return index != unit_index_none ? begin_block(index, size, alignment) : nullptr;
}

bool is_live(const Unit& span) noexcept {
  return class_byte_at(region::index_of(&span)).load(std::memory_order_relaxed) == class_byte_large;
}

size_t requested_bytes(const Unit& span) noexcept {
  return bytes_of(span);
}

size_t usable_size(const Unit& span) noexcept {
  const size_t last_of_page = os::page_size() - 1;
  const size_t lead = lead_of(span);
  return ((lead + bytes_of(span) + last_of_page) & ~last_of_page) - lead;
}

Unit* claim(const void* block) noexcept {
  Unit* const span = find(block);
  return span != nullptr && claim(*span) ? span : nullptr;
}

void give_back(Unit* span) noexcept {
  const size_t index = region::index_of(span);
  lost_spans::recover();
  const bool clean = is_dropped(*span) && os::purge(region::address_of(index), span->units * unit_size);
  spans::give_back_large(index, clean);
}

void drop_freed(size_t bytes) noexcept {
  dropped_from.store(bytes, std::memory_order_relaxed);
}

bool resize_in_place(Unit* span, size_t size) noexcept {
  if (size > PTRDIFF_MAX || !can_be_promised(bytes_of(*span), size)) return false;
  const size_t index = region::index_of(span);
  if (guards_spans) {
    if (!resize_guarded(span, index, size)) return false;
  } else if (const size_t units = units_for(size + lead_of(*span)); units != span->units) {
    if (!(units < span->units ? cut(span, units) : region::resize(index, units))) return false;
  }
  set_bytes(*span, size);
  return true;
}

void* move(Unit* span, size_t size) noexcept {
  if (bytes_of(*span) < pages_worth_moving || size > PTRDIFF_MAX || os::is_memory_locked() ||
      !can_be_promised(bytes_of(*span), size))
    return nullptr;  // pages that move leave memory behind that is not locked any more
  if (region::mappings_left() < region::mappings_in(region::index_of(span), span->units)) return nullptr;
  lost_spans::recover();
  const size_t slack = size / 8;  // address space only: the next growth may find it
  const size_t units = units_for(size + slack + lead_of(*span));
  if (units < span->units) return nullptr;  // all of its pages are moved
  bool clean = false;
  const size_t index = region::allocate(units, 1, UnitState::Large, &clean, region::Prefer::Clean);
  if (index == unit_index_none) return nullptr;
  if (!fill_moved(index, *span, size, clean)) {
    (void)lost_spans::give_back(index);
    return nullptr;
  }
  const size_t old_index = region::index_of(span);
  if (guards_spans && !region::open(old_index)) {
    region::give_back(index, units, clean);
    return nullptr;
  }
  const region::Moved outcome = region::move_pages(old_index, index, span->units, clean);
  if (outcome != region::Moved::All) {
    if (outcome == region::Moved::Partly)
      copy_back(address_of(span), region::address_of(index), span->units * unit_size);
    (void)lost_spans::give_back(index);
    if (guards_spans) hardened::fence(old_index, hardened::needed_bytes(bytes_of(*span)));
    return nullptr;
  }
  Unit* moved = region::unit_at(index);
  set_bytes(*moved, size);
  moved->large.lead.store(span->large.lead.load(std::memory_order_relaxed), std::memory_order_relaxed);
  if (guards_spans) hardened::fence(index, hardened::needed_bytes(size));
  class_byte_at(old_index).store(class_byte_none, std::memory_order_relaxed);
  class_byte_at(index).store(class_byte_large, std::memory_order_relaxed);
  region::give_back_emptied(old_index, span->units);
  return block_of(*moved);
}

}  // namespace sluice::large
