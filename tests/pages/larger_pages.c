/* A kernel with larger pages, pretended: stands before libc's functions for memory and before its syscall(), and treats
 * what it is told as Linux does whose pages have as many bytes as LARGER_PAGES says: 16384 or 65536, or nothing for
 * the latter. To be preloaded before everything else.
 *
 * Addresses that are no multiple of a page are refused with EINVAL, lengths are rounded up to pages, mappings begin at
 * such addresses, a page is in memory as a whole. So what is unmapped, protected or dropped by wrong arithmetic is
 * missed by the program as it would be there. What does not come through here stays as it is: the loader, the stacks of
 * threads, libc's own malloc. */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../call_words.h"

#include "larger_pages.h"

#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif

/* libc's own, by the names that nobody stands before. */
unsigned long __getauxval(unsigned long type);
long __sysconf(int name);

long real(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  register long x3 __asm__("x3") = d;
  register long x4 __asm__("x4") = e;
  register long x5 __asm__("x5") = f;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
#else
#error "no system call is known for this processor"
#endif
}

unsigned long page(void) {
  static unsigned long cached; /* every thread finds the same */
  unsigned long size = __atomic_load_n(&cached, __ATOMIC_RELAXED);
  if (size == 0) {
    const char* const asked = getenv("LARGER_PAGES");
    size = asked != NULL ? strtoul(asked, NULL, 10) : 65536;
    if (size != 16384 && size != 65536) {
      static const char message[] = "larger_pages: LARGER_PAGES must be 16384 or 65536\n";
      real(SYS_write, 2, (long)message, sizeof message - 1, 0, 0, 0);
      real(SYS_exit_group, 2, 0, 0, 0, 0, 0);
    }
    __atomic_store_n(&cached, size, __ATOMIC_RELAXED);
  }
  return size;
}

static int is_whole(long address) {
  return ((unsigned long)address & (page() - 1)) == 0;
}
static unsigned long round_up(unsigned long bytes) {
  return (bytes + page() - 1) & ~(page() - 1);
}

static long unmapped(long at, unsigned long bytes) {
  return bytes != 0 ? real(SYS_munmap, at, (long)bytes, 0, 0, 0, 0) : 0;
}

/* Address space at a multiple of a page, at the hint if there is room. */
static long place(long hint, unsigned long bytes) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  hint &= ~(long)(page() - 1);
  if (hint != 0) {
    const long got = real(SYS_mmap, hint, (long)bytes, PROT_NONE, flags | MAP_FIXED_NOREPLACE, -1, 0);
    if (got == hint) return got;
    if (!failed(got)) unmapped(got, bytes);
  }
  const long got = real(SYS_mmap, 0, (long)(bytes + page()), PROT_NONE, flags, -1, 0);
  if (failed(got)) return got;
  const long at = (long)round_up((unsigned long)got);
  unmapped(got, (unsigned long)(at - got));
  unmapped(at + (long)bytes, page() - (unsigned long)(at - got));
  return at;
}

/* Behind the end of a file the last page reads as zero: as far as the file's own small pages reach, it is mapped. */
static unsigned long bytes_of_file(long file, long offset, unsigned long bytes) {
  struct stat status;
  if (fstat((int)file, &status) != 0 || !S_ISREG(status.st_mode)) return bytes;
  if (status.st_size <= offset) return 0;
  const unsigned long left = ((unsigned long)(status.st_size - offset) + small_page - 1) & ~(small_page - 1ul);
  return left < bytes ? left : bytes;
}

