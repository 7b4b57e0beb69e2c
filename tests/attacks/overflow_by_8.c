/* Writes a word behind an array. */
#include "attack.h"

int main(void) {
  uint64_t* numbers = hidden(malloc(10 * sizeof *numbers));
  for (int i = 0; i <= 10; ++i)
    numbers[i] = 0x4141414141414141u;
  free(numbers);
  go_on(10 * sizeof *numbers);
  return 0;
}
