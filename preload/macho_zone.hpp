// The malloc zone of macOS that is this heap: what Apple's frameworks and libraries allocate from when they name no
// zone, and how the system's tools and its fork see the heap. Open it when a block ends in the wrong zone.
#pragma once

#include <mach/mach.h>
#include <malloc/malloc.h>

#include <cstddef>

namespace sluice::zone {

// Effects: makes the zone the default one, in front of the system's, which keeps its blocks. Called once, at load,
// after the heap has started.
void install() noexcept;

// Whether an address lies in memory of this heap that blocks lie in.
bool covers(const void* address) noexcept;

// Bytes of the block of this heap that an address lies in, in the secure build of the one that begins there; 0 where
// there is none. Nothing is reported: libmalloc asks each zone whose an address is.
size_t size_of(const void* address) noexcept;

// What the system's other zones do with blocks of theirs, for heap::foreign_hooks.
bool free_of_others(void* block) noexcept;
bool usable_size_of_others(const void* block, size_t* size) noexcept;

// The largest request that gets as long a block as one for `size` bytes.
size_t good_size(size_t size) noexcept;

// Effects: tells `record` of the blocks of slabs and the large blocks that the program has, as the system's tools ask
// for them; see macho_blocks.cpp.
kern_return_t enumerate(task_t task, void* context, unsigned kinds, vm_address_t zone, memory_reader_t reader,
                        vm_range_recorder_t record) noexcept;

}  // namespace sluice::zone
