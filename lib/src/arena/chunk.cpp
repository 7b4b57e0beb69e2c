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

void push_front(Arena& a, Unit& span, ListKind kind) noexcept {
  ChunkList& list = list_of(a, kind);
  const auto index = static_cast<uint32_t>(region::index_of(&span));
  span.chunk.prev = unit_index_none;
  span.chunk.next = list.first;
  if (list.first != unit_index_none)
    region::unit_at(list.first)->chunk.prev = index;
  else
    list.last = index;
  list.first = index;
  ++list.count;
  span.chunk.list = kind;
  span.chunk.wasted = kind != ListKind::Hot ? span.chunk.free_count.load(std::memory_order_relaxed) : uint16_t{0};
  a.wasted_bytes += span.chunk.wasted_bytes();
}

void unlink(Arena& a, Unit& span) noexcept {
  ChunkList& list = list_of(a, span.chunk.list);
  if (span.chunk.prev != unit_index_none)
    region::unit_at(span.chunk.prev)->chunk.next = span.chunk.next;
  else
    list.first = span.chunk.next;
  if (span.chunk.next != unit_index_none)
    region::unit_at(span.chunk.next)->chunk.prev = span.chunk.prev;
  else
    list.last = span.chunk.prev;
  --list.count;
  if (list.to_probe == region::index_of(&span)) list.to_probe = span.chunk.prev;
  span.chunk.list = ListKind::None;
  a.wasted_bytes -= span.chunk.wasted_bytes();
}

void set_look_at(Unit& span, size_t bytes) noexcept {
  span.chunk.look_at = static_cast<uint16_t>((bytes < chunk_capacity ? bytes : chunk_capacity) / min_alignment);
}

struct Window {
  char *from, *to;
  size_t last, freed;
  char* clean;
};

void put_window(ThreadCache& c, Unit* span, const Window& window) noexcept {
  c.window.last.store(window.last, std::memory_order_relaxed);
  c.window.freed.store(window.freed, std::memory_order_relaxed);
  c.window.clean.store(window.clean, std::memory_order_relaxed);
  c.window.plain.store(window.freed == 0 && window.clean == window.to, std::memory_order_relaxed);
  c.window.cursor.store(window.from, std::memory_order_relaxed);
  c.window.limit = window.to;
  c.window.unit = span != nullptr ? region::index_of(span) : unit_index_none;
  c.arena->current = span;
  if (span == nullptr) return;
  span->chunk.set_free_bytes(0);
  span->chunk.look_at = Chunk::look_at_never;
}

// The whole of an empty chunk becomes the window. With `clean` it reads as zero.
void begin(ThreadCache& c, Unit& span, bool clean) noexcept {
  char* const start = start_of(span);
  span.chunk.sweeps.store(0, std::memory_order_relaxed);
  ++c.arena->windows;
  char* const from = start + first_offset;
  char* const to = start + chunk_end;
  put_window(c, &span, {from, to, 0, 0, clean ? from : to});
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
Hole coalesce(Unit& span, char* at, size_t need) noexcept {
  char* const end = start_of(span) + chunk_end;
  char* previous = at < end ? at - distance_of(word_at(at)) : at;  // the first is its own
  while (at < end) {
    uint32_t word = word_of_others(at);
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
        span.chunk.set_free_bytes(span.chunk.free_bytes() + total);
      else if (state_of(word) != Freed)
        damaged(at);
      bytes += total;
      at += total;
      if (at < end) word = word_of_others(at);
    } while (at < end && state_of(word) != Live);
    write_header(hole, bytes, static_cast<size_t>(hole - previous), Freed);  // 0 for the first
    if (at < end) set_distance(at, bytes);
    previous = hole;
    if (bytes >= need) return {hole, bytes};
  }
  return {nullptr, 0};
}

void sweep(Unit& span) noexcept {
  uint64_t left = span.chunk.sweeps.load(std::memory_order_relaxed);
  if (left != 0)  // another thread may set it to the highest again at this moment
    (void)span.chunk.sweeps.compare_exchange_strong(left, left - 1, std::memory_order_relaxed);
  (void)coalesce(span, start_of(span) + first_offset, chunk_capacity + 1);
}

