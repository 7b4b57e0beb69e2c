/* A program whose limits change as it runs: does what its argument says, prints what came of it, and ends with status 0
 * if all of it worked. changed_limits_test.py runs it; open it when a limit on address space costs a program more than
 * it must.
 *
 * Usage: changed_limits raised             raises the soft limit on address space and asks for 2 GiB
 *        changed_limits freed MEBIBYTES    under that limit: fills the heap, frees all, asks for half of the limit
 *        changed_limits between MEBIBYTES  likewise, frees every other block and asks for a quarter of the limit
 *        changed_limits locked             locks all memory, frees blocks: no page is made anew for that
 *        changed_limits huge               asks for less and for more than the machine has in every way
 *        changed_limits ended MEBIBYTES    threads fill the heap, free all and end or wait; main asks for half of it */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

enum { mebibyte = 1 << 20, most_blocks = 1 << 20 };
static unsigned char* blocks[most_blocks];

static void fail(const char* what) {
  printf("%s\n", what);
  exit(1);
}

static void limit_address_space(size_t bytes) {
  struct rlimit limit;
  getrlimit(RLIMIT_AS, &limit);
  limit.rlim_cur = bytes;
  if (setrlimit(RLIMIT_AS, &limit) != 0) fail("no limit can be set");
}

/* Takes blocks of 16 bytes to 1 KiB, or of one size, until there are no more. Returns: how many. */
static size_t fill(size_t size) {
  size_t count = 0;
  for (unsigned state = 1; count < most_blocks; ++count) {
    state = state * 1103515245 + 12345;
    const size_t bytes = size != 0 ? size : 16 + (state >> 16) % 1009;
    blocks[count] = malloc(bytes);
    if (blocks[count] == NULL) break;
    memset(blocks[count], 'x', bytes);
  }
  if (count < most_blocks && errno != ENOMEM) fail("null without ENOMEM");
  return count;
}

static void get(size_t bytes) {
  unsigned char* const block = calloc(1, bytes);
  if (block == NULL) fail("ENOMEM");
  if (block[0] != 0 || block[bytes - 1] != 0) fail("calloc is not zero");
  memset(block, 'y', bytes);
  free(block);
}

static void raise_limit(void) {
  free(malloc(100000));
  struct rlimit limit;
  getrlimit(RLIMIT_AS, &limit);
  limit_address_space(limit.rlim_max);
  unsigned char* const block = malloc((size_t)2 << 30);
  if (block == NULL) fail("ENOMEM");
  block[0] = block[((size_t)2 << 30) - 1] = 1;
}

/* Frees in no order. */
static void free_all(size_t count) {
  size_t at = 0;
  for (size_t i = 0; i < count; ++i) {
    at = (at + 7919) % count;
    while (blocks[at] == NULL)
      at = (at + 1) % count;
    free(blocks[at]);
    blocks[at] = NULL;
  }
}

static void get_after_free(size_t limit) {
  limit_address_space(limit);
  free_all(fill(0));
  get(limit / 2);
  free_all(fill(100000));
  get(limit / 2);
}

static void get_between(size_t limit) {
  limit_address_space(limit);
  const size_t count = fill(3 * mebibyte);
  for (size_t i = 0; i < count; i += 2)
    free(blocks[i]);
  get(limit / 4);
  for (size_t i = 1; i < count; i += 2) {
    if (blocks[i][0] != 'x' || blocks[i][3 * mebibyte - 1] != 'x') fail("a block changed");
    free(blocks[i]);
  }
  get(limit / 2);
}

static sem_t done, go_on;

static void* use_a_thread(void* waits) {
  enum { count = 4000 };
  void** const mine = malloc(count * sizeof *mine);
  for (int i = 0; mine != NULL && i < count; ++i)
    mine[i] = malloc(1000);
  for (int i = 0; mine != NULL && i < count; ++i)
    free(mine[i]);
  free(mine);
  sem_post(&done);
  while (waits != NULL && sem_wait(&go_on) != 0)
    continue;
  return NULL;
}

static void get_after_threads(size_t limit) {
  enum { count = 16 };
  pthread_t threads[count];
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, 256 << 10);
  limit_address_space(limit);
  for (int i = 0; i < count; ++i)
    if (pthread_create(&threads[i], &small, use_a_thread, i % 4 == 0 ? &go_on : NULL) != 0) fail("no thread");
  for (int i = 0; i < count; ++i)
    sem_wait(&done);
  for (int i = 0; i < count; ++i)
    if (i % 4 != 0) pthread_join(threads[i], NULL);
  free_all(fill(0));
  get(limit / 2);
  for (int i = 0; i < count; i += 4)
    sem_post(&go_on);
  for (int i = 0; i < count; i += 4)
    pthread_join(threads[i], NULL);
}

static long faults(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return used.ru_minflt;
}

