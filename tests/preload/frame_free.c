/* Memory of a frame is given to free or realloc. Usage: frame_free WHAT, of free, inside, far, realloc. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sluice/frame.h"

static void* volatile hidden;

int main(int argc, char** argv) {
  if (argc != 2) {
    fputs("usage: frame_free WHAT\n", stderr);
    return 2;
  }
  const sluice_mark mark = sluice_frame_mark();
  char* const small = sluice_frame_alloc(100, 16);
  char* const large = sluice_frame_alloc(700000, 16); /* of several units */
  memset(small, 7, 100);
  memset(large, 8, 700000);
  hidden = strcmp(argv[1], "far") == 0 ? large + 400000 : strcmp(argv[1], "inside") == 0 ? small + 48 : small;
  if (strcmp(argv[1], "realloc") == 0) {
    errno = 0;
    if (realloc(hidden, 500) != NULL || errno != ENOMEM) return 1;
  } else {
    free(hidden);
  }
  for (int i = 0; i < 100; ++i)
    free(malloc(100));
  const int whole = small[99] == 7 && large[699999] == 8;
  sluice_frame_rewind(mark);
  puts(whole ? "the frame is whole" : "the frame was changed");
  return 0;
}
