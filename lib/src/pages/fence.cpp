// See fence.hpp. Compiled into libsluice-secure.so alone.
#include "pages/fence.hpp"

#include "pages/canary.hpp"
#include "pages/region.hpp"

namespace sluice::hardened {
namespace {

constexpr size_t most_saved_calls = 256;
constexpr size_t worth_dropping = size_t{256} << 10;     // bytes; clearing less is cheaper than fresh pages are
constexpr size_t most_resident_bytes = size_t{4} << 20;  // a freed block with more open bytes is dropped at once
constinit std::atomic<uint64_t> last_saved_ms{0};

// Whether a few microseconds may be spent; clocks are read only when the budget is used up.
bool is_affordable() noexcept {
  if (call_budget.left.load(std::memory_order_relaxed) <= 0) {
    if (call_budget.ms_per_call == 0) return false;
    const uint64_t now = os::clock_ms();
    uint64_t last = last_saved_ms.load(std::memory_order_relaxed);
    const uint64_t saved = now <= last ? 0 : (now - last) / call_budget.ms_per_call;
    if (saved == 0 || !last_saved_ms.compare_exchange_strong(last, now, std::memory_order_relaxed)) return false;
    call_budget.left.store(static_cast<int64_t>(lesser(saved, most_saved_calls)), std::memory_order_relaxed);
  }
  return call_budget.left.fetch_sub(1, std::memory_order_relaxed) > 0;
}

// What the program asked for, of what was asked of the heap.
size_t size_without_canary(size_t bytes) noexcept {
  return bytes > canary_size ? bytes - canary_size : 0;
}

size_t whole(const Unit& span) noexcept {
  return size_t{span.units} * unit_size;
}

void set_touchable(Unit& span, size_t bytes) noexcept {
  span.large.touchable_pages = static_cast<uint32_t>(bytes / os::page_size());
}

size_t size_of(const Unit& span) noexcept {
  return size_without_canary(span.large.bytes.load(std::memory_order_relaxed));
}

// Bytes of the canary behind a block that its open pages have room for.
size_t canary_room(const Unit& span, size_t size) noexcept {
  const size_t open = touchable(span);
  return open <= size ? 0 : lesser(open - size, canary_size);
}

}  // namespace

constinit CallBudget call_budget{most_saved_calls, 2};

size_t needed_bytes(size_t bytes) noexcept {
  const size_t page = os::page_size();
  return (size_without_canary(bytes) + page - 1) / page * page;
}

void fence(size_t index, size_t needed) noexcept {
  Unit& span = *region::unit_at(index);
  span.large.closed = span.large.watched = span.large.cleared = false;
  (void)region::guard(index, needed);
  set_touchable(span, span.has_guard ? needed : whole(span));
}

bool refit(size_t index, size_t needed) noexcept {
  Unit& span = *region::unit_at(index);
  const size_t open = touchable(span);
  if (!span.has_guard || needed == open) return true;
  if (needed < open) {
    if (is_affordable() && region::guard(index, needed)) set_touchable(span, needed);
    return true;
  }
  // A block that grows is likely to grow again.
  const size_t opened = is_affordable() ? needed : whole(span) - guard_units * unit_size;
  if (!region::open_front(index, opened)) return false;
  set_touchable(span, opened);
  return true;
}

void close(size_t index, bool always) noexcept {
  Unit& span = *region::unit_at(index);
  char* const block = region::address_of(index);
  const size_t open = touchable(span);
  const bool dropped = !clear_all && open > most_resident_bytes && !region::keeps_all() && os::purge(block, open);
  if (clear_all)
    clear(block, open);
  else if (!dropped)
    __builtin_memset(block, 0, lesser(lesser(cleared_size, size_of(span)), open));
  span.large.cleared = clear_all;
  span.large.closed = false;
  if (always || is_affordable()) span.large.closed = region::shut(index) || !region::open_front(index, open);
  span.large.watched = !span.large.closed;
  if (span.large.watched && dropped) write_end(span, block, size_of(span));
}

void note_open(size_t index) noexcept {
  Unit& span = *region::unit_at(index);
  span.large.closed = span.large.watched = span.large.cleared = false;
  set_touchable(span, span.has_guard ? whole(span) - guard_units * unit_size : whole(span));
}

Reopened reopen(size_t index, size_t needed, bool* clean) noexcept {
  Unit& span = *region::unit_at(index);
  const size_t open = touchable(span);
  if (!is_as_left(index)) return Reopened::Damaged;
  if (span.large.closed) {
    if (!region::open_front(index, needed)) return Reopened::Refused;
    set_touchable(span, needed);
    span.large.closed = false;
  } else if (!refit(index, needed)) {
    return Reopened::Refused;
  }
  span.large.watched = false;
  *clean = span.large.cleared;
  if (span.large.cleared && needed > open) clear(region::address_of(index) + open, needed - open);
  return Reopened::Ready;
}

bool is_as_left(size_t index) noexcept {
  const Unit& span = *region::unit_at(index);
  if (span.use() != UnitState::Large || !span.large.watched) return true;
  const char* const block = region::address_of(index);
  const size_t size = size_of(span);
  const bool holds = span.large.cleared
                         ? reads_as_zero(block, block + touchable(span))
                         : reads_as_zero(block, block + lesser(cleared_size, size)) && end_holds(span, block, size);
  if (!holds) report_write_to_free(block);
  return holds;
}

void clear(char* at, size_t bytes) noexcept {
  const size_t page = os::page_size();
  const size_t skip = (page - reinterpret_cast<uintptr_t>(at) % page) % page;
  if (bytes > worth_dropping + page) {
    const size_t pages = (bytes - skip) / page * page;
    if (!region::keeps_all() && os::purge(at + skip, pages)) {
      __builtin_memset(at, 0, skip);
      at += skip + pages;
      bytes -= skip + pages;
    }
  }
  __builtin_memset(at, 0, bytes);
}

void clear_new(char* block, size_t bytes, bool zeroed) noexcept {
  const size_t size = size_without_canary(bytes);  // the page behind may be out of reach
  if (zeroed)
    __builtin_memset(block, 0, size);
  else if (clear_all)
    clear(block, size);
  else
    __builtin_memset(block, 0, lesser(cleared_size, size));
}

void write_end(const Unit& span, char* block, size_t size) noexcept {
  const uint64_t canary = rotated_for(block + size, canary_of(block));
  const size_t room = canary_room(span, size);
  if (room == sizeof canary) [[likely]]
    __builtin_memcpy(block + size, &canary, sizeof canary);
  else
    __builtin_memcpy(block + size, &canary, room);
}

bool end_holds(const Unit& span, const char* block, size_t size) noexcept {
  const uint64_t canary = rotated_for(block + size, canary_of(block));
  if (canary_room(span, size) == sizeof canary) [[likely]]
    return canary_holds(block + size, canary_of(block));
  return __builtin_memcmp(block + size, &canary, canary_room(span, size)) == 0;
}

}  // namespace sluice::hardened