static void free_locked(void) {
  enum { count = 400 };
  if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) fail("not permitted");
  for (int i = 0; i < count; ++i)
    if ((blocks[i] = malloc(500000)) != NULL) memset(blocks[i], 1, 500000);
  const long before = faults();
  for (int i = 0; i < count; ++i)
    free(blocks[i]);
  if (faults() > before + 200) fail("pages were made anew");
}

/* What the system says to a program that maps so much. */
static int is_promised(size_t bytes) {
  void* const mapped = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return 0;
  munmap(mapped, bytes);
  return 1;
}

static void* new_block(size_t bytes) {
  void* (*make)(size_t, const void*) = NULL;
  *(void**)&make = dlsym(RTLD_DEFAULT, "_ZnwmRKSt9nothrow_t");
  return make != NULL ? make(bytes, "") : malloc(bytes);
}

static void* new_aligned_block(size_t bytes) {
  void* (*make)(size_t, size_t, const void*) = NULL;
  *(void**)&make = dlsym(RTLD_DEFAULT, "_ZnwmSt11align_val_tRKSt9nothrow_t");
  return make != NULL ? make(bytes, 128, "") : malloc(bytes);
}

static void* cleared(size_t bytes) {
  return calloc(2, bytes / 2);
}
static void* aligned(size_t bytes) {
  return aligned_alloc(4096, bytes);
}
static void* in_old_way(size_t bytes) {
  return memalign(2 * mebibyte, bytes);
}

static void* by_posix(size_t bytes) {
  void* block = NULL;
  const int error = posix_memalign(&block, 64, bytes);
  errno = error;
  return error == 0 ? block : NULL;
}

/* A block that grows and, where it cannot, stays as it is. */
static void* grown(size_t from, size_t bytes) {
  char* const block = malloc(from);
  block[0] = block[from - 1] = 'x';
  char* const larger = realloc(block, bytes);
  const char* const left = larger != NULL ? larger : block;
  if (left[0] != 'x' || left[from - 1] != 'x') fail("contents are lost");
  if (larger == NULL) free(block);
  return larger;
}

static void* grown_from_small(size_t bytes) {
  return grown(100, bytes);
}
static void* grown_from_pages(size_t bytes) {
  return grown(200000, bytes);
}
static void* grown_from_many_pages(size_t bytes) {
  return grown(4 * mebibyte, bytes);
}

/* Something lies behind the block, so that it has to move. */
static void* moved(size_t bytes) {
  char* const block = malloc(4 * mebibyte);
  void* const behind = malloc(4 * mebibyte);
  char* const larger = realloc(block, bytes);
  free(behind);
  if (larger == NULL) free(block);
  return larger;
}

static void get_huge(void) {
  static void* (*const ways[])(size_t) = {malloc,
                                          cleared,
                                          aligned,
                                          in_old_way,
                                          by_posix,
                                          valloc,
                                          new_block,
                                          new_aligned_block,
                                          grown_from_small,
                                          grown_from_pages,
                                          grown_from_many_pages,
                                          moved};
  const size_t gibibyte = (size_t)1024 * mebibyte;
  const size_t window = 400 * gibibyte; /* more may not fit, whatever the system says */
  struct sysinfo memory;
  sysinfo(&memory);
  const size_t all = (memory.totalram + memory.totalswap) * memory.mem_unit / 4096 * 4096;
  const size_t sizes[] = {gibibyte,       all / 8192 * 4096, all > 2 * gibibyte ? all - gibibyte : gibibyte,
                          all + gibibyte, 2 * all,           512 * gibibyte};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; ++i) {
    const int promised = is_promised(sizes[i]);
    if (promised && (sizes[i] > window || !is_promised(sizes[i] + gibibyte / 2))) continue;
    for (size_t way = 0; way < sizeof ways / sizeof *ways; ++way) {
      errno = 0;
      void* const block = ways[way](sizes[i]);
      if (block != NULL && !promised) fail("got what the system would not promise");
      if (block == NULL && promised) fail("refused what the system would promise");
      if (block == NULL && errno != ENOMEM) fail("refused without ENOMEM");
      free(block);
    }
  }
}

int main(int count, char** arguments) {
  const size_t limit = count == 3 ? strtoul(arguments[2], NULL, 10) * mebibyte : 0;
  sem_init(&done, 0, 0);
  sem_init(&go_on, 0, 0);
  if (count == 2 && strcmp(arguments[1], "raised") == 0)
    raise_limit();
  else if (count == 2 && strcmp(arguments[1], "locked") == 0)
    free_locked();
  else if (count == 2 && strcmp(arguments[1], "huge") == 0)
    get_huge();
  else if (limit != 0 && strcmp(arguments[1], "freed") == 0)
    get_after_free(limit);
  else if (limit != 0 && strcmp(arguments[1], "between") == 0)
    get_between(limit);
  else if (limit != 0 && strcmp(arguments[1], "ended") == 0)
    get_after_threads(limit);
  else
    fail("usage: changed_limits raised|locked|huge | freed|between|ended MEBIBYTES");
  puts("reached the end");
  return 0;
}
