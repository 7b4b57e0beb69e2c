/* What the pretended kernel (larger_pages.c) tells of pages in files: /proc/self/pagemap has an entry for each of them,
 * /proc/self/statm counts them. A page is in memory if any part of it is, as it would have come there as a whole. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "larger_pages.h"

static const uint64_t present_or_swapped = (uint64_t)3 << 62;

static char* write_number(char* end, unsigned long number) {
  do {
    *--end = (char)('0' + number % 10);
    number /= 10;
  } while (number != 0);
  return end;
}

/* Whether the name of an open file ends so. */
static int is_called(long file, const char* end) {
  char number[24] = "";
  char link[sizeof "/proc/self/fd/" + sizeof number] = "/proc/self/fd/";
  char path[64];
  if (file < 0) return 0;
  strcat(link, write_number(number + sizeof number - 1, (unsigned long)file));
  const long length = real(SYS_readlinkat, AT_FDCWD, (long)link, (long)path, sizeof path, 0, 0);
  const long wanted = (long)strlen(end);
  return length >= wanted && strncmp(path, "/proc/", 6) == 0 &&
         memcmp(path + length - wanted, end, (size_t)wanted) == 0;
}

static long read_page_map(long file, uint64_t* entries, unsigned long bytes, long offset) {
  const unsigned long parts = page() / small_page;
  uint64_t part[most_parts];
  for (unsigned long i = 0; i < bytes / sizeof *entries; ++i) {
    const long at = (offset + (long)(i * sizeof *entries)) * (long)parts;
    const long got = real(SYS_pread64, file, (long)part, (long)(parts * sizeof *part), at, 0, 0);
    if (got != (long)(parts * sizeof *part)) return failed(got) ? got : (long)(i * sizeof *entries);
    entries[i] = 0;
    for (unsigned long k = 0; k < parts; ++k)
      entries[i] |= part[k];
  }
  return (long)bytes;
}

/* Pages in memory between two addresses; *counted: where the last page ends that counts already. */
static unsigned long count_range(long map, unsigned long begin, unsigned long end, unsigned long* counted) {
  uint64_t entries[512];
  unsigned long pages = 0;
  while (begin < end) {
    const unsigned long left = (end - begin) / small_page;
    const unsigned long asked = left < 512 ? left : 512;
    const long got = real(SYS_pread64, map, (long)entries, (long)(asked * sizeof *entries),
                          (long)(begin / small_page * sizeof *entries), 0, 0);
    if (got != (long)(asked * sizeof *entries)) return pages;
    for (unsigned long i = 0; i < asked; ++i, begin += small_page) {
      if ((entries[i] & present_or_swapped) == 0 || begin < *counted) continue;
      ++pages;
      *counted = (begin & ~(page() - 1)) + page();
    }
  }
  return pages;
}

static unsigned long take_hexadecimal(const char** at) {
  unsigned long number = 0;
  for (;; ++*at) {
    const char c = **at;
    if (c >= '0' && c <= '9')
      number = number << 4 | (unsigned long)(c - '0');
    else if (c >= 'a' && c <= 'f')
      number = number << 4 | (unsigned long)(c - 'a' + 10);
    else
      return number;
  }
}

/* All pages of the process that are in memory. */
static unsigned long count_pages(void) {
  const long maps = real(SYS_openat, AT_FDCWD, (long)"/proc/self/maps", O_RDONLY | O_CLOEXEC, 0, 0, 0);
  const long map = real(SYS_openat, AT_FDCWD, (long)"/proc/self/pagemap", O_RDONLY | O_CLOEXEC, 0, 0, 0);
  char text[8192];
  unsigned long length = 0;
  unsigned long pages = 0;
  unsigned long counted = 0;
  for (long got = 1; got > 0 && !failed(maps) && !failed(map);) {
    got = real(SYS_read, maps, (long)(text + length), (long)(sizeof text - length), 0, 0, 0);
    if (got > 0) length += (unsigned long)got;
    for (char* end; (end = memchr(text, '\n', length)) != NULL;) {
      const char* at = text;
      const unsigned long begin = take_hexadecimal(&at);
      ++at;
      const unsigned long behind = take_hexadecimal(&at);
      if (memcmp(at, " ---", 4) != 0) pages += count_range(map, begin, behind, &counted);
      length -= (unsigned long)(end + 1 - text);
      memmove(text, end + 1, length);
    }
  }
  if (!failed(maps)) real(SYS_close, maps, 0, 0, 0, 0, 0);
  if (!failed(map)) real(SYS_close, map, 0, 0, 0, 0, 0);
  return pages;
}

/* "SIZE RESIDENT ...", the only two numbers that anybody looks at. */
static long write_counts(char* to, unsigned long bytes, long got) {
  if (got <= 0) return got;
  unsigned long size = 0;
  for (const char* at = to; at < to + got && *at >= '0' && *at <= '9'; ++at)
    size = 10 * size + (unsigned long)(*at - '0');
  char text[64];
  char* at = text + sizeof text;
  *--at = '\n';
  at = write_number(at, count_pages());
  *--at = ' ';
  at = write_number(at, size / (page() / small_page));
  const unsigned long length = (unsigned long)(text + sizeof text - at);
  if (length > bytes) return 0;
  memcpy(to, at, length);
  return (long)length;
}

long read_next(long file, void* to, unsigned long bytes) {
  const long got = real(SYS_read, file, (long)to, (long)bytes, 0, 0, 0);
  return is_called(file, "/statm") ? write_counts(to, bytes, got) : got;
}

long read_at(long file, void* to, unsigned long bytes, long offset) {
  if (is_called(file, "/pagemap")) return read_page_map(file, to, bytes, offset);
  const long got = real(SYS_pread64, file, (long)to, (long)bytes, offset, 0, 0);
  return is_called(file, "/statm") ? write_counts(to, bytes, got) : got;
}
