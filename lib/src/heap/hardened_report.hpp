// What libsluice-secure.so says when a check of hardened.cpp fails: one line that names the address and what it is.
// Then the process ends, unless SLUICE_ABORT_ON_CORRUPTION=0 (base/check.hpp).
#pragma once

#include <cstddef>

namespace sluice::hardened {

// What is wrong with the address of a block that was to be freed or `resized`. Requires: in a slab's unit.
[[gnu::cold]] void report_small(const void* address, bool resized) noexcept;
// Likewise elsewhere in the heap's window.
[[gnu::cold]] void report_large(const void* address, bool resized) noexcept;

// `size` is what was asked for.
[[gnu::cold]] void report_overflow(const void* block, size_t size) noexcept;
[[gnu::cold]] void report_write_to_free(const void* block) noexcept;

}  // namespace sluice::hardened
