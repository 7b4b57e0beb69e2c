/* Frames in C: memory that is dropped all at once. Open it when many short-lived objects end together (a request, a
 * document, one step of a game's loop).
 *
 * A mark records how far the thread's frame memory is filled. Rewinding to it drops what was allocated after it,
 * without a call for each object. Allocation is a few instructions, inline. A rewind never touches memory from malloc,
 * and memory allocated here must not be passed to free.
 *
 *   sluice_mark mark = sluice_frame_mark();
 *   char* line = (char*)sluice_frame_alloc(length + 1, 1);
 *   ...
 *   sluice_frame_rewind(mark);
 *
 * Under Sluice the memory comes from the thread's stack arena, else from malloc (frame_chunks.h); the same binary runs
 * both ways. Each thread has its own frame memory, given back at the thread's end: marks and frames stay on their
 * thread, the blocks may be read and written by any. All sizes and alignments are in bytes.
 *
 * Checked mode (the option SLUICE_FRAME_CHECKS=1 or a debug build of Sluice; without Sluice, the macro
 * SLUICE_FRAME_CHECKS=1 for the whole program) fills what a rewind drops with 0xDD and stops the process with one line
 * on stderr when a rewind goes past a live sluice::frame, to a mark that has been dropped, or to one of another thread.
 */
#ifndef SLUICE_FRAME_H
#define SLUICE_FRAME_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "sluice/frame_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One for each thread. Executables reach it directly, shared libraries by its offset. */
#if defined(__PIC__) && !defined(__PIE__)
#define SLUICE_FRAME_TLS __attribute__((weak, tls_model("initial-exec")))
#else
#define SLUICE_FRAME_TLS __attribute__((weak, tls_model("local-exec")))
#endif
SLUICE_FRAME_TLS __thread sluice_frame_state sluice_frame_thread;

#include "sluice/frame_chunks.h"

/* Whether an address plus this size may overflow. A constant of ordinary size cannot. */
#define SLUICE_FRAME_MAY_WRAP(size) (!(__builtin_constant_p(size) && (size) < (size_t)1 << 32))

/* The functions below on a given state. Internal. */
static inline sluice_mark sluice_frame_mark_in(sluice_frame_state* state) {
  sluice_mark mark;
  if (__builtin_expect(state->chunk == NULL, 0)) (void)sluice_frame_push(state, 0);
  mark.opaque[0] = state->cursor;
  mark.opaque[1] = state->tag;
  return mark;
}

static inline void* sluice_frame_alloc_in(sluice_frame_state* state, size_t size, size_t align) {
  uintptr_t block, end;
  if (__builtin_expect(align == 0 || (align & (align - 1)) != 0, 0)) {
    errno = EINVAL;
    return NULL;
  }
  block = (state->cursor + (align - 1)) & ~(uintptr_t)(align - 1);
  if (__builtin_expect((SLUICE_FRAME_MAY_WRAP(size) && __builtin_add_overflow(block, size, &end)) ||
                           (end = block + size) >= state->limit,
                       0)) {
    /* The size again, from what the fast path has in registers anyway. */
    __asm__("" : "+r"(end));
    size = end - block;
    return sluice_frame_alloc_slow(state, size, align);
  }
  state->cursor = end;
  return (void*)block;
}

static inline void sluice_frame_rewind_in(sluice_frame_state* state, sluice_mark mark) {
  if (__builtin_expect(mark.opaque[1] == (uintptr_t)state->chunk && mark.opaque[0] <= state->cursor, 1))
    state->cursor = mark.opaque[0];
  else
    sluice_frame_rewind_slow(state, mark);
}

/* Returns: the present position. */
static inline sluice_mark sluice_frame_mark(void) {
  return sluice_frame_mark_in(&sluice_frame_thread);
}

/* Effects: takes memory for `size` bytes at a multiple of `align`, until the frame is rewound.
 * Requires: align is a power of two.
 * Returns: the block, not cleared; NULL with errno ENOMEM, or EINVAL for a bad alignment. A size of 0 gives an address
 * that may be that of the next block. Eight instructions while the chunk lasts and the alignment is a constant. */
static inline void* sluice_frame_alloc(size_t size, size_t align) {
  return sluice_frame_alloc_in(&sluice_frame_thread, size, align);
}

/* Effects: makes a block larger or smaller: in place when it is the last one allocated and the chunk has room, or when
 * it shrinks; else a new block gets its first bytes, as many as fit.
 * Requires: the block came from sluice_frame_alloc or _grow with old_size bytes and has not been dropped; null with
 * old_size 0 is allowed.
 * Returns: the block; NULL with errno ENOMEM, and then the old one is untouched. A block that moves is aligned as the
 * old one was, up to 64 bytes, and at least to 16. */
static inline void* sluice_frame_grow(void* block, size_t old_size, size_t new_size) {
  sluice_frame_state* const state = &sluice_frame_thread;
  const uintptr_t start = (uintptr_t)block;
  uintptr_t end;
  size_t align;
  void* moved;
  if (start + old_size == state->cursor && block != NULL && !__builtin_add_overflow(start, new_size, &end) &&
      end < state->limit) {
    state->cursor = end;
    return block;
  }
  if (new_size <= old_size && block != NULL) return block;
  align = start & (~start + 1);
  align = align > 64 ? 64 : align < 16 ? 16 : align;
  moved = sluice_frame_alloc(new_size, align);
  if (moved != NULL && old_size != 0) memcpy(moved, block, old_size < new_size ? old_size : new_size);
  return moved;
}

/* Effects: drops everything allocated on this thread since the mark was taken. A mark that was dropped itself, or that
 * another thread took, has no effect (checked mode stops). Five instructions while the mark lies in the present chunk.
 */
static inline void sluice_frame_rewind(sluice_mark mark) {
  sluice_frame_rewind_in(&sluice_frame_thread, mark);
}

#ifdef __cplusplus
}
#endif

#endif
