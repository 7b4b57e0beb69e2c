// reallocarray, which is realloc with a product: the realloc of the process, as the loader finds it. That is ours,
// unless a malloc that has no reallocarray comes before us. In a file of its own, so that no compiler takes it for the
// one beside it.
#include <errno.h>
#include <stddef.h>

#include "glibc_names.hpp"

extern "C" {

__attribute__((visibility("default"))) void* realloc(void* block, size_t size) noexcept;

__attribute__((visibility("default"))) void* reallocarray(void* block, size_t count, size_t size) noexcept {
  size_t bytes;
  if (!__builtin_mul_overflow(count, size, &bytes)) return realloc(block, bytes);
  errno = ENOMEM;
  return nullptr;
}

SLUICE_FOR_GLIBC(__attribute__((visibility("default"),
                                alias("reallocarray"))) void* __libc_reallocarray(void*, size_t, size_t) noexcept;)

}  // extern "C"
