// See chunk.hpp.
#include "arena/chunk.hpp"

#include "base/options.hpp"
#include "heap/heap.hpp"
#include "heap/thread_cache.hpp"
#include "os/memory.hpp"
#include "pages/spans.hpp"

namespace sluice::arena {
namespace {

constexpr size_t smallest_hole = 512;                // bytes; smaller holes are not worth a window
constexpr size_t worth_a_look = chunk_capacity / 4;  // bytes freed since the last look that make another one pay
constexpr size_t worth_less = chunk_capacity / 8;    // the same after a look that found no hole
constexpr unsigned probes = 2;                       // retired chunks looked at for each window
constexpr unsigned probes_to_resume = 64;
constexpr unsigned probes_in_passing = 8;
constexpr unsigned scopes_per_look = 8;  // opened between two looks for what other threads freed
constexpr unsigned hole_tries = 4;
constexpr unsigned most_back_off_shift = 10;
constexpr unsigned windows_of_churn = 16;  // windows in one scope from which on it may be said to churn
constexpr size_t pinned_share = 8;         // an eighth of the live bytes may be pinned on top of the option's

ChunkList& list_of(Arena& a, ListKind kind) noexcept {
  return kind == ListKind::Hot ? a.hot : kind == ListKind::Holey ? a.holey : a.retired;
}

void push_front(Arena& a, Unit& chunk, ListKind kind) noexcept {
  ChunkList& list = list_of(a, kind);
  const auto index = static_cast<uint32_t>(region::index_of(&chunk));
  chunk.prev = unit_index_none;
  chunk.next = list.first;
  if (list.first != unit_index_none)
    region::unit_at(list.first)->prev = index;
  else
    list.last = index;
  list.first = index;
  ++list.count;
  chunk.size_class = static_cast<uint8_t>(kind);
  chunk.used = kind != ListKind::Hot ? chunk.free_count : uint16_t{0};
  a.wasted_bytes += size_t{chunk.used} * min_alignment;
}

void unlink(Arena& a, Unit& chunk) noexcept {
  ChunkList& list = list_of(a, static_cast<ListKind>(chunk.size_class));
  if (chunk.prev != unit_index_none)
    region::unit_at(chunk.prev)->next = chunk.next;
  else
    list.first = chunk.next;
  if (chunk.next != unit_index_none)
    region::unit_at(chunk.next)->prev = chunk.prev;
  else
    list.last = chunk.prev;
  --list.count;
  if (list.to_probe == region::index_of(&chunk)) list.to_probe = chunk.prev;
  chunk.size_class = static_cast<uint8_t>(ListKind::None);
  a.wasted_bytes -= size_t{chunk.used} * min_alignment;
}

void set_look_at(Unit& chunk, size_t bytes) noexcept {
  chunk.capacity = static_cast<uint16_t>((bytes < chunk_capacity ? bytes : chunk_capacity) / min_alignment);
}

struct Window {
  char *from, *to;
  size_t last, freed;
  char* clean;
};

void put_window(ThreadCache& c, Unit* chunk, const Window& window) noexcept {
  c.window.last.store(window.last, std::memory_order_relaxed);
  c.window.freed.store(window.freed, std::memory_order_relaxed);
  c.window.clean.store(window.clean, std::memory_order_relaxed);
  c.window.plain.store(window.freed == 0 && window.clean == window.to, std::memory_order_relaxed);
  c.window.cursor.store(window.from, std::memory_order_relaxed);
  c.arena->limit = window.to;
  c.arena->current = chunk;
  if (chunk == nullptr) return;
  set_free_bytes(*chunk, 0);
  chunk->capacity = never;
}

// The whole of an empty chunk becomes the window. With `clean` it reads as zero.
void begin(ThreadCache& c, Unit& chunk, bool clean) noexcept {
  char* const start = start_of(chunk);
  set_sweeps_left(chunk, 0);
  ++c.arena->windows;
  char* const from = start + first_offset;
  char* const to = start + chunk_end;
  put_window(c, &chunk, {from, to, 0, 0, clean ? from : to});
}

[[noreturn]] void damaged(const char* header) noexcept {
  fail_check("stack arena: a header was overwritten", header);
}

size_t checked_total(const char* at, uint32_t word, const char* end) noexcept {
  const size_t total = total_of(word);
  if (total == 0 || total > static_cast<size_t>(end - at)) damaged(at);
  return total;
}

struct Hole {
  char* start;
  size_t bytes;
};

// Walks the headers from `at` on and makes one of neighbours that are free, until it finds a hole of `need` bytes.
// Counts what other threads freed. Requires: the chunk is not current.
Hole coalesce(Unit& chunk, char* at, size_t need) noexcept {
  char* const end = start_of(chunk) + chunk_end;
  char* previous = at < end ? at - distance_of(word_at(at)) : at;  // the first is its own
  while (at < end) {
    uint32_t word = word_at_acquire(at);
    if (state_of(word) == Live) {
      previous = at;
      at += checked_total(at, word, end);
      continue;
    }
    char* const hole = at;
    size_t bytes = 0;
    do {
      const size_t total = checked_total(at, word, end);
      if (state_of(word) == FreedElsewhere)
        set_free_bytes(chunk, free_bytes(chunk) + total);
      else if (state_of(word) != Freed)
        damaged(at);
      bytes += total;
      at += total;
      if (at < end) word = word_at_acquire(at);
    } while (at < end && state_of(word) != Live);
    write_header(hole, bytes, static_cast<size_t>(hole - previous), Freed);  // 0 for the first
    if (at < end) set_distance(at, bytes);
    previous = hole;
    if (bytes >= need) return {hole, bytes};
  }
  return {nullptr, 0};
}

void sweep(Unit& chunk) noexcept {
  uint64_t left = sweeps_left(chunk);
  if (left != 0)  // another thread may set it to the highest again at this moment
    (void)std::atomic_ref<uint64_t>(chunk.sweeps).compare_exchange_strong(left, left - 1, std::memory_order_relaxed);
  (void)coalesce(chunk, start_of(chunk) + first_offset, chunk_capacity + 1);
}

// Whether nothing in the chunk is live. Goes on where it stopped: each object is passed once. Requires: not current.
bool find_live(Unit& chunk) noexcept {
  char* const start = start_of(chunk);
  char* const end = start + chunk_end;
  char* at = start + size_t{chunk.carved} * min_alignment + first_offset;
  for (; at < end; at += checked_total(at, word_at(at), end)) {
    const State state = state_of(word_at_acquire(at));
    if (state == Live) break;
    if (state != Freed && state != FreedElsewhere) damaged(at);
  }
  chunk.carved = static_cast<uint16_t>(static_cast<size_t>(at - start) / min_alignment);
  return at >= end;
}

// Makes a hole of the chunk the window. Requires: the chunk is in no list.
bool open_hole(ThreadCache& c, Unit& chunk, char* from, size_t need) noexcept {
  const Hole hole = coalesce(chunk, from, need > smallest_hole ? need : smallest_hole);
  if (hole.start == nullptr) return false;
  char* const to = hole.start + hole.bytes;
  put_window(c, &chunk, {hole.start, to, distance_of(word_at(hole.start)), free_bytes(chunk) - hole.bytes, to});
  add_one(c.arena->chunks_recycled);
  return true;
}

// What is left of the window becomes a freed header, so that headers follow one another through the whole chunk.
void close_window(ThreadCache& c) noexcept {
  Arena& a = *c.arena;
  Unit& chunk = *a.current;
  char* const cursor = c.window.cursor.load(std::memory_order_relaxed);
  size_t last = c.window.last.load(std::memory_order_relaxed);
  size_t freed = c.window.freed.load(std::memory_order_relaxed);
  const auto gap = static_cast<size_t>(a.limit - cursor);
  if (gap != 0) {
    write_header(cursor, gap, last, Freed);
    freed += gap;
    last = gap;
  }
  if (a.limit != start_of(chunk) + chunk_end) set_distance(a.limit, last);
  put_window(c, nullptr, {});
  set_free_bytes(chunk, freed);
}

void give_back(Unit& chunk, bool purge = false) noexcept {
  const size_t index = region::index_of(&chunk);
  class_bytes()[index] = class_byte_none;
  set_owner(chunk, nullptr);
  spans::give_back(index, !quarantines_spans && purge && os::purge(region::address_of(index), unit_size));
}

// A chunk of frame memory has its guard behind it where spans have guards.
void set_state(Unit& chunk, UnitState state) noexcept {
  chunk.state = state;
  if (guards_spans) (&chunk)[chunk.units - 1].state = state;
}

// An empty chunk, in no list. Those of a thread that has ended go back at once.
void put_chunk(ThreadCache& c, Unit& chunk) noexcept {
  Arena& a = *c.arena;
  const bool keep = &c == thread_cache && !a.churning && a.hot.count < options.arena_hot / unit_size;
  // What a churning scope leaves is not needed again soon: kept, it would add to what the pools take now.
  if (!keep) return give_back(chunk, a.churning);
  set_free_bytes(chunk, 0);
  push_front(a, chunk, ListKind::Hot);
}

// Puts a chunk with survivors into the list that it belongs to.
void retire(ThreadCache& c, Unit& chunk, ListKind kind, size_t look_after) noexcept {
  if (free_bytes(chunk) == chunk_capacity) return put_chunk(c, chunk);
  chunk.carved = 0;
  set_look_at(chunk, free_bytes(chunk) + look_after);
  push_front(*c.arena, chunk, kind);
}

size_t live_bytes(const Arena& a) noexcept {
  return size_t{a.retired.count + a.holey.count} * unit_size - a.wasted_bytes;
}
size_t budget(const Arena& a) noexcept {
  return options.arena_pinned + live_bytes(a) / pinned_share;
}

// Looks at chunks with survivors, the oldest first and all in turn, for what other threads freed. Returns one that is
// empty, in no list any more. With `thorough` it also looks for holes, which takes a walk over the whole chunk.
Unit* probe(ThreadCache& c, ListKind kind, unsigned tries, bool thorough) noexcept {
  Arena& a = *c.arena;
  ChunkList& list = list_of(a, kind);
  for (; tries != 0 && list.count != 0; --tries) {
    const uint32_t index = list.to_probe != unit_index_none ? list.to_probe : list.last;
    Unit& chunk = *region::unit_at(index);
    list.to_probe = chunk.prev;
    if (find_live(chunk)) {
      unlink(a, chunk);
      return &chunk;
    }
    if (sweeps_left(chunk) == 0) continue;
    if (!thorough) {
      // What its thread frees later is counted, what others freed is not: only another look will find it empty.
      a.freed_elsewhere.store(true, std::memory_order_relaxed);
      continue;
    }
    sweep(chunk);
    if (free_bytes(chunk) < look_at_bytes(chunk)) continue;
    unlink(a, chunk);
    set_look_at(chunk, free_bytes(chunk) + worth_a_look);
    push_front(a, chunk, ListKind::Holey);
  }
  return nullptr;
}

// A window in one of the chunks with survivors.
bool reuse_hole(ThreadCache& c, size_t need) noexcept {
  Arena& a = *c.arena;
  for (unsigned tries = hole_tries; tries != 0 && a.holey.first != unit_index_none; --tries) {
    Unit& chunk = *region::unit_at(a.holey.first);
    unlink(a, chunk);
    sweep(chunk);
    if (free_bytes(chunk) == chunk_capacity) {
      begin(c, chunk, false);
      return true;
    }
    if (open_hole(c, chunk, start_of(chunk) + first_offset, need)) return true;
    retire(c, chunk, ListKind::Retired, worth_less);
  }
  return false;
}

void back_off(ThreadCache& c) noexcept {
  Arena& a = *c.arena;
  a.backed_off = true;
  a.refused_scopes = 0;
  if (a.back_off_shift < most_back_off_shift) ++a.back_off_shift;
  add_one(a.back_offs);
}

Unit* create_chunk(ThreadCache& c, bool* clean) noexcept {
  const size_t index = region::allocate(1, 1, UnitState::Arena, clean);
  if (index == unit_index_none) return nullptr;
  Unit* chunk = region::unit_at(index);
  set_owner(*chunk, &c);
  chunk->size_class = static_cast<uint8_t>(ListKind::None);
  class_bytes()[index] = class_byte_arena;
  add_one(c.arena->chunks_opened);
  return chunk;
}

void give_back_hot(ThreadCache& c) noexcept {
  Arena& a = *c.arena;
  while (a.hot.first != unit_index_none) {
    Unit& chunk = *region::unit_at(a.hot.first);
    unlink(a, chunk);
    give_back(chunk);
  }
}

void give_back_empty(Arena& a) noexcept {
  for (ListKind kind : {ListKind::Retired, ListKind::Holey}) {
    for (uint32_t index = list_of(a, kind).first; index != unit_index_none;) {
      Unit& chunk = *region::unit_at(index);
      index = chunk.next;
      if (!find_live(chunk)) continue;
      unlink(a, chunk);
      give_back(chunk);
    }
  }
}

// Takes in what other threads freed into the chunks of a thread that has ended.
void give_back_orphaned(ThreadCache& c) noexcept {
  if (c.arena->freed_elsewhere.exchange(false, std::memory_order_acquire)) give_back_empty(*c.arena);
}

// The thread ends: all but chunks with survivors goes back.
void end_thread(ThreadCache& c) noexcept {
  Arena& a = *c.arena;
  a.depth = 0;
  give_back_frames(a);
  if (Unit* chunk = a.current) {
    close_window(c);
    retire(c, *chunk, ListKind::Retired, worth_a_look);
  }
  a.backed_off = false;
  a.back_off_shift = 0;
  refresh(c);
  give_back_empty(a);
  give_back_hot(c);
}

// In the child of a fork, for a thread that stayed behind: it may have been anywhere in the middle of its window, so
// that this chunk stays as it is for ever.
void forked(ThreadCache& c) noexcept {
  Arena& a = *c.arena;
  a.depth = 0;
  a.backed_off = false;
  a.frames = nullptr;
  put_window(c, nullptr, {});
  refresh(c);
}

// As forked, and its lists may be half changed: its chunks get an owner that has no lists.
void abandon(ThreadCache& c, ThreadCache& to) noexcept {
  forked(c);
  for (size_t i = region::first_index(); i < region::limit(); i = region::next_unit(i))
    if (region::unit_at(i)->state == UnitState::Arena && owner_of(*region::unit_at(i)) == &c)
      set_owner(*region::unit_at(i), &to);
  to.arena = c.arena;  // where frees leave their mark
  c.arena = nullptr;
}

// Gives back what is empty of so many chunks; says how many were not.
uint32_t look_around(ThreadCache& c, uint32_t tries, bool thorough) noexcept {
  uint32_t kept = 0;
  const Arena& a = *c.arena;
  for (; tries != 0 && a.retired.count + a.holey.count != 0; --tries) {
    const bool holey = a.retired.count == 0 || (a.holey.count != 0 && tries % 2 == 0);
    if (Unit* chunk = probe(c, holey ? ListKind::Holey : ListKind::Retired, 1, thorough))
      put_chunk(c, *chunk);
    else
      ++kept;
  }
  return kept;
}

void look_in_passing(ThreadCache& c) noexcept {
  Arena& a = *c.arena;
  if (!a.freed_elsewhere.load(std::memory_order_relaxed) && a.probes_left == 0) return;
  const KeepErrno keep;
  const WindowGuard guard(c);
  // Once round in each list, from the moment that the mark is taken.
  if (a.probes_left == 0 && a.freed_elsewhere.exchange(false, std::memory_order_acquire))
    a.probes_left = 2 * (a.retired.count + a.holey.count) + probes_in_passing;
  const uint32_t kept = look_around(c, probes_in_passing, false);
  const bool done = kept >= a.probes_left || a.retired.count + a.holey.count == 0;
  a.probes_left = done ? 0 : a.probes_left - kept;
}

void tick(ThreadCache& c) noexcept {
  if (!c.lock.held_by_this_thread()) look_in_passing(c);
}

void trim(ThreadCache& c) noexcept {
  (void)look_around(c, 2 * (c.arena->retired.count + c.arena->holey.count), true);
  give_back_orphaned(c);
  give_back_hot(c);
}

constexpr cache::ArenaHooks hooks = {end_thread, refresh, tick, give_back_orphaned, trim, forked, abandon, validate};

}  // namespace

Arena* arena_of(ThreadCache& c) noexcept {
  if (c.arena != nullptr) return c.arena;
  const MutexGuard<OwnerMutex> guard(c.lock);
  cache::arena_hooks.store(&hooks, std::memory_order_release);
  c.arena = static_cast<Arena*>(spans::allocate_metadata(sizeof(Arena)));
  return c.arena;
}

void refresh(ThreadCache& c) noexcept {
  const Arena& a = *c.arena;
  c.routing = a.depth != 0 && a.open[a.depth - 1].routes && !a.backed_off && !a.churning;
  const bool exact = c.gated;
  char* const limit = c.routing && !exact ? a.limit : nullptr;
  c.window.open_limit.store(c.sampled ? nullptr : limit, std::memory_order_relaxed);
  c.window.sampled_limit.store(c.sampled ? limit : nullptr, std::memory_order_relaxed);
  c.window.open_unit.store(a.current != nullptr && !exact ? region::index_of(a.current) : unit_index_none,
                           std::memory_order_relaxed);
  c.window.open_owner.store(exact ? nullptr : &c, std::memory_order_relaxed);
  cache::set_small_limit(c);
}

void begin_scope(ThreadCache& c) noexcept {
  c.arena->windows = 0;
  c.arena->churning = false;
  refresh(c);
}

bool open_window(ThreadCache& c, size_t need) noexcept {
  Arena& a = *c.arena;
  if (a.windows >= windows_of_churn && a.retired.count + a.holey.count < a.windows / 4 * 3) {
    a.churning = true;
    give_back_hot(c);
    add_one(a.back_offs);
    return false;
  }
  if (Unit* chunk = a.current) {
    char* const behind = a.limit;
    close_window(c);
    const bool to_the_end = behind == start_of(*chunk) + chunk_end;
    if (!to_the_end && open_hole(c, *chunk, behind, need)) return true;
    const bool holey = to_the_end && free_bytes(*chunk) >= worth_a_look;
    retire(c, *chunk, holey ? ListKind::Holey : ListKind::Retired, worth_a_look);
  }
  if (a.hot.first != unit_index_none) {
    Unit& chunk = *region::unit_at(a.hot.first);
    unlink(a, chunk);
    begin(c, chunk, false);
    return true;
  }
  // Holes cost more than fresh chunks: they are used when much memory lies in them.
  if (a.wasted_bytes > budget(a) / 2 && reuse_hole(c, need)) return true;
  bool clean = false;
  Unit* chunk = probe(c, ListKind::Retired, probes, true);
  if (chunk == nullptr) {
    if (a.wasted_bytes > budget(a)) {
      back_off(c);
      return false;
    }
    chunk = create_chunk(c, &clean);
    if (chunk == nullptr) return false;
  }
  begin(c, *chunk, clean);
  return true;
}

void give_back_some(ThreadCache& c) noexcept {
  if (++c.arena->passes % scopes_per_look == 0) look_in_passing(c);
}

void restart_window(ThreadCache& c) noexcept {
  Unit& chunk = *c.arena->current;
  char* const start = start_of(chunk);
  char* clean = start + chunk_end;
  if (c.arena->limit == clean) {  // it went to the end of the chunk, which may never have been reached
    char* const cursor = c.window.cursor.load(std::memory_order_relaxed);
    char* const known = c.window.clean.load(std::memory_order_relaxed);
    clean = known > cursor ? known : cursor;
  }
  put_window(c, &chunk, {start + first_offset, start + chunk_end, 0, 0, clean});
}

void expect_pops(ThreadCache& c) noexcept {
  const Arena& a = *c.arena;
  if (a.retired.first != unit_index_none) region::unit_at(a.retired.first)->capacity = 0;
}

// The window is empty, and the last object of the chunk that was current before has been freed: the window goes back
// there, so that what is freed in reverse order is popped. Says whether it did.
bool go_back(ThreadCache& c, Unit& chunk, char* freed) noexcept {
  Arena& a = *c.arena;
  Unit* const empty = a.current;
  if (empty == nullptr || c.window.cursor.load(std::memory_order_relaxed) != start_of(*empty) + first_offset ||
      a.limit != start_of(*empty) + chunk_end)
    return false;
  char* const end = start_of(chunk) + chunk_end;
  const uint32_t word = word_at(freed);
  char* const behind = freed + total_of(word);
  size_t filler = 0;
  if (behind != end) {
    const uint32_t next = word_at(behind);
    filler = total_of(next);
    if (state_of(next) != Freed || behind + filler != end) return false;
  }
  unlink(a, chunk);
  const size_t others = free_bytes(chunk) - total_of(word) - filler;
  put_window(c, &chunk, {freed, end, distance_of(word), others, end});
  put_chunk(c, *empty);
  return true;
}

void look_at(ThreadCache& c, Unit& chunk, char* freed) noexcept {
  Arena& a = *c.arena;
  const auto kind = static_cast<ListKind>(chunk.size_class);
  if (kind != ListKind::Retired && kind != ListKind::Holey) return;
  if (sweeps_left(chunk) != 0 && find_live(chunk)) {
    unlink(a, chunk);
    return put_chunk(c, chunk);
  }
  if (chunk.capacity == 0) {
    set_look_at(chunk, size_t{chunk.used} * min_alignment + worth_a_look);
    if (go_back(c, chunk, freed)) return;
  }
  if (free_bytes(chunk) < look_at_bytes(chunk)) return;
  unlink(a, chunk);
  if (free_bytes(chunk) == chunk_capacity) {
    put_chunk(c, chunk);
  } else {
    set_look_at(chunk, free_bytes(chunk) + worth_a_look);
    push_front(a, chunk, ListKind::Holey);
  }
  if (a.backed_off && a.wasted_bytes <= budget(a) / 2) {
    a.backed_off = false;
    a.back_off_shift = 0;
  }
}

void resume(ThreadCache& c) noexcept {
  Arena& a = *c.arena;
  ++a.refused_scopes;
  if (a.refused_scopes >> a.back_off_shift == 0) return;
  a.refused_scopes = 0;
  (void)look_around(c, probes_to_resume, true);
  if (a.wasted_bytes <= budget(a) / 2) a.back_off_shift = 0;
  a.backed_off = false;
}

size_t take_empty(ThreadCache& c) noexcept {
  Arena& a = *c.arena;
  if (a.hot.first == unit_index_none) return unit_index_none;
  Unit& chunk = *region::unit_at(a.hot.first);
  unlink(a, chunk);
  const size_t index = region::index_of(&chunk);
  class_bytes()[index] = class_byte_none;
  set_owner(chunk, nullptr);
  set_state(chunk, UnitState::Frame);
  return index;
}

void put_empty(ThreadCache& c, size_t index) noexcept {
  Unit& chunk = *region::unit_at(index);
  set_state(chunk, UnitState::Arena);
  set_owner(chunk, &c);
  class_bytes()[index] = class_byte_arena;
  put_chunk(c, chunk);
}

}  // namespace sluice::arena
