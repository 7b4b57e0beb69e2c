// See pool.hpp.
#include "guarded/pool.hpp"

#include "guarded/report.hpp"
#include "guarded/slot.hpp"
#include "os/memory.hpp"

namespace sluice::guarded {
namespace {

constexpr uint32_t no_slot = UINT32_MAX;
constexpr size_t spans_at_once = 16;                  // of small slots, from the region
constexpr size_t large_share = 8;                     // one in so many slots may be larger than the smallest
constexpr size_t most_kept_bytes = size_t{16} << 10;  // of a slot whose block has ended
constexpr uint64_t left_share = 4;                    // one block in so many begins with its pages
constexpr unsigned char pattern = 0xca;               // around a block, on its own pages; see `margin`

// Slots whose block has ended, oldest first.
struct Queue {
  uint32_t first = no_slot, last = no_slot;
};

struct Pool {
  Mutex lock{LockRank::Guarded};
  Queue small SLUICE_GUARDED_BY(lock), large SLUICE_GUARDED_BY(lock), without_span SLUICE_GUARDED_BY(lock);
  size_t small_left, large_left;                   // slots that may still be made
  size_t live SLUICE_GUARDED_BY(lock), most_live;  // Busy ones included: a few freed slots are always kept
  size_t next_unit SLUICE_GUARDED_BY(lock), units_left SLUICE_GUARDED_BY(lock);  // spans that no slot has yet
};
constinit Pool pool{};
constinit std::atomic<uint32_t> deferred{no_slot};  // freed by signal handlers that interrupted the lock's holder
constinit std::atomic<uint64_t> placed{0};

void push(Queue& queue, Slot& slot) noexcept {
  slot.next = no_slot;
  if (queue.last != no_slot)
    slot_of_index(queue.last).next = slot.index;
  else
    queue.first = slot.index;
  queue.last = slot.index;
}

Slot* pop(Queue& queue) noexcept {
  if (queue.first == no_slot) return nullptr;
  Slot& slot = slot_of_index(queue.first);
  queue.first = slot.next;
  if (queue.first == no_slot) queue.last = no_slot;
  return &slot;
}

size_t small_units() noexcept {
  return (3 * os::page_size() + unit_size - 1) / unit_size;
}

// The slot's block has ended. Requires the lock.
void retire(Slot& slot) noexcept SLUICE_REQUIRES(pool.lock) {
  --pool.live;
  push(slot.units == small_units() ? pool.small : pool.large, slot);
  slot.state.store(SlotState::Freed, std::memory_order_release);
}

// Whether this thread may wait for the lock. Its holder may wait for the region's, which a signal handler's thread may
// hold: it would wait for itself.
bool may_wait() noexcept {
  return !pool.lock.held_by_this_thread() && !region::mutex().held_by_this_thread();
}

void defer(Slot& slot) noexcept {
  uint32_t head = deferred.load(std::memory_order_relaxed);
  do {
    slot.next = head;
  } while (!deferred.compare_exchange_weak(head, slot.index, std::memory_order_release, std::memory_order_relaxed));
}

// Holds the lock, and retires what signal handlers have left.
class SLUICE_HOLDS_LOCK PoolLock {
 public:
  PoolLock() noexcept SLUICE_TAKES(pool.lock) {
    pool.lock.lock();
    if (deferred.load(std::memory_order_relaxed) == no_slot) return;
    uint32_t index = deferred.exchange(no_slot, std::memory_order_acquire);  // pairs with defer
    while (index != no_slot) {
      Slot& slot = slot_of_index(index);
      index = slot.next;
      retire(slot);
    }
  }
  ~PoolLock() SLUICE_GIVES_BACK() { pool.lock.unlock(); }
  PoolLock(const PoolLock&) = delete;
  PoolLock& operator=(const PoolLock&) = delete;
};

void set_class_bytes(const Slot& slot, uint8_t byte) noexcept {
  for (uint32_t i = 0; i < slot.units; ++i) {
    region::unit_at(slot.unit + i)->guarded = {slot.index};
    class_bytes()[slot.unit + i] = byte;
  }
}

// A slot without a span; null when there is no memory, or as many as there may be.
Slot* make_slot(size_t& left) noexcept SLUICE_REQUIRES(pool.lock) {
  if (left == 0) return nullptr;
  Slot* const slot = add_slot();
  if (slot != nullptr) --left;
  return slot;
}

// An inaccessible span; false when it cannot be had.
bool take_span(size_t units, size_t* index) noexcept {
  bool clean = false;
  *index = region::allocate(units, 1, UnitState::Guarded, &clean, region::Prefer::Clean);
  if (*index == unit_index_none) return false;
  char* const span = region::address_of(*index);
  const size_t bytes = units * unit_size;
  if ((clean || os::purge(span, bytes)) && os::protect(span, bytes)) {
    os::set_dumped(span, bytes, false);
    return true;
  }
  // Some of the pages may have been protected; if they cannot be had back, the span is never used.
  if (os::commit(span, bytes)) region::give_back(*index, units, false);
  return false;
}

// Gives the slot a span of the smallest size. Several are taken from the region at once: they lie side by side, so that
// what is inaccessible between blocks is one mapping.
bool give_small_span(Slot& slot) noexcept SLUICE_REQUIRES(pool.lock) {
  const size_t units = small_units();
  if (pool.units_left == 0) {
    size_t taken = spans_at_once * units;
    if (!take_span(taken, &pool.next_unit)) {
      taken = units;
      if (!take_span(taken, &pool.next_unit)) return false;
    }
    pool.units_left = taken;
  } else if (region::mutex().held_by_this_thread()) {
    return false;
  }
  if (pool.units_left != units) region::split(pool.next_unit, units);
  slot.unit = static_cast<uint32_t>(pool.next_unit);
  slot.units = static_cast<uint32_t>(units);
  pool.next_unit += units;
  pool.units_left -= units;
  return true;
}

// Gives a span back to the region. False when the system does not let it.
bool drop_span(Slot& slot) noexcept {
  if (!os::commit(span_of(slot), slot.units * unit_size)) return false;
  os::set_dumped(span_of(slot), slot.units * unit_size, true);
  const uint32_t unit = slot.unit;
  set_class_bytes(slot, class_byte_none);
  slot.unit = unit_index_none;
  slot.data_pages = 0;
  region::give_back(unit, slot.units, false);
  return true;
}

Slot* take_small() noexcept SLUICE_REQUIRES(pool.lock) {
  Slot* slot = pop(pool.without_span);
  if (slot == nullptr) slot = make_slot(pool.small_left);
  if (slot == nullptr) return pop(pool.small);
  if (!give_small_span(*slot)) {
    push(pool.without_span, *slot);
    return pop(pool.small);
  }
  set_class_bytes(*slot, class_byte_guarded);
  return slot;
}

Slot* take_large(size_t units) noexcept SLUICE_REQUIRES(pool.lock) {
  Slot* slot = make_slot(pool.large_left);
  if (slot == nullptr) slot = pop(pool.without_span);
  if (slot == nullptr) {
    slot = pop(pool.large);
    if (slot == nullptr || slot->units == units) return slot;
    if (!drop_span(*slot)) {
      push(pool.large, *slot);
      return nullptr;
    }
  }
  size_t index = 0;
  if (!take_span(units, &index)) {
    push(pool.without_span, *slot);
    return nullptr;
  }
  slot->unit = static_cast<uint32_t>(index);
  slot->units = static_cast<uint32_t>(units);
  set_class_bytes(*slot, class_byte_guarded);
  return slot;
}

// A slot for a block of that many pages, which is the caller's then.
Slot* take_slot(size_t pages) noexcept {
  if (!may_wait()) return nullptr;
  const PoolLock held;
  if (pool.live >= pool.most_live) return nullptr;
  const size_t units = ((pages + 2) * os::page_size() + unit_size - 1) / unit_size;
  Slot* const slot = units <= small_units() ? take_small() : take_large(units);
  if (slot == nullptr) return nullptr;
  slot->state.store(SlotState::Busy, std::memory_order_relaxed);
  ++pool.live;
  return slot;
}

void give_back(Slot& slot) noexcept {
  if (!may_wait()) return defer(slot);
  const PoolLock held;
  retire(slot);
}

// Makes the pages for a block accessible, as many as it needs in the middle of the span.
bool open_pages(Slot& slot, size_t pages) noexcept {
  const size_t page = os::page_size();
  const size_t span_pages = slot.units * unit_size / page;
  if (slot.exposed.load(std::memory_order_relaxed)) {
    if (!os::protect(span_of(slot), slot.units * unit_size)) return false;
    slot.exposed.store(false, std::memory_order_relaxed);
  }
  if (slot.data_pages != pages) {
    if (slot.data_pages != 0) os::set_dumped(data_of(slot), data_bytes(slot), false);
    slot.data_pages = static_cast<uint16_t>(pages);
    slot.data_page = static_cast<uint16_t>((span_pages - pages) / 2);
    os::set_dumped(data_of(slot), data_bytes(slot), true);
  }
  return os::commit(data_of(slot), data_bytes(slot));
}

// Makes the pages inaccessible again. One page is kept in memory, so that the next block finds it there, unless pages
// are so large that those of all slots are more than a program should pay.
void close_pages(Slot& slot) noexcept {
  if (slot.data_pages > 1 || os::page_size() > most_kept_bytes) (void)os::purge(data_of(slot), data_bytes(slot));
  if (!os::protect(data_of(slot), data_bytes(slot))) slot.exposed.store(true, std::memory_order_relaxed);
}

char* end_of_data(const Slot& slot) noexcept {
  return data_of(slot) + data_bytes(slot);
}

// How far the pattern reaches on each side, and no farther than the block's pages.
constexpr size_t margin = 64;  // bytes

char* low_margin(const Slot& slot) noexcept {
  return slot.block - data_of(slot) > static_cast<ptrdiff_t>(margin) ? slot.block - margin : data_of(slot);
}
char* high_margin(const Slot& slot) noexcept {
  char* const end = slot.block + slot.size;
  return end_of_data(slot) - end > static_cast<ptrdiff_t>(margin) ? end + margin : end_of_data(slot);
}

void place(Slot& slot, size_t size, size_t alignment) noexcept {
  // Which end it is depends on a count and not on chance: with chance, a program that makes the same allocations in the
  // same order would have to run many times until an underflow is found.
  const bool left = placed.fetch_add(1, std::memory_order_relaxed) % left_share == left_share - 1;
  const auto end = reinterpret_cast<uintptr_t>(end_of_data(slot));
  slot.block = left ? data_of(slot) : reinterpret_cast<char*>((end - size) & ~static_cast<uintptr_t>(alignment - 1));
  slot.size = size;
  __builtin_memset(low_margin(slot), pattern, static_cast<size_t>(slot.block - low_margin(slot)));
  char* const after = slot.block + size;
  __builtin_memset(after, pattern, static_cast<size_t>(high_margin(slot) - after));
}

// The first byte of the margins that has been changed; null when there is none.
const char* damage(const Slot& slot) noexcept {
  for (const char* at = low_margin(slot); at < slot.block; ++at)
    if (static_cast<unsigned char>(*at) != pattern) return at;
  for (const char* at = slot.block + slot.size; at < high_margin(slot); ++at)
    if (static_cast<unsigned char>(*at) != pattern) return at;
  return nullptr;
}

}  // namespace

void set_slots(size_t slots) noexcept {
  if (slots > most_slots) slots = most_slots;
  pool.large_left = slots / large_share;
  pool.small_left = slots - pool.large_left;
  pool.most_live = slots - slots / large_share;
}

// The child of a fork has one thread, which needs no lock; the analysis cannot know that.
void abandon_slots() noexcept SLUICE_UNCHECKED_LOCKS {
  pool.small = pool.large = pool.without_span = {};
  pool.small_left = pool.large_left = pool.units_left = pool.most_live = 0;
}

void* allocate(size_t size, size_t alignment, bool zeroed) noexcept {
  const size_t page = os::page_size();
  if (size > most_bytes || alignment > page) return nullptr;
  if (alignment < min_alignment) alignment = min_alignment;
  const size_t pages = size != 0 ? (size + page - 1) / page : 1;
  Slot* const slot = take_slot(pages);
  if (slot == nullptr) return nullptr;
  if (!open_pages(*slot, pages)) {
    give_back(*slot);
    return nullptr;
  }
  slot->reported.store(false, std::memory_order_relaxed);
  slot->record = 0;
  slot->allocated.capture();
  place(*slot, size, alignment);
  if (zeroed) __builtin_memset(slot->block, 0, size);
  slot->state.store(SlotState::Live, std::memory_order_release);
  return slot->block;
}

bool free(void* block, size_t* size) noexcept {
  Slot& slot = slot_at(block);
  SlotState live = SlotState::Live;
  if (slot.state.load(std::memory_order_acquire) != SlotState::Live || slot.block != block ||
      !slot.state.compare_exchange_strong(live, SlotState::Busy, std::memory_order_acquire)) {
    report_bad_free(slot, block);
    return false;
  }
  *size = slot.size;
  slot.freed.capture();
  if (const char* const changed = damage(slot)) report_damage(slot, changed);
  close_pages(slot);
  give_back(slot);
  return true;
}

uint32_t& record_of(void* block) noexcept {
  return slot_at(block).record;
}

size_t usable_size(const void* block) noexcept {
  const Slot& slot = slot_at(block);
  return slot.state.load(std::memory_order_acquire) == SlotState::Live && slot.block == block ? slot.size : 0;
}

bool require_live(void* block, size_t* size) noexcept {
  Slot& slot = slot_at(block);
  if (slot.state.load(std::memory_order_acquire) == SlotState::Live && slot.block == block) {
    *size = slot.size;
    return true;
  }
  report_bad_free(slot, block);
  return false;
}

Figures figures() noexcept {
  Figures f{};
  f.slots = slot_count();
  for (size_t i = 0; i < f.slots; ++i) {
    const Slot& slot = slot_of_index(i);
    if (slot.unit == unit_index_none) continue;
    f.slot_bytes += slot.units * unit_size;
    if (slot.state.load(std::memory_order_acquire) != SlotState::Live) continue;
    ++f.live_blocks;
    f.live_bytes += slot.size;
  }
  return f;
}

Mutex& mutex() noexcept {
  return pool.lock;
}

}  // namespace sluice::guarded
