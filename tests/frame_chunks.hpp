// Frame memory from the stack arena, without the preload: what the library exports to programs, for a test that links
// the core. Include it in one source file of a test, before anything else of sluice/frame.h is used.
#pragma once

#include "arena/frame.hpp"
#include "sluice/frame.h"

extern "C" {
sluice_frame_chunk* sluice_frame_chunk_get(sluice_frame_state* state, size_t bytes) {
  return sluice::arena::get_chunk(state, bytes);
}
void sluice_frame_chunk_put(sluice_frame_chunk* chunk) {
  sluice::arena::put_chunk(chunk);
}
}
