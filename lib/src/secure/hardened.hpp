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
// Blocks of no bytes lie where nobody can touch them (zero.hpp).
//
// Semantics, errors and thread-safety are those of heap.hpp; usable sizes are exactly what was asked for, and to ask
// for that of what is no block is reported.
#pragma once

#include <cstddef>

namespace sluice::hardened {

void* allocate(size_t size) noexcept;
void free(void* block) noexcept;
// As free; a block of another size is reported and left alone.
void free_sized(void* block, size_t size) noexcept;
void* allocate_zeroed(size_t count, size_t size) noexcept;
void* allocate_aligned(size_t alignment, size_t size) noexcept;
void* reallocate(void* block, size_t size) noexcept;
size_t usable_size(const void* block) noexcept;

}  // namespace sluice::hardened
