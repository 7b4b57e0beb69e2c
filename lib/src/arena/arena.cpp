// See arena.hpp.
#include "arena/arena.hpp"

#include "arena/chunk.hpp"
#include "heap/counters.hpp"
#include "heap/large.hpp"
#include "heap/sampling.hpp"

namespace sluice::arena {
namespace {

using cache::counted;
using cache::counters_of;
using counters::ArenaFree;

constexpr auto relaxed = std::memory_order_relaxed;

// An object that a call names: where its header is and what it says.
struct Object {
  char* header;
  uint32_t word;

  char* block() const noexcept { return header + header_size; }
  size_t total() const noexcept { return total_of(word); }
  size_t usable() const noexcept { return total() - header_size; }
  char* end() const noexcept { return header + total(); }
};

bool is_object_in_chunk(size_t unit) noexcept {
  return unit < region_range_units && class_bytes()[unit] == class_byte_arena;
}

Object object_at(void* block) noexcept {
  char* const header = static_cast<char*>(block) - header_size;
  return {header, word_at(header)};
}

bool may_begin_here(const void* block) noexcept {
  const size_t offset = reinterpret_cast<uintptr_t>(block) % unit_size;
  return offset % min_alignment == 0 && offset != 0;
}

[[noreturn]] __attribute__((cold)) void stop_at_bad_free(const Object& object) noexcept {
  const State state = state_of(object.word);
  const bool twice = may_begin_here(object.block()) && (state == Freed || state == FreedElsewhere);
  fail_check(twice ? "object of a scope: freed twice" : "object of a scope: freed at an address where none begins",
             object.block());
}

// Stops the process if no live object begins there.
void require_live(const Object& object) noexcept {
  if (!may_begin_here(object.block()) || state_of(object.word) != Live) [[unlikely]]
    stop_at_bad_free(object);
  check_guard(object.header);
}

// Whether the chunk is this thread's and may be changed now.
bool is_own(const ThreadCache* cache, const Unit& span) noexcept {
  return span.chunk.owner.load(relaxed) == cache && !cache->lock.held_by_this_thread();
}

void count_free(ThreadCache* cache, ArenaFree how, const Object& object) noexcept {
  ThreadCache* const c = cache->attached ? cache : nullptr;
  if (counted(c)) counters::count_arena_free(counters_of(c), how, object.usable());
}

void set_freed_in_window(ThreadCache& c, size_t bytes) noexcept {
  c.window.freed.store(bytes, relaxed);
  c.window.plain.store(bytes == 0 && c.window.clean.load(relaxed) == c.window.limit, relaxed);
}

// An object has been popped and some below it are freed: those that lie at the cursor now are popped too.
void pop_freed(ThreadCache& c) noexcept {
  char* cursor = c.window.cursor.load(relaxed);
  size_t freed = c.window.freed.load(relaxed);
  if (freed + static_cast<size_t>(c.window.limit - cursor) == chunk_capacity && !c.lock.held_by_this_thread()) {
    const WindowLock held(c);
    return restart_window(c);
  }
  size_t last = c.window.last.load(relaxed);
  while (last != 0) {
    const uint32_t word = word_of_others(cursor - last);
    if (state_of(word) == Live) break;
    if (state_of(word) == Freed) freed -= last;
    cursor -= last;
    last = distance_of(word);
  }
  c.window.cursor.store(cursor, relaxed);
  c.window.last.store(last, relaxed);
  set_freed_in_window(c, freed);
}

// As pop, where objects below are freed, or bytes above the cursor are known to read as zero.
__attribute__((noinline)) void pop_with_care(ThreadCache& c, char* header, uint32_t word, char* cursor) noexcept {
  set_freed(header, word);
  const size_t last = distance_of(word);
  if (cursor > c.window.clean.load(relaxed)) c.window.clean.store(cursor, relaxed);
  c.window.cursor.store(header, relaxed);
  c.window.last.store(last, relaxed);
  if (c.window.freed.load(relaxed) != 0 && last != 0 && state_of(word_at(header - last)) != Live) pop_freed(c);
  if (c.window.last.load(relaxed) == 0) expect_pops(c);
}

// Requires: the object ends at the cursor.
inline __attribute__((always_inline)) void pop(ThreadCache& c, char* header, uint32_t word, char* cursor) noexcept {
  if (!c.window.plain.load(relaxed)) [[unlikely]]
    return pop_with_care(c, header, word, cursor);
  set_freed(header, word);
  const size_t last = distance_of(word);
  c.window.cursor.store(header, relaxed);
  c.window.last.store(last, relaxed);
  if (last == 0) [[unlikely]]
    expect_pops(c);
}

// In a signal handler that interrupted this thread's heap the chunk waits for the next free.
__attribute__((noinline)) void look_at_own(ThreadCache& c, Unit& span, char* header) noexcept {
  if (c.lock.held_by_this_thread()) return;
  const KeepErrno keep;
  const WindowLock held(c);
  look_at(c, span, header);
}

// Below, `rest` is the first word of a header less Live: for a live object its low half is the bytes to the next
// header.

// An object of a chunk that is not current.
inline __attribute__((always_inline)) void free_in_retired(ThreadCache& c, Unit& span, char* header,
                                                           uint32_t rest) noexcept {
  set_freed(header, rest + Live);
  const unsigned freed = span.chunk.free_count.load(relaxed) + static_cast<uint16_t>(rest) / unsigned{min_alignment};
  span.chunk.free_count.store(static_cast<uint16_t>(freed), relaxed);
  if (freed >= span.chunk.look_at) [[unlikely]]
    look_at_own(c, span, header);
}

// An object of the current chunk that is not the last before the cursor.
inline __attribute__((always_inline)) void free_in_current(ThreadCache& c, char* header, uint32_t rest) noexcept {
  set_freed(header, rest + Live);
  c.window.freed.store(c.window.freed.load(relaxed) + static_cast<uint16_t>(rest), relaxed);
  c.window.plain.store(false, relaxed);
}

// Whether a live object may begin at the block: the last four bits say so.
inline __attribute__((always_inline)) bool is_object(const void* block, uint32_t rest) noexcept {
  return ((reinterpret_cast<uintptr_t>(block) | rest) & 0xf) == 0;
}

// The thread of the chunk has ended: whoever frees does what it would have done. False when another thread is at it, or
// has taken the arena over; a wait for that thread might never end in a signal handler.
bool free_for_orphan(ThreadCache& owner, Unit& span, const Object& object) noexcept {
  if (owner.lock.held_by_this_thread() || !owner.lock.try_lock()) return false;
  const bool still = owner.orphan.load(std::memory_order_acquire);
  if (still) {
    const KeepErrno keep;
    set_freed(object.header, word_at(object.header));  // a sweep may have changed the distance since
    span.chunk.set_free_bytes(span.chunk.free_bytes() + object.total());
    if (span.chunk.free_bytes() >= span.chunk.look_at_bytes() || span.chunk.sweeps.load(relaxed) != 0)
      look_at(owner, span, object.header);
  }
  owner.lock.unlock();
  return still;
}

__attribute__((noinline)) void free_elsewhere(ThreadCache* cache, Unit& span, const Object& object) noexcept {
  ThreadCache& owner = *span.chunk.owner.load(relaxed);
  count_free(cache, ArenaFree::Remote, object);
  if (owner.orphan.load(std::memory_order_acquire) && free_for_orphan(owner, span, object)) return;
  // The hint comes first: with the store the chunk may be gone. The mark in the arena, which stays, comes after it.
  // Sequentially consistent, as who takes the mark and looks then: either the object is found freed, or the mark is
  // seen to be taken here, and is set anew.
  if (span.chunk.sweeps.load(relaxed) != sweeps_after_free) span.chunk.sweeps.store(sweeps_after_free, relaxed);
  set_freed_elsewhere(object.header, object.word);
  std::atomic<bool>& mark = owner.arena->freed_elsewhere;
  if (!mark.load(std::memory_order_seq_cst)) mark.store(true, std::memory_order_release);
}

// The slow path: counted frees, other threads' objects, calls from signal handlers, mistakes.
__attribute__((noinline)) void free_object_slow(char* header, size_t unit, ThreadCache* cache) noexcept {
  const Object object{header, word_at(header)};
  require_live(object);
  Unit& span = *region::unit_at(unit);
  if (!is_own(cache, span)) return free_elsewhere(cache, span, object);
  ThreadCache& c = *cache;
  const bool current = &span == c.arena->current;
  char* const cursor = c.window.cursor.load(relaxed);
  if (current && header >= cursor && header < c.window.limit) stop_at_bad_free({header, Freed});
  if (current && object.end() == cursor) {
    count_free(&c, ArenaFree::Lifo, object);
    return pop(c, header, object.word, cursor);
  }
  count_free(&c, ArenaFree::OutOfOrder, object);
  if (current)
    free_in_current(c, header, object.word - Live);
  else
    free_in_retired(c, span, header, object.word - Live);
}

// Puts an object at the cursor if it fits; `gap` bytes before it become a freed header of their own.
void* place(ThreadCache& c, size_t total, size_t alignment) noexcept {
  char* cursor = c.window.cursor.load(relaxed);
  if (cursor == nullptr) return nullptr;
  const auto block =
      (reinterpret_cast<uintptr_t>(cursor) + header_size + alignment - 1) & ~static_cast<uintptr_t>(alignment - 1);
  char* const header = reinterpret_cast<char*>(block) - header_size;
  if (header + total > c.window.limit) return nullptr;
  size_t last = c.window.last.load(relaxed);
  if (const auto gap = static_cast<size_t>(header - cursor)) {
    write_header(cursor, gap, last, Freed);
    set_freed_in_window(c, c.window.freed.load(relaxed) + gap);
    last = gap;
  }
  write_header(header, total, last, Live);
  c.window.last.store(total, relaxed);
  c.window.cursor.store(header + total, relaxed);
  return header + header_size;
}

// An object in the window, or in the next one. Null when scopes place nothing for now.
// Requires: a scope routes; size <= most_bytes, alignment <= most_alignment.
void* place_in_window(ThreadCache& c, size_t size, size_t alignment, bool zeroed) noexcept {
  if (c.lock.held_by_this_thread()) return nullptr;
  const KeepErrno keep;
  const size_t total = total_for(size);
  void* block = place(c, total, alignment);
  const char* known = c.window.clean.load(relaxed);
  if (block == nullptr) {
    {
      const WindowLock held(c);
      if (!open_window(c, total + alignment - min_alignment)) return nullptr;
    }
    known = c.window.clean.load(relaxed);
    block = place(c, total, alignment);
    if (block == nullptr) return nullptr;
  }
  if (c.mode.has(CacheMode::Counting)) {
    counters::count_arena_malloc(c.counters, size, total - header_size);
    heap::do_deferred_work();
  }
  if (zeroed) {
    char* const start = static_cast<char*>(block);
    const auto used = known > start ? static_cast<size_t>(known - start) : 0;
    const size_t usable = total - header_size;
    __builtin_memset(start, 0, used < usable ? used : usable);
  }
  return block;
}

void count_resize(ThreadCache& c, const Object& object, size_t size, size_t total) noexcept {
  if (c.mode.has(CacheMode::Counting) && total != object.total())
    counters::count_arena_resize(c.counters, size, object.usable(), total - header_size);
}

// The last object before the cursor grows or shrinks where it is. False when the window is too short.
bool resize_top(ThreadCache& c, const Object& object, size_t size) noexcept {
  const size_t total = total_for(size);
  if (object.header + total > c.window.limit) return false;
  if (object.end() > c.window.clean.load(relaxed)) c.window.clean.store(object.end(), relaxed);
  count_resize(c, object, size, total);
  write_header(object.header, total, distance_of(object.word), Live);
  c.window.last.store(total, relaxed);
  c.window.cursor.store(object.header + total, relaxed);
  return true;
}

// What an object no longer needs becomes a freed header. Requires: it is not the last before the cursor.
void split(ThreadCache& c, Unit& span, const Object& object, size_t size) noexcept {
  const size_t total = total_for(size);
  const size_t rest = object.total() - total;
  count_resize(c, object, size, total);
  write_header(object.header + total, rest, total, Freed);
  write_header(object.header, total, distance_of(object.word), Live);
  const size_t end_offset = reinterpret_cast<uintptr_t>(object.end()) % unit_size;
  if (end_offset != chunk_end) set_distance(object.end(), rest);
  if (&span == c.arena->current)
    set_freed_in_window(c, c.window.freed.load(relaxed) + rest);
  else
    span.chunk.set_free_bytes(span.chunk.free_bytes() + rest);
}

__attribute__((noinline)) void* move_block(void* block, size_t old_size, size_t size) noexcept {
  return heap::move_block<heap::allocate<allocate_slow>, heap::free<free_slow>>(block, old_size, size);
}

bool is_far_too_large(size_t usable, size_t size) noexcept {
  return size <= usable / 2 && usable > 2 * min_alignment;
}

void* reallocate_object(void* block, size_t size) noexcept {
  const Object object = object_at(block);
  require_live(object);
  ThreadCache* const cache = thread_cache;
  Unit& span = *region::unit_at(unit_index_of(block));
  if (is_own(cache, span) && size <= most_bytes) {
    if (&span == cache->arena->current && object.end() == cache->window.cursor.load(relaxed)) {
      if (resize_top(*cache, object, size)) return block;
    } else if (is_far_too_large(object.usable(), size)) {
      split(*cache, span, object, size);
      return block;
    }
  }
  if (size <= object.usable() && !is_far_too_large(object.usable(), size)) return block;
  return move_block(block, object.usable(), size);
}

// Objects of scopes, large blocks, and what is not ours.
__attribute__((noinline)) void* reallocate_rest(void* block, size_t size) noexcept {
  if (is_object_in_chunk(unit_index_of(block))) return reallocate_object(block, size);
  const Unit* const span =
      thread_cache->mode.has(CacheMode::Routing) && size <= most_bytes ? large::find(block) : nullptr;
  if (span == nullptr) return heap::reallocate_rest(block, size);
  return move_block(block, large::usable_size(*span), size);
}

}  // namespace

void* allocate_routed(size_t size, ThreadCache* cache) noexcept {
  return allocate_routed_with(size, cache, heap::ReturnNull{});
}

namespace {

// As place_in_window, of what the thread's cache has counted; where it is not placed, whoever serves it counts it.
void* place_counted(ThreadCache* cache, size_t size, size_t alignment, bool zeroed, sampling::Turn turn) noexcept {
  if (turn == sampling::Turn::Due) return nullptr;
  void* const block = place_in_window(*cache, size, alignment, zeroed);
  if (block == nullptr) sampling::uncount(cache, profile::counted_bytes(size), turn);
  return block;
}

__attribute__((noinline)) void* place_or_allocate(size_t size, ThreadCache* cache, sampling::Turn turn) noexcept {
  void* const block = place_counted(cache, size, min_alignment, false, turn);
  return block != nullptr ? block : heap::allocate_rest(size, cache);
}

}  // namespace

void* allocate_rest(size_t size, ThreadCache* cache) noexcept {
  if (size > most_bytes) return heap::allocate_rest(size, cache);
  const sampling::Turn turn = sampling::turn_of(cache, size);
  if (turn == sampling::Turn::Due) return heap::allocate_rest(size, cache);
  if (void* block = place_at_cursor<&StackWindow::sampled_end>(size, cache)) return block;
  return place_or_allocate(size, cache, turn);
}

void free_slow(void* block, size_t unit, ThreadCache* cache) noexcept {
  const unsigned byte = class_bytes()[unit];
  if (byte != class_byte_arena) {
    if (!heap::free_to_full_bin(block, byte, cache)) heap::free_rest(block, unit, cache);
    return;
  }
  // The fast path took one off the room of this bin, which has none.
  if (!heap::test_room_first) cache->bins[arena_bin].room = 0;
  const bool in_current = unit == cache->window.open_unit.load(relaxed);
  char* const header = static_cast<char*>(block) - header_size;
  const uint32_t rest = word_at(header) - Live;
  if (in_current) {
    char* const cursor = cache->window.cursor.load(relaxed);
    // Of another state than live, the size would not be a multiple of 16.
    if (header + static_cast<uint16_t>(rest) == cursor) [[likely]] {
      check_guard(header);
      return pop(*cache, header, rest + Live, cursor);
    }
    if (!checked && is_object(block, rest)) [[likely]]
      return free_in_current(*cache, header, rest);
  } else {
    Unit& span = *region::unit_at(unit);
    if (!checked && span.chunk.owner.load(relaxed) == cache->window.open_owner.load(relaxed) && is_object(block, rest))
        [[likely]]
      return free_in_retired(*cache, span, header, rest);
  }
  free_object_slow(header, unit, cache);
}

namespace {

// While a scope routes: in the window, or from the heap.
__attribute__((noinline)) void* allocate_zeroed_routed(size_t count, size_t size, ThreadCache* cache) noexcept {
  size_t bytes;
  if (!__builtin_mul_overflow(count, size, &bytes) && bytes <= most_bytes)
    if (void* block = place_counted(cache, bytes, min_alignment, true, sampling::turn_of(cache, bytes))) return block;
  return heap::allocate_zeroed(count, size);
}
__attribute__((noinline)) void* allocate_aligned_routed(size_t alignment, size_t size, ThreadCache* cache) noexcept {
  if (size <= most_bytes && alignment <= most_alignment)
    if (void* block = place_counted(cache, size, alignment, false, sampling::turn_of(cache, size))) return block;
  return heap::allocate_aligned(alignment, size);
}

}  // namespace

void* allocate_zeroed(size_t count, size_t size) noexcept {
  ThreadCache* const cache = thread_cache;
  return cache->mode.has(CacheMode::Routing) ? allocate_zeroed_routed(count, size, cache)
                                             : heap::allocate_zeroed(count, size);
}

void* allocate_aligned(size_t alignment, size_t size) noexcept {
  if (alignment <= min_alignment) return heap::allocate<allocate_slow>(size);
  ThreadCache* const cache = thread_cache;
  return cache->mode.has(CacheMode::Routing) ? allocate_aligned_routed(alignment, size, cache)
                                             : heap::allocate_aligned(alignment, size);
}

void* reallocate(void* block, size_t size) noexcept {
  return heap::reallocate_with<allocate_slow, reallocate_rest>(block, size);
}

size_t usable_size(const void* block) noexcept {
  if (!is_object_in_chunk(unit_index_of(block))) return heap::usable_size(block);
  const Object object = object_at(const_cast<void*>(block));
  return may_begin_here(block) && state_of(object.word) == Live ? object.usable() : 0;
}

Figures figures() noexcept {
  Figures sum{};
  for (const ThreadCache* c = cache::first(); c != nullptr; c = c->next_cache) {
    if (c->arena == nullptr) continue;
    const Arena& a = *c->arena;
#define SLUICE_FIGURE_ARENA(name, source, ...) SLUICE_IF_THREAD(source, sum.name += a.name.load(relaxed);)
#include "os/statistics.def"
  }
  sum.stale_leaves += stale_leaves_elsewhere();
  return sum;
}

ChunkFigures figures_of(const Unit& span) noexcept {
  const ListKind kind = span.chunk.list;
  ChunkFigures f{};
  f.hot = kind == ListKind::Hot;
  f.retired = kind == ListKind::Retired || kind == ListKind::Holey;
  const ThreadCache* const owner = span.chunk.owner.load(relaxed);
  if (owner == nullptr || owner->arena == nullptr) return {};  // in a fork's child: it was being taken or given back
  f.free_bytes = span.chunk.free_bytes();
  if (f.hot)
    f.free_bytes = chunk_capacity;
  else if (owner->arena->current == &span)
    f.free_bytes = owner->window.freed.load(relaxed) +
                   static_cast<size_t>(owner->window.limit - owner->window.cursor.load(relaxed));
  f.live_bytes = f.free_bytes < chunk_capacity ? chunk_capacity - f.free_bytes : 0;
  return f;
}

}  // namespace sluice::arena
