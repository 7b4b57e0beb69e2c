/* Frees memory that came from the system, not from malloc, to be given it. */
#include <sys/mman.h>

#include "attack.h"

int main(void) {
  char* pages = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (pages == MAP_FAILED) return 1;
  memset(pages, 0x41, 65536);
  free(hidden(pages + 4096 + 64));
  return was_handed_out(pages, 65536) ? 0 : harmless;
}
