/* Allocates a buffer, reads what the last user of the memory left at its beginning. */
#include "attack.h"

int main(void) {
  const size_t size = 100000;
  for (int i = 0; i < 40; ++i) {
    char* secret = hidden(malloc(size));
    memset(secret, 0, size);
    strcpy(secret + 24, "swordfish");
    free(secret);
  }
  for (int i = 0; i < 200; ++i) {
    char* fresh = hidden(malloc(size));
    if (memcmp(fresh + 24, "swordfish", 9) == 0) return 0;
  }
  return harmless;
}
