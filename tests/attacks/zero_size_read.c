/* Reads from a block of no bytes what the last user of the memory left there. */
#include "attack.h"

int main(void) {
  for (int i = 0; i < 100; ++i) {
    char* secret = hidden(malloc(16));
    memset(secret, 's', 16);
    free(secret);
  }
  volatile char* items = hidden(malloc(0));
  if (items == NULL) return harmless;
  volatile char sum = 0;
  for (int i = 0; i < 16; ++i)
    sum += items[i];
  return 0;
}
