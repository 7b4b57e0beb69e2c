/* The C interface of Sluice: statistics and scopes here, frames in sluice/frame.h, which it includes. Open it when a
 * program wants to ask the allocator about itself, or to tell it which allocations are short-lived.
 *
 * Every function declared here is weak: a program that includes this header links without Sluice and runs with or
 * without the preload. Ask sluice_present() before calling one of them. Frames work without the preload too. */
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
  uint64_t active_bytes; /* address space of slabs, large spans, chunks and frame memory in use */
  uint64_t cached_bytes; /* free blocks held by thread caches */
  uint64_t retained_bytes;    /* free spans whose pages have not yet gone back to the OS */
  uint64_t mapped_bytes;      /* readable and writable address space held by the heap */
  uint64_t metadata_bytes;    /* descriptors, class bytes, bitmaps and thread caches */
  uint64_t threads;           /* threads that have a cache now */
  uint64_t scopes;            /* scopes entered */
  uint64_t arena_live_bytes;  /* of live_bytes, what scopes placed in stack arenas */
  uint64_t arena_chunk_bytes; /* address space of the chunks that they lie in */
  uint64_t frame_bytes;       /* address space of frame memory in use */
} sluice_stats;

/* Effects: fills the first sizeof_out bytes of *out; fields that this library does not know are set to 0.
 * Returns: 0, or -1 with errno EINVAL when out is NULL.
 * Thread-safe; takes the heap's locks for the time of a walk over its slabs. Not async-signal-safe. */
SLUICE_WEAK int sluice_stats_get(sluice_stats* out, size_t sizeof_out);

/* Effects: writes the statistics to the descriptor, as the text table (json == 0) or as JSON.
 * Returns: 0, or -1 with errno set by write(2). Thread-safe; does not allocate. */
SLUICE_WEAK int sluice_stats_print(int fd, int json);

/* Effects: starts the heap profile in the running process, in all of its threads: one sample in `rate` bytes on
 * average; 0: what SLUICE_PROFILE_RATE says, 512 KiB unless told; 1: every allocation. Blocks that were allocated
 * before are not in it. After sluice_profile_stop a new profile begins: what the old one has sampled and is alive stays
 * alive in it, and does not count as allocated in it. The first call maps tables of 64 MiB of address space, which stay
 * (384 MiB at rates below 4 KiB). A thread inside a scope begins when it next leaves or opens one, or when its arena
 * takes more memory. Returns: 0, or -1 with errno EBUSY (it is running, SLUICE_PROFILE may have started it, or another
 * thread starts it), ENOMEM, EINVAL (more than 1 TiB), or ENOTSUP (libsluice-secure.so; the program brings its own
 * malloc; the child of a fork whose parent had a thread in the middle of a sample). Thread-safe. Not async-signal-safe.
 * A child of fork goes on with the samples. */
SLUICE_WEAK int sluice_profile_start(size_t rate);

/* Effects: writes the profile as it is now to a file in pprof's format, while it runs or after it was stopped; %p in
 * the name is the process id. The file is replaced as a whole. Returns: 0, or -1 with errno ESRCH (there was never a
 * profile), EINVAL (no name), ENOMEM, ENAMETOOLONG, ELOOP (a symbolic link that another user may have made), or what
 * open(2), write(2) or rename(2) say. Thread-safe; other threads' samples wait for a copy in memory, not for the file.
 * Not async-signal-safe. */
SLUICE_WEAK int sluice_profile_dump(const char* path);

/* Effects: takes no more samples; malloc is as fast as before from each thread's next slow call on. What is alive stays
 * known until it is freed. Returns: 0, or -1 with errno ESRCH when no profile is running.
 * Thread-safe. Not async-signal-safe. */
SLUICE_WEAK int sluice_profile_stop(void);

/* Effects: gives back to the system what is free, and what the calling thread's cache holds. For an event loop that is
 * about to wait for longer than some ten milliseconds: what it allocates next takes memory anew, a microsecond or two
 * for each page of 4 KiB. Other threads' caches are left alone; malloc_trim(0) reaches what it can of them.
 * Thread-safe. Not async-signal-safe. errno is unchanged. */
SLUICE_WEAK void sluice_idle(void);

/* Returns: the version of the library that is loaded, "MAJOR.MINOR.PATCH". Never fails. */
SLUICE_WEAK const char* sluice_version(void);

/* Returns: 1 when the process runs on Sluice, else 0. */
static inline int sluice_present(void) {
  return sluice_version ? 1 : 0;
}

/* A scope: while one is open on a thread, what this thread allocates (malloc, calloc, realloc, memalign and their kin,
 * operator new) in sizes of up to 16 KiB, at alignments of up to 4 KiB, is placed in the thread's stack arena.
 * free still ends each block's life, on any thread, before or after the scope is left: leaving restores where
 * allocations go, and nothing else. The storage is the caller's; it need not be initialised. */
typedef struct sluice_scope {
  uintptr_t opaque[6];
} sluice_scope;

enum {
  SLUICE_ROUTE = 1,  /* allocations go to the stack arena */
  SLUICE_NOROUTE = 2 /* allocations go to the pools, inside a scope that routes */
};

/* Effects: opens a scope on the calling thread; scopes nest. `flags` is SLUICE_ROUTE or SLUICE_NOROUTE.
 * Returns: 0, or -1 when nothing is routed: bad flags (errno EINVAL), more than 64 open scopes, no memory (errno
 * ENOMEM), scopes switched off (SLUICE_ARENA=0), too much memory pinned by earlier survivors (SLUICE_ARENA_PINNED), or
 * a thread that is past its end. sluice_scope_leave is due in every case. Opening a scope at an address that holds an
 * open one ends that one, and those inside it: longjmp skipped them. Thread-safe; not async-signal-safe. Some ten
 * nanoseconds. */
SLUICE_WEAK int sluice_scope_enter(sluice_scope* scope, unsigned flags);

/* Effects: ends the scope and those opened since on this thread, and routes as before it was opened. A scope that is
 * not open on this thread (left twice, entered elsewhere, never entered) is counted as a stale leave, and nothing else
 * happens. errno is unchanged. */
SLUICE_WEAK void sluice_scope_leave(sluice_scope* scope);

#ifdef __cplusplus
}
#endif

#if !defined(SLUICE_BUILDING) /* the library itself has no frame memory */
#include "sluice/frame.h"
#endif

#endif
