/* Frees an array of a function, to be given it as memory. */
#include "attack.h"

int main(void) {
  _Alignas(64) char local[1024] = "text";
  free(hidden(local + 64));
  return was_handed_out(local, sizeof local) ? 0 : harmless;
}
