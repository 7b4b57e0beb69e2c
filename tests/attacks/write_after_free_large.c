/* Writes into a large block that was freed. */
#include "attack.h"

int main(void) {
  const size_t size = 2 << 20;
  char* frame = hidden(malloc(size));
  memset(frame, 'f', size);
  free(frame);
  frame = hidden(frame);
  frame[size / 2] = 'A';
  return 0;
}
