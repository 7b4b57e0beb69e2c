// The front of the heap in a secure build (libsluice-secure.so): it checks what the program gives back, at once. Open
// it to see what is caught, and what a call costs there. In other builds nothing of it is used.
//
//   block: | what was asked for, `size` bytes | canary | rest | canary |      each 8 bytes; states: see base/layout.hpp
//
// A block is asked of the heap with room for a canary right behind its last byte; the last bytes of its class are a
// canary too (the same one, if there is no more room), for what writes in front of its neighbour. Its state lies out of
// line, where no overflow reaches it, and says how long it is: free finds double frees, addresses that begin no block,
// and overflows; these up to 31 frees later where a thread frees more than its cache takes, so that the processor
// fetches several blocks at once. What is freed is cleared (its first 48 bytes, or all with SLUICE_ZERO_ON_FREE) and
// waits in a queue; when it is handed out again, or its slab goes, it must still read as zero.
//
// Semantics, errors and thread-safety are those of heap.hpp; usable sizes are exactly what was asked for.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/layout.hpp"

namespace sluice::hardened {

// Effects: draws the process's secrets. Called once, before the first block exists.
void start() noexcept;

// For slabs. Effects: prepares blocks that are carved, one behind the other; checks those of a slab that goes.
void prepare(char* first, std::atomic<uint16_t>* states, size_t count, unsigned size_class) noexcept;
void retire(char* first, std::atomic<uint16_t>* states, size_t count, unsigned size_class) noexcept;

// For threads' caches. Effects: prepares a new one.
void prepare(ThreadCache& c) noexcept;

// Effects: checks a block that waits for that and clears it. False when it must not be used again.
bool end(WaitingBlock waiting) noexcept;

// Blocks of a class that wait to be used again. Returns: one of them, which is no more there, or null when there is
// none. Requires: as cache::flush_all.
void* take_kept(ThreadCache& c, unsigned size_class) noexcept;
// How many; of another thread's cache about as many.
size_t kept_blocks(const ThreadCache& c, unsigned size_class) noexcept;
// Most likely another number when any of them has come or gone, and 0 when there are none.
uint32_t kept_mark(const ThreadCache& c, unsigned size_class) noexcept;

// Effects: checks what the calling thread has freed, what waits for that and what waits to be used again. Called when
// the thread or the process ends.
void check_waiting() noexcept;

void* allocate(size_t size) noexcept;
void free(void* block) noexcept;
void* allocate_zeroed(size_t count, size_t size) noexcept;
void* allocate_aligned(size_t alignment, size_t size) noexcept;
void* reallocate(void* block, size_t size) noexcept;
size_t usable_size(const void* block) noexcept;

}  // namespace sluice::hardened
