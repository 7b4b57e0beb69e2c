// Older versions of glibc than the one that this library is linked with: see glibc_floor.cpp.
#pragma once

namespace sluice::glibc_floor {

// Effects: finds the functions of libpthread.so.0 where a program without threads has loaded it since the start. Not
// for signal handlers.
#if defined(SLUICE_GLIBC_FLOOR)
void look_for_threads() noexcept;
#else
inline void look_for_threads() noexcept {}
#endif

}  // namespace sluice::glibc_floor
