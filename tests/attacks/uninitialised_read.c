/* Allocates, reads what the last user of the memory left there. */
#include "attack.h"

int main(void) {
  for (int i = 0; i < 100; ++i) {
    char* secret = hidden(malloc(64));
    memset(secret, 0, 64);
    strcpy(secret + 24, "swordfish");
    free(secret);
  }
  for (int i = 0; i < 2000; ++i) {
    char* fresh = hidden(malloc(64));
    if (memcmp(fresh + 24, "swordfish", 9) == 0) return 0;
  }
  return harmless;
}
