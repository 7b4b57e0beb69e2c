/* A library that allocates for its caller and is closed then, for profile_test.py. */
#include <stdlib.h>

__attribute__((noinline)) void* allocate(size_t size) {
  void* volatile block = malloc(size);
  return block;
}
