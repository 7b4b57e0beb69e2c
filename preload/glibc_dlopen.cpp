// dlopen and dlmopen without RTLD_DEEPBIND: a library that is loaded with it calls libc's malloc beside ours, and gives
// libc blocks of ours. Open it when a plug-in finds other symbols than it would without the preload
// (SLUICE_DEEPBIND=1).
//
// The entries take the flag away and jump on with the stack as it was, so that libc finds the caller by its return
// address: it looks for libraries where the caller's RUNPATH says, and loads them into the caller's namespace. In
// libsluice.so and libsluice-secure.so alone: a static program has a dlopen of its own. Empty on other C libraries,
// which have no such flag.
#include <dlfcn.h>

#if defined(__GLIBC__) && (defined(__x86_64__) || defined(__aarch64__))
#include <atomic>
#include <cstdint>

#include "base/options.hpp"
#include "heap/counters.hpp"
#include "heap/heap.hpp"

#if defined(__x86_64__)
// The arguments are file and mode; or namespace, file and mode. What the functions below return comes in rax and rdx.
asm(R"(
  .section .text.dlopen, "ax", %progbits
  .globl dlopen
  .type dlopen, @function
  .p2align 4
dlopen:
  .cfi_startproc
  endbr64
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  movl %esi, %edi
  call deepbind_at_dlopen
  popq %rdi
  .cfi_adjust_cfa_offset -8
  movl %edx, %esi
  jmp *%rax
  .cfi_endproc
  .size dlopen, . - dlopen

  .globl dlmopen
  .type dlmopen, @function
  .p2align 4
dlmopen:
  .cfi_startproc
  endbr64
  pushq %rdi
  .cfi_adjust_cfa_offset 8
  pushq %rsi
  .cfi_adjust_cfa_offset 8
  subq $8, %rsp
  .cfi_adjust_cfa_offset 8
  movl %edx, %edi
  call deepbind_at_dlmopen
  addq $8, %rsp
  .cfi_adjust_cfa_offset -8
  popq %rsi
  .cfi_adjust_cfa_offset -8
  popq %rdi
  .cfi_adjust_cfa_offset -8
  jmp *%rax
  .cfi_endproc
  .size dlmopen, . - dlmopen
)");
#else
// Likewise; what the functions return comes in x0 and x1. Hint 34 is bti c: these are entries.
asm(R"(
  .section .text.dlopen, "ax", %progbits
  .globl dlopen
  .type dlopen, %function
  .p2align 4
dlopen:
  .cfi_startproc
  hint 34
  stp x29, x30, [sp, #-32]!
  .cfi_adjust_cfa_offset 32
  .cfi_rel_offset x29, 0
  .cfi_rel_offset x30, 8
  str x0, [sp, #16]
  mov w0, w1
  bl deepbind_at_dlopen
  mov x16, x0
  ldr x0, [sp, #16]
  ldp x29, x30, [sp], #32
  .cfi_adjust_cfa_offset -32
  .cfi_restore x29
  .cfi_restore x30
  br x16
  .cfi_endproc
  .size dlopen, . - dlopen

  .globl dlmopen
  .type dlmopen, %function
  .p2align 4
dlmopen:
  .cfi_startproc
  hint 34
  stp x29, x30, [sp, #-32]!
  .cfi_adjust_cfa_offset 32
  .cfi_rel_offset x29, 0
  .cfi_rel_offset x30, 8
  stp x0, x1, [sp, #16]
  mov w0, w2
  bl deepbind_at_dlmopen
  mov x16, x0
  mov w2, w1
  ldp x0, x1, [sp, #16]
  ldp x29, x30, [sp], #32
  .cfi_adjust_cfa_offset -32
  .cfi_restore x29
  .cfi_restore x30
  br x16
  .cfi_endproc
  .size dlmopen, . - dlmopen
)");
#endif

namespace {

#if defined(__x86_64__)
constexpr const char* oldest_version_of_dlopen = "GLIBC_2.2.5";
constexpr const char* oldest_version_of_dlmopen = "GLIBC_2.3.4";
#else
constexpr const char* oldest_version_of_dlopen = "GLIBC_2.17";
constexpr const char* oldest_version_of_dlmopen = "GLIBC_2.17";
#endif

// Where an entry jumps, and the mode that it passes there: one register each.
struct Onward {
  const void* function;
  uint64_t mode;
};

void* load_nothing() noexcept {
  return nullptr;
}

// The function that one of ours stands before. Asked for at the first call, which may come before any constructor; two
// threads that ask at once find the same.
const void* next_function(std::atomic<const void*>& known, const char* name, const char* version,
                          const void* own) noexcept {
  const void* next = known.load(std::memory_order_relaxed);
  if (next != nullptr) return next;
  next = dlsym(RTLD_NEXT, name);
  // Where another preload stands before dlsym, what is next to that one may be ours.
  if (next == own) next = dlvsym(RTLD_NEXT, name, version);
  if (next == nullptr || next == own) next = reinterpret_cast<const void*>(load_nothing);
  known.store(next, std::memory_order_relaxed);
  return next;
}

// A sanitizer that serves in place of the heap has a word of its own to say about the flag.
uint64_t without_deepbind(int mode) noexcept {
  if ((mode & RTLD_DEEPBIND) == 0 || sluice::heap::stands_aside()) return static_cast<unsigned>(mode);
  sluice::cache::finish_start();  // nothing may have been allocated yet, nor the options read
  if (sluice::options.deepbind) return static_cast<unsigned>(mode);
  sluice::counters::bump(sluice::counters::totals.foreign.deepbinds_cleared);
  return static_cast<unsigned>(mode & ~RTLD_DEEPBIND);
}

std::atomic<const void*> next_dlopen{nullptr};
std::atomic<const void*> next_dlmopen{nullptr};

}  // namespace

extern "C" {

__attribute__((used)) Onward deepbind_at_dlopen(int mode) noexcept {
  return {next_function(next_dlopen, "dlopen", oldest_version_of_dlopen, reinterpret_cast<const void*>(dlopen)),
          without_deepbind(mode)};
}

__attribute__((used)) Onward deepbind_at_dlmopen(int mode) noexcept {
  return {next_function(next_dlmopen, "dlmopen", oldest_version_of_dlmopen, reinterpret_cast<const void*>(dlmopen)),
          without_deepbind(mode)};
}

}  // extern "C"
#endif
