/* A program whose first call into the heap is the entry point that its argument names, made before any
 * constructor has run (from .preinit_array), then again from a constructor and from main. Usage: first_call
 * CALL; an unknown CALL ends with status 2. Open it when a program hangs or dies before main. */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char* call_name;
static void* volatile none = NULL;
static int faults;

static void check(int holds) {
  if (!holds) ++faults;
}

static void use(void* block, size_t size) {
  check(block != NULL && (uintptr_t)block % 16 == 0);
  if (block == NULL) return;
  memset(block, 0x41, size);
  free(block);
}

static void use_everything(void) {
  for (size_t size = 1; size < 1000000; size += size / 3 + 1) {
    use(malloc(size), size);
    use(calloc(3, size), 3 * size);
    use(realloc(malloc(size), 2 * size), 2 * size);
    use(memalign(256, size), size);
  }
}

static void* use_everything_on_a_thread(void* unused) {
  use_everything();
  return unused;
}

static void first_call(void) {
  const char* const name = call_name;
  void* block = NULL;
  if (strcmp(name, "malloc") == 0) {
    use(malloc(10), 10);
  } else if (strcmp(name, "malloc-large") == 0) {
    use(malloc(3000000), 3000000);
  } else if (strcmp(name, "malloc-impossible") == 0) {
    volatile size_t huge = SIZE_MAX / 2 + 1;
    check(malloc(huge) == NULL && errno == ENOMEM);
  } else if (strcmp(name, "calloc") == 0) {
    use(calloc(10, 10), 100);
  } else if (strcmp(name, "realloc") == 0) {
    use(realloc(none, 100), 100);
  } else if (strcmp(name, "reallocarray") == 0) {
    use(reallocarray(none, 10, 10), 100);
  } else if (strcmp(name, "free-null") == 0) {
    free(none);
  } else if (strcmp(name, "free-foreign") == 0) {
    free((void*)(uintptr_t)&faults);
  } else if (strcmp(name, "realloc-foreign") == 0) {
    check(realloc((void*)(uintptr_t)&faults, 100) != (void*)&faults);
  } else if (strcmp(name, "usable-size-null") == 0) {
    check(malloc_usable_size(none) == 0);
  } else if (strcmp(name, "usable-size-foreign") == 0) {
    check(malloc_usable_size((void*)(uintptr_t)&faults) == 0);
  } else if (strcmp(name, "memalign") == 0) {
    use(memalign(4096, 10), 10);
  } else if (strcmp(name, "aligned_alloc") == 0) {
    use(aligned_alloc(64, 128), 128);
  } else if (strcmp(name, "posix_memalign") == 0) {
    check(posix_memalign(&block, 128, 100) == 0);
    use(block, 100);
  } else if (strcmp(name, "valloc") == 0) {
    use(valloc(10), 10);
  } else if (strcmp(name, "pvalloc") == 0) {
    use(pvalloc(10), 4096);
  } else if (strcmp(name, "malloc_trim") == 0) {
    malloc_trim(0);
  } else if (strcmp(name, "mallinfo2") == 0) {
    check(mallinfo2().uordblks < 1000000);
  } else if (strcmp(name, "mallopt") == 0) {
    mallopt(M_MMAP_THRESHOLD, 100000);
  } else if (strcmp(name, "malloc-after-40-keys") == 0) {
    /* libc keeps the values of the first 32 keys in the thread itself and allocates for those behind. */
    pthread_key_t key;
    for (int i = 0; i < 40; ++i)
      check(pthread_key_create(&key, free) == 0);
    use(malloc(10), 10);
  } else {
    fprintf(stderr, "first_call: unknown call '%s'\n", name);
    _exit(2);
  }
}

static void before_constructors(int argc, char** argv, char** environment) {
  (void)environment;
  call_name = argc > 1 ? argv[1] : "(none given)";
  first_call();
  use_everything();
}
__attribute__((section(".preinit_array"), used)) static void (*const preinit)(int, char**,
                                                                              char**) = before_constructors;

__attribute__((constructor)) static void in_constructor(void) {
  first_call();
  pthread_t thread;
  check(pthread_create(&thread, NULL, use_everything_on_a_thread, NULL) == 0);
  check(pthread_join(thread, NULL) == 0);
}

int main(void) {
  first_call();
  use_everything();
  if (faults != 0) fprintf(stderr, "first_call: %d faults\n", faults);
  puts("reached the end");
  return faults != 0;
}
