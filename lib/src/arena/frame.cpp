// See frame.hpp.
#include "arena/frame.hpp"

#include "arena/chunk.hpp"
#include "base/check.hpp"
#include "base/options.hpp"
#include "heap/heap.hpp"
#include "pages/spans.hpp"

namespace sluice::arena {
namespace {

// sluice_frame_chunk::owner, as we use it. All chunks that a thread has taken are in a list, so that the end of the
// thread finds them: a program and each library opened apart may have frame memory of their own on it.
enum Field : uint8_t { Owner, Next, Previous, OfArena };

sluice_frame_chunk* linked(const sluice_frame_chunk* chunk, Field field) noexcept {
  return reinterpret_cast<sluice_frame_chunk*>(chunk->owner[field]);
}
void set_link(sluice_frame_chunk* chunk, Field field, const sluice_frame_chunk* to) noexcept {
  chunk->owner[field] = reinterpret_cast<uintptr_t>(to);
}

void push(Arena& a, sluice_frame_chunk* chunk) noexcept {
  set_link(chunk, Previous, nullptr);
  set_link(chunk, Next, a.frames);
  if (a.frames != nullptr) set_link(a.frames, Previous, chunk);
  a.frames = chunk;
}

void unlink(Arena& a, sluice_frame_chunk* chunk) noexcept {
  sluice_frame_chunk* const previous = linked(chunk, Previous);
  sluice_frame_chunk* const next = linked(chunk, Next);
  if (previous != nullptr)
    set_link(previous, Next, next);
  else
    a.frames = next;
  if (next != nullptr) set_link(next, Previous, previous);
}

size_t units_of(const sluice_frame_chunk* chunk) noexcept {
  return (chunk->end - reinterpret_cast<uintptr_t>(chunk)) / unit_size;
}

void free_span(sluice_frame_chunk* chunk) noexcept {
  spans::give_back(unit_index_of(chunk));
}

size_t allocate_span(ThreadCache& c, size_t units) noexcept {
  const size_t index = units == 1 ? take_empty(c) : unit_index_none;
  return index != unit_index_none ? index : spans::take(units, UnitState::Frame);
}

sluice_frame_chunk* open_chunk(ThreadCache& c, sluice_frame_state* state, size_t units) noexcept {
  const MutexLock<OwnerMutex> held(c.lock);
  const size_t index = allocate_span(c, units);
  if (index == unit_index_none) return nullptr;
  auto* const chunk = reinterpret_cast<sluice_frame_chunk*>(region::address_of(index));
  *chunk = {};
  chunk->end = reinterpret_cast<uintptr_t>(chunk) + units * unit_size;
  chunk->checked = checked || options.frame_checks ? 1 : 0;
  chunk->keep = units * unit_size <= options.arena_hot ? 1 : 0;
  chunk->owner[Owner] = reinterpret_cast<uintptr_t>(state);
  chunk->owner[OfArena] = reinterpret_cast<uintptr_t>(c.arena);
  push(*c.arena, chunk);
  add_one(c.arena->frame_chunks_opened);
  return chunk;
}

}  // namespace

sluice_frame_chunk* get_chunk(sluice_frame_state* state, size_t bytes) noexcept {
  const KeepErrno keep;
  ThreadCache* const c = heap::usable_cache();
  if (c == nullptr || arena_of(*c) == nullptr) return nullptr;
  const size_t units = (bytes + unit_size - 1) >> unit_shift;
  sluice_frame_chunk* const chunk = open_chunk(*c, state, units);
  return chunk != nullptr || !heap::give_back_idle(bytes) ? chunk : open_chunk(*c, state, units);
}

void put_chunk(sluice_frame_chunk* chunk) noexcept {
  const KeepErrno keep;
  ThreadCache* const c = heap::usable_cache();
  // A signal handler that interrupts the heap may rewind: the chunk is found at the end of the thread. So is one that
  // another thread's frame has dropped.
  if (c == nullptr) return;
  if (chunk->owner[OfArena] != reinterpret_cast<uintptr_t>(c->arena)) {
    if (chunk->checked != 0) fail_check("a frame was rewound on another thread than its own", chunk);
    return;
  }
  const MutexLock<OwnerMutex> held(c->lock);
  unlink(*c->arena, chunk);
  if (units_of(chunk) == 1)
    put_empty(*c, unit_index_of(chunk));
  else
    free_span(chunk);
}

void give_back_frames(Arena& a) noexcept {
  while (sluice_frame_chunk* chunk = a.frames) {
    unlink(a, chunk);
    // The library that used it may have been closed, and its variables be another's now; they are mapped for as long as
    // the thread lives.
    auto* const state = reinterpret_cast<sluice_frame_state*>(chunk->owner[Owner]);
    if (state->chunk == chunk || state->spare == chunk) *state = {};
    free_span(chunk);
  }
}

}  // namespace sluice::arena
