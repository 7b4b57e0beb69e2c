/* Libraries that use frames are loaded, used on threads that outlive them, and unloaded.
 * Usage: frame_loading LIBRARY... Ends with status 0 when every block of theirs stayed intact. */
#include <dlfcn.h>
#include <pthread.h>
#include <sluice/sluice.h>
#include <stdio.h>
#include <stdlib.h>

enum { threads = 8, rounds = 20 };

static pthread_barrier_t loaded, unloaded;
static int (*library_function)(void);
static int damage;

static void* use_library(void* unused) {
  (void)unused;
  for (int round = 0; round < rounds; ++round) {
    pthread_barrier_wait(&loaded);
    if (library_function() != 0) __atomic_add_fetch(&damage, 1, __ATOMIC_RELAXED);
    pthread_barrier_wait(&unloaded);              /* the library goes between this one… */
    pthread_barrier_wait(&unloaded);              /* …and this one */
    const sluice_mark mark = sluice_frame_mark(); /* the program's own frames go on */
    if (sluice_frame_alloc(1000, 16) == NULL) abort();
    sluice_frame_rewind(mark);
  }
  return NULL;
}

static void load_and_unload(const char* path) {
  pthread_t running[threads];
  for (int i = 0; i < threads; ++i) {
    if (pthread_create(&running[i], NULL, use_library, NULL) != 0) abort();
  }
  for (int round = 0; round < rounds; ++round) {
    void* const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
      fprintf(stderr, "frame_loading: %s\n", dlerror());
      exit(1);
    }
    library_function = (int (*)(void))dlsym(library, "library_damage");
    if (library_function == NULL) exit(1);
    pthread_barrier_wait(&loaded);
    if (library_function() != 0) __atomic_add_fetch(&damage, 1, __ATOMIC_RELAXED);
    pthread_barrier_wait(&unloaded);
    dlclose(library);
    pthread_barrier_wait(&unloaded);
  }
  for (int i = 0; i < threads; ++i)
    pthread_join(running[i], NULL);
}

int main(int argc, char** argv) {
  if (argc < 2) {
    fputs("usage: frame_loading LIBRARY...\n", stderr);
    return 2;
  }
  if (pthread_barrier_init(&loaded, NULL, threads + 1) != 0 || pthread_barrier_init(&unloaded, NULL, threads + 1) != 0)
    return 1;
  for (int round = 0; round < 3; ++round) {
    for (int i = 1; i < argc; ++i)
      load_and_unload(argv[i]);
  }
  if (damage != 0) fputs("frame_loading: a block of a library changed\n", stderr);
  return damage == 0 ? 0 : 1;
}
