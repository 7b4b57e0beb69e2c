// Frame memory: the chunks behind sluice_frame_alloc. Open it to see where they come from and how they end with their
// thread. What happens inside a chunk is inline in the program: sluice/frame.h, sluice/frame_chunks.h.
#pragma once

#include <cstddef>

#include "sluice/frame_types.h"

namespace sluice::arena {

// As in sluice/frame_chunks.h.
sluice_frame_chunk* get_chunk(sluice_frame_state* state, size_t bytes) noexcept;
void put_chunk(sluice_frame_chunk* chunk) noexcept;

}  // namespace sluice::arena
