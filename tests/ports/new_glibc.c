/* A program for libsluice.so on a newer glibc than the one that it was linked with, built by that system's compiler:
 * what came to the family since (free_sized and free_aligned_sized, 2.43), what libc does with forks, threads and the
 * loader. Prints "passed" when all was as it must be. Run by scripts/port linux-new-glibc; open it when glibc has
 * something new. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

__attribute__((weak)) const char* sluice_version(void);

static void check(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "new_glibc: %s (errno %d)\n", what, errno);
  _exit(1);
}

/* A name of the family that reached libc's own heap would be given blocks of another one. */
static void check_served(const char* name, int must_be_there) {
  void* const symbol = dlsym(RTLD_DEFAULT, name);
  Dl_info where;
  check(symbol != NULL || !must_be_there, name);
  if (symbol != NULL) check(dladdr(symbol, &where) != 0 && strstr(where.dli_fname, "libsluice") != NULL, name);
}

#if !__GLIBC_PREREQ(2, 43)
static void free_sized(void* block, size_t size) {
  ((void (*)(void*, size_t))dlsym(RTLD_DEFAULT, "free_sized"))(block, size);
}
static void free_aligned_sized(void* block, size_t alignment, size_t size) {
  ((void (*)(void*, size_t, size_t))dlsym(RTLD_DEFAULT, "free_aligned_sized"))(block, alignment, size);
}
#endif

static void use_heap(void) {
  for (size_t size = 1; size < 3000000; size += size / 7 + 1) {
    char* const block = malloc(size);
    check(block != NULL && malloc_usable_size(block) >= size, "malloc");
    memset(block, 1, size);
    free_sized(block, size);
    for (size_t alignment = 16; alignment <= 65536; alignment *= 16) {
      char* const aligned = aligned_alloc(alignment, size);
      check(aligned != NULL && (uintptr_t)aligned % alignment == 0, "aligned_alloc");
      memset(aligned, 2, size);
      free_aligned_sized(aligned, alignment, size);
    }
  }
  free_sized(NULL, 5);
  free_aligned_sized(NULL, 16, 32);
}

static void refuse(void) {
  static const size_t wrong[] = {0, 3, 24, 100, SIZE_MAX};
  for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); ++i) {
    volatile size_t alignment = wrong[i];
    errno = 0;
    /* As glibc from 2.38 on. */
    check(aligned_alloc(alignment, 64) == NULL && errno == EINVAL, "an alignment that is no power of two");
  }
  volatile size_t too_much = PTRDIFF_MAX;
  errno = 0;
  check(malloc(too_much + 1) == NULL && errno == ENOMEM, "too large a block");
}

static void use_libc(void) {
  char* line = NULL;
  check(asprintf(&line, "%s %d", "text", 5) == 6 && strcmp(line, "text 5") == 0, "asprintf");
  free_sized(line, 7);
  char* const copy = strdup("copied");
  check(copy != NULL && strcmp(copy, "copied") == 0, "strdup");
  free(copy);
  char* text = NULL;
  size_t size = 0;
  FILE* const stream = open_memstream(&text, &size);
  check(stream != NULL && malloc_info(0, stream) == 0 && fclose(stream) == 0 && strstr(text, "<malloc") != NULL,
        "malloc_info");
  free(text);
}

static void check_child(pid_t child) {
  int status = 0;
  check(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7, "child");
}

/* _Fork runs no handlers. */
static void fork_both_ways(void) {
  for (int i = 0; i < 20; ++i) {
    const pid_t child = i % 2 == 0 ? fork() : _Fork();
    if (child == 0) {
      use_heap();
      _exit(7);
    }
    check_child(child);
  }
}

static _Thread_local char* of_the_thread;

static void* run(void* unused) {
  of_the_thread = malloc(100);
  use_heap();
  free_sized(of_the_thread, 100);
  return unused;
}

static int run_c11(void* unused) {
  (void)run(unused);
  return 5;
}

static void use_threads(void) {
  for (int round = 0; round < 10; ++round) {
    pthread_t threads[4];
    thrd_t other;
    for (int i = 0; i < 4; ++i)
      check(pthread_create(&threads[i], NULL, run, NULL) == 0, "pthread_create");
    check(thrd_create(&other, run_c11, NULL) == thrd_success, "thrd_create");
    const pid_t child = fork(); /* while others use the heap */
    if (child == 0) {
      use_heap();
      _exit(7);
    }
    check_child(child);
    for (int i = 0; i < 4; ++i)
      check(pthread_join(threads[i], NULL) == 0, "pthread_join");
    int result = 0;
    check(thrd_join(other, &result) == thrd_success && result == 5, "thrd_join");
  }
}

static void use_loader(void) {
  for (int i = 0; i < 20; ++i) {
    void* const library = dlopen("libm.so.6", i % 2 == 0 ? RTLD_NOW : RTLD_NOW | RTLD_DEEPBIND);
    check(library != NULL && dlsym(library, "cos") != NULL, "dlopen");
    check(dlclose(library) == 0, "dlclose");
    void* const apart = dlmopen(LM_ID_NEWLM, "libm.so.6", RTLD_NOW);
    if (apart != NULL) check(dlclose(apart) == 0, "dlclose of another namespace");
  }
  check(dlopen("libnothing-of-this-name.so", RTLD_NOW) == NULL && dlerror() != NULL, "dlerror");
}

int main(void) {
  check(sluice_version != NULL, "the program does not run on libsluice.so");
  static const char* const names[] = {"malloc",
                                      "calloc",
                                      "realloc",
                                      "free",
                                      "aligned_alloc",
                                      "posix_memalign",
                                      "memalign",
                                      "reallocarray",
                                      "malloc_usable_size",
                                      "free_sized",
                                      "free_aligned_sized",
                                      "pthread_create",
                                      "dlopen"};
  for (size_t i = 0; i < sizeof(names) / sizeof(*names); ++i)
    check_served(names[i], 1);
  use_heap();
  refuse();
  use_libc();
  fork_both_ways();
  use_threads();
  use_loader();
  fork_both_ways();
  puts("passed");
  return 0;
}
