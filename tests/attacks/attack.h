/* What the attack programs share. Each NAME.c makes one mistake with the heap, as programs do, and ends with status 0
 * when nobody noticed; run_attacks.py runs them on several mallocs and says who did. Open it to write another one. */
#pragma once

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { harmless = 10 }; /* the mistake was made, and what it was to reveal or to change was not to be had */

/* Hides where a pointer comes from, so that the compiler neither warns nor drops the mistake. */
static inline void* hidden(void* pointer) {
  void* volatile copy = pointer;
  return copy;
}

/* Gives a malloc that looks at freed blocks later every opportunity to do so. */
static inline void go_on(size_t size) {
  enum { count = 4000 };
  static void* blocks[count];
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < count; ++i) {
      blocks[i] = malloc(size);
      if (blocks[i] != NULL) memset(blocks[i], 'g', size);
    }
    for (int i = 0; i < count; ++i)
      free(blocks[i]);
  }
}

/* Whether malloc gives out memory of its own choosing in the bytes given. */
static inline int was_handed_out(char* from, size_t bytes) {
  for (size_t size = 16; size <= 512; size += 16) {
    for (int i = 0; i < 20; ++i) {
      char* got = malloc(size);
      if (got >= from && got < from + bytes) return 1;
    }
  }
  return 0;
}
