// Guarded blocks: each lies on pages of its own between inaccessible ones, which catch what runs over its ends, and
// stays inaccessible for a while after its end, which catches uses after free. Open it to see where such a block lies
// and how it ends; which allocations become one is decided in heap/sampling.hpp, what is reported is in report.hpp.
//
// A slot is a span of units, in the simplest case one unit (64 KiB, 16 pages of 4 KiB):
//
//   | inaccessible …            | data pages           | inaccessible …             |
//                        block: |   (left)      or     (right)|
//
// Three blocks in four end as near to the end of the data pages as their alignment allows: the byte behind those pages
// faults. The fourth begins with them. On its own pages a pattern lies around the block, up to 64 bytes on each side;
// it is checked when the block is freed. The data pages of a freed block become inaccessible as well; the slot waits in
// a queue until all others have been used, and then serves again.
//
// Sizes are in bytes. All functions are thread-safe and none throws; none blocks in a signal handler that interrupts
// them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/layout.hpp"
#include "guarded/slot.hpp"

namespace sluice::guarded {

inline constexpr size_t most_bytes = size_t{1} << 20;  // larger blocks are not guarded

// Effects: lets `slots` slots be made, and none of them before the first call of allocate.
void set_slots(size_t slots) noexcept;

// In the child of a fork, whose parent had a thread in the middle of a change here: no more blocks are guarded. Those
// that are stay so until they are freed.
void abandon_slots() noexcept;

// Effects: a block of exactly `size` bytes at a multiple of `alignment` (a power of two). With `zeroed` it reads as
// zero. Returns nullptr when it cannot be guarded: it is too large, all slots are in use, or the system refuses.
void* allocate(size_t size, size_t alignment, bool zeroed) noexcept;

// Effects: ends the life of a block and returns true; *size is what it was. What is no live block is reported; if the
// process goes on after that, nothing has changed, and the result is false. Requires: covers(block).
bool free(void* block, size_t* size) noexcept;

// What the profile knows the block by, a number of its own; 0 at first. Requires: covers(block), a live block.
uint32_t& record_of(void* block) noexcept;

// Bytes that may be used, as many as were asked for; 0 when no live block begins there. Requires: covers(block).
size_t usable_size(const void* block) noexcept;

// Effects: as usable_size, for a call that needs a live block: what is none is reported, and 0 then.
bool require_live(void* block, size_t* size) noexcept;

struct Figures {
  size_t live_blocks, live_bytes;
  size_t slots, slot_bytes;  // address space, freed and unused slots included
};
Figures figures() noexcept;  // requires the lock

// The lock of the queues of free slots. In the order of locks it stands between those of caches and the region's.
Mutex& mutex() noexcept;

}  // namespace sluice::guarded
