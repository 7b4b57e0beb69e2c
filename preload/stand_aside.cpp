// See stand_aside.hpp.
#include "stand_aside.hpp"

#include <unistd.h>

#include "base/print.hpp"
#include "front.hpp"
#include "os/memory.hpp"

// What the runtime of a sanitizer exports beside malloc itself, in a library of its own or within the program. The
// loader finds them before any call is made.
extern "C" {
__attribute__((weak)) void* __interceptor_malloc(size_t) noexcept;
__attribute__((weak)) void __interceptor_free(void*) noexcept;
__attribute__((weak)) int __interceptor_posix_memalign(void**, size_t, size_t) noexcept;
__attribute__((weak)) size_t __interceptor_malloc_usable_size(void*) noexcept;
}

namespace sluice {
namespace {

void* allocate_of_sanitizer(size_t alignment, size_t size) noexcept {
  if (alignment <= min_alignment) return __interceptor_malloc(size);
  void* block = nullptr;
  return __interceptor_posix_memalign(&block, alignment, size) == 0 ? block : heap::out_of_memory();
}

bool free_of_sanitizer(void* block) noexcept {
  __interceptor_free(block);
  return true;
}

bool usable_size_of_sanitizer(const void* block, size_t* size) noexcept {
  *size = __interceptor_malloc_usable_size(const_cast<void*>(block));
  return true;
}

constinit const heap::ForeignHooks of_sanitizer = {free_of_sanitizer, usable_size_of_sanitizer, allocate_of_sanitizer};

}  // namespace

const heap::ForeignHooks* heap::required_allocator() noexcept {
  const bool whole = __interceptor_malloc != nullptr && __interceptor_free != nullptr &&
                     __interceptor_posix_memalign != nullptr && __interceptor_malloc_usable_size != nullptr;
  return whole ? &of_sanitizer : nullptr;
}

namespace stand_aside {
namespace {

#if defined(SLUICE_FRAMES)
void end_thread(void* value) noexcept {
  auto* const state = static_cast<sluice_frame_state*>(value);
  front::free(state->spare);
  while (sluice_frame_chunk* const chunk = state->chunk) {
    state->chunk = chunk->below;
    front::free(chunk);
  }
  *state = {};
}
#endif

}  // namespace

void start() noexcept {
  char line[160];
  Print(line, sizeof line, STDERR_FILENO)
      .text("sluice: this program is built with a sanitizer, whose own malloc serves it; Sluice stands aside\n");
#if defined(SLUICE_FRAMES)
  (void)os::register_thread_exit(end_thread);
#endif
}

#if defined(SLUICE_FRAMES)
sluice_frame_chunk* get_chunk(sluice_frame_state* state, size_t bytes) noexcept {
  auto* const chunk = static_cast<sluice_frame_chunk*>(front::allocate_zeroed(1, bytes));
  if (chunk == nullptr) return nullptr;
  chunk->end = reinterpret_cast<uintptr_t>(chunk) + bytes;
  // One frame memory of a thread is given back with it; a library that has another one loses the chunk that it keeps.
  if (state->chunk == nullptr) (void)os::arm_thread_exit(state);
  return chunk;
}

void put_chunk(sluice_frame_chunk* chunk) noexcept {
  front::free(chunk);
}
#endif

}  // namespace stand_aside
}  // namespace sluice
