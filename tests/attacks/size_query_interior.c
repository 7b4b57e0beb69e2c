/* Asks for the size of what lies inside a block. */
#include <malloc.h>

#include "attack.h"

int main(void) {
  uint64_t* block = hidden(malloc(200));
  for (int i = 0; i < 25; ++i)
    block[i] = 0x1001; /* what a header of a large block may look like */
  return malloc_usable_size(hidden(block + 4)) != 0 ? 0 : harmless;
}
