/* Where frame memory comes from when a chunk is full, and where it goes when a frame is rewound beyond one. Included by
 * sluice/frame.h alone; open it to see what the slow paths of frames do.
 *
 * Chunks come from Sluice where the process runs on it, else from malloc: 64 KiB each, or as large as a larger request.
 */
#ifndef SLUICE_FRAME_CHUNKS_H
#define SLUICE_FRAME_CHUNKS_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef SLUICE_FRAME_CHECKS
#define SLUICE_FRAME_CHECKS 0
#endif

enum {
  sluice_frame_chunk_bytes = 64 * 1024,
  sluice_frame_most_chunk_bytes = 1024 * 1024, /* but for larger requests */
  sluice_frame_most_kept_bytes = 256 * 1024,   /* of a chunk from malloc */
  sluice_frame_poison = 0xDD
};

/* One copy of each in a program or library. */
#define SLUICE_FRAME_COLD __attribute__((weak, visibility("hidden"), noinline, cold))

/* What Sluice exports; null without it. A chunk that it gives has `end` and `checked` set, and room for `bytes`. It
 * gives a thread's chunks back at the thread's end by itself. */
__attribute__((weak)) sluice_frame_chunk* sluice_frame_chunk_get(sluice_frame_state* state, size_t bytes);
__attribute__((weak)) void sluice_frame_chunk_put(sluice_frame_chunk* chunk);

/* For chunks from malloc: the key whose destructor gives a thread's chunks back. */
__attribute__((weak, visibility("hidden"))) pthread_key_t sluice_frame_key;
__attribute__((weak, visibility("hidden"))) pthread_once_t sluice_frame_once = PTHREAD_ONCE_INIT;
__attribute__((weak, visibility("hidden"))) int sluice_frame_has_key;

SLUICE_FRAME_COLD void sluice_frame_end_thread(void* value) {
  sluice_frame_state* const state = (sluice_frame_state*)value;
  sluice_frame_chunk* chunk = state->chunk;
  free(state->spare);
  memset(state, 0, sizeof *state);
  while (chunk != NULL) {
    sluice_frame_chunk* const below = chunk->below;
    free(chunk);
    chunk = below;
  }
}

/* A library that is closed takes the destructor with it: what threads still hold then is lost. */
__attribute__((weak, visibility("hidden"), destructor)) void sluice_frame_unload(void) {
  if (sluice_frame_has_key) (void)pthread_key_delete(sluice_frame_key);
  sluice_frame_has_key = 0;
}

SLUICE_FRAME_COLD void sluice_frame_create_key(void) {
  sluice_frame_has_key = pthread_key_create(&sluice_frame_key, sluice_frame_end_thread) == 0;
}

SLUICE_FRAME_COLD sluice_frame_chunk* sluice_frame_chunk_from_malloc(sluice_frame_state* state, size_t bytes) {
  sluice_frame_chunk* const chunk = (sluice_frame_chunk*)malloc(bytes);
  if (chunk == NULL) return NULL;
  memset(chunk, 0, sizeof *chunk);
  chunk->end = (uintptr_t)chunk + bytes;
  chunk->checked = SLUICE_FRAME_CHECKS;
  chunk->keep = bytes <= sluice_frame_most_kept_bytes;
  if (state->chunk == NULL && pthread_once(&sluice_frame_once, sluice_frame_create_key) == 0 && sluice_frame_has_key)
    (void)pthread_setspecific(sluice_frame_key, state);
  return chunk;
}

SLUICE_FRAME_COLD void sluice_frame_release(sluice_frame_chunk* chunk) {
  if (chunk == NULL) return;
  if (sluice_frame_chunk_put)
    sluice_frame_chunk_put(chunk);
  else
    free(chunk);
}

static inline size_t sluice_frame_size(const sluice_frame_chunk* chunk) {
  return chunk->end - (uintptr_t)chunk;
}

SLUICE_FRAME_COLD void sluice_frame_stop(const char* what) {
  fprintf(stderr, "sluice: a frame was rewound %s; the process is stopped\n", what);
  abort();
}

static inline void sluice_frame_use(sluice_frame_state* state, sluice_frame_chunk* chunk, uintptr_t cursor) {
  state->chunk = chunk;
  state->tag = (uintptr_t)chunk | (chunk->checked ? 1 : 0);
  state->cursor = cursor;
  state->limit = chunk->end;
}

