// A program may bring a malloc of its own, but no operator new. Without a preload, operator new would call that malloc,
// and operator delete that free, so blocks may pass from one to the other. Open it when such a program stops with an
// invalid free, or frees what is not its own.
#pragma once

#include <cstddef>

namespace sluice::program_malloc {

// Whether operator new and delete pass on what they are asked for. Set once, at load.
extern constinit bool serves;

// Effects: looks for a malloc in the main program. One that only wraps ours changes nothing. Called once, at load.
void start() noexcept;

// What operator new and delete call while `serves`: the functions of the process, as the loader finds them.
void* allocate(size_t size, size_t alignment) noexcept;
void free(void* block) noexcept;

}  // namespace sluice::program_malloc
