/* Writes in front of a block. */
#include "attack.h"

int main(void) {
  char* before = hidden(malloc(48));
  char* text = hidden(malloc(48));
  memset(before, 'b', 48);
  memset(text, 't', 48);
  for (int i = 1; i <= 16; ++i)
    text[-i] = 'A';
  free(text);
  free(before);
  go_on(48);
  return 0;
}
