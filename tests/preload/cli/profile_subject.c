// A program that says where its code lies: a return address in a function that has another one inlined, and its
// mappings. The lines are told to the test by what follows "line:".
#include <stdint.h>
#include <stdio.h>

__attribute__((noinline)) uintptr_t here(void) {
  return (uintptr_t)__builtin_return_address(0) - 1;
}

static volatile uintptr_t last;

static inline __attribute__((always_inline)) void inlined_function(void) {
  last = here();  // line:inner
}

__attribute__((noinline)) uintptr_t outer_function(void) {
  inlined_function();  // line:outer
  return last;
}

int main(void) {
  printf("address %llx\n", (unsigned long long)outer_function());
  FILE* maps = fopen("/proc/self/maps", "r");
  if (maps == NULL) return 1;
  for (int c; (c = fgetc(maps)) != EOF;)
    putchar(c);
  return 0;
}
