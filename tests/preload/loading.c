/* Libraries that allocate in their constructors and destructors are loaded and unloaded, here and on threads.
 * Usage: loading LIBRARY. Ends with status 0 when every block of theirs stayed intact. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static const char* library_path;

static void* load_and_unload(void* unused) {
  (void)unused;
  void* between[20];
  for (int round = 0; round < 200; ++round) {
    void* const library = dlopen(library_path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
      fprintf(stderr, "loading: %s\n", dlerror());
      exit(1);
    }
    for (size_t i = 0; i < 20; ++i)
      between[i] = malloc(i * 333);
    int (*const damage)(void) = (int (*)(void))dlsym(library, "library_damage");
    if (damage == NULL || damage() != 0) {
      fputs("loading: a block of the library changed\n", stderr);
      exit(1);
    }
    dlclose(library);
    for (size_t i = 0; i < 20; ++i)
      free(between[i]);
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fputs("usage: loading LIBRARY\n", stderr);
    return 2;
  }
  library_path = argv[1];
  load_and_unload(NULL);
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) {
    if (pthread_create(&threads[i], NULL, load_and_unload, NULL) != 0) return 1;
  }
  for (int i = 0; i < 4; ++i)
    pthread_join(threads[i], NULL);
  if (dlopen("/nonexistent/library.so", RTLD_NOW) != NULL || dlerror() == NULL) return 1;
  puts("loaded and unloaded");
  return 0;
}
