// The allocator's inner interface: what the interposed symbols, the tests and the C API call. Open it first when you
// want to know what malloc and free do.
//
// malloc(size), the fast path (fewer than 16 instructions):
//   1. the thread's cache, by one word of TLS
//   2. size >= its small_limit?  → slow path (large requests; a shut gate: statistics)
//   3. the bin, from a table in the cache
//   4. the first block of the bin's list; none → slow path (refill; a thread without a cache)
//   5. the list goes on with the next block; one more free fits
// free(block), the fast path (14 instructions):
//   1. the unit, from the address; not ours → slow path (null, foreign pointers)
//   2. its class byte, which names the bin; units that are not slabs name bins without room
//   3. one free less fits the bin; none → slow path (flush, large, shut gate, a thread without a cache)
//   4. the block becomes the first of the list
//
// Sizes and alignments are in bytes. All functions are thread-safe and none throws.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/layout.hpp"
#include "heap/large.hpp"
#include "heap/link.hpp"
#include "heap/sampling.hpp"
#include "heap/thread_cache.hpp"
#include "heap/validate.hpp"
#include "os/keep_errno.hpp"
#include "pages/region.hpp"

namespace sluice::heap {

#if defined(SLUICE_THREAD_SANITIZER)
inline constexpr bool test_room_first = true;
#else
inline constexpr bool test_room_first = false;
#endif

// Makes the compiler forget what it knows about a value.
inline __attribute__((always_inline)) void hide(size_t& value) noexcept {
  asm("" : "+r"(value));
}

// Takes one off a bin's room; says whether there was none. One instruction with an indexed operand, which compilers do
// not find by themselves.
inline __attribute__((always_inline)) bool take_room(int32_t& room) noexcept {
#if defined(__x86_64__)
  bool none;
  asm("subl $1, %0" : "+m"(room), "=@ccs"(none));
  return none;
#else
  return --room < 0;
#endif
}

// What the fast paths end in when they do not serve; `cache` is the calling thread's. free_unknown takes what does not
// lie in the window of the region.
__attribute__((noinline)) void* allocate_slow(size_t size, ThreadCache* cache) noexcept;
__attribute__((noinline)) void free_slow(void* block, size_t unit, ThreadCache* cache) noexcept;
__attribute__((noinline)) void free_unknown(void* block) noexcept;

// The parts of allocate_slow: for large blocks, after take_unguarded, when it is time for a guarded or a sampled block,
// and without looking.
__attribute__((noinline)) void* allocate_beyond(size_t size, ThreadCache* cache) noexcept;
void* allocate_rest(size_t size, ThreadCache* cache) noexcept;
__attribute__((noinline, cold)) void* allocate_or_guard(size_t size, ThreadCache* cache) noexcept;
void* allocate_unsampled(size_t size) noexcept;
void* allocate_zeroed_unsampled(size_t size) noexcept;  // requires: size > max_small_size
void* allocate_aligned_unsampled(size_t alignment, size_t size) noexcept;

// What lies in the region, and free_to_full_bin does not take.
void free_rest(void* block, size_t unit, ThreadCache* cache) noexcept;
void free_claimed(Unit* span) noexcept;  // a large block whose life large::claim has ended

// The first block of the bin; null when there is none.
inline __attribute__((always_inline)) void* take_first(Bin* bin) noexcept {
  void* const block = bin->head;
  if (block == nullptr) [[unlikely]]
    return nullptr;
  bin->head = next_of(block);
  keep_order();  // before the caller writes to the block
  ++bin->room;
  return block;
}

// The same for the bin of a size. Requires: size <= max_direct_size; the bins are in use.
inline __attribute__((always_inline)) void* take_from_bin(size_t size, ThreadCache* cache) noexcept {
  const size_t byte = cache->bin_of[(size + min_alignment - 1) / min_alignment];
  return take_first(reinterpret_cast<Bin*>(reinterpret_cast<void**>(cache->bins) + byte));
}

// Whether a size is beyond those, and its blocks lie in slabs.
inline __attribute__((always_inline)) bool is_medium(size_t size) noexcept {
  constexpr size_t first = max_direct_size + 1;
  return size - first <= max_small_size - first;
}

// The same for such a size, whose class is computed; null also in a signal handler that interrupted the thread while it
// changes its lists. Requires: is_medium(size); the bins are in use.
inline __attribute__((always_inline)) void* take_computed(size_t size, ThreadCache* cache) noexcept {
  if (cache->lock.held_by_this_thread()) [[unlikely]]
    return nullptr;
  if (size <= max_direct_size) __builtin_unreachable();
  return take_first(cache->bins + size_class_of(size));
}

// Calls take(), which returns a block or null, unless it is time for the profile's next sample; null then. An
// allocation that gets none is not counted. Requires: profile.limit is not 0.
template <typename Take>
inline __attribute__((always_inline)) void* take_counted(size_t size, ThreadCache* cache, Take take) noexcept {
  if (!sampling::count_bytes_down(cache->profile.until, profile::counted_bytes_of_small(size))) [[likely]] {
    if (void* const block = take()) [[likely]]
      return block;
  }
  hide(size);  // the sum is computed again, so that it need not be kept
  cache->profile.until += static_cast<int64_t>(profile::counted_bytes_of_small(size));
  return nullptr;
}

// As take_computed(), counted where the profile alone samples; null also where the gate is shut for another reason.
inline __attribute__((always_inline)) void* take_medium(size_t size, ThreadCache* cache) noexcept {
  if (cache->small_limit == small_limit_when_open) return take_computed(size, cache);
  if (!profiles_blocks || cache->profile.limit == 0) return nullptr;
  return take_counted(size, cache, [=] { return take_computed(size, cache); });
}

// The same for aligned blocks, of a class from aligned_class_for; null where that is 0. A slab begins at a multiple of
// a unit, so that blocks whose size is a multiple of the alignment are aligned. Requires: the bins are in use.
inline __attribute__((always_inline)) void* take_aligned(unsigned size_class, ThreadCache* cache) noexcept {
  if (size_class == 0 || cache->lock.held_by_this_thread()) return nullptr;
  return take_first(cache->bins + size_class);
}

// While allocations are sampled (sampling.hpp), those whose turn it is not come from the bins in the slow entries:
// here, without a call. Null when it is time for such a block, or when this does not serve.
inline __attribute__((always_inline)) void* take_unguarded(size_t size, ThreadCache* cache) noexcept {
  if (size >= cache->sampled_limit) return nullptr;
  const size_t bytes = profile::counted_bytes_of_small(size);
  const sampling::Turn turn = sampling::next_sample(cache, bytes);
  if (turn == sampling::Turn::Ordinary) [[likely]] {
    if (void* const block = take_from_bin(size, cache)) return block;
  }
  sampling::uncount(cache, bytes, turn);
  return nullptr;
}

// The same where the profile alone samples: one count, and inline where the fast path ends. Null at once where the gate
// is shut for another reason.
inline __attribute__((always_inline)) void* take_profiled(size_t size, ThreadCache* cache) noexcept {
  if (!profiles_blocks || size >= cache->profile.limit) return nullptr;
  return take_counted(size, cache, [=] { return take_from_bin(size, cache); });
}

// The slow path of malloc and of operator new. They differ in the policy for the case that there is no memory:
// policy.finish<rest>(size, cache) is the rest of the path, and what follows it. It is called last, so that what comes
// before it needs no frame.
template <typename Policy>
inline __attribute__((always_inline)) void* allocate_slow_with(size_t size, ThreadCache* cache, Policy policy) {
  if (is_medium(size)) {
    if (void* const block = take_medium(size, cache)) return block;
  } else {
    if (void* const block = take_unguarded(size, cache)) return block;
    if (size > max_small_size) return policy.template finish<allocate_beyond>(size, cache);
  }
  return policy.template finish<allocate_rest>(size, cache);
}

// The policy of malloc: null, and errno says ENOMEM.
struct ReturnNull {
  template <auto rest>
  __attribute__((always_inline)) void* finish(size_t size, ThreadCache* cache) const noexcept {
    return rest(size, cache);
  }
};

// Returns a block of at least `size` bytes at a multiple of 16, or what `beyond` or `empty` returns when the fast path
// does not serve: for a size beyond its limit, which is any where the gate is shut, and for one whose bin is empty. The
// layer above puts functions of its own in the place of these.
template <auto beyond = allocate_slow, auto empty = beyond>
inline __attribute__((always_inline)) void* allocate(size_t size) {
  ThreadCache* const cache = thread_cache;
  if (size >= cache->small_limit) [[unlikely]] {
    void* const block = take_profiled(size, cache);
    return block != nullptr ? block : beyond(size, cache);
  }
  void* const block = take_from_bin(size, cache);
  if (block == nullptr) [[unlikely]]
    return empty(size, cache);
  return block;
}

// Ends the life of a block. Null is allowed; what is not ours is counted and handed to its owner where one is known.
// `unknown` takes what does not lie in the window of the region.
template <auto slow = free_slow, auto unknown = free_unknown>
inline __attribute__((always_inline)) void free(void* block) noexcept {
  char* const base = region_base;
  const size_t unit = static_cast<size_t>(static_cast<char*>(block) - base) >> unit_shift;
  if (unit >= region_range_units) [[unlikely]]
    return unknown(block);
  size_t byte = static_cast<uint8_t>(base[unit]);
  ThreadCache* const cache = thread_cache;
  void** const heads = reinterpret_cast<void**>(cache);      // bins come first, a head every two words…
  int32_t* const rooms = reinterpret_cast<int32_t*>(cache);  // …and the room in the next half word
  // The two static caches are written here by any thread that has none of its own. They never have room, and the slow
  // path puts the 0 back, so that a lost write does no harm; ThreadSanitizer gets a path without it.
  if (test_room_first && rooms[2 * byte + 2] <= 0) return slow(block, unit, cache);
  if (take_room(rooms[2 * byte + 2])) [[unlikely]]
    return slow(block, unit, cache);
  hide(byte);  // an indexed address costs nothing, an instruction that computes it once does
  set_next(block, heads[byte]);
  keep_order();
  hide(byte);
  heads[byte] = block;
}

// Sets errno to ENOMEM and returns null.
void* out_of_memory() noexcept;

// The calling thread's cache if it may be used now: it has one, and no call of its own is being interrupted by this
// one; else null.
ThreadCache* usable_cache() noexcept;

// The calling thread's cache, also its first call's and that of a call that this one interrupts; a static one when it
// can have none. What counts a thread's allocations asks for it.
ThreadCache* attached_cache() noexcept;

// The first part of free_slow: a block of a slab comes to a full bin of this thread. False for all others.
inline __attribute__((always_inline)) bool free_to_full_bin(void* block, unsigned byte, ThreadCache* cache) noexcept {
  // The fast path took one off the room of this bin, which has none.
  if (!test_room_first) cache->bins[byte / bin_stride].room = 0;
  if (byte == class_byte_none || byte >= class_byte_large || !cache->attached || cache->mode.has(CacheMode::Counting) ||
      cache->lock.held_by_this_thread()) [[unlikely]]
    return false;
  const unsigned k = byte / bin_stride;
  if (!cache::set_aside_unseen(*cache, k, block)) cache::put_full(*cache, k, block);
  return true;
}

// As allocate; every byte of the block that may be used is 0. Null with errno ENOMEM when the product overflows.
void* allocate_zeroed(size_t count, size_t size) noexcept;

// As allocate, at a multiple of `alignment`. Requires: alignment is a power of two.
void* allocate_aligned(size_t alignment, size_t size) noexcept;

// Effects: as realloc of the C standard for size > 0; a null block is allocated. On failure the block stays as it is.
// Making a block smaller never fails: without memory for a smaller one it stays where it is.
void* reallocate(void* block, size_t size) noexcept;
void* reallocate_rest(void* block, size_t size) noexcept;  // what does not lie in a slab; not null

// Effects: makes a large block of another size, in place or by moving its pages. Returns null when it would have to be
// copied; it is as it was then.
void* resize_large(void* block, size_t size) noexcept;

// Effects: copies what a block of `old_size` bytes holds to one of `size` bytes from `allocate`, and frees the old one
// with `end`. Without memory nothing changes: null is returned, or the block itself if it was to become smaller.
template <auto allocate, auto end>
inline __attribute__((always_inline)) void* move_block(void* block, size_t old_size, size_t size) noexcept {
  void* const moved = allocate(size);
  if (moved == nullptr) [[unlikely]]
    return size <= old_size ? block : nullptr;
  __builtin_memcpy(moved, block, old_size < size ? old_size : size);
  end(block);
  return moved;
}

// For blocks of the heap itself.
template <auto slow>
__attribute__((noinline)) void* move_own_block(void* block, size_t old_size, size_t size) noexcept {
  return move_block<allocate<slow>, free<free_slow, free_unknown>>(block, old_size, size);
}

// As rest(block, size), which comes at once where a large block gets a new size and nothing else changes: it stays
// within its span, and nobody counts or samples. Programs append to buffers in small steps.
template <auto rest>
__attribute__((noinline)) void* reallocate_outside_slabs(void* block, size_t size) noexcept {
  const ThreadCache& cache = *thread_cache;
  const bool is_done = cache.attached && cache.small_limit == small_limit_when_open && large::find(block) != nullptr &&
                       large::resize_within(unit_index_of(block), size);
  return is_done ? block : rest(block, size);
}

// As reallocate; new blocks come from allocate<slow>, and what does not lie in a slab goes to `rest`.
template <auto slow, auto rest>
inline __attribute__((always_inline)) void* reallocate_with(void* block, size_t size) noexcept {
  if (block == nullptr) return allocate<slow>(size);
  const size_t unit = unit_index_of(block);
  const unsigned byte = unit < region_range_units ? class_bytes()[unit] : unsigned{class_byte_none};
  if (byte == class_byte_none || byte >= class_byte_large) return reallocate_outside_slabs<rest>(block, size);
  const size_t old_size = class_sizes[byte / bin_stride];
  // In place when it fits and does not waste more than half.
  if (size <= old_size && (size > old_size / 2 || old_size <= min_alignment)) return block;
  return move_own_block<slow>(block, old_size, size);
}

// Bytes of the block that may be used; 0 for null and for what is not ours.
size_t usable_size(const void* block) noexcept;

// Effects: what lies idle in caches goes back to the region, whose next request finds it: called once before a request
// of `size` bytes is refused. Returns: whether it is worth another try. Requires: no lock.
__attribute__((noinline, cold)) bool give_back_idle(size_t size) noexcept;

// Effects: gives what is free back to the system, all but `keep` bytes. Of what other threads hold in their caches that
// is what was freed into their slabs; the rest goes back to the slabs when they next refill or flush a bin. Returns:
// whether anything went back.
bool trim(size_t keep) noexcept;

// Effects: from now on there are several threads: what only one that is alone keeps goes back. To be called before it
// makes another; else it is noted when that first allocates.
void prepare_for_threads() noexcept;

// Effects: gives back what is free and what the calling thread's cache holds.
void idle() noexcept;

// What to do with pointers that are not ours; set once at start by the layer that knows other allocators. Each may be
// null and says by its result whether the pointer was dealt with.
struct ForeignHooks {
  bool (*free)(void* block) noexcept;
  bool (*usable_size)(const void* block, size_t* size) noexcept;
  void* (*allocate)(size_t alignment, size_t size) noexcept;  // of an allocator that serves in place of this heap
};
extern constinit ForeignHooks foreign_hooks;

// The allocator that must serve this process, with all hooks; null when the heap may start. The answer never changes.
// Defined by the layer that knows other allocators, in programs that have it; on macOS nobody looks for one.
#if defined(SLUICE_MACHO)
inline constexpr const ForeignHooks* (*required_allocator)() noexcept = nullptr;
#else
__attribute__((weak)) const ForeignHooks* required_allocator() noexcept;
#endif

// Whether the heap never starts, since another allocator must serve: every call is then passed on to that one.
bool stands_aside() noexcept;

// Work that a signal handler left for the next slow call of a counting thread; taken by an exchange, null when there is
// none.
using DeferredWork = void (*)() noexcept;
extern constinit std::atomic<DeferredWork> deferred_work;
void do_deferred_work() noexcept;  // after a call was counted, outside of all locks

}  // namespace sluice::heap
