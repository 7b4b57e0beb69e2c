// See hardened.hpp. Compiled into libsluice-secure.so alone.
#include "secure/hardened.hpp"

#include <atomic>
#include <utility>

#include "base/check.hpp"
#include "base/options.hpp"
#include "guarded/pool.hpp"
#include "heap/block_state.hpp"
#include "heap/counters.hpp"
#include "heap/heap.hpp"
#include "heap/large.hpp"
#include "heap/reuse.hpp"
#include "heap/sampling.hpp"
#include "pages/canary.hpp"
#include "pages/fence.hpp"
#include "secure/report.hpp"
#include "secure/zero.hpp"

namespace sluice::hardened {
namespace {

constexpr size_t most_waiting = 1024;  // bytes of a block that may wait to be checked
constexpr size_t most_small = max_small_size - canary_size;

// What an attached cache has of a class. Class bytes count words, and of a class there are two of each kind: one
// address reaches them all.
class ClassPart {
 public:
  ClassPart(ThreadCache* c, size_t byte) noexcept : at_(reinterpret_cast<char*>(c) + byte * sizeof(void*)) {
    asm("" : "+r"(at_));  // or it would be computed once for each of them
  }
  Bin& bin() const noexcept { return *reinterpret_cast<Bin*>(at_ + offsetof(ThreadCache, bins)); }
  Reuse& reuse() const noexcept { return *reinterpret_cast<Reuse*>(at_ + secure_at + offsetof(SecureCache, reuse)); }
  const ClassRow& row() const noexcept {
    return *reinterpret_cast<const ClassRow*>(at_ + secure_at + offsetof(SecureCache, rows));
  }

