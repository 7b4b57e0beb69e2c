/* A program that writes behind a block and loses another one, for tools that find such. It ends with status 0 where
 * nobody looks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void* volatile sink;

__attribute__((noinline)) static void write_behind_a_block(void) {
  sink = malloc(40);
  ((char volatile*)sink)[40] = 1;
  free(sink);
}

__attribute__((noinline)) static void lose_a_block(void) {
  sink = malloc(77);
  sink = NULL;
}

int main(void) {
  write_behind_a_block();
  lose_a_block();
  for (size_t size = 1; size < 300000; size += size / 2 + 1) {
    void* block = calloc(size, 1);
    block = realloc(block, size * 2);
    if (block == NULL) return 1;
    memset(block, 1, size * 2);
    free(block);
  }
  puts("reached the end");
  return 0;
}
