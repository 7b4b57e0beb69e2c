// See reuse.hpp. Compiled into libsluice-secure.so alone.
#include "heap/reuse.hpp"

#include <bit>
#include <utility>

#include "heap/block_state.hpp"
#include "heap/heap.hpp"
#include "heap/random.hpp"
#include "heap/thread_cache.hpp"
#include "pages/canary.hpp"

namespace sluice::hardened {
namespace {

constexpr unsigned frees_per_tick = 2;  // of larger blocks, as many as their generations had

// Puts a block that has waited into its bin, or into the heap if that does not take it.
void spill(Bin& bin, void* block) noexcept {
  keep_order();
  if (*static_cast<const uint64_t*>(block) != 0) [[unlikely]] {  // the link's word
    report_write_to_free(block);
  } else if (bin.room <= 0) {
    heap::free(block);
  } else {
    --bin.room;
    set_next(block, bin.head);
    keep_order();
    bin.head = block;
  }
}

// Likewise a generation.
void spill(ThreadCache* c, const Reuse& reuse, void** blocks) noexcept {
  Bin& bin = c->bins[&reuse - c->secure_part.reuse];
  for (unsigned i = reuse.generation(); i-- != 0;)
    if (void* const block = std::exchange(blocks[i], nullptr)) spill(bin, block);
}

unsigned class_of(const void* block) noexcept {
  return class_bytes()[unit_index_of(block)] / bin_stride;
}

// Puts a block into a slot of the ring. Returns: what was there. It is one step for a signal handler, which may free a
// whole ring in between, but not for other threads: that would take 8 ns more.
void* exchange_own(void*& slot, void* block) noexcept {
#if defined(__x86_64__)
  void* seen = slot;
  bool was_seen = false;
  while (!was_seen)  // NOLINT(bugprone-infinite-loop): the instruction says so
    asm volatile("cmpxchgq %3, %1" : "+a"(seen), "+m"(slot), "=@ccz"(was_seen) : "r"(block));
  return seen;
#else
  return __atomic_exchange_n(&slot, block, __ATOMIC_RELAXED);
#endif
}

// A bit for each slot of the ring that has a block of the class.
uint32_t larger_of(const ThreadCache& c, unsigned size_class) noexcept {
  uint32_t slots = 0;
  for (unsigned i = 0; i < SecureCache::larger_slots; ++i) {
    const void* const block = __atomic_load_n(&c.secure_part.larger[i], __ATOMIC_RELAXED);
    if (block != nullptr && class_of(block) == size_class) slots |= uint32_t{1} << i;
  }
  return slots;
}

// Nothing waits, and nothing is ready.
void start(Reuse& reuse) noexcept {
  reuse.next.store(reuse.first_queued, std::memory_order_relaxed);
  reuse.top.store(reuse.first_ready, std::memory_order_relaxed);
}

// Moves a generation to a stack, the first one to the top: what was freed together, in rising order most likely, serves
// in that order again.
template <unsigned count>
void move(void** from, void** to, uint64_t random) noexcept {
  constexpr unsigned together = count < 4 ? count : 4;
#pragma GCC unroll 4
  for (unsigned i = 0; i < count; i += together, random >>= 2)
#pragma GCC unroll 4
    for (unsigned k = 0; k < together; ++k)
      to[count - 1 - (i + (k ^ (random & (together - 1))))] = std::exchange(from[i + k], nullptr);
}

// Reports what waits to be used again and is not as it was left.
void check_kept(const ThreadCache& c) noexcept {
  const auto check_block = [](const void* address, unsigned k) {
    const auto* const block = static_cast<const uint64_t*>(address);
    if (block != nullptr && (block[0] != 0 || !is_untouched(block, class_sizes[k], canary_of(block)))) [[unlikely]]
      report_write_to_free(block);
  };
  for (unsigned k = 1; k < size_class_count; ++k) {
    const Reuse& reuse = c.secure_part.reuse[k];
    const auto check_slots = [&](unsigned first, unsigned end) {
      for (; first < end; ++first)
        check_block(c.secure_part.slots[first], k);
    };
    check_slots(reuse.first_queued, reuse.first_queued + queue_slots_of(class_sizes[k]));
    check_slots(reuse.first_ready, reuse.top.load(std::memory_order_relaxed));
  }
  for (const void* const block : c.secure_part.larger)
    if (block != nullptr) check_block(block, class_of(block));
}

}  // namespace

void abandon(ThreadCache& c) noexcept {
  if (!c.attached) return;
  __builtin_memset(static_cast<void*>(&c.secure_part), 0, sizeof c.secure_part);
  prepare(c);
}

void prepare(ThreadCache& c) noexcept {
  for (size_t i = 1; i < sizeof c.secure_part.bin_of; ++i)
    c.secure_part.bin_of[i] = class_byte_of(size_class_of((i + 1) * canary_size));
  c.secure_part.reuse[0].top.store(first_ready_slot(1), std::memory_order_relaxed);
  for (unsigned k = 1; k < size_class_count; ++k) {
    Reuse& reuse = c.secure_part.reuse[k];
    reuse.first_queued = static_cast<uint16_t>(first_queued_slot(k));
    reuse.first_ready = static_cast<uint16_t>(first_ready_slot(k));
    reuse.generation_mask = static_cast<uint8_t>(generation_of(class_sizes[k]) - 1);
    reuse.stack_capacity = static_cast<uint8_t>(stack_capacity_of(class_sizes[k]));
    c.secure_part.rows[k] = class_rows[k];
    start(reuse);
  }
}

void turn(ThreadCache* c, Reuse& reuse, uint32_t end) noexcept {
  const unsigned count = reuse.generation();
  const uint32_t before = end == reuse.first_queued + 2 * count ? reuse.first_queued : end;
  reuse.next.store(before, std::memory_order_release);
  if (!c->lock.held_by_this_thread()) cache::tick(*c, static_cast<unsigned>(&reuse - c->secure_part.reuse));
  void** const blocks = c->secure_part.slots + before;
  // No generation yet; or a signal handler has freed in the middle of a free, which no malloc takes.
  if (blocks[0] == nullptr || blocks[count - 1] == nullptr) return;
  const uint32_t top = reuse.top.load(std::memory_order_relaxed);
  if (top + count > uint32_t{reuse.first_ready} + reuse.stack_capacity || c->small_limit == 0 || clear_all)
    return spill(c, reuse, blocks);
  void** const to = c->secure_part.slots + top;
  const uint64_t random = cache::random_bits(*c);
  static_assert(generation_of(1) == 16 && generation_of(max_direct_size) == 2);
  if (count == 16)
    move<16>(blocks, to, random);
  else if (count == 8)
    move<8>(blocks, to, random);
  else if (count == 4)
    move<4>(blocks, to, random);
  else
    move<2>(blocks, to, random);
  reuse.top.store(top + count, std::memory_order_release);
}

// The slot is taken before it is filled: a signal handler that frees in between takes another one.
void set_aside_larger(ThreadCache& c, unsigned size_class, void* block) noexcept {
  SecureCache& part = c.secure_part;
  const unsigned slot = part.next_larger;
  part.next_larger = (slot + 1) % SecureCache::larger_slots;
  keep_order();
  void* const oldest = exchange_own(part.larger[slot], block);
  if (oldest != nullptr) spill(c.bins[class_of(oldest)], oldest);
  if (slot % frees_per_tick == 0 && !c.lock.held_by_this_thread()) cache::tick(c, size_class);
}

void* take_delayed(ThreadCache& c, unsigned size_class) noexcept {
  if (waits_with_others(size_class)) {
    const uint32_t slots = larger_of(c, size_class);
    if (slots == 0) return nullptr;
    void** const slot = &c.secure_part.larger[std::countr_zero(slots)];
    return __atomic_exchange_n(slot, static_cast<void*>(nullptr), __ATOMIC_RELAXED);
  }
  Reuse& reuse = c.secure_part.reuse[size_class];
  for (uint32_t top; (top = reuse.top.load(std::memory_order_relaxed)) > reuse.first_ready;) {
    reuse.top.store(top - 1, std::memory_order_relaxed);
    if (void* const block = c.secure_part.slots[top - 1]) return block;  // null where a signal handler came between
  }
  for (unsigned i = 0; i < 2 * reuse.generation(); ++i)
    if (void* const block = std::exchange(c.secure_part.slots[reuse.first_queued + i], nullptr)) return block;
  start(reuse);
  return nullptr;
}

size_t delayed_blocks(const ThreadCache& c, unsigned size_class) noexcept {
  if (waits_with_others(size_class)) return static_cast<size_t>(std::popcount(larger_of(c, size_class)));
  const Reuse& reuse = c.secure_part.reuse[size_class];
  size_t count = reuse.top.load(std::memory_order_relaxed) - reuse.first_ready;
  for (unsigned i = 0; i < 2 * reuse.generation(); ++i)
    if (__atomic_load_n(&c.secure_part.slots[reuse.first_queued + i], __ATOMIC_RELAXED) != nullptr) ++count;
  return count;
}

uint32_t delayed_mark(const ThreadCache& c, unsigned size_class) noexcept {
  if (waits_with_others(size_class)) return larger_of(c, size_class);
  const uint32_t next = c.secure_part.reuse[size_class].next.load(std::memory_order_relaxed);
  const size_t count = delayed_blocks(c, size_class);
  return count == 0 ? 0 : static_cast<uint32_t>(count << 8 | (next & 0xff));
}

void check_waiting() noexcept {
  ThreadCache* const c = thread_cache;
  if (!c->attached || c->lock.held_by_this_thread()) return;
  check_kept(*c);
  for (WaitingBlock& slot : c->secure_part.waiting)
    if (const WaitingBlock waiting = std::exchange(slot, WaitingBlock()); waiting && end(waiting))
      heap::free(waiting.block());
}

}  // namespace sluice::hardened
