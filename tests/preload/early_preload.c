/* Another preloaded library, with everything that such libraries are known to do to a malloc: a constructor
 * that allocates and starts a thread, a destructor that frees, and hooks of functions that an allocator could
 * call (getenv, open, mmap, munmap, madvise, mprotect, sysconf, write) which allocate themselves; at the first dlopen
 * it makes a thread under a lock that each dlopen takes. On x86-64 it also stands before syscall, and allocates there
 * under a lock. It is put before and behind libsluice.so. */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../call_words.h"

static void* kept[100];

static void allocate_a_little(void) {
  void* const small = malloc(100);
  void* const large = malloc(200000);
  void* const zeroed = calloc(1, 5000);
  if (small != NULL) memset(small, 1, 100);
  if (large != NULL) memset(large, 1, 200000);
  free(large);
  free(small);
  free(zeroed);
}

static void call_the_system(void) {
  for (int i = 0; i < 100; ++i)
    syscall(SYS_getpid);
}

static void* on_a_thread(void* unused) {
  for (int i = 0; i < 100; ++i)
    allocate_a_little();
  return unused;
}

__attribute__((constructor)) static void load(void) {
  free(NULL);
  for (size_t i = 0; i < 100; ++i)
    kept[i] = malloc(i * 100);
  call_the_system();
  pthread_t thread;
  if (pthread_create(&thread, NULL, on_a_thread, NULL) == 0) pthread_join(thread, NULL);
}

__attribute__((destructor)) static void unload(void) {
  for (size_t i = 0; i < 100; ++i)
    free(kept[i]);
  allocate_a_little();
}

#define HOOK __attribute__((visibility("default")))

HOOK char* getenv(const char* name) {
  allocate_a_little();
  char* (*const next)(const char*) = (char* (*)(const char*))dlsym(RTLD_NEXT, "getenv");
  return next(name);
}

HOOK int open(const char* path, int flags, ...) {
  allocate_a_little();
  va_list arguments;
  va_start(arguments, flags);
  const int mode = (flags & O_CREAT) != 0 ? va_arg(arguments, int) : 0;
  va_end(arguments);
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

HOOK void* mmap(void* address, size_t bytes, int protection, int flags, int file, off_t offset) {
  allocate_a_little();
  return (void*)syscall(SYS_mmap, address, bytes, protection, flags, file, offset);
}

HOOK int munmap(void* address, size_t bytes) {
  allocate_a_little();
  return (int)syscall(SYS_munmap, address, bytes);
}

HOOK int madvise(void* address, size_t bytes, int advice) {
  allocate_a_little();
  return (int)syscall(SYS_madvise, address, bytes, advice);
}

HOOK int mprotect(void* address, size_t bytes, int protection) {
  allocate_a_little();
  return (int)syscall(SYS_mprotect, address, bytes, protection);
}

HOOK long sysconf(int name) {
  allocate_a_little();
  long (*const next)(int) = (long (*)(int))dlsym(RTLD_NEXT, "sysconf");
  return next(name);
}

HOOK ssize_t write(int file, const void* bytes, size_t count) {
  allocate_a_little();
  return syscall(SYS_write, file, bytes, count);
}

static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

HOOK void* dlopen(const char* file, int mode) {
  static int is_first = 1;
  pthread_mutex_lock(&opening);
  pthread_t thread;
  if (is_first && pthread_create(&thread, NULL, on_a_thread, NULL) == 0) pthread_join(thread, NULL);
  is_first = 0;
  pthread_mutex_unlock(&opening);
  void* (*const next)(const char*, int) = (void* (*)(const char*, int))dlsym(RTLD_NEXT, "dlopen");
  return next(file, mode);
}

#if defined(__x86_64__)  // elsewhere the library asks libc for its own calls
static pthread_mutex_t calling = PTHREAD_MUTEX_INITIALIZER;

HOOK long syscall(long number, ...) {
  long words[most_words];
  TAKE_WORDS(words, number);
  pthread_mutex_lock(&calling);
  allocate_a_little();
  long (*const next)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
  pthread_mutex_unlock(&calling);
  return next(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}
#endif
