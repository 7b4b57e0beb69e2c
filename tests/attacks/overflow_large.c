/* Writes a page behind a block of some megabytes. */
#include "attack.h"

int main(void) {
  const size_t size = 3 << 20;
  char* image = hidden(malloc(size));
  memset(image + size - 100, 'A', 100 + 4096);
  free(image);
  go_on(100);
  return 0;
}
