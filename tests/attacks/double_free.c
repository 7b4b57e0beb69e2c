/* Frees a block twice, one call after the other. */
#include "attack.h"

int main(void) {
  void* block = hidden(malloc(40));
  memset(block, 'b', 40);
  free(block);
  free(hidden(block));
  go_on(40);
  return 0;
}