static long map(long hint, unsigned long bytes, long protection, long flags, long file, long offset) {
  const unsigned long whole = round_up(bytes);
  const int is_exact = (flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) != 0;
  if (bytes == 0 || !is_whole(offset) || (is_exact && !is_whole(hint))) return -EINVAL;
  if (whole < bytes) return -ENOMEM;
  const int is_anonymous = (flags & MAP_ANONYMOUS) != 0;
  if (is_anonymous && is_exact) return real(SYS_mmap, hint, (long)whole, protection, flags, file, offset);
  long at = hint;
  if (!is_exact) {
    at = place(hint, whole);
  } else if ((flags & MAP_FIXED) == 0) {
    at = real(SYS_mmap, hint, (long)whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  }
  if (failed(at)) return at;
  const unsigned long part = is_anonymous ? whole : bytes_of_file(file, offset, whole);
  const long in_place = (flags & ~(long)MAP_FIXED_NOREPLACE) | MAP_FIXED;
  long result = at;
  if (part != 0) result = real(SYS_mmap, at, (long)part, protection, in_place, file, offset);
  if (!failed(result) && part != whole)
    real(SYS_mmap, at + (long)part, (long)(whole - part), protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (failed(result) && !is_exact) unmapped(at, whole);
  return failed(result) ? result : at;
}

static long remap(long from, unsigned long old_bytes, unsigned long new_bytes, long flags, long to) {
  const unsigned long old_whole = round_up(old_bytes);
  const unsigned long new_whole = round_up(new_bytes);
  if (!is_whole(from) || new_whole == 0) return -EINVAL;
  if ((flags & MREMAP_FIXED) != 0 && !is_whole(to)) return -EINVAL;
  if ((flags & (MREMAP_FIXED | MREMAP_DONTUNMAP)) == 0) {
    const long stays = real(SYS_mremap, from, (long)old_whole, (long)new_whole, 0, 0, 0);
    if (stays != -ENOMEM || (flags & MREMAP_MAYMOVE) == 0) return stays;
  }
  if ((flags & MREMAP_FIXED) != 0) return real(SYS_mremap, from, (long)old_whole, (long)new_whole, flags, to, 0);
  const long at = place(to, new_whole);
  if (failed(at)) return at;
  const long moved = real(SYS_mremap, from, (long)old_whole, (long)new_whole, flags | MREMAP_FIXED, at, 0);
  if (failed(moved)) unmapped(at, new_whole);
  return moved;
}

/* One byte for each page: whether any part of it is in memory. */
static long are_in_memory(long at, unsigned long bytes, unsigned char* present) {
  if (!is_whole(at)) return -EINVAL;
  const unsigned long parts = page() / small_page;
  unsigned char part[64 * most_parts];
  const unsigned long at_once = sizeof part / parts;
  for (unsigned long left = round_up(bytes) / page(); left != 0;) {
    const unsigned long pages = left < at_once ? left : at_once;
    const long result = real(SYS_mincore, at, (long)(pages * page()), (long)part, 0, 0, 0);
    if (result != 0) return result;
    for (unsigned long i = 0; i < pages; ++i) {
      unsigned char any = 0;
      for (unsigned long k = 0; k < parts; ++k)
        any |= part[i * parts + k] & 1;
      present[i] = any;
    }
    present += pages;
    at += (long)(pages * page());
    left -= pages;
  }
  return 0;
}

/* A call as that system has it. */
static long call(long number, long a, long b, long c, long d, long e, long f) {
  const unsigned long bytes = (unsigned long)b;
  switch (number) {
    case SYS_mmap:
      return map(a, bytes, c, d, e, f);
    case SYS_munmap:
      return bytes != 0 && is_whole(a) ? unmapped(a, round_up(bytes)) : -EINVAL;
    case SYS_mprotect:
    case SYS_madvise:
    case SYS_msync:
      return is_whole(a) ? real(number, a, (long)round_up(bytes), c, 0, 0, 0) : -EINVAL;
    case SYS_mremap:
      return remap(a, bytes, (unsigned long)c, d, e);
    case SYS_mincore:
      return are_in_memory(a, bytes, (unsigned char*)c);
    case SYS_mlock:
    case SYS_mlock2:
    case SYS_munlock: {
      const unsigned long skipped = (unsigned long)a & (page() - 1);
      return real(number, a - (long)skipped, (long)round_up(bytes + skipped), c, 0, 0, 0);
    }
    case SYS_pread64:
      return read_at(a, (void*)b, (unsigned long)c, d);
    case SYS_read:
      return read_next(a, (void*)b, (unsigned long)c);
    default:
      return real(number, a, b, c, d, e, f);
  }
}

static long libc_call(long number, long a, long b, long c, long d, long e, long f) {
  const long result = call(number, a, b, c, d, e, f);
  if (!failed(result)) return result;
  errno = (int)-result;
  return -1;
}

/* What libc has, instead of it. Each takes as many words as the longest call has. */
long syscall(long number, ...) {
  long words[most_words];
  TAKE_WORDS(words, number);
  return libc_call(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}

void* mmap(void* hint, size_t bytes, int protection, int flags, int file, off_t offset) {
  return (void*)libc_call(SYS_mmap, (long)hint, (long)bytes, protection, flags, file, offset);
}
void* mmap64(void* hint, size_t bytes, int protection, int flags, int file, off64_t offset) {
  return mmap(hint, bytes, protection, flags, file, offset);
}
int munmap(void* at, size_t bytes) {
  return (int)libc_call(SYS_munmap, (long)at, (long)bytes, 0, 0, 0, 0);
}
int mprotect(void* at, size_t bytes, int protection) {
  return (int)libc_call(SYS_mprotect, (long)at, (long)bytes, protection, 0, 0, 0);
}
int madvise(void* at, size_t bytes, int advice) {
  return (int)libc_call(SYS_madvise, (long)at, (long)bytes, advice, 0, 0, 0);
}
void* mremap(void* from, size_t old_bytes, size_t new_bytes, int flags, ...) {
  va_list list;
  va_start(list, flags);
  const long to = (flags & MREMAP_FIXED) != 0 ? (long)va_arg(list, void*) : 0;
  va_end(list);
  return (void*)libc_call(SYS_mremap, (long)from, (long)old_bytes, (long)new_bytes, flags, to, 0);
}
int mincore(void* at, size_t bytes, unsigned char* present) {
  return (int)libc_call(SYS_mincore, (long)at, (long)bytes, (long)present, 0, 0, 0);
}
int mlock(const void* at, size_t bytes) {
  return (int)libc_call(SYS_mlock, (long)at, (long)bytes, 0, 0, 0, 0);
}
int munlock(const void* at, size_t bytes) {
  return (int)libc_call(SYS_munlock, (long)at, (long)bytes, 0, 0, 0, 0);
}

ssize_t read(int file, void* to, size_t bytes) {
  return libc_call(SYS_read, file, (long)to, (long)bytes, 0, 0, 0);
}
ssize_t pread(int file, void* to, size_t bytes, off_t offset) {
  return libc_call(SYS_pread64, file, (long)to, (long)bytes, offset, 0, 0);
}
ssize_t pread64(int file, void* to, size_t bytes, off64_t offset) {
  return pread(file, to, bytes, offset);
}

unsigned long getauxval(unsigned long type) {
  return type == AT_PAGESZ ? page() : __getauxval(type);
}
int getpagesize(void) {
  return (int)page();
}
long sysconf(int name) {
  const long answer = __sysconf(name);
  if (name == _SC_PAGESIZE) return (long)page();
  if ((name == _SC_PHYS_PAGES || name == _SC_AVPHYS_PAGES) && answer > 0) return answer / (long)(page() / small_page);
  return answer;
}
