/* Writes into the middle of a buffer of 256 KiB that was freed. */
#include "attack.h"

int main(void) {
  const size_t size = 256 << 10;
  volatile char* buffer = hidden(malloc(size));
  memset((void*)buffer, 'f', size);
  free((void*)buffer);
  buffer = hidden((void*)buffer);
  buffer[size / 4 + 1] = 'A';
  return 0;
}
