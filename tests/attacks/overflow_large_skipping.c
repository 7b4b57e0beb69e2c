/* Writes some way behind a large block, and nothing right behind it: an index that was not checked. */
#include <unistd.h>

#include "attack.h"

int main(void) {
  const size_t size = 200000;
  char* image = hidden(malloc(size));
  memset(image, 'i', size);
  image[size + (size_t)sysconf(_SC_PAGESIZE) - 1000] = 'A';
  free(image);
  go_on(100);
  return 0;
}
