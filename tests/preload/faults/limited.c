/* A program within a limit: it uses as much memory as it may have, finds out by null where that ends, gives all back
 * and uses it again, with small and large blocks and on threads. Run by limits_test.py; open it when a limit on the
 * address space, or a container, leaves a program less than it should.
 *
 * Usage: limited fill MEBIBYTES: blocks of 1 MiB, of which only the ends are touched, until malloc fails, which it
 * must within that many; prints how many there were, the fewest of three rounds.
 *
 * Usage: limited use MEBIBYTES: that much, all touched, in blocks of many sizes, again and again; prints the resident
 * KiB at the end, when all has been freed.
 *
 * Usage: limited ask MEBIBYTES: one block of that size, untouched; prints "granted" or "refused".
 *
 * Ends with status 0 when all held, 1 and a line when not. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void fail(const char* what) {
  fprintf(stderr, "limited: %s\n", what);
  _exit(1);
}

struct link {
  struct link* next;
  size_t size;
};

/* Adds blocks until they hold `bytes`, or malloc fails. Returns: the bytes they hold. */
static size_t add(struct link** first, size_t size, size_t bytes, int touch) {
  size_t sum = 0;
  while (sum < bytes) {
    errno = 0;
    struct link* const block = malloc(size);
    if (block == NULL && errno != ENOMEM) fail("null without ENOMEM");
    if (block == NULL) break;
    if (touch) memset(block, (int)(size % 251), size);
    ((unsigned char*)block)[size - 1] = (unsigned char)(size % 251);
    block->next = *first;
    block->size = size;
    *first = block;
    sum += size;
  }
  return sum;
}

static void release(struct link** first, int touched) {
  while (*first != NULL) {
    struct link* const block = *first;
    const unsigned char* const bytes = (const unsigned char*)block;
    if (bytes[block->size - 1] != block->size % 251 ||
        (touched && bytes[block->size / 2] != block->size % 251 && block->size > 64))
      fail("a block changed");
    *first = block->next;
    free(block);
  }
}

static void* work_on_thread(void* megabytes) {
  struct link* blocks = NULL;
  (void)add(&blocks, 3000, *(const size_t*)megabytes << 16, 1); /* a sixteenth */
  release(&blocks, 1);
  return NULL;
}

static void use_threads(size_t megabytes) {
  for (int i = 0; i < 4; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, work_on_thread, &megabytes) != 0) fail("no thread");
    (void)pthread_join(thread, NULL);
  }
}

static void fill(size_t megabytes) {
  size_t fewest = (size_t)-1;
  for (int round = 0; round < 3; ++round) {
    struct link* blocks = NULL;
    const size_t sum = add(&blocks, 1 << 20, megabytes << 20, 0);
    if (sum >= megabytes << 20) fail("more than there can be");
    if (sum < fewest) fewest = sum;
    struct link* rest = NULL;
    (void)add(&rest, 20000, (size_t)-1, 0); /* to the very end */
    (void)add(&rest, 100, (size_t)-1, 0);
    release(&rest, 0);
    release(&blocks, 0);
  }
  printf("%zu\n", fewest >> 20);
}

static size_t resident_kilobytes(void) {
  unsigned long all = 0, resident = 0;
  FILE* const file = fopen("/proc/self/statm", "re");
  if (file == NULL || fscanf(file, "%lu %lu", &all, &resident) != 2) fail("no /proc");
  fclose(file);
  return resident * (size_t)sysconf(_SC_PAGESIZE) / 1024;
}

static void use(size_t megabytes) {
  static const size_t sizes[] = {32, 200, 1500, 30000, 70000, 1000000, 9000000};
  for (int i = 0; i < 14; ++i) {
    struct link* blocks = NULL;
    if (add(&blocks, sizes[i % 7], megabytes << 20, 1) < megabytes << 20) fail("less than there must be");
    release(&blocks, 1);
  }
  (void)malloc_trim(0);
  printf("%zu\n", resident_kilobytes());
}

static void ask(size_t megabytes) {
  errno = 0;
  char* const block = malloc(megabytes << 20);
  if (block == NULL && errno != ENOMEM) fail("null without ENOMEM");
  if (block != NULL) block[(megabytes << 20) - 1] = 1;
  puts(block != NULL ? "granted" : "refused");
  free(block);
}

int main(int count, char** arguments) {
  if (count != 3) fail("usage: limited fill|use|ask MEBIBYTES");
  const size_t megabytes = strtoul(arguments[2], NULL, 10);
  if (strcmp(arguments[1], "ask") == 0) {
    ask(megabytes);
    return 0;
  }
  use_threads(megabytes);
  if (strcmp(arguments[1], "fill") == 0)
    fill(megabytes);
  else
    use(megabytes);
  return 0;
}
