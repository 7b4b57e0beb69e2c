/* For static_links_test.py; C and C++. Prints where its functions lie, allocates at two sites, and does what it is
   told: "twice" frees a block twice. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
#define allocate(size) ::operator new(size)
#define release(block) ::operator delete(block)
#else
#define allocate(size) malloc(size)
#define release(block) free(block)
#endif
#define APART __attribute__((noinline))

enum { blocks = 300 };
static void* volatile kept[2 * blocks];

APART static void small_site(int i) {
  kept[2 * i] = allocate(3000);
  __asm__ volatile("");
}

APART static void large_site(int i) {
  kept[2 * i + 1] = allocate(9000);
  __asm__ volatile("");
}

APART static void last_free(int i) {
  release(kept[i]);
  __asm__ volatile("");
}

static void print_libraries(void) {
  char line[4096];
  FILE* const maps = fopen("/proc/self/maps", "r");
  if (maps == NULL) abort();
  while (fgets(line, sizeof line, maps) != NULL)
    if (strstr(line, ".so") != NULL) fputs(line, stdout);
  fclose(maps);
}

int main(int argc, char** argv) {
  printf("%p %p\n", (void*)small_site, (void*)last_free);
  fflush(stdout);
  for (int i = 0; i < blocks; ++i) {
    small_site(i);
    large_site(i);
  }
  if (argc > 1 && strcmp(argv[1], "twice") == 0) last_free(0);
  if (argc > 1 && strcmp(argv[1], "libraries") == 0) print_libraries();
  last_free(0);
  return 7;
}
