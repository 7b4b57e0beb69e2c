/* Asks for the size of a block that was freed, to fill it. */
#include <malloc.h>

#include "attack.h"

int main(void) {
  char* block = hidden(malloc(200));
  memset(block, 'b', 200);
  free(block);
  return malloc_usable_size(hidden(block)) != 0 ? 0 : harmless;
}
