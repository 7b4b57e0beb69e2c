/* The structures of frame memory, shared by the inline functions of sluice/frame.h and the library. Open it when one of
 * them changes: programs that are already built keep the old one. */
#ifndef SLUICE_FRAME_TYPES_H
#define SLUICE_FRAME_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* A position in the frame memory of one thread. Any number of marks may be taken; each may be rewound to any number of
 * times, until a rewind to an earlier one makes it stale. */
typedef struct sluice_mark {
  uintptr_t opaque[2];
} sluice_mark;

struct sluice_frame_state;

/* The first bytes of each chunk of frame memory. Internal. */
typedef struct sluice_frame_chunk {
  struct sluice_frame_chunk* below; /* the chunk filled before this one; null for the first of the thread */
  uintptr_t end;                    /* address behind its last byte */
  uint32_t checked;                 /* 1 in checked mode */
  uint32_t keep;                    /* 1: small enough to be kept for later when it is empty */
  uintptr_t owner[5];               /* for whoever provides the chunk */
} sluice_frame_chunk;

/* A thread's frame memory. Internal; the functions of frame.h and frame_chunks.h read and write it. */
typedef struct sluice_frame_state {
  uintptr_t cursor;          /* address of the next free byte */
  uintptr_t limit;           /* allocations end below it; 0 while there is no chunk */
  sluice_frame_chunk* chunk; /* the one being filled; null while there is none */
  uintptr_t tag;             /* what marks carry: the address of the chunk, and 1 in checked mode */
  uintptr_t depth;           /* live sluice::frame objects… */
  sluice_mark floor;         /* …and the mark of the innermost */
  sluice_frame_chunk* spare; /* an empty chunk kept for later, or null */
} sluice_frame_state;

#endif
