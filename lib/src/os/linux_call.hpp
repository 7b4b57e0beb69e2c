// System calls that do not pass libc. Open it to have a call that no library may stand before: for the sources of the
// Linux layer alone.
#pragma once

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

// Where pages have one size and calls need no libc. Tests of larger pages (tests/pages) have it as other processors do.
#if defined(__x86_64__) && !defined(SLUICE_ASKS_LIBC)
#define SLUICE_KNOWS_KERNEL 1
#endif

namespace sluice::os {

// Of the whole layer: what linux.cpp was compiled for.
extern const bool asks_libc;

// A system call that bypasses libc, unless asks_libc: no errno, no function that a program or another preload may have
// interposed and that may hold a lock meanwhile (uid_wrapper), and at start no page of libc that would not be needed
// otherwise. Returns -errno on failure.
template <typename... Arguments>
long system_call(long number, Arguments... arguments) noexcept {
#if defined(__x86_64__)
  if (!asks_libc) {
    long words[6] = {(long)(arguments)...};
    register long r10 asm("r10") = words[3];
    register long r8 asm("r8") = words[4];
    register long r9 asm("r9") = words[5];
    long result;
    asm volatile("syscall"
                 : "=a"(result)
                 : "a"(number), "D"(words[0]), "S"(words[1]), "d"(words[2]), "r"(r10), "r"(r8), "r"(r9)
                 : "rcx", "r11", "memory");
    return result;
  }
#endif
  const int saved = errno;
  const long result = syscall(number, arguments...);
  const int error = errno;
  errno = saved;
  return result == -1 ? -error : result;
}

}  // namespace sluice::os
