/* Reads a secret out of the middle of a large block that was freed. */
#include "attack.h"

int main(void) {
  const size_t size = 100000;
  char* secret = hidden(malloc(size));
  memset(secret, '.', size);
  strcpy(secret + size / 2, "the password is swordfish");
  free(secret);
  return memcmp(hidden(secret + size / 2), "the password is swordfish", 25) == 0 ? 0 : harmless;
}
