/* A program for libsluice.so on an old glibc, where threads and dlopen are in libraries of their own. Built for
 * glibc 2.17, linked with neither (old_glibc plain), with libdl (old_glibc late: loads libpthread while it runs), or
 * with both (old_glibc threads). Prints "passed" when all was as it must be; its statistics tell whether the heap knows
 * of the ends of threads. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(USES_DL) || defined(USES_THREADS)
#include <dlfcn.h>
#include <pthread.h>
#endif

__attribute__((weak)) const char* sluice_version(void);

static volatile sig_atomic_t signalled;

static void check(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "old_glibc: %s (errno %d)\n", what, errno);
  _exit(1);
}

static void use_heap(void) {
  enum { count = 1000 };
  unsigned char* blocks[count];
  for (size_t i = 0; i < count; ++i) {
    const size_t size = i % 50 == 0 ? i * 300 + 1 : i + 1;
    blocks[i] = i % 3 == 0 ? calloc(1, size) : malloc(size);
    check(blocks[i] != NULL && malloc_usable_size(blocks[i]) >= size, "malloc");
    memset(blocks[i], (int)i, size);
  }
  for (size_t i = 0; i < count; ++i) {
    check(blocks[i][0] == (unsigned char)i, "contents");
    free(blocks[i]);
  }
}

static void on_signal(int number) {
  signalled = number;
}

static void use_process(void) {
  struct sigaction action = {.sa_handler = on_signal}, before;
  check(sigaction(SIGUSR1, &action, NULL) == 0 && raise(SIGUSR1) == 0 && signalled == SIGUSR1, "sigaction");
  check(signal(SIGUSR1, SIG_DFL) == on_signal, "signal");
  check(sigaction(SIGUSR1, NULL, &before) == 0 && before.sa_handler == SIG_DFL, "the action");
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      use_heap();
      _exit(7);
    }
    int status = 0;
    check(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7, "child");
  }
  char* text = NULL;
  size_t size = 0;
  FILE* const stream = open_memstream(&text, &size);
  check(stream != NULL && malloc_info(0, stream) == 0 && fclose(stream) == 0 && strstr(text, "<malloc") != NULL,
        "malloc_info");
  free(text);
}

#if defined(USES_DL) || defined(USES_THREADS)
typedef int CreateFunction(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
typedef int JoinFunction(pthread_t, void**);

static void* run(void* unused) {
  use_heap();
  return unused;
}

static void use_threads(CreateFunction* create, JoinFunction* join) {
  for (int round = 0; round < 50; ++round) {
    pthread_t threads[4];
    for (int i = 0; i < 4; ++i)
      check(create(&threads[i], NULL, run, NULL) == 0, "pthread_create");
    for (int i = 0; i < 4; ++i)
      check(join(threads[i], NULL) == 0, "pthread_join");
  }
}

static void use_loader(void) {
  void* const library = dlopen("libm.so.6", RTLD_NOW | RTLD_DEEPBIND);
  check(library != NULL && dlsym(library, "cos") != NULL, "dlopen");
  check(dlopen("libnothing-of-this-name.so", RTLD_NOW) == NULL && dlerror() != NULL, "dlerror");
  check(dlclose(library) == 0, "dlclose");
}
#endif

int main(void) {
  check(sluice_version != NULL, "the program does not run on libsluice.so");
  use_heap();
  use_process();
#if defined(USES_DL)
  use_loader();
#endif
#if defined(USES_THREADS)
  use_threads(pthread_create, pthread_join);
#elif defined(USES_DL)
  void* const library = dlopen("libpthread.so.0", RTLD_NOW | RTLD_LOCAL);
  check(library != NULL, "no libpthread.so.0");
  CreateFunction* const create = (CreateFunction*)dlsym(RTLD_DEFAULT, "pthread_create"); /* of the preload */
  CreateFunction* const own = (CreateFunction*)dlsym(library, "pthread_create");
  JoinFunction* const join = (JoinFunction*)dlsym(library, "pthread_join");
  check(create != NULL && own != NULL && join != NULL && create != own, "the functions of threads");
  use_threads(create, join);
#endif
  use_process();
  puts("passed");
  return 0;
}
