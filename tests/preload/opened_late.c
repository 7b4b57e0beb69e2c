/* libsluice.so opened by a program that runs on another malloc: both heaps live side by side, on threads born
 * before and after, and the library stays when it is closed. Usage: opened_late LIBSLUICE. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void* (*late_malloc)(size_t);
static void* (*late_realloc)(void*, size_t);
static void (*late_free)(void*);
static atomic_int opened;
static atomic_int faults;

static void* use_both(void* unused) {
  while (!atomic_load(&opened)) {
  }
  for (size_t size = 1; size < 500000; size += size / 5 + 1) {
    unsigned char* own = malloc(size);
    unsigned char* late = late_malloc(size);
    if (own == NULL || late == NULL || (uintptr_t)late % 16 != 0) {
      atomic_fetch_add(&faults, 1);
      continue;
    }
    memset(own, 1, size);
    memset(late, 2, size);
    late = late_realloc(late, size * 2);
    if (late == NULL || late[0] != 2 || late[size - 1] != 2 || own[0] != 1 || own[size - 1] != 1)
      atomic_fetch_add(&faults, 1);
    late_free(late);
    free(own);
  }
  return unused;
}

int main(int argc, char** argv) {
  if (argc != 2) {
    fputs("usage: opened_late LIBSLUICE\n", stderr);
    return 2;
  }
  pthread_t before, after;
  if (pthread_create(&before, NULL, use_both, NULL) != 0) return 1;
  void* const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "opened_late: %s\n", dlerror());
    exit(1);
  }
  late_malloc = (void* (*)(size_t))dlsym(library, "malloc");
  late_realloc = (void* (*)(void*, size_t))dlsym(library, "realloc");
  late_free = (void (*)(void*))dlsym(library, "free");
  if (late_malloc == NULL || late_realloc == NULL || late_free == NULL || late_malloc == malloc) {
    fputs("opened_late: the library has no malloc of its own\n", stderr);
    exit(1);
  }
  void* const kept = late_malloc(1000);
  memset(kept, 7, 1000);
  atomic_store(&opened, 1);
  use_both(NULL);
  if (pthread_create(&after, NULL, use_both, NULL) != 0) return 1;
  pthread_join(before, NULL);
  pthread_join(after, NULL);
  dlclose(library);
  use_both(NULL);
  if (((unsigned char*)kept)[999] != 7) atomic_fetch_add(&faults, 1);
  late_free(kept);
  if (atomic_load(&faults) != 0) fprintf(stderr, "opened_late: %d faults\n", atomic_load(&faults));
  puts("both heaps served");
  return atomic_load(&faults) != 0;
}