 private:
  static_assert(sizeof(Bin) == sizeof(Reuse) && sizeof(Bin) == sizeof(ClassRow));
  static constexpr size_t secure_at = offsetof(ThreadCache, secure_part);
  char* at_;
};

// Effects: gives up a list whose first block was written to, and serves the request with another block.
__attribute__((noinline, cold)) void* replace_damaged_list(Bin& bin, size_t size) noexcept {
  (void)next_of(bin.head);
  bin.head = nullptr;
  return hardened::allocate(size);
}

// Effects: leaves a block alone that was written to, and serves the request with another one.
__attribute__((noinline, cold)) void* replace_damaged(const void* block, size_t size) noexcept {
  if (is_live(place_of(block, class_bytes()[unit_index_of(block)]).state_now()))
    fail_check("a block that is in use was handed out", block);
  report_write_to_free(block);
  return hardened::allocate(size);
}

// Makes a block of a slab live that the heap gave, and that reads as it should but for its first granule.
inline __attribute__((always_inline)) void* make_live(void* block, size_t size, const Place& place,
                                                      uint64_t canary) noexcept {
  place.set_state(place.class_size - size);
  granule_at(block, 0) = Granule{};
  write_last_canary(block, place.class_size, canary);
  write_canary(static_cast<char*>(block) + size, canary);
  return block;
}

void* hand_out_small(void* block, size_t size, unsigned byte) noexcept {
  const Place place = place_of(block, byte);
  if (is_live(place.state_now())) [[unlikely]]
    fail_check("a block that is in use was handed out", block);
  const uint64_t canary = canary_of(block);
  if (place.state_now() == state_clear) {
    if (!last_canary_holds(block, place.class_size, canary)) [[unlikely]]
      return replace_damaged(block, size);
    clear_block(block, place.class_size);
  } else if (!is_untouched(block, place.class_size, canary)) [[unlikely]] {
    return replace_damaged(block, size);
  }
  return make_live(block, size, place, canary);
}

inline __attribute__((always_inline)) void* hand_out_plain(void* block, size_t size, const ClassRow& row) noexcept {
  keep_order();
  const Place place = place_of(block, row);
  if (is_live(place.state_now())) [[unlikely]]
    fail_check("a block that is in use was handed out", block);
  const uint64_t canary = canary_of(block);
  if (place.state_now() == state_clear) {
    if (!last_canary_holds(block, place.class_size, canary)) [[unlikely]]
      return replace_damaged(block, size);
    clear_plain(block, row);
  } else if (!clear_if_untouched(block, row, place.class_size, canary)) [[unlikely]] {
    return replace_damaged(block, size);
  }
  return make_live(block, size, place, canary);
}

// Likewise one that has left a stack: where no program can write, it was freed as its state said.
inline __attribute__((always_inline)) void* hand_out_ready(void* block, size_t size, const ClassRow& row) noexcept {
  const Place place = place_of(block, row);
  if (checked) check(!is_live(place.state_now()), "a block that is in use was handed out", block);
  const uint64_t canary = canary_of(block);
  if (!is_clear(block, row, place.class_size, canary)) [[unlikely]]
    return replace_damaged(block, size);
  place.set_state(place.class_size - size, std::memory_order_release);
  write_last_canary(block, place.class_size, canary);
  write_canary(static_cast<char*>(block) + size, canary);
  return block;
}

// Likewise one of any kind, also of another allocator that serves in place of this one.
void* hand_out(void* block, size_t size) noexcept {
  if (unit_index_of(block) >= region_range_units || guarded::covers(block)) return block;
  const unsigned byte = class_bytes()[unit_index_of(block)];
  if (is_slab(byte)) return hand_out_small(block, size, byte);
  write_end(*large::find(block), static_cast<char*>(block), size);
  return block;
}

// With room for a canary, but where another allocator serves, which knows what was asked for.
size_t with_canary(size_t size) noexcept {
  return heap::stands_aside() ? size : size + canary_size;
}

// A block of no bytes is counted as a large one, which it is not long enough to be.
void* allocate_nothing(size_t alignment) noexcept {
  void* const block = zero::allocate(alignment);
  const ThreadCache* const c = heap::usable_cache();
  if (block != nullptr && cache::counted(c)) counters::count_large_malloc(cache::counters_of(c), 0, 0);
  return block;
}

// Returns: whether a block of no bytes begins there, whose life has ended now. Others are reported.
bool free_nothing(void* block, Call call) noexcept {
  // The address serves for the report alone: nothing was freed.
  if (!zero::give_back(block)) return report_large(block, call), false;  // NOLINT(clang-analyzer-unix.Malloc)
  const ThreadCache* const c = heap::usable_cache();
  if (cache::counted(c)) counters::count_large_free(cache::counters_of(c), 0);
  return true;
}

void* allocate_large(size_t size) noexcept {
  if (size > PTRDIFF_MAX - canary_size) return heap::out_of_memory();
  void* const block = heap::allocate_unsampled(with_canary(size));
  return block != nullptr ? hand_out(block, size) : nullptr;
}

void* sample(size_t size, ThreadCache* cache) noexcept {
  if (!cache->attached) [[unlikely]]
    cache = heap::attached_cache();
  return sampling::sample(cache, size, min_alignment, false);
}

// What comes from a slab.
__attribute__((noinline)) void* allocate_small(size_t size, ThreadCache* cache) noexcept {
  if (void* const block = sample(size, cache)) return block;
  void* const block = heap::allocate_unsampled(with_canary(size));
  return block != nullptr ? hand_out(block, size) : nullptr;
}

// Likewise while others are sampled.
__attribute__((noinline)) void* allocate_in_turn(size_t size, ThreadCache* cache) noexcept {
  if (void* const block = heap::take_unguarded(size + canary_size, cache)) return hand_out(block, size);
  return allocate_small(size, cache);
}

// Large blocks, and those of no bytes.
__attribute__((noinline)) void* allocate_other(size_t size, ThreadCache* cache) noexcept {
  if (void* const block = sample(size, cache)) return block;
  if (size == 0) {
    if (void* const block = allocate_nothing(min_alignment)) return block;
  }
  return allocate_large(size);
}

// What the fast path does not serve.
__attribute__((noinline)) void* allocate_slow(size_t size, ThreadCache* cache) noexcept {
  if (size - 1 >= most_small) return allocate_other(size, cache);
  return cache->mode.has(CacheMode::Sampling) ? allocate_in_turn(size, cache) : allocate_small(size, cache);
}

__attribute__((noinline)) void free_not_small(void* block) noexcept {
  const size_t index = unit_index_of(block);
  if (index >= region_range_units) return heap::free_unknown(block);
  if (guarded::covers(block)) return heap::free(block);
  Unit* const span = large::claim(block);  // of two threads that free it at once, one looks at it
  if (span == nullptr)
    return zero::covers(block) ? (void)free_nothing(block, Call::Free) : report_large(block, Call::Free);
  const size_t size = large::requested_bytes(*span) - canary_size;
  if (!end_holds(*span, static_cast<char*>(block), size)) [[unlikely]]
    report_overflow(block, size);
  heap::free_claimed(span);
}

// Effects: ends the life of a block that is to be freed. Returns: the state that it had, or 0 when it was not live.
// Requires: as place_of.
inline __attribute__((always_inline)) uint16_t end_life(const void* block, const Place& place) noexcept {
  const uint16_t state = place.state_now();
  if (!is_live(state) || !place.begins) [[unlikely]]
    return report_small(block, Call::Free), uint16_t{0};
  place.set_state(state_freed);
  return state;
}

inline __attribute__((always_inline)) bool end_and_clear(void* block, const Place& place,
                                                         const ClassRow* row) noexcept {
  __builtin_prefetch(static_cast<char*>(block) + place.class_size - canary_size, 1);
  const uint16_t state = end_life(block, place);
  return state != 0 && check_and_clear(block, row, place.class_size, state);
}

// Checks the half of the waiting blocks that begins at a slot, and frees them. What signal handlers free meanwhile
// waits there too, or in the other half.
__attribute__((noinline)) void check_half(ThreadCache* c, unsigned first) noexcept {
  SecureCache& part = c->secure_part;
  const bool open = !c->mode.has(CacheMode::Counting) && !c->lock.held_by_this_thread();
  for (unsigned i = 0; i < SecureCache::waiting_slots / 2; ++i) {
    const WaitingBlock waiting = std::exchange(part.waiting[first + i], WaitingBlock());
    if (!waiting) continue;
    void* const block = waiting.block();
    const unsigned byte = class_bytes()[unit_index_of(block)];
    if (!end_waiting(waiting, byte)) [[unlikely]]
      continue;
    if (open)
      cache::put(*c, byte / bin_stride, block);
    else
      heap::free(block);
  }
}

// A thread that frees more than its cache takes most likely frees what the processor has not at hand: a whole structure
// is torn down. Then a block is freed at once, as its state says, but waits until 16 more have come at least, while its
// first line and its last are fetched. So little is done here that the processor gets to the next frees, and fetches
// their states, before this block's has come.
//
// Static caches have no room ever: all of their threads come here. Requires: is_slab(byte), with `plain` at most
// last_plain_byte.
template <bool plain = false>
__attribute__((noinline)) void free_to_full(void* block, unsigned byte, ThreadCache* c) noexcept {
  const unsigned size_class = byte / bin_stride;
  const ClassRow* const row = plain ? &row_of(byte) : nullptr;
  const Place place = plain ? place_of(block, *row) : place_of(block, byte);
  if (!c->attached) {
    if (end_and_clear(block, place, row)) heap::free(block);
    return;
  }
  if (c->mode.has(CacheMode::Counting) || c->spare[size_class] == nullptr || class_sizes[size_class] > most_waiting) {
    if (!end_and_clear(block, place, row)) [[unlikely]]
      return;
    if (!plain && waits_with_others(size_class)) return set_aside_larger(*c, size_class, block);
    return set_aside(block, c, c->secure_part.reuse[size_class]);
  }
  __builtin_prefetch(block, 1);
  __builtin_prefetch(static_cast<char*>(block) + place.class_size - canary_size);
  const uint16_t state = end_life(block, place);
  if (state == 0) [[unlikely]]
    return;
  SecureCache& part = c->secure_part;
  // The slot is taken before it is filled: a signal handler that frees in between takes another one.
  const unsigned slot = part.next_waiting;
  const unsigned next = (slot + 1) % SecureCache::waiting_slots;
  part.next_waiting = next;
  keep_order();
  part.waiting[slot] = WaitingBlock(block, state);
  if (next % (SecureCache::waiting_slots / 2) == 0) check_half(c, next);
}

// All but the fast path.
__attribute__((noinline)) void free_other(void* block, unsigned byte) noexcept {
  if (is_slab(byte))
    free_to_full(block, byte, thread_cache);
  else
    free_not_small(block);
}

void* move_block(void* block, size_t old_size, size_t size) noexcept {
  return heap::move_block<hardened::allocate, hardened::free>(block, old_size, size);
}

void* reallocate_guarded(void* block, size_t size) noexcept {
  size_t old_size = 0;
  return guarded::require_live(block, &old_size) ? move_block(block, old_size, size) : heap::out_of_memory();
}

void* reallocate_nothing(void* block, size_t size) noexcept {
  if (!zero::is_live(block)) {
    report_large(block, Call::Realloc);
    return heap::out_of_memory();
  }
  void* const moved = hardened::allocate(size);
  if (moved != nullptr) (void)free_nothing(block, Call::Realloc);
  return moved;
}

void* reallocate_large(void* block, size_t size) noexcept {
  if (guarded::covers(block)) return reallocate_guarded(block, size);
  if (zero::covers(block)) return reallocate_nothing(block, size);
  const Unit* span = large::find(block);
  if (span == nullptr) {
    report_large(block, Call::Realloc);
    return heap::out_of_memory();
  }
  const size_t old_size = large::requested_bytes(*span) - canary_size;
  if (!end_holds(*span, static_cast<char*>(block), old_size)) [[unlikely]]
    report_overflow(block, old_size);
  if (size <= most_small) return move_block(block, old_size, size);
  if (size > PTRDIFF_MAX - canary_size) return heap::out_of_memory();
  if (clear_all && size < old_size) clear(static_cast<char*>(block) + size, old_size - size);
  auto* const moved = static_cast<char*>(heap::resize_large(block, size + canary_size));
  if (moved == nullptr) {
    write_end(*span, static_cast<char*>(block), old_size);  // as its pages are now
    return move_block(block, old_size, size);
  }
  if (size > old_size) clear(moved + old_size, clear_all ? size - old_size : lesser(size - old_size, canary_size));
  write_end(*large::find(moved), moved, size);
  return moved;
}

size_t usable_size_of_rest(void* block) noexcept {
  size_t size = 0;
  if (guarded::covers(block)) return guarded::require_live(block, &size) ? size : 0;
  if (zero::covers(block) && zero::is_live(block)) return 0;
  if (const Unit* const span = large::find(block)) return large::requested_bytes(*span) - canary_size;
  report_large(block, Call::SizeQuery);
  return 0;
}

// Whether a block has the size that its free says; one that has not is reported. What is no live block is free's to
// find. Requires: the class byte of the block's unit.
bool has_size(void* block, unsigned byte, size_t said) noexcept {
  size_t size = said;
  if (unit_index_of(block) >= region_range_units) return true;
  if (is_slab(byte)) {
    const Place place = place_of(block, byte);
    const uint16_t state = place.state_now();
    if (place.begins && is_live(state)) size = place.class_size - state;
  } else if (guarded::covers(block)) {
    size = guarded::usable_size(block);
    if (size == 0) return true;
  } else if (const Unit* const span = large::find(block)) {
    size = large::requested_bytes(*span) - canary_size;
  } else if (zero::covers(block) && zero::is_live(block)) {
    size = 0;
  }
  if (size != said) report_wrong_size(block, size, said);
  return size == said;
}

// All but the fast path of a sized free.
__attribute__((noinline)) void free_sized_other(void* block, unsigned byte, size_t size) noexcept {
  if (!options.sized_free_checks || has_size(block, byte, size)) free_other(block, byte);
}

void* reallocate_foreign(void* block, size_t size) noexcept {
  const size_t old_size = heap::usable_size(block);
  if (old_size == 0) return heap::reallocate(block, size);  // counted, and fails
  return heap::move_block<hardened::allocate, heap::free_unknown>(block, old_size, size);
}

}  // namespace

// As heap::allocate, with everything checked on the way.
void* allocate(size_t size) noexcept {
  ThreadCache* const cache = thread_cache;
  if (size >= cache->small_limit) [[unlikely]]
    return allocate_slow(size, cache);
  const unsigned byte = cache->secure_part.bin_of[(size + canary_size - 1) / canary_size];
  const ClassPart part(cache, byte);
  if (void* const ready = take_ready(cache, part.reuse())) [[likely]]
    return hand_out_ready(ready, size, part.row());
  Bin& bin = part.bin();
  void* const block = bin.head;
  if (block == nullptr || clear_all) [[unlikely]]
    return allocate_slow(size, cache);
  void* const next = link_detail::decode(block);
  if (!link_detail::may_follow(next, block)) [[unlikely]]
    return replace_damaged_list(bin, size);
  bin.head = next;
  ++bin.room;
  return hand_out_plain(block, size, part.row());
}

void free_sized(void* block, size_t size) noexcept {
  const size_t index = unit_index_of(block);
  const unsigned byte = index < region_range_units ? class_bytes()[index] : unsigned{class_byte_none};
  if (byte - 1 >= last_plain_byte) [[unlikely]]
    return free_sized_other(block, byte, size);
  ThreadCache* const c = thread_cache;
  const ClassPart part(c, byte);
  const Place place = place_of(block, part.row(), index);
  if (part.bin().room <= 0 || place.class_size - size != place.state_now()) [[unlikely]]
    return free_sized_other(block, byte, size);
  if (end_and_clear(block, place, &part.row())) [[likely]]
    set_aside(block, c, part.reuse());
}

void free(void* block) noexcept {
  const size_t index = unit_index_of(block);
  const unsigned byte = index < region_range_units ? class_bytes()[index] : unsigned{class_byte_none};
  if (byte - 1 >= last_plain_byte) [[unlikely]]
    return free_other(block, byte);
  ThreadCache* const c = thread_cache;
  const ClassPart part(c, byte);
  if (part.bin().room <= 0) [[unlikely]]
    return free_to_full<true>(block, byte, c);
  if (end_and_clear(block, place_of(block, part.row(), index), &part.row())) [[likely]]
    set_aside(block, c, part.reuse());
}

void* allocate_zeroed(size_t count, size_t size) noexcept {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes) || bytes > PTRDIFF_MAX - canary_size) return heap::out_of_memory();
  if (bytes <= most_small) {
    void* const block = allocate(bytes);
    return block != nullptr ? __builtin_memset(block, 0, bytes) : nullptr;
  }
  if (void* const block = sampling::sample(heap::attached_cache(), bytes, min_alignment, true)) return block;
  void* const block = heap::allocate_zeroed_unsampled(with_canary(bytes));
  return block != nullptr ? hand_out(block, bytes) : nullptr;
}

