/* What copies.c calls. */
#include <stdlib.h>

extern void allocate_often(void);

__attribute__((visibility("default"))) void allocate_often(void) {
  for (int i = 0; i < 1000; ++i) {
    void* volatile block = malloc(100);
    free(block);
  }
}
