// The walk over a stack arena that compares it with the invariants of base/layout.hpp. Open it when a checked build
// stops with a line that begins with "arena".
#include "arena/chunk.hpp"

namespace sluice::arena {
namespace {

const char* validate_list(const ThreadCache& c, const ChunkList& list, ListKind kind) noexcept {
  uint32_t previous = unit_index_none;
  uint32_t length = 0;
  for (uint32_t index = list.first; index != unit_index_none; index = region::unit_at(index)->chunk.next) {
    const Unit& span = *region::unit_at(index);
    if (span.use() != UnitState::Arena || class_bytes()[index] != class_byte_arena) return "arena: no chunk in a list";
    if (span.chunk.owner.load(std::memory_order_relaxed) != &c) return "arena: chunk of another owner";
    if (span.chunk.prev != previous || span.chunk.list != kind) return "arena: list is damaged";
    previous = index;
    ++length;
  }
  return length == list.count && previous == list.last ? nullptr : "arena: list is miscounted";
}

// The headers of a chunk, with the window in their place if it lies here.
const char* validate_chunk(const ThreadCache& c, const Unit& span) noexcept {
  const char* const start = start_of(span);
  const char* const end = start + chunk_end;
  const bool current = c.arena->current == &span;
  const char* const cursor = c.window.cursor.load(std::memory_order_relaxed);
  size_t last = 0;
  size_t freed = 0;
  bool window_ahead = current;
  for (const char* at = start + first_offset; at < end;) {
    if (window_ahead && at == cursor) {
      window_ahead = false;
      if (last != c.window.last.load(std::memory_order_relaxed)) return "arena: distance of the window is damaged";
      at = c.window.limit;
      if (at < end) last = distance_of(word_at(at));  // brought up to date when the window is closed
      continue;
    }
    const uint32_t word = word_at(at);
    const State state = state_of(word);
    if (state != Live && state != Freed && state != FreedElsewhere) return "arena: header is damaged";
    if (total_of(word) == 0 || total_of(word) > static_cast<size_t>(end - at)) return "arena: size is damaged";
    if (distance_of(word) != last) return "arena: distance is damaged";
    if (state == Freed) freed += total_of(word);
    last = total_of(word);
    at += last;
  }
  const size_t counted = current ? c.window.freed.load(std::memory_order_relaxed) : span.chunk.free_bytes();
  return freed == counted ? nullptr : "arena: freed bytes are miscounted";
}

}  // namespace

const char* validate(const ThreadCache& c) noexcept {
  const Arena& a = *c.arena;
  if (const char* wrong = validate_list(c, a.retired, ListKind::Retired)) return wrong;
  if (const char* wrong = validate_list(c, a.holey, ListKind::Holey)) return wrong;
  if (const char* wrong = validate_list(c, a.hot, ListKind::Hot)) return wrong;
  if (a.current != nullptr)
    if (const char* wrong = validate_chunk(c, *a.current)) return wrong;
  size_t wasted = 0;
  for (const ChunkList* list : {&a.retired, &a.holey}) {
    for (uint32_t index = list->first; index != unit_index_none; index = region::unit_at(index)->chunk.next) {
      if (const char* wrong = validate_chunk(c, *region::unit_at(index))) return wrong;
      wasted += region::unit_at(index)->chunk.wasted_bytes();
    }
  }
  return wasted == a.wasted_bytes ? nullptr : "arena: wasted bytes are miscounted";
}

}  // namespace sluice::arena
