/* Writes a word behind a large array that is a multiple of a page, and never frees it. */
#include "attack.h"

int main(void) {
  enum { count = 32768 };
  volatile uint64_t* numbers = hidden(malloc(count * sizeof *numbers));
  numbers[count] = 0x4141414141414141u;
  go_on(40);
  return 0;
}
