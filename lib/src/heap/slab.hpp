// Slabs: spans of units cut into blocks of one size class. Open it to see how blocks are carved, how they come back,
// and how a thread frees into a slab that another thread owns. Life-cycle and invariants: base/layout.hpp.
//
// "Owner's lock" is the lock of the thread cache in Unit::owner.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "base/layout.hpp"
#include "heap/link.hpp"
#include "heap/slab_shape.hpp"
#include "pages/region.hpp"

namespace sluice::slab {

// Effects: makes a slab of the class, owned by `owner` and in its partial list. Returns nullptr when there is no
// memory. Requires the owner's lock.
Unit* create(ThreadCache& owner, unsigned size_class) noexcept SLUICE_REQUIRES(owner.lock);

// Effects: gives the slab back to the region. Requires: no block of it is in use, the owner's lock.
void destroy(Unit* s) noexcept;

// Effects: gives back the pages of a new slab but those of its first blocks, if they are in memory. Requires: nothing
// is carved, the owner's lock.
void drop_rest(Unit* s, size_t blocks) noexcept;

// Effects: takes up to `most` free blocks in the order of their addresses, or carves new ones, a page's worth at most;
// the slab leaves the partial list when those were the last. Blocks on absent pages come last, a page's worth at most.
// Returns one block or more. Requires: s is partial, most > 0, the owner's lock.
BlockList take_blocks(Unit* s, uint32_t most) noexcept;

// What walk() found in one slab.
struct Run {
  void* rest;      // the first block that lies elsewhere, nullptr at the end
  uint32_t count;  // blocks in the slab
};

// Calls add(word, bits) for the blocks at the front of a list that lie in s, once for each change of the word. It says
// how many of them had been freed before; the run is shorter by as many, and the list ends there: one that was freed
// into twice has a circle.
template <typename Add>
Run walk(const Unit* s, void* block, Add add) noexcept {
  const char* const start = start_of(s);
  const size_t extent = size_t{s->units} << unit_shift;
  const uint64_t reciprocal = reciprocals[s->slab.size_class];
  uint32_t count = 0;
  uint64_t bits = 0;
  size_t word = 0;
  for (;;) {
    const size_t offset = static_cast<size_t>(static_cast<char*>(block) - start);
    if (offset >= extent) break;
    const auto [number, begins] = number_at(offset, reciprocal);
    const void* const previous = block;
    block = next_of(block);
    if (!begins) [[unlikely]] {
      report_corruption("invalid free, no block begins", previous);
      continue;
    }
    if (number / 64 != word && bits != 0) {
      const uint32_t twice = add(word, bits);
      bits = 0;
      if (twice != 0) [[unlikely]]
        return {nullptr, count - twice};
    }
    word = number / 64;
    const uint64_t bit = uint64_t{1} << (number % 64);
    if ((bits & bit) != 0) [[unlikely]] {
      report_corruption("double free", previous);
      block = nullptr;
      break;
    }
    bits |= bit;
    ++count;
  }
  const uint32_t twice = add(word, bits);
  return {twice == 0 ? block : nullptr, count - twice};
}

// Effects: puts the blocks of a list back into their slabs, up to one that lies in a slab of another owner. A slab that
// is empty then, and not the last of its class with blocks to give, is destroyed. Requires: each lies in a slab, the
// lock of `c`.
struct OwnRuns {
  void* rest;    // the first block of another owner's, nullptr at the end
  int32_t runs;  // of blocks in one slab
};
OwnRuns put_list(ThreadCache& c, void* block) noexcept SLUICE_REQUIRES(c.lock);

// Effects: as put_list, for blocks that are not touched. Those in slabs of other owners are moved to the front of
// `blocks`. Returns how many these are. Requires: count <= scattered_capacity, the lock of `owner`.
uint32_t put_scattered(ThreadCache& owner, void** blocks, uint32_t count) noexcept SLUICE_REQUIRES(owner.lock);

// Effects: puts the blocks at the front of a list that lie in s back into it, from a thread that does not own it: one
// atomic instruction for each 64 blocks side by side. The caller must pass s to announce() (heap/announce.hpp) later.
// Lock-free.
Run put_remote(Unit* s, void* block) noexcept;

// Effects: as that, for blocks of one word of the bitmap. Returns: whether none of them was freed before.
bool put_remote_word(Unit* s, uint32_t word, uint64_t bits) noexcept;

// Effects: finds an owner for a slab whose `queued` this thread has set, and queues it there. The slab may have been
// destroyed since its blocks were freed: then its unit has no owner, or serves a new slab, which is queued in its
// place; that does no harm. Returns: the owner, null when there is none. Lock-free.
ThreadCache* queue_on_owner(Unit* s, uint32_t units) noexcept;

// Blocks freed by other threads that the owner has not taken in yet.
uint32_t remote_count(const Unit* s) noexcept;

// The words of the free bitmap in use.
const uint64_t* free_bits(const Unit* s) noexcept;

// Effects: takes in the remote frees of all slabs queued on `owner`. Requires its lock.
void collect_pending(ThreadCache& owner) noexcept SLUICE_REQUIRES(owner.lock);

// Effects: puts a partial slab where refills should find it: the fuller ones first, and those at the end whose free
// blocks all lie on absent pages.
void place(ThreadCache& owner, Unit* s) noexcept SLUICE_REQUIRES(owner.lock);

// Effects: destroys every slab of the owner, or of one class alone, that holds nothing. Requires its lock.
void destroy_empty(ThreadCache& owner) noexcept SLUICE_REQUIRES(owner.lock);
void destroy_empty(ThreadCache& owner, unsigned size_class) noexcept SLUICE_REQUIRES(owner.lock);

// Effects: gives all slabs of an owner to another one, which has no list of them. Requires: nobody else runs.
void abandon(ThreadCache& from, ThreadCache& to) noexcept;
// Effects: as abandon, for slabs that a thread was about to make or to give back. Requires also: the spans are whole.
void adopt_unowned(ThreadCache& to) noexcept;

// Effects: moves a partial slab from an orphan to another cache's partial list. Requires both locks.
void change_owner(Unit* s, ThreadCache& to) noexcept SLUICE_REQUIRES(to.lock);

}  // namespace sluice::slab