void* allocate_aligned(size_t alignment, size_t size) noexcept {
  if (alignment <= min_alignment) return allocate(size);
  if (size > PTRDIFF_MAX - canary_size) return heap::out_of_memory();
  if (void* const block = sampling::sample(heap::attached_cache(), size, alignment, false)) return block;
  if (size == 0 && alignment <= unit_size) {
    if (void* const block = allocate_nothing(alignment)) return block;
    // A small block of 64 KiB has no state that says that all of it is unused; a large one begins there as well.
    if (alignment == unit_size) alignment *= 2;
  }
  for (;;) {
    void* const found = heap::allocate_aligned_unsampled(alignment, with_canary(size));
    if (found == nullptr) return nullptr;
    void* const block = hand_out(found, size);
    if (block == nullptr || reinterpret_cast<uintptr_t>(block) % alignment == 0) return block;
    hardened::free(block);  // it replaces one that was written to
  }
}

void* reallocate(void* address, size_t size) noexcept {
  if (address == nullptr) return allocate(size);
  const size_t index = unit_index_of(address);
  if (index >= region_range_units) return reallocate_foreign(address, size);
  const unsigned byte = class_bytes()[index];
  if (!is_slab(byte)) return reallocate_large(address, size);
  const Place place = place_of(address, byte);
  const uint16_t state = place.state_now();
  if (!is_live(state) || !place.begins) [[unlikely]] {
    report_small(address, Call::Realloc);
    return heap::out_of_memory();
  }
  const size_t old_size = place.class_size - state;
  if (!ends_hold(address, old_size, place.class_size)) [[unlikely]] {
    report_overflow(address, old_size);
    return heap::out_of_memory();
  }
  const size_t needed = size + canary_size;
  const bool fits = size <= most_small && needed <= place.class_size &&
                    (needed > place.class_size / 2 || place.class_size <= min_alignment);
  if (!fits) return move_block(address, old_size, size);
  auto* const block = static_cast<char*>(address);
  const uint64_t canary = canary_of(block);
  __builtin_memset(block + old_size, 0, canary_size);
  place.set_state(place.class_size - size);
  write_last_canary(block, place.class_size, canary);
  write_canary(block + size, canary);
  return block;
}

size_t usable_size(const void* address) noexcept {
  if (address == nullptr) return 0;
  const size_t index = unit_index_of(address);
  if (index >= region_range_units) {
    const size_t size = heap::usable_size(address);
    if (size == 0 && !heap::stands_aside()) report_foreign(address, Call::SizeQuery);
    return size;
  }
  const unsigned byte = class_bytes()[index];
  if (!is_slab(byte)) return usable_size_of_rest(const_cast<void*>(address));
  const Place place = place_of(address, byte);
  const uint16_t state = place.state_now();
  if (place.begins && is_live(state)) return place.class_size - state;
  report_small(address, Call::SizeQuery);
  return 0;
}

}  // namespace sluice::hardened
