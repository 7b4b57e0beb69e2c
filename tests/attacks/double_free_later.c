/* Frees a block again after others were freed. */
#include "attack.h"

int main(void) {
  void* blocks[12];
  for (int i = 0; i < 12; ++i)
    blocks[i] = hidden(malloc(40));
  for (int i = 0; i < 12; ++i)
    free(blocks[i]);
  free(hidden(blocks[3]));
  go_on(40);
  return 0;
}
