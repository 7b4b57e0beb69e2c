/* A program whose allocations profile_test.py knows: each function site_… has so many blocks of one size, and the calls
 * that lead to it are main, then what stands in the table there. Compiled without the compiler's making jumps of calls.
 */
#include <pthread.h>
#include <stdlib.h>

#define SITE __attribute__((noinline, visibility("default")))

static void* volatile kept[2000];
static unsigned kept_count;

static void keep(void* block) {
  if (block == NULL) exit(1);
  kept[kept_count++] = block;
}

SITE void site_small(void) {
  keep(malloc(100));
}
SITE void site_zeroed(void) {
  keep(calloc(3, 100));
}
SITE void site_large(void) {
  keep(malloc(300000));
}
SITE void site_aligned(void) {
  void* block = NULL;
  (void)posix_memalign(&block, 64, 640);
  keep(block);
}
SITE void site_freed(void) {
  void* volatile block = malloc(200);
  free(block);
}
SITE void site_grown(void) {
  void* volatile block = malloc(10);
  for (size_t size = 20; size <= 655360; size *= 2)
    block = realloc(block, size);
  keep(block);
}
SITE void site_of_thread(void) {
  keep(malloc(50));
}

SITE void inner(void (*site)(void)) {
  site();
}
SITE void outer(void (*site)(void), unsigned count) {
  for (unsigned i = 0; i < count; ++i)
    inner(site);
}

SITE void* run_thread(void* unused) {
  outer(site_of_thread, 40);
  return unused;
}

int main(void) {
  outer(site_small, 1000);
  outer(site_zeroed, 100);
  outer(site_large, 20);
  outer(site_aligned, 100);
  outer(site_freed, 500);
  site_grown();
  pthread_t thread;
  if (pthread_create(&thread, NULL, run_thread, NULL) == 0) (void)pthread_join(thread, NULL);
  return 0;
}
