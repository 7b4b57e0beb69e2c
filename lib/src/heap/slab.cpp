#include "heap/slab.hpp"

#include "os/memory.hpp"

namespace sluice::slab {
namespace {

static_assert(blocks_per_slab(1) <= UINT16_MAX);
static_assert(units_per_slab(size_class_count - 1) * unit_size / min_alignment <= UINT16_MAX + 1);

// `owner` is read without its lock by remote frees (pairs with the stores in create and change_owner).
ThreadCache& owner_of(const Unit* s) noexcept { return *s->owner.load(std::memory_order_relaxed); }

uint32_t index32(const Unit* s) noexcept { return static_cast<uint32_t>(region::index_of(s)); }

void link_partial(ThreadCache& owner, Unit* s) noexcept {
  uint32_t& head = owner.partial[s->size_class];
  s->prev = unit_index_none;
  s->next = head;
  if (head != unit_index_none) region::unit_at(head)->prev = index32(s);
  head = index32(s);
}

void unlink_partial(ThreadCache& owner, Unit* s) noexcept {
  (s->prev != unit_index_none ? region::unit_at(s->prev)->next : owner.partial[s->size_class]) = s->next;
  if (s->next != unit_index_none) region::unit_at(s->next)->prev = s->prev;
}

bool is_partial(const Unit* s) noexcept { return s->free_count != 0 || s->carved < s->capacity; }

// Cuts blocks off the part never used: what fits a page, and at least one.
BlockList carve(Unit* s, uint32_t most) noexcept {
  const uint32_t size = class_sizes[s->size_class];
  uint32_t count = static_cast<uint32_t>(os::page_size()) / size;
  if (count > most) count = most;
  if (count == 0) count = 1;
  if (count > uint32_t{s->capacity} - s->carved) count = uint32_t{s->capacity} - s->carved;
  char* const first = start_of(s) + size_t{s->carved} * size;
  char* block = first;
  for (uint32_t i = 1; i < count; ++i, block += size) next_of(block) = block + size;
  next_of(block) = nullptr;
  s->carved = static_cast<uint16_t>(s->carved + count);
  s->used = static_cast<uint16_t>(s->used + count);
  return {first, block, count};
}

void set_class_bytes(const Unit* s, uint8_t byte) noexcept {
  __builtin_memset(class_bytes() + region::index_of(s), byte, s->units);
}

void push_pending(ThreadCache& owner, Unit* s) noexcept {
  uint32_t head = owner.pending.load(std::memory_order_relaxed);
  do {
    s->pending_next.store(head, std::memory_order_relaxed);
    // Release: pairs with the acquiring exchange in collect_pending. Sequentially consistent: pairs with `orphan`, so that
    // either the ending thread sees this slab or the caller sees that the thread has ended.
  } while (!owner.pending.compare_exchange_weak(head, index32(s), std::memory_order_seq_cst, std::memory_order_relaxed));
  owner.pending_count.fetch_add(1, std::memory_order_relaxed);
}

// Takes blocks back; says whether the slab holds nothing now.
bool put(ThreadCache& owner, Unit* s, BlockList blocks) noexcept {
  const bool was_partial = is_partial(s);
  next_of(blocks.last) = s->free;
  s->free = blocks.first;
  s->free_count = static_cast<uint16_t>(s->free_count + blocks.count);
  s->used = static_cast<uint16_t>(s->used - blocks.count);
  if (!was_partial) link_partial(owner, s);
  return s->used == 0;
}

void destroy_if_spare(ThreadCache& owner, Unit* s) noexcept {
  if (s->prev == unit_index_none && s->next == unit_index_none) return;  // the last one of its class: keep it
  unlink_partial(owner, s);
  destroy(s);
}

}  // namespace

Unit* create(ThreadCache& owner, unsigned size_class) noexcept {
  const size_t units = units_per_slab(size_class);
  bool clean = false;
  const size_t index = region::allocate(units, 1, UnitState::Slab, &clean);
  if (index == unit_index_none) return nullptr;
  Unit* s = region::unit_at(index);
  for (size_t i = 0; i < units; ++i) {
    s[i].back = static_cast<uint32_t>(i);
    s[i].state = UnitState::Slab;
  }
  s->free = nullptr;
  s->remote.store(0, std::memory_order_relaxed);
  s->units = static_cast<uint32_t>(units);
  s->free_count = s->used = s->carved = 0;
  s->capacity = static_cast<uint16_t>(blocks_per_slab(size_class));
  s->size_class = static_cast<uint8_t>(size_class);
  s->owner.store(&owner, std::memory_order_relaxed);  // whoever gets a block is told of it by the program
  set_class_bytes(s, class_byte_of(size_class));
  link_partial(owner, s);
  ++owner.slab_count;
  return s;
}

void destroy(Unit* s) noexcept {
  --owner_of(s).slab_count;
  set_class_bytes(s, class_byte_none);
  region::free(region::index_of(s), s->units, false);
}

BlockList take_blocks(Unit* s) noexcept {
  BlockList blocks;
  if (s->free_count != 0) {
    blocks = {s->free, nullptr, s->free_count};
    s->used = static_cast<uint16_t>(s->used + s->free_count);
    s->free = nullptr;
    s->free_count = 0;
  } else {
    blocks = carve(s, UINT16_MAX);
  }
  if (!is_partial(s)) unlink_partial(owner_of(s), s);
  return blocks;
}

void* take_one(Unit* s) noexcept {
  void* block;
  if (s->free_count != 0) {
    block = s->free;
    s->free = next_of(block);
    --s->free_count;
    ++s->used;
  } else {
    block = carve(s, 1).first;
  }
  if (!is_partial(s)) unlink_partial(owner_of(s), s);
  return block;
}

void put_blocks(Unit* s, BlockList blocks) noexcept {
  ThreadCache& owner = owner_of(s);
  if (put(owner, s, blocks)) destroy_if_spare(owner, s);
}

void put_remote(Unit* s, BlockList blocks) noexcept {
  char* const start = start_of(s);
  const auto granule = [start](void* block) { return static_cast<uint64_t>(static_cast<char*>(block) - start) / min_alignment; };
  uint64_t seen = s->remote.load(std::memory_order_relaxed);
  RemoteWord old;
  RemoteWord now{};
  do {
    old = std::bit_cast<RemoteWord>(seen);
    now = old;
    next_of(blocks.last) = old.count != 0 ? start + old.head * min_alignment : nullptr;
    now.head = granule(blocks.first) & 0xffff;
    if (old.count == 0) now.tail = granule(blocks.last) & 0xffff;
    now.count = (old.count + blocks.count) & 0xffff;
    now.queued = 1;
    // Release: the links written into the blocks, and the program's last use of them, are seen by collect_pending.
  } while (!s->remote.compare_exchange_weak(seen, std::bit_cast<uint64_t>(now), std::memory_order_release,
                                            std::memory_order_relaxed));
  if (old.queued != 0) return;
  ThreadCache& owner = owner_of(s);
  push_pending(owner, s);
  // A thread that has ended does not look any more; one that is idle may not look for long.
  constexpr uint32_t patience = 64;  // slabs
  if (owner.orphan.load(std::memory_order_seq_cst) || owner.pending_count.load(std::memory_order_relaxed) > patience) {
    if (owner.lock.try_lock()) {
      collect_pending(owner);
      owner.lock.unlock();
    }
  }
}

void collect_pending(ThreadCache& owner) noexcept {
  // Acquire: pairs with push_pending.
  uint32_t index = owner.pending.exchange(unit_index_none, std::memory_order_seq_cst);
  if (index != unit_index_none) owner.pending_count.store(0, std::memory_order_relaxed);
  while (index != unit_index_none) {
    Unit* s = region::unit_at(index);
    index = s->pending_next.load(std::memory_order_relaxed);
    ThreadCache& current = owner_of(s);
    if (&current != &owner) {  // it changed hands while it was queued here
      push_pending(current, s);
      continue;
    }
    // Acquire: pairs with put_remote. Also ends `queued`: from here on the slab may be queued again.
    const RemoteWord word = std::bit_cast<RemoteWord>(s->remote.exchange(0, std::memory_order_acquire));
    char* const start = start_of(s);
    const BlockList blocks{start + word.head * min_alignment, start + word.tail * min_alignment,
                           static_cast<uint32_t>(word.count)};
    if (put(owner, s, blocks)) destroy_if_spare(owner, s);
  }
}

void destroy_empty(ThreadCache& owner) noexcept {
  for (unsigned c = 1; c < size_class_count; ++c) {
    for (uint32_t i = owner.partial[c]; i != unit_index_none;) {
      Unit* s = region::unit_at(i);
      i = s->next;
      if (s->used != 0) continue;
      unlink_partial(owner, s);
      destroy(s);
    }
  }
}

void change_owner(Unit* s, ThreadCache& to) noexcept {
  ThreadCache& from = owner_of(s);
  unlink_partial(from, s);
  --from.slab_count;
  s->owner.store(&to, std::memory_order_relaxed);
  link_partial(to, s);
  ++to.slab_count;
}

}  // namespace sluice::slab
