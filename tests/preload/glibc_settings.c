/* What programs of glibc's older days ask of its malloc: hooks that are gone, parameters, and the names that were never
 * official. Ends with status 0 when nothing of it disturbs the heap. */
#include <dlfcn.h>
#include <malloc.h>
#include <mcheck.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int faults;

static void check(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "glibc_settings: %s\n", what);
  ++faults;
}

static void use_the_heap(void) {
  static unsigned char* blocks[1000];
  for (size_t i = 0; i < 1000; ++i) {
    blocks[i] = calloc(i, 70);
    check(blocks[i] != NULL && (i == 0 || blocks[i][i * 70 - 1] == 0), "calloc is not zero");
    memset(blocks[i], 1, i * 70);
  }
  for (size_t i = 0; i < 1000; ++i)
    free(blocks[i]);
}

int main(void) {
  /* A program that finds no hook sets none; that it finds ours would call for one. */
  for (const char* const* name = (const char* const[]){"__malloc_hook", "__free_hook", "__realloc_hook",
                                                       "__memalign_hook", "__malloc_initialize_hook", NULL};
       *name != NULL; ++name) {
    Dl_info where;
    void* const hook = dlsym(RTLD_DEFAULT, *name);
    check(hook == NULL || dladdr(hook, &where) == 0 || strstr(where.dli_fname, "sluice") == NULL, *name);
  }
  use_the_heap();
  for (int parameter = -20; parameter <= 20; ++parameter) {
    for (const int* value = (const int[]){0, 1, 255, 1 << 20, -1}; *value != -1; ++value) {
      const int answer = mallopt(parameter, *value);
      check(answer == 0 || answer == 1, "mallopt");
    }
  }
  check(mallopt(M_PERTURB, 0xaa) == 1, "M_PERTURB");
  use_the_heap();
  unsigned char* const block = malloc(100);
  memset(block, 5, 100);
  check(block[99] == 5, "malloc after M_PERTURB");
  free(block);
  mtrace();
  use_the_heap();
  muntrace();
  (void)mprobe(block);
  use_the_heap();
  puts("reached the end");
  return faults != 0;
}
