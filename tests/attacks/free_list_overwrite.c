/* Writes an address of its choice where a free list has its link, to be given memory there. */
#include "attack.h"

static _Alignas(64) char target[256] = "untouched";

int main(void) {
  void* guard = hidden(malloc(56));
  uint64_t* freed = hidden(malloc(56));
  void* other = hidden(malloc(56));
  free(other);
  free(freed);
  freed = hidden(freed);
  freed[0] = (uint64_t)(uintptr_t)(target + 64);
  const int hit = was_handed_out(target, sizeof target);
  free(guard);
  if (!hit) go_on(56);
  return hit ? 0 : harmless;
}