// Whether nothing in the chunk is live. Goes on where it stopped: each object is passed once. Requires: not current.
bool find_live(Unit& span) noexcept {
  char* const start = start_of(span);
  char* const end = start + chunk_end;
  char* at = start + size_t{span.chunk.searched} * min_alignment + first_offset;
  for (; at < end; at += checked_total(at, word_at(at), end)) {
    const State state = state_of(word_of_others(at));
    if (state == Live) break;
    if (state != Freed && state != FreedElsewhere) damaged(at);
  }
  span.chunk.searched = static_cast<uint16_t>(static_cast<size_t>(at - start) / min_alignment);
  return at >= end;
}

// Makes a hole of the chunk the window. Requires: the chunk is in no list.
bool open_hole(ThreadCache& c, Unit& span, char* from, size_t need) noexcept {
  const Hole hole = coalesce(span, from, need > smallest_hole ? need : smallest_hole);
  if (hole.start == nullptr) return false;
  char* const to = hole.start + hole.bytes;
  put_window(c, &span, {hole.start, to, distance_of(word_at(hole.start)), span.chunk.free_bytes() - hole.bytes, to});
  add_one(c.arena->chunks_recycled);
  return true;
}

// What is left of the window becomes a freed header, so that headers follow one another through the whole chunk.
void close_window(ThreadCache& c) noexcept {
  Arena& a = *c.arena;
  Unit& span = *a.current;
  char* const cursor = c.window.cursor.load(std::memory_order_relaxed);
  size_t last = c.window.last.load(std::memory_order_relaxed);
  size_t freed = c.window.freed.load(std::memory_order_relaxed);
  const auto gap = static_cast<size_t>(c.window.limit - cursor);
  if (gap != 0) {
    write_header(cursor, gap, last, Freed);
    freed += gap;
    last = gap;
  }
  if (c.window.limit != start_of(span) + chunk_end) set_distance(c.window.limit, last);
  put_window(c, nullptr, {});
  span.chunk.set_free_bytes(freed);
}

void give_back(Unit& span, bool purge = false) noexcept {
  const size_t index = region::index_of(&span);
  class_bytes()[index] = class_byte_none;
  span.chunk.owner.store(nullptr, std::memory_order_relaxed);
  spans::give_back(index, !quarantines_spans && purge && os::purge(region::address_of(index), unit_size));
}

// A chunk of frame memory has its guard behind it where spans have guards. Whoever looks at all of the heap holds the
// cache's lock, which the caller holds; who has the region's lock alone only asks whether the span is free.
void set_state(Unit& span, UnitState state) noexcept {
  span.set_use(state);
  if (guards_spans) (&span)[span.units - 1].set_use(state);
}

// An empty chunk, in no list. Those of a thread that has ended go back at once.
void put_chunk(ThreadCache& c, Unit& span) noexcept {
  Arena& a = *c.arena;
  const bool keep = &c == thread_cache && !a.churning && a.hot.count < options.arena_hot / unit_size;
  // What a churning scope leaves is not needed again soon: kept, it would add to what the pools take now.
  if (!keep) return give_back(span, a.churning);
  span.chunk.set_free_bytes(0);
  push_front(a, span, ListKind::Hot);
}

// Puts a chunk with survivors into the list that it belongs to.
void retire(ThreadCache& c, Unit& span, ListKind kind, size_t look_after) noexcept {
  if (span.chunk.free_bytes() == chunk_capacity) return put_chunk(c, span);
  span.chunk.searched = 0;
  set_look_at(span, span.chunk.free_bytes() + look_after);
  push_front(*c.arena, span, kind);
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
    Unit& span = *region::unit_at(index);
    list.to_probe = span.chunk.prev;
    if (find_live(span)) {
      unlink(a, span);
      return &span;
    }
    if (span.chunk.sweeps.load(std::memory_order_relaxed) == 0) continue;
    if (!thorough) {
      // What its thread frees later is counted, what others freed is not: only another look will find it empty.
      a.freed_elsewhere.store(true, std::memory_order_relaxed);
      continue;
    }
    sweep(span);
    if (span.chunk.free_bytes() < span.chunk.look_at_bytes()) continue;
    unlink(a, span);
    set_look_at(span, span.chunk.free_bytes() + worth_a_look);
    push_front(a, span, ListKind::Holey);
  }
  return nullptr;
}

