/* Reads a secret out of a block that was freed. */
#include "attack.h"

int main(void) {
  char* secret = hidden(malloc(64));
  strcpy(secret, "................the password is swordfish");
  free(secret);
  return memcmp(hidden(secret + 16), "the password is swordfish", 25) == 0 ? 0 : harmless;
}
