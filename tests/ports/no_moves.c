// Preloaded to tests under qemu-user, whose mremap with MREMAP_DONTUNMAP forgets the range that it leaves: refuses
// that, as Linux before 5.7 does. The library finds it out by itself (os/linux.cpp); tests/unit/mock_os.cpp asks libc.
#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { dont_unmap = 4 };

void* mremap(void* address, size_t old_bytes, size_t new_bytes, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  void* const to = va_arg(arguments, void*);
  va_end(arguments);
  if ((flags & dont_unmap) != 0) {
    errno = EINVAL;
    return MAP_FAILED;
  }
  return (void*)syscall(SYS_mremap, address, old_bytes, new_bytes, flags, to);
}
