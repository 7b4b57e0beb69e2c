/* What the parts of the pretended kernel share; see larger_pages.c. Functions return what the system does, -errno on
 * failure. */
#pragma once

#pragma GCC visibility push(hidden)

enum { small_page = 4096, most_parts = 65536 / small_page };

/* The system itself. */
long real(long number, long a, long b, long c, long d, long e, long f);

static inline int failed(long result) {
  return result < 0 && result > -4096;
}

/* The size of a page that is pretended. */
unsigned long page(void);

/* read() and pread(), which find larger pages in /proc/self/pagemap and /proc/self/statm (page_counts.c). */
long read_next(long file, void* to, unsigned long bytes);
long read_at(long file, void* to, unsigned long bytes, long offset);

#pragma GCC visibility pop
