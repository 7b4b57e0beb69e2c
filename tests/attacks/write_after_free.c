/* Writes into a block that was freed, not where a free list has its link. */
#include "attack.h"

int main(void) {
  uint64_t* object = hidden(malloc(64));
  memset(object, 0, 64);
  free(object);
  object = hidden(object);
  object[4] = 0x4141414141414141u;
  go_on(64);
  return 0;
}
