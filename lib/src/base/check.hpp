// Checks of the heap and of what the program gives back. Open it to see what happens when one fails.
//
// check() is for debug and secure builds and costs nothing in others; what a flush finds by the way (double frees)
// stops the process in every build, as other mallocs do: going on would hand the same block out twice.
#pragma once

namespace sluice {

#if defined(SLUICE_CHECKED)
inline constexpr bool checked = true;
#else
inline constexpr bool checked = false;
#endif

// Effects: writes one line that names the fault and the address to stderr, and aborts the process.
[[noreturn]] void fail_check(const char* what, const void* address) noexcept;

// Requires: `holds` in a checked build.
inline void check(bool holds, const char* what, const void* address) noexcept {
  if (checked && !holds) [[unlikely]]
    fail_check(what, address);
}

}  // namespace sluice
