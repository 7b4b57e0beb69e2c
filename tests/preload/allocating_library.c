/* A library that allocates when it is loaded and frees when it is unloaded. Test programs load and unload it
 * again and again, with its own binding of malloc (RTLD_DEEPBIND) or with that of the program. */
#include <stdlib.h>
#include <string.h>

enum { COUNT = 300 };

static void* kept[COUNT];

__attribute__((constructor)) static void load(void) {
  for (int i = 0; i < COUNT; ++i) {
    kept[i] = malloc((size_t)i * 17);
    if (kept[i] != NULL) memset(kept[i], i, (size_t)i * 17);
  }
}

__attribute__((destructor)) static void unload(void) {
  for (int i = 0; i < COUNT; ++i)
    free(kept[i]);
}

/* Returns: how many of the library's blocks no longer hold what its constructor wrote. */
int library_damage(void) {
  int damaged = 0;
  for (int i = 0; i < COUNT; ++i) {
    const unsigned char* bytes = kept[i];
    for (int at = 0; at < i * 17; ++at) {
      if (bytes[at] != (unsigned char)i) {
        ++damaged;
        break;
      }
    }
  }
  return damaged;
}

void* library_allocate(size_t size) {
  return malloc(size);
}
void library_release(void* block) {
  free(block);
}
