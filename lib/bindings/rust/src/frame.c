/* The C half of frames (frame.rs): Rust has no stable way to a thread-local variable of C, and frame.h is inline
 * functions. What Rust reads itself is asserted here. */
#include <sluice/frame.h>

_Static_assert(offsetof(sluice_frame_state, cursor) == 0, "State of frame.rs");
_Static_assert(offsetof(sluice_frame_state, limit) == sizeof(uintptr_t), "State of frame.rs");
_Static_assert(offsetof(sluice_frame_state, depth) == 4 * sizeof(uintptr_t), "State of frame.rs");

typedef struct {
  sluice_frame_state* state;
  uintptr_t depth;
  sluice_mark mark, outer;
} opened_frame;

void sluice_rust_frame_open(opened_frame* frame) {
  sluice_frame_state* const state = &sluice_frame_thread;
  frame->state = state;
  frame->mark = sluice_frame_mark_in(state);
  frame->outer = state->floor;
  frame->depth = ++state->depth;
  state->floor = frame->mark;
}

void sluice_rust_frame_close(const opened_frame* frame) {
  sluice_frame_rewind_in(frame->state, frame->mark);
  frame->state->depth = frame->depth - 1;
  frame->state->floor = frame->outer;
}

void* sluice_rust_frame_alloc(sluice_frame_state* state, size_t size, size_t align) {
  return sluice_frame_alloc_in(state, size, align);
}
