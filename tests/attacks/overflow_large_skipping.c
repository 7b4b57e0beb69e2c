/* Writes some pages behind a large block, and nothing right behind it: an index that was not checked. */
#include "attack.h"

int main(void) {
  const size_t size = 200000;
  char* image = hidden(malloc(size));
  memset(image, 'i', size);
  image[size + 12000] = 'A';
  free(image);
  go_on(100);
  return 0;
}
