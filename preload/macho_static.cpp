// The malloc family of a program that libsluice.a is linked into, on macOS. Calls of the program's own code end here,
// at once: the linker takes these definitions before libSystem's. What other images call stays libSystem's, which asks
// the default zone: ours (macho_zone.hpp). So do operator new and delete, which are libc++'s, and the functions of
// zones.
//
// Constructors of the program run before ours; what they allocate may end in libSystem, which must find the zone then.
// So the first call starts the heap. Part of libsluice.a alone.
#include <stddef.h>
#include <stdint.h>

#include "macho_front.hpp"
#include "macho_start.hpp"
#include "macho_zone.hpp"
#include "sluice/sluice.h"

#define SLUICE_EXPORT __attribute__((visibility("default")))

namespace macho = sluice::macho;

namespace {

inline void start_at_first_call() noexcept {
  if (!macho::has_started.load(std::memory_order_relaxed)) [[unlikely]]
    macho::start();
}

// A thread has no cache before its first call, which comes here.
__attribute__((noinline)) void* allocate_slow(size_t size, sluice::ThreadCache* cache) noexcept {
  if (macho::has_started.load(std::memory_order_relaxed)) return sluice::front::allocate_slow(size, cache);
  macho::start();
  return macho::allocate(size);
}

// Keeps the interface of sluice.h in the program: references to it are weak, and bring in nothing.
__attribute__((used)) const auto interface = &sluice_version;

}  // namespace

extern "C" {

SLUICE_EXPORT void* malloc(size_t size) {
  return sluice::front::allocate<allocate_slow>(size);
}

SLUICE_EXPORT void* calloc(size_t count, size_t size) {
  start_at_first_call();
  return macho::allocate_zeroed(count, size);
}

SLUICE_EXPORT void free(void* block) {
  macho::end(block);
}

SLUICE_EXPORT void vfree(void* block) {
  macho::end(block);
}

SLUICE_EXPORT void* realloc(void* block, size_t size) {
  start_at_first_call();
  return macho::reallocate(block, size);
}

SLUICE_EXPORT void* reallocf(void* block, size_t size) {
  start_at_first_call();
  return macho::resize_or_free(block, size);
}

SLUICE_EXPORT void* valloc(size_t size) {
  start_at_first_call();
  return macho::allocate_pages(size);
}

SLUICE_EXPORT void* aligned_alloc(size_t alignment, size_t size) {
  start_at_first_call();
  return macho::allocate_aligned_by(alignment, size);
}

SLUICE_EXPORT int posix_memalign(void** out, size_t alignment, size_t size) {
  start_at_first_call();
  return macho::allocate_aligned_to(out, alignment, size);
}

SLUICE_EXPORT size_t malloc_size(const void* block) {
  start_at_first_call();
  return macho::size_of(block);
}

SLUICE_EXPORT size_t malloc_good_size(size_t size) {
  return sluice::zone::good_size(size);
}

// What Apple's compilers make of these where they tell types apart.

SLUICE_EXPORT void* malloc_type_malloc(size_t size, uint64_t) {
  return malloc(size);
}

SLUICE_EXPORT void* malloc_type_calloc(size_t count, size_t size, uint64_t) {
  return calloc(count, size);
}

SLUICE_EXPORT void malloc_type_free(void* block, uint64_t) {
  free(block);
}

SLUICE_EXPORT void* malloc_type_realloc(void* block, size_t size, uint64_t) {
  return realloc(block, size);
}

SLUICE_EXPORT void* malloc_type_valloc(size_t size, uint64_t) {
  return valloc(size);
}

SLUICE_EXPORT void* malloc_type_aligned_alloc(size_t alignment, size_t size, uint64_t) {
  return aligned_alloc(alignment, size);
}

SLUICE_EXPORT int malloc_type_posix_memalign(void** out, size_t alignment, size_t size, uint64_t) {
  return posix_memalign(out, alignment, size);
}

}  // extern "C"
