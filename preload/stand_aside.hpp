// What happens in a program that is built with a sanitizer: the malloc of the sanitizer serves in place of ours, and
// frames live in blocks of it. Open it when such a program behaves otherwise under the preload than without it.
#pragma once

#include <cstddef>

#include "sluice/frame.h"

namespace sluice::stand_aside {

// Says in one line on stderr that the heap stands aside, and readies the end of threads for frames. Called once, at
// load.
void start() noexcept;

#if defined(SLUICE_FRAMES)
// As arena::get_chunk and arena::put_chunk.
sluice_frame_chunk* get_chunk(sluice_frame_state* state, size_t bytes) noexcept;
void put_chunk(sluice_frame_chunk* chunk) noexcept;
#endif

}  // namespace sluice::stand_aside
