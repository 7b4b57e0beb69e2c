// The calls of a program that runs with the stack arena, and what tests ask about what they got. Open it to write a
// test of scopes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "arena/arena.hpp"
#include "arena/chunk.hpp"
#include "arena/scope.hpp"
#include "heap/counters.hpp"
#include "heap/heap.hpp"

namespace sluice::test {

// malloc and free; the compiler knows nothing of the size.
inline void* scoped_allocate(size_t size) noexcept {
  heap::hide(size);
  return heap::allocate<arena::allocate_slow>(size);
}
inline void scoped_free(void* block) noexcept {
  heap::free<arena::free_slow>(block);
}

// An object whose bytes all have the value.
inline unsigned char* filled(size_t size, unsigned char value) noexcept {
  auto* const block = static_cast<unsigned char*>(scoped_allocate(size));
  if (block != nullptr) std::memset(block, value, size);
  return block;
}
inline bool all_bytes(const void* block, size_t size, unsigned char value) noexcept {
  const auto* const bytes = static_cast<const unsigned char*>(block);
  return std::all_of(bytes, bytes + size, [value](unsigned char byte) { return byte == value; });
}

class Scope {
 public:
  explicit Scope(unsigned flags = SLUICE_ROUTE) noexcept : result_(arena::enter(&scope_, flags)) {}
  ~Scope() { arena::leave(&scope_); }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  int result() const noexcept { return result_; }

 private:
  sluice_scope scope_{};
  int result_;
};

// Frees may wait until the next object is placed or a scope is left: afterwards all of this thread's are done with.
inline void settle() noexcept {
  const Scope scope;
}

// Whether the address lies in a chunk of a stack arena.
inline bool in_chunk(const void* block) noexcept {
  const size_t unit = unit_index_of(block);
  return unit < region_range_units && class_bytes()[unit] == class_byte_arena;
}
// Whether the next small allocation of this thread lands in a chunk.
inline bool routed() noexcept {
  void* const block = scoped_allocate(24);
  const bool result = in_chunk(block);
  scoped_free(block);
  return result;
}
inline const Unit* chunk_of(const void* block) noexcept {
  return region::unit_at(unit_index_of(block));
}

// Units in use of a kind, in the whole heap.
inline size_t units_in_use(UnitState state) noexcept {
  size_t units = 0;
  cache::lock_all();
  for (size_t i = region::first_index(); i < region::limit(); i += region::unit_at(i)->units)
    if (region::unit_at(i)->use() == state) units += region::unit_at(i)->units;
  cache::unlock_all();
  return units;
}
inline size_t chunks_in_use() noexcept {
  return units_in_use(UnitState::Arena);
}

inline arena::Figures arena_figures() noexcept {
  cache::lock_all();
  const arena::Figures result = arena::figures();
  cache::unlock_all();
  return result;
}

struct ArenaCounts {
  uint64_t objects, requested_bytes, allocated_bytes, freed_bytes, lifo, out_of_order, remote, grown;
  uint64_t frees() const noexcept { return lifo + out_of_order + remote; }
  uint64_t live_bytes() const noexcept { return allocated_bytes - freed_bytes; }
};
// What all threads have counted, those without a cache included. Requires: no other thread is in the heap.
inline ArenaCounts arena_counts() noexcept {
  ArenaCounts sum{};
  const auto add = [&sum](const ArenaCounters& counters) {
    sum.objects += counters.objects.load();
    sum.requested_bytes += counters.requested_bytes.load();
    sum.allocated_bytes += counters.bytes.load();
    sum.freed_bytes += counters.freed_bytes.load();
    sum.lifo += counters.lifo_frees.load();
    sum.out_of_order += counters.out_of_order_frees.load();
    sum.remote += counters.remote_frees.load();
    sum.grown += counters.grown_in_place.load();
  };
  add(counters::totals.arena);
  for (const ThreadCache* c = cache::first(); c != nullptr; c = c->next_cache)
    if (c->counters != nullptr) add(c->counters->arena);
  return sum;
}

template <typename Body>
void on_another_thread(Body body) {
  std::thread(std::move(body)).join();
}

inline void expect_valid() {
  const char* const wrong = heap::validate().what;
  EXPECT_EQ(wrong, nullptr) << wrong;
}

}  // namespace sluice::test
