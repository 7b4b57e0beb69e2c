// The C entry points: malloc and its relatives, with the semantics of glibc. The table of names is symbols.def.
//
// <stdlib.h> stays out of this file: its declarations differ between C libraries in attributes that a definition must
// repeat.
#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "front.hpp"
#include "glibc_names.hpp"
#include "os/memory.hpp"

#define SLUICE_ALIAS(target) __attribute__((visibility("default"), alias(#target)))

namespace sluice {
extern const char starts_and_ends;  // in boot.cpp, which nobody calls
}

namespace {

namespace front = sluice::front;

[[gnu::used]] const char* const brings_boot = &sluice::starts_and_ends;

bool is_power_of_two(size_t value) noexcept {
  return value != 0 && (value & (value - 1)) == 0;
}

void* fail(int error) noexcept {
  errno = error;
  return nullptr;
}

}  // namespace

extern "C" {

SLUICE_EXPORT void* malloc(size_t size) SLUICE_OF_LIBC {
  return front::allocate(size);
}

SLUICE_EXPORT void free(void* block) SLUICE_OF_LIBC {
  front::free(block);
}

SLUICE_EXPORT void* calloc(size_t count, size_t size) SLUICE_OF_LIBC {
  return front::allocate_zeroed(count, size);
}

// As glibc: realloc(block, 0) frees the block and returns null.
SLUICE_EXPORT void* realloc(void* block, size_t size) SLUICE_OF_LIBC {
  if (size == 0 && block != nullptr) {
    front::free(block);
    return nullptr;
  }
  return front::reallocate(block, size);
}

SLUICE_EXPORT void* aligned_alloc(size_t alignment, size_t size) SLUICE_OF_LIBC {
  return is_power_of_two(alignment) ? front::allocate_aligned(alignment, size) : fail(EINVAL);
}

// As glibc: an alignment that is not a power of two is rounded up to one.
SLUICE_EXPORT void* memalign(size_t alignment, size_t size) SLUICE_OF_LIBC {
  if (alignment > SIZE_MAX / 2 + 1) return fail(EINVAL);
  size_t power = sluice::min_alignment;
  while (power < alignment)
    power *= 2;
  return front::allocate_aligned(power, size);
}

SLUICE_EXPORT int posix_memalign(void** out, size_t alignment, size_t size) SLUICE_OF_LIBC {
  if (!is_power_of_two(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  const int saved = errno;
  void* block = front::allocate_aligned(alignment, size);
  if (block == nullptr) return ENOMEM;  // errno says so too, as glibc's does
  errno = saved;
  *out = block;
  return 0;
}

SLUICE_EXPORT void* valloc(size_t size) SLUICE_OF_LIBC {
  return front::allocate_aligned(sluice::os::page_size(), size);
}

SLUICE_EXPORT void* pvalloc(size_t size) noexcept {
  const size_t page = sluice::os::page_size();
  if (size > SIZE_MAX - page) return fail(ENOMEM);
  return front::allocate_aligned(page, (size + page - 1) / page * page);
}

SLUICE_EXPORT void free_sized(void* block, size_t size) noexcept {
  front::free_sized(block, size);
}
SLUICE_EXPORT void free_aligned_sized(void* block, size_t, size_t size) noexcept {
  front::free_sized(block, size);
}

SLUICE_EXPORT size_t malloc_usable_size(void* block) noexcept {
  return front::usable_size(block);
}

SLUICE_EXPORT int malloc_trim(size_t keep) noexcept {
  return front::trim(keep) ? 1 : 0;
}

SLUICE_FOR_GLIBC(SLUICE_ALIAS(free) void cfree(void*) noexcept;)
SLUICE_FOR_GLIBC(SLUICE_ALIAS(malloc) void* __libc_malloc(size_t) noexcept;)
SLUICE_FOR_GLIBC(SLUICE_ALIAS(calloc) void* __libc_calloc(size_t, size_t) noexcept;)
SLUICE_FOR_GLIBC(SLUICE_ALIAS(realloc) void* __libc_realloc(void*, size_t) noexcept;)
SLUICE_FOR_GLIBC(SLUICE_ALIAS(free) void __libc_free(void*) noexcept;)
SLUICE_FOR_GLIBC(SLUICE_ALIAS(free) void __libc_cfree(void*) noexcept;)
SLUICE_FOR_GLIBC(SLUICE_ALIAS(memalign) void* __libc_memalign(size_t, size_t) noexcept;)
SLUICE_FOR_GLIBC(SLUICE_ALIAS(valloc) void* __libc_valloc(size_t) noexcept;)
SLUICE_FOR_GLIBC(SLUICE_ALIAS(pvalloc) void* __libc_pvalloc(size_t) noexcept;)
SLUICE_FOR_GLIBC(SLUICE_ALIAS(posix_memalign) int __posix_memalign(void**, size_t, size_t) noexcept;)

}  // extern "C"
