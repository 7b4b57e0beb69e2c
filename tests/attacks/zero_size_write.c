/* Writes to a block of no bytes: a length from outside was 0. */
#include "attack.h"

int main(void) {
  volatile char* items = hidden(malloc(0));
  if (items == NULL) return harmless;
  items[0] = 'A';
  go_on(16);
  return 0;
}
