// Vacant pages: pages of a slab whose blocks are all free while others of the slab are in use. They go back to the
// system and are absent then, until a block that reaches into one is handed out. Open it to see
// which pages these are.
//
// A slab's free blocks are bits out of line and nobody's list runs through them, so that their pages may go. Who may
// change the free bitmap may do it: all here requires the lock of the slab's owner. `free` is that bitmap. What was
// never carved is left alone. Secure builds give no such pages back, since freed blocks must read there as they were
// left. When they go: heap/sparse.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/layout.hpp"

namespace sluice::vacant {

inline constexpr bool gives_back = !checks_blocks;

// The accounts of a cache: blocks of a slab were freed, or handed out; a slab came, or is about to go.
inline void note_freed(ThreadCache& c, size_t bytes) noexcept SLUICE_REQUIRES(c.lock) {
  c.vacancy.free_bytes += bytes;
  c.vacancy.freed_since += bytes;
  auto& until_look = c.vacancy.until_look;
  until_look.store(until_look.load(std::memory_order_relaxed) - static_cast<ptrdiff_t>(bytes),
                   std::memory_order_relaxed);
}
inline void note_taken(ThreadCache& c, const Unit* s, uint32_t blocks) noexcept SLUICE_REQUIRES(c.lock) {
  c.vacancy.free_bytes -= size_t{blocks} * class_sizes[s->slab.size_class];
}
void note_come(ThreadCache& c, const Unit* s) noexcept SLUICE_REQUIRES(c.lock);
void note_gone(ThreadCache& c, const Unit* s) noexcept SLUICE_REQUIRES(c.lock);

// Effects: nothing is known of a cache that has lost its slabs.
void forget(ThreadCache& c) noexcept;

// Effects: sets the bits of the free blocks that lie on pages in memory; one word for 64 blocks. Returns: how many.
uint32_t find_present(const Unit* s, const uint64_t* free, uint64_t* present) noexcept;

// Effects: the pages that the blocks of a list reach into are in memory from now on. Requires: they lie in s.
void bring_back(ThreadCache& c, Unit* s, void* list) noexcept SLUICE_REQUIRES(c.lock);

// Effects: notes that pages went of a slab that is empty now and goes as a whole.
void note_wasted(ThreadCache& c, const Unit* s) noexcept SLUICE_REQUIRES(c.lock);

// Bytes of the vacant pages of a slab that are in memory; none where the system has refused to take some, nor where
// may_be_vacant says so.
size_t count_present(const Unit* s, const uint64_t* free) noexcept;
// Bytes of the absent ones.
size_t count_absent(const Unit* s) noexcept;

// Effects: gives the vacant pages of a slab back, those side by side with one call, and notes that it has none. Where
// the system refuses one, some may be as they were, and that is noted. Returns: what went, and by how many calls.
struct Dropped {
  size_t bytes;
  unsigned calls;
};
Dropped drop(ThreadCache& c, Unit* s, const uint64_t* free) noexcept SLUICE_REQUIRES(c.lock);

// Returns nullptr, or what is wrong with a slab's absent pages.
const char* validate(const Unit* s, const uint64_t* free) noexcept;

}  // namespace sluice::vacant
