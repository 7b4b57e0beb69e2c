/* Copies far more than a block holds, over its neighbours and beyond. */
#include "attack.h"

int main(void) {
  char* line = hidden(malloc(100));
  memset(line, 'A', 300 * 1024);
  free(line);
  go_on(100);
  return 0;
}
