/* Writes one byte behind a block: a string's end that was forgotten. */
#include "attack.h"

int main(void) {
  char* name = hidden(malloc(24));
  memset(name, 'n', 24);
  name[24] = '\0';
  free(name);
  go_on(24);
  return 0;
}