/* Puts a chunk with room for more than `room` bytes on top. Returns 0 when there is no memory. */
SLUICE_FRAME_COLD int sluice_frame_push(sluice_frame_state* state, size_t room) {
  const size_t least = sizeof(sluice_frame_chunk) + room + 1;
  sluice_frame_chunk* chunk = state->spare;
  if (chunk != NULL && sluice_frame_size(chunk) >= least) {
    state->spare = NULL;
  } else {
    size_t bytes = sluice_frame_chunk_bytes;
    if (state->chunk != NULL) bytes = 2 * sluice_frame_size(state->chunk);
    if (bytes > sluice_frame_most_chunk_bytes) bytes = sluice_frame_most_chunk_bytes;
    if (bytes < least) bytes = least;
    chunk =
        sluice_frame_chunk_get ? sluice_frame_chunk_get(state, bytes) : sluice_frame_chunk_from_malloc(state, bytes);
    if (chunk == NULL) return 0;
  }
  chunk->below = state->chunk;
  sluice_frame_use(state, chunk, (uintptr_t)(chunk + 1));
  return 1;
}

/* Takes the top chunk off; the larger of it and the spare one is kept. */
SLUICE_FRAME_COLD void sluice_frame_pop(sluice_frame_state* state) {
  sluice_frame_chunk* chunk = state->chunk;
  /* The cursor of a full chunk is not remembered: all of it counts as filled. */
  sluice_frame_use(state, chunk->below, chunk->below->end);
  if (chunk->keep && (state->spare == NULL || sluice_frame_size(state->spare) < sluice_frame_size(chunk))) {
    sluice_frame_chunk* const smaller = state->spare;
    state->spare = chunk;
    chunk = smaller;
  }
  sluice_frame_release(chunk);
}

SLUICE_FRAME_COLD void* sluice_frame_alloc_slow(sluice_frame_state* state, size_t size, size_t align) {
  uintptr_t block;
  if (size > SIZE_MAX / 8 || align > SIZE_MAX / 8 || !sluice_frame_push(state, size + align)) {
    errno = ENOMEM;
    return NULL;
  }
  block = (state->cursor + (align - 1)) & ~(uintptr_t)(align - 1);
  state->cursor = block + size;
  return (void*)block;
}

/* Drops the bytes of the top chunk from `cursor` on. */
static inline void sluice_frame_drop(sluice_frame_state* state, uintptr_t cursor) {
  if (state->chunk->checked) memset((void*)cursor, sluice_frame_poison, state->cursor - cursor);
  state->cursor = cursor;
}

SLUICE_FRAME_COLD void sluice_frame_rewind_slow(sluice_frame_state* state, sluice_mark mark) {
  sluice_frame_chunk* target = (sluice_frame_chunk*)(mark.opaque[1] & ~(uintptr_t)1);
  uintptr_t cursor = mark.opaque[0];
  const uintptr_t floor = state->floor.opaque[1] & ~(uintptr_t)1;
  int above_floor = 0; /* whether the innermost open sluice::frame began in a chunk above the target */
  sluice_frame_chunk* chunk = state->chunk;
  if (target == NULL) { /* taken when there was no memory for the first chunk: everything goes */
    if (chunk == NULL) return;
    for (target = chunk; target->below != NULL;)
      target = target->below;
    cursor = (uintptr_t)(target + 1);
  }
  for (; chunk != NULL && chunk != target; chunk = chunk->below)
    above_floor |= (uintptr_t)chunk == floor;
  if (chunk == NULL || (target == state->chunk && cursor > state->cursor)) {
    if (SLUICE_FRAME_CHECKS || (state->tag & 1) != 0 || (mark.opaque[1] & 1) != 0)
      sluice_frame_stop("on another thread than its own, or to a mark that has been dropped");
    return;
  }
  if ((state->tag & 1) != 0 && state->depth != 0 &&
      (above_floor || ((uintptr_t)target == floor && cursor < state->floor.opaque[0])))
    sluice_frame_stop("past an inner one that is still open");
  while (state->chunk != target) {
    sluice_frame_drop(state, (uintptr_t)(state->chunk + 1));
    sluice_frame_pop(state);
  }
  sluice_frame_drop(state, cursor);
}

#endif
