// Counts the instructions that a call executes in the library that serves malloc: the program sets the processor's trap
// flag around the call, and the handler of SIGTRAP counts. That needs no right to trace, no other program and no
// counter of the processor, and neither the machine's load nor its speed changes the number. Open it to count in a test
// what must not be timed. For x86-64 only: prepare() says false elsewhere.
#pragma once

#include <dlfcn.h>
#include <link.h>
#include <ucontext.h>

#include <csignal>
#include <cstddef>
#include <cstdint>

namespace stepped {

struct Range {
  uintptr_t first = 0;
  uintptr_t end = 0;
  bool contains(uintptr_t address) const { return address - first < end - first; }
};

inline Range library;       // the code that serves malloc
inline Range also_counted;  // code of the program
inline volatile size_t counted;

#if defined(__x86_64__)

inline void count(int, siginfo_t*, void* context) {
  const auto at = static_cast<uintptr_t>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
  if (library.contains(at) || also_counted.contains(at)) counted = counted + 1;
}

// The red zone may hold something of the caller's.
inline __attribute__((always_inline)) void set_trap_flag() {
  asm volatile("lea -128(%%rsp), %%rsp\n pushfq\n orq $0x100, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp" ::
                   : "memory", "cc");
}
inline __attribute__((always_inline)) void clear_trap_flag() {
  asm volatile("lea -128(%%rsp), %%rsp\n pushfq\n andq $~0x100, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp" ::
                   : "memory", "cc");
}

inline int find_library(dl_phdr_info* info, size_t, void* wanted) {
  const auto address = reinterpret_cast<uintptr_t>(wanted);
  for (const ElfW(Phdr)* header = info->dlpi_phdr; header != info->dlpi_phdr + info->dlpi_phnum; ++header) {
    if (header->p_type != PT_LOAD || (header->p_flags & PF_X) == 0) continue;
    const uintptr_t first = info->dlpi_addr + header->p_vaddr;
    const Range code{first, first + header->p_memsz};
    if (code.contains(address)) library = code;
  }
  return 0;
}

// Effects: takes SIGTRAP over, and counts what the library executes, and what the program does from `from` to `to`.
// Returns: whether instructions can be counted.
inline bool prepare(const char* from = nullptr, const char* to = nullptr) {
  dl_iterate_phdr(find_library, dlsym(RTLD_DEFAULT, "malloc"));
  also_counted = {reinterpret_cast<uintptr_t>(from), reinterpret_cast<uintptr_t>(to)};
  struct sigaction action {};
  action.sa_sigaction = count;
  action.sa_flags = SA_SIGINFO;
  return library.end != 0 && sigaction(SIGTRAP, &action, nullptr) == 0;
}

// Requires: prepare() was true; `call` neither throws nor starts a thread.
template <typename Call>
__attribute__((noinline)) size_t instructions_of(const Call& call) {
  counted = 0;
  set_trap_flag();
  call();
  clear_trap_flag();
  return counted;
}

#else

inline bool prepare(const char* = nullptr, const char* = nullptr) {
  return false;
}
template <typename Call>
size_t instructions_of(const Call& call) {
  call();
  return 0;
}

#endif

}  // namespace stepped
