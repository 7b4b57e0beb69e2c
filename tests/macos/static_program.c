/* A program that libsluice.a is linked into: what it and its constructor get from malloc is Sluice's, and what the rest
 * of the process gets comes from the zone. Ends with the number of what does not hold; run_test.py executes it, and
 * also calls its functions one by one. */
#include <malloc/malloc.h>
#include <sluice/sluice.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

void system_release(void* block); /* libSystem's own free(), as another image calls it (system.c) */
void* system_allocate(size_t size);

/* The tests call them all; the linker leaves out what nobody refers to. */
void vfree(void*);
__attribute__((used)) static void* const family[] = {malloc,
                                                     calloc,
                                                     free,
                                                     vfree,
                                                     realloc,
                                                     reallocf,
                                                     valloc,
                                                     aligned_alloc,
                                                     posix_memalign,
                                                     malloc_size,
                                                     malloc_good_size,
                                                     malloc_type_malloc,
                                                     malloc_type_calloc,
                                                     malloc_type_free,
                                                     malloc_type_realloc,
                                                     malloc_type_valloc,
                                                     malloc_type_aligned_alloc,
                                                     malloc_type_posix_memalign,
                                                     sluice_frame_chunk_get,
                                                     sluice_frame_chunk_put,
                                                     sluice_idle};

static int early;

/* May run before the constructor of the library. */
__attribute__((constructor)) static void begin(void) {
  char* block = malloc(100);
  if (block == NULL) return;
  memset(block, 'e', 100);
  early = malloc_zone_from_ptr(block) != NULL;
  system_release(block);
}

#define EXPECT(number, holds) \
  if (!(holds)) return number

int main(void) {
  EXPECT(1, early);
  EXPECT(2, sluice_present() && strcmp(sluice_version(), SLUICE_VERSION) == 0);

  void* block = malloc(1000);
  sluice_stats stats;
  EXPECT(3, block != NULL && sluice_stats_get(&stats, sizeof stats) == 0);
  EXPECT(4, stats.live_bytes >= 1000);
  system_release(block);

  char* others = system_allocate(50);
  EXPECT(5, others != NULL && malloc_size(others) >= 50);
  memset(others, 'o', 50);
  others = realloc(others, 5000);
  EXPECT(6, others != NULL && others[49] == 'o');
  free(others);

  sluice_scope scope;
  EXPECT(7, sluice_scope_enter(&scope, SLUICE_ROUTE) == 0);
  char* inside = malloc(64);
  char* next = malloc(64);
  EXPECT(8, next - inside == 80);
  free(next);
  free(inside);
  sluice_scope_leave(&scope);

  uint64_t sum = 0;
  for (int i = 0; i < 20000; ++i) {
    uint64_t* number = calloc(1, 8 + (size_t)i % 3000);
    EXPECT(9, number != NULL && *number == 0);
    *number = (uint64_t)i;
    sum += *number;
    free(number);
  }
  EXPECT(10, sum == 199990000);
  return 0;
}
