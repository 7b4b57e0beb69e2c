/* A library in a namespace of its own (dlmopen), with a libc and a malloc of its own, whose blocks and ours cross.
 * Usage: namespaces LIBRARY. Ends with status 0 when every block stayed intact, and with 77 where no namespace can be
 * made. */
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char* library_path;
static int faults;

static void check(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "namespaces: %s\n", what);
  __atomic_fetch_add(&faults, 1, __ATOMIC_RELAXED);
}

struct library {
  void* handle;
  void* (*allocate)(size_t);
  void (*release)(void*);
  int (*damage)(void);
};

static struct library open_library(Lmid_t space) {
  struct library library = {dlmopen(space, library_path, RTLD_NOW | RTLD_LOCAL), NULL, NULL, NULL};
  if (library.handle == NULL) {
    fprintf(stderr, "namespaces: %s\n", dlerror());
    exit(77);
  }
  library.allocate = (void* (*)(size_t))dlsym(library.handle, "library_allocate");
  library.release = (void (*)(void*))dlsym(library.handle, "library_release");
  library.damage = (int (*)(void))dlsym(library.handle, "library_damage");
  return library;
}

/* The library's blocks end in our free and realloc, where they are told apart from ours. */
static void cross(const struct library* library) {
  for (size_t size = 1; size < 400000; size = size * 3 + 1) {
    unsigned char* const theirs = library->allocate(size);
    unsigned char* const ours = malloc(size);
    check(theirs != NULL && ours != NULL && theirs != ours, "no memory");
    memset(theirs, 1, size);
    memset(ours, 2, size);
    check(theirs[size - 1] == 1 && ours[size - 1] == 2, "blocks overlap");
    unsigned char* const moved = realloc(theirs, size * 2);
    if (moved == NULL) {
      check(theirs[size - 1] == 1, "a block that was refused has changed");
      library->release(theirs);
    } else {
      check(moved[size - 1] == 1, "realloc lost a byte");
      free(moved);
    }
    free(ours);
    free(library->allocate(size));
  }
}

static void* use_both(void* library) {
  for (int i = 0; i < 20; ++i)
    cross(library);
  check(((struct library*)library)->damage() == 0, "a block of the library changed");
  return NULL;
}

int main(int count, char** arguments) {
  if (count != 2) {
    fputs("usage: namespaces LIBRARY\n", stderr);
    return 2;
  }
  library_path = arguments[1];
  for (int round = 0; round < 3; ++round) {
    struct library library = open_library(LM_ID_NEWLM);
    use_both(&library);
    pthread_t thread;
    if (pthread_create(&thread, NULL, use_both, &library) != 0) return 1;
    pthread_join(thread, NULL);
    check(dlclose(library.handle) == 0, "not closed");
  }
  puts("both namespaces served");
  return faults != 0;
}
