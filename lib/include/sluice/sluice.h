/* The C interface of Sluice. Open it when a program wants to ask the allocator that it runs on about itself.
 *
 * Every function is declared weak: a program that includes this header links without Sluice and runs with or without
 * the preload. Ask sluice_present() before calling anything else. */
#ifndef SLUICE_SLUICE_H
#define SLUICE_SLUICE_H

#include <stddef.h>
#include <stdint.h>

#define SLUICE_VERSION_MAJOR 0
#define SLUICE_VERSION_MINOR 1
#define SLUICE_VERSION_PATCH 0
#define SLUICE_VERSION "0.1.0"

#ifdef __cplusplus
extern "C" {
#endif

#define SLUICE_WEAK __attribute__((weak))

/* Totals of the process. All sizes are in bytes, counted in whole blocks (what malloc_usable_size reports), so that
 * allocated_bytes - freed_bytes == live_bytes. New fields are only ever added at the end. */
typedef struct sluice_stats {
  uint64_t counting;        /* 1: counts are exact since the first call; 0: counts are 0 and only sizes are known */
  uint64_t mallocs;         /* blocks handed out, by any entry point (0 unless counting) */
  uint64_t frees;           /* blocks taken back (0 unless counting) */
  uint64_t requested_bytes; /* bytes that the program asked for, summed (0 unless counting) */
  uint64_t allocated_bytes; /* bytes of the blocks handed out (0 unless counting) */
  uint64_t freed_bytes;     /* bytes of the blocks taken back (0 unless counting) */
  uint64_t live_bytes;      /* bytes of the blocks that the program holds now */
  uint64_t
      peak_live_bytes;   /* highest live_bytes; exact for one thread, else within 16 KiB a thread (0 unless counting) */
  uint64_t active_bytes; /* address space of slabs and large spans in use */
  uint64_t cached_bytes; /* free blocks held by thread caches */
  uint64_t retained_bytes; /* free spans whose pages have not yet gone back to the OS */
  uint64_t mapped_bytes;   /* readable and writable address space held by the heap */
  uint64_t metadata_bytes; /* descriptors, class bytes and thread caches */
  uint64_t threads;        /* threads that have a cache now */
} sluice_stats;

/* Effects: fills the first sizeof_out bytes of *out; fields that this library does not know are set to 0.
 * Returns: 0, or -1 with errno EINVAL when out is NULL.
 * Thread-safe; takes the heap's locks for the time of a walk over its slabs. Not async-signal-safe. */
SLUICE_WEAK int sluice_stats_get(sluice_stats* out, size_t sizeof_out);

/* Effects: writes the statistics to the descriptor, as the text table (json == 0) or as JSON.
 * Returns: 0, or -1 with errno set by write(2). Thread-safe; does not allocate. */
SLUICE_WEAK int sluice_stats_print(int fd, int json);

/* Returns: the version of the library that is loaded, "MAJOR.MINOR.PATCH". Never fails. */
SLUICE_WEAK const char* sluice_version(void);

/* Returns: 1 when the process runs on Sluice, else 0. */
static inline int sluice_present(void) {
  return sluice_version ? 1 : 0;
}

#ifdef __cplusplus
}
#endif

#endif
