// What libsluice-secure.so says when a check of hardened.cpp fails: one line that names the address and what it is.
// Then the process ends, unless SLUICE_ABORT_ON_CORRUPTION=0 (base/check.hpp).
#pragma once

#include <cstddef>

namespace sluice::hardened {

// What the program asked for.
enum class Call : unsigned char { Free, Realloc, SizeQuery };

// What is wrong with the address that it gave. Requires: in a slab's unit.
[[gnu::cold]] void report_small(const void* address, Call call) noexcept;
// Likewise elsewhere in the heap's window.
[[gnu::cold]] void report_large(const void* address, Call call) noexcept;
// Likewise anywhere else.
[[gnu::cold]] void report_foreign(const void* address, Call call) noexcept;

// A block of `size` bytes was freed as one of another size.
[[gnu::cold]] void report_wrong_size(const void* block, size_t size, size_t said) noexcept;

}  // namespace sluice::hardened
