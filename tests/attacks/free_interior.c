/* Frees an address inside a block. */
#include "attack.h"

int main(void) {
  char* block = hidden(malloc(96));
  memset(block, 'b', 96);
  free(hidden(block + 16));
  go_on(96);
  return 0;
}
