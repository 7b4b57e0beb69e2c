// The operating-system layer for Linux: raw system calls for memory, so that a program's own mmap or madvise hook is
// never entered from inside the allocator. Open it when a system call or its flags are in question.
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "os/memory.hpp"

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

namespace sluice::os {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a futex is the lower half of a word");

constinit CallCounts call_counts;

namespace {

// A system call that bypasses libc: no errno, no function that a program may have interposed, and at start no page of
// libc that would not be needed otherwise. Returns -errno on failure.
#if defined(__x86_64__)
template <typename... Arguments>
long system_call(long number, Arguments... arguments) noexcept {
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
#else
template <typename... Arguments>
long system_call(long number, Arguments... arguments) noexcept {
  const int saved = errno;
  const long result = syscall(number, arguments...);
  const int error = errno;
  errno = saved;
  return result == -1 ? -error : result;
}
#endif

constexpr int reserve_flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

void count(std::atomic<uint64_t>& counter) noexcept {
  counter.fetch_add(1, std::memory_order_relaxed);
}

bool succeeded(long result) noexcept {
  if (result >= 0 || result < -4095) return true;
  count(call_counts.failed);
  return false;
}

long map(void* address, size_t bytes, int protection, int flags) noexcept {
  count(call_counts.mmap);
  return system_call(SYS_mmap, address, bytes, protection, flags, -1L, 0L);
}

pthread_key_t exit_key;
bool exit_key_made = false;

}  // namespace

size_t page_size() noexcept {
#if defined(__x86_64__)
  return 4096;
#else
  static std::atomic<size_t> cached{0};  // every thread computes the same value: relaxed is enough
  size_t size = cached.load(std::memory_order_relaxed);
  if (size == 0) {
    size = getauxval(AT_PAGESZ);
    if (size == 0) size = 4096;
    cached.store(size, std::memory_order_relaxed);
  }
  return size;
#endif
}

void* reserve(void* hint, size_t bytes, bool exact) noexcept {
  const long result = map(hint, bytes, PROT_NONE, reserve_flags | (exact ? MAP_FIXED_NOREPLACE : 0));
  if (!succeeded(result)) return nullptr;
  void* address = reinterpret_cast<void*>(result);
  if (exact && address != hint) {  // a kernel before 4.17 takes the address for a hint
    release(address, bytes);
    return nullptr;
  }
  return address;
}

void release(void* address, size_t bytes) noexcept {
  count(call_counts.munmap);
  (void)succeeded(system_call(SYS_munmap, address, bytes));
}

bool commit(void* address, size_t bytes) noexcept {
  count(call_counts.mprotect);
  return succeeded(system_call(SYS_mprotect, address, bytes, PROT_READ | PROT_WRITE));
}

bool make_readable(void* address, size_t bytes) noexcept {
  count(call_counts.mprotect);
  return succeeded(system_call(SYS_mprotect, address, bytes, PROT_READ));
}

bool protect(void* address, size_t bytes) noexcept {
  count(call_counts.mprotect);
  return succeeded(system_call(SYS_mprotect, address, bytes, PROT_NONE));
}

void set_dumped(void* address, size_t bytes, bool dumped) noexcept {
  count(call_counts.madvise);
  (void)succeeded(system_call(SYS_madvise, address, bytes, dumped ? MADV_DODUMP : MADV_DONTDUMP));
}

bool purge(void* address, size_t bytes) noexcept {
  count(call_counts.madvise);
  // A sandbox may refuse madvise, and locked pages cannot be dropped this way; a new mapping does the same.
  if (!succeeded(system_call(SYS_madvise, address, bytes, MADV_DONTNEED))) return renew(address, bytes);
  call_counts.purged_bytes.fetch_add(bytes, std::memory_order_relaxed);
  return true;
}

bool renew(void* address, size_t bytes) noexcept {
  if (!succeeded(map(address, bytes, PROT_READ | PROT_WRITE, reserve_flags | MAP_FIXED))) return false;
  call_counts.purged_bytes.fetch_add(bytes, std::memory_order_relaxed);
  return true;
}

bool move_pages(void* from, void* to, size_t bytes) noexcept {
  count(call_counts.mremap);
  return succeeded(system_call(SYS_mremap, from, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, to));
}

void advise_huge_pages(void* address, size_t bytes) noexcept {
  count(call_counts.madvise);
  (void)succeeded(system_call(SYS_madvise, address, bytes, MADV_HUGEPAGE));
}

bool is_mapped(const void* address, size_t bytes) noexcept {
  constexpr size_t batch = 4096;  // pages asked about at once
  unsigned char present[batch];
  const char* at = static_cast<const char*>(address);
  for (size_t left = bytes / page_size(); left != 0;) {
    const size_t pages = left < batch ? left : batch;
    if (system_call(SYS_mincore, at, pages * page_size(), present) != 0) return false;
    at += pages * page_size();
    left -= pages;
  }
  return true;
}

size_t resident_bytes(const void* address, size_t bytes) noexcept {
  const size_t page = page_size();
  constexpr size_t batch = 4096;  // pages asked about at once
  unsigned char present[batch] = {};
  const char* at = static_cast<const char*>(address);
  size_t resident = 0;
  for (size_t left = bytes / page; left != 0;) {
    const size_t pages = left < batch ? left : batch;
    const bool told = system_call(SYS_mincore, at, pages * page, present) == 0;  // not where there is a gap
    for (size_t i = 0; told && i < pages; ++i)
      resident += (present[i] & 1) != 0 ? page : 0;
    at += pages * page;
    left -= pages;
  }
  return resident;
}

size_t address_space_limit() noexcept {
  rlimit limit{};
  if (system_call(SYS_prlimit64, 0L, RLIMIT_AS, nullptr, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return SIZE_MAX;
  return limit.rlim_cur;
}

uint64_t random_bits() noexcept {
  uint64_t bits = clock_ms();
  if (const auto* seed = reinterpret_cast<const unsigned char*>(getauxval(AT_RANDOM))) {
    for (int i = 0; i < 16; ++i)
      bits = bits * 0x9e3779b97f4a7c15u + seed[i];  // 16 bytes from the kernel
  }
  return bits ^ (bits >> 29);
}

uint64_t secret_bits() noexcept {
  uint64_t bits = 0;
  constexpr unsigned do_not_wait = 1;  // GRND_NONBLOCK
  if (system_call(SYS_getrandom, &bits, sizeof bits, do_not_wait) == sizeof bits) return bits;
  return random_bits() * 0xd6e8feb86659fd93u;
}

uint64_t clock_ms() noexcept {
  timespec now{};
  if (clock_gettime(CLOCK_MONOTONIC_COARSE, &now) != 0) return 0;
  return static_cast<uint64_t>(now.tv_sec) * 1000 + static_cast<uint64_t>(now.tv_nsec) / 1000000;
}

bool is_privileged() noexcept {
  return getauxval(AT_SECURE) != 0;
}

char** environment() noexcept {
  return environ;
}

// A futex is 32 bits wide: the lower half of the word, which changes whenever the word does, but for two threads whose
// tokens agree there, and then the sleeper is woken for nothing.
void wait(std::atomic<uintptr_t>& word, uintptr_t expected) noexcept {
  system_call(SYS_futex, &word, FUTEX_WAIT_PRIVATE, static_cast<uint32_t>(expected), nullptr, nullptr, 0);
}

void wait_briefly(std::atomic<uintptr_t>& word, uintptr_t expected) noexcept {
  const timespec limit{0, 100'000};
  system_call(SYS_futex, &word, FUTEX_WAIT_PRIVATE, static_cast<uint32_t>(expected), &limit, nullptr, 0);
}

void wake_one(std::atomic<uintptr_t>& word) noexcept {
  system_call(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void yield() noexcept {
  (void)system_call(SYS_sched_yield);
}

uintptr_t data_segment_end() noexcept {
  return static_cast<uintptr_t>(system_call(SYS_brk, nullptr));
}

bool register_thread_exit(void (*on_exit)(void*)) noexcept {
  exit_key_made = pthread_key_create(&exit_key, on_exit) == 0;
  return exit_key_made;
}

bool arm_thread_exit(void* value) noexcept {
  return exit_key_made && pthread_setspecific(exit_key, value) == 0;
}

void register_fork_handlers(void (*prepare)(), void (*parent)(), void (*child)()) noexcept {
  (void)pthread_atfork(prepare, parent, child);
}

}  // namespace sluice::os
