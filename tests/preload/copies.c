/* Loses 10 blocks, and calls a function that allocates and frees 1000, which may lie in a library. */
#include <stdio.h>
#include <stdlib.h>

extern void allocate_often(void);

static void* volatile block;

__attribute__((noinline)) static void lose_blocks(void) {
  for (size_t i = 0; i < 10; ++i)
    block = malloc(1000 + i);
  block = NULL;
}

int main(void) {
  lose_blocks();
  allocate_often();
  volatile char rest[8192]; /* what is left of pointers on the stack */
  for (size_t i = 0; i < sizeof rest; ++i)
    rest[i] = 0;
  static const char done[] = "done\n";
  return fwrite(done, 1, sizeof done - 1, stdout) == sizeof done - 1 ? 0 : 1;
}
