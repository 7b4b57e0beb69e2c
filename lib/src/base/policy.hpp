// What a build of the heap checks, as compile-time constants: what is off costs no instruction. Open it to see what
// libsluice-secure.so does that libsluice.so does not.
#pragma once

#include <cstdint>

namespace sluice {

// Debug builds: assertions, and the whole heap validated now and then.
#if defined(SLUICE_CHECKED)
inline constexpr bool checked = true;
#else
inline constexpr bool checked = false;
#endif

// libsluice-secure.so: links of free lists are encoded and sealed, blocks have a state and a canary, freed blocks wait
// before they serve again and leave slabs in random order, and slabs and large spans end at pages that cannot be
// touched. heap/hardened.hpp stands in front of the heap.
#if defined(SLUICE_SECURE)
inline constexpr bool secure = true;
#else
inline constexpr bool secure = false;
#endif

// A span that programs write to is followed by as many units that nobody can touch.
inline constexpr uint32_t guard_units = secure ? 1 : 0;

}  // namespace sluice