// A window in one of the chunks with survivors.
bool reuse_hole(ThreadCache& c, size_t need) noexcept {
  Arena& a = *c.arena;
  for (unsigned tries = hole_tries; tries != 0 && a.holey.first != unit_index_none; --tries) {
    Unit& span = *region::unit_at(a.holey.first);
    unlink(a, span);
    sweep(span);
    if (span.chunk.free_bytes() == chunk_capacity) {
      begin(c, span, false);
      return true;
    }
    if (open_hole(c, span, start_of(span) + first_offset, need)) return true;
    retire(c, span, ListKind::Retired, worth_less);
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
  Unit* span = region::unit_at(index);
  span->chunk.owner.store(&c, std::memory_order_relaxed);
  span->chunk.list = ListKind::None;
  class_bytes()[index] = class_byte_arena;
  add_one(c.arena->chunks_opened);
  return span;
}

void give_back_hot(ThreadCache& c) noexcept {
  Arena& a = *c.arena;
  while (a.hot.first != unit_index_none) {
    Unit& span = *region::unit_at(a.hot.first);
    unlink(a, span);
    give_back(span);
  }
}

void give_back_empty(Arena& a) noexcept {
  for (ListKind kind : {ListKind::Retired, ListKind::Holey}) {
    for (uint32_t index = list_of(a, kind).first; index != unit_index_none;) {
      Unit& span = *region::unit_at(index);
      index = span.chunk.next;
      if (!find_live(span)) continue;
      unlink(a, span);
      give_back(span);
    }
  }
}

// Takes in what other threads freed into the chunks of a thread that has ended.
void give_back_orphaned(ThreadCache& c) noexcept {
  if (c.arena->freed_elsewhere.exchange(false, std::memory_order_seq_cst)) give_back_empty(*c.arena);
}

// The thread ends: all but chunks with survivors goes back.
void end_thread(ThreadCache& c) noexcept {
  Arena& a = *c.arena;
  a.depth = 0;
  give_back_frames(a);
  if (Unit* span = a.current) {
    close_window(c);
    retire(c, *span, ListKind::Retired, worth_a_look);
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
  for (size_t i = region::first_index(); i < region::limit(); i = region::next_unit(i)) {
    Unit& span = *region::unit_at(i);
    if (span.use() == UnitState::Arena && span.chunk.owner.load(std::memory_order_relaxed) == &c)
      span.chunk.owner.store(&to, std::memory_order_relaxed);
  }
  to.arena = c.arena;  // where frees leave their mark
  c.arena = nullptr;
}

// Gives back what is empty of so many chunks; says how many were not.
uint32_t look_around(ThreadCache& c, uint32_t tries, bool thorough) noexcept {
  uint32_t kept = 0;
  const Arena& a = *c.arena;
  for (; tries != 0 && a.retired.count + a.holey.count != 0; --tries) {
    const bool holey = a.retired.count == 0 || (a.holey.count != 0 && tries % 2 == 0);
    if (Unit* span = probe(c, holey ? ListKind::Holey : ListKind::Retired, 1, thorough))
      put_chunk(c, *span);
    else
      ++kept;
  }
  return kept;
}

void look_in_passing(ThreadCache& c) noexcept {
  Arena& a = *c.arena;
  if (!a.freed_elsewhere.load(std::memory_order_relaxed) && a.probes_left == 0) return;
  const KeepErrno keep;
  const WindowLock held(c);
  // Once round in each list, from the moment that the mark is taken.
  if (a.probes_left == 0 && a.freed_elsewhere.exchange(false, std::memory_order_seq_cst))
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

constexpr cache::ArenaHooks hooks = {end_thread, tick, give_back_orphaned, trim, forked, abandon, validate};

}  // namespace

Arena* arena_of(ThreadCache& c) noexcept {
  if (c.arena != nullptr) return c.arena;
  const MutexLock<OwnerMutex> held(c.lock);
  cache::arena_hooks.store(&hooks, std::memory_order_release);
  c.arena = static_cast<Arena*>(spans::allocate_metadata(sizeof(Arena)));
  return c.arena;
}

void refresh(ThreadCache& c) noexcept {
  const Arena& a = *c.arena;
  const bool routes = a.depth != 0 && a.open[a.depth - 1].routes && !a.backed_off && !a.churning;
  cache::set_gate(c, c.mode.with(CacheMode::Routing, routes));
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
  if (Unit* span = a.current) {
    char* const behind = c.window.limit;
    close_window(c);
    const bool to_the_end = behind == start_of(*span) + chunk_end;
    if (!to_the_end && open_hole(c, *span, behind, need)) return true;
    const bool holey = to_the_end && span->chunk.free_bytes() >= worth_a_look;
    retire(c, *span, holey ? ListKind::Holey : ListKind::Retired, worth_a_look);
  }
  if (a.hot.first != unit_index_none) {
    Unit& span = *region::unit_at(a.hot.first);
    unlink(a, span);
    begin(c, span, false);
    return true;
  }
  // Holes cost more than fresh chunks: they are used when much memory lies in them.
  if (a.wasted_bytes > budget(a) / 2 && reuse_hole(c, need)) return true;
  bool clean = false;
  Unit* span = probe(c, ListKind::Retired, probes, true);
  if (span == nullptr) {
    if (a.wasted_bytes > budget(a)) {
      back_off(c);
      return false;
    }
    span = create_chunk(c, &clean);
    if (span == nullptr) return false;
  }
  begin(c, *span, clean);
  return true;
}

void give_back_some(ThreadCache& c) noexcept {
  if (++c.arena->passes % scopes_per_look == 0) look_in_passing(c);
}

void restart_window(ThreadCache& c) noexcept {
  Unit& span = *c.arena->current;
  char* const start = start_of(span);
  char* clean = start + chunk_end;
  if (c.window.limit == clean) {  // it went to the end of the chunk, which may never have been reached
    char* const cursor = c.window.cursor.load(std::memory_order_relaxed);
    char* const known = c.window.clean.load(std::memory_order_relaxed);
    clean = known > cursor ? known : cursor;
  }
  put_window(c, &span, {start + first_offset, start + chunk_end, 0, 0, clean});
}

void expect_pops(ThreadCache& c) noexcept {
  const Arena& a = *c.arena;
  if (a.retired.first != unit_index_none) region::unit_at(a.retired.first)->chunk.look_at = 0;
}

// The window is empty, and the last object of the chunk that was current before has been freed: the window goes back
// there, so that what is freed in reverse order is popped. Says whether it did.
bool go_back(ThreadCache& c, Unit& span, char* freed) noexcept {
  Arena& a = *c.arena;
  Unit* const empty = a.current;
  if (empty == nullptr || c.window.cursor.load(std::memory_order_relaxed) != start_of(*empty) + first_offset ||
      c.window.limit != start_of(*empty) + chunk_end)
    return false;
  char* const end = start_of(span) + chunk_end;
  const uint32_t word = word_at(freed);
  char* const behind = freed + total_of(word);
  size_t filler = 0;
  if (behind != end) {
    const uint32_t next = word_at(behind);
    filler = total_of(next);
    if (state_of(next) != Freed || behind + filler != end) return false;
  }
  unlink(a, span);
  const size_t others = span.chunk.free_bytes() - total_of(word) - filler;
  put_window(c, &span, {freed, end, distance_of(word), others, end});
  put_chunk(c, *empty);
  return true;
}

void look_at(ThreadCache& c, Unit& span, char* freed) noexcept {
  Arena& a = *c.arena;
  const ListKind kind = span.chunk.list;
  if (kind != ListKind::Retired && kind != ListKind::Holey) return;
  if (span.chunk.sweeps.load(std::memory_order_relaxed) != 0 && find_live(span)) {
    unlink(a, span);
    return put_chunk(c, span);
  }
  if (span.chunk.look_at == 0) {
    set_look_at(span, span.chunk.wasted_bytes() + worth_a_look);
    if (go_back(c, span, freed)) return;
  }
  if (span.chunk.free_bytes() < span.chunk.look_at_bytes()) return;
  unlink(a, span);
  if (span.chunk.free_bytes() == chunk_capacity) {
    put_chunk(c, span);
  } else {
    set_look_at(span, span.chunk.free_bytes() + worth_a_look);
    push_front(a, span, ListKind::Holey);
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
  Unit& span = *region::unit_at(a.hot.first);
  unlink(a, span);
  const size_t index = region::index_of(&span);
  class_bytes()[index] = class_byte_none;
  span.chunk.owner.store(nullptr, std::memory_order_relaxed);
  set_state(span, UnitState::Frame);
  return index;
}

void put_empty(ThreadCache& c, size_t index) noexcept {
  Unit& span = *region::unit_at(index);
  span.chunk = {};  // it may have held nothing but frames
  set_state(span, UnitState::Arena);
  span.chunk.owner.store(&c, std::memory_order_relaxed);
  class_bytes()[index] = class_byte_arena;
  put_chunk(c, span);
}

}  // namespace sluice::arena
