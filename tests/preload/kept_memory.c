/* Does what its arguments say, one after the other, and prints what came of it: which memory stays with a program that
 * has said so by mallopt, or has locked all of it. kept_memory_test.py runs it; open it when a program's mallopt or
 * mlockall does not do what it does without the preload.
 *
 *   trim=BYTES, mmap=BYTES, mmap_max=COUNT   mallopt with M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_MMAP_MAX
 *   free=BYTES   fills 96 MiB with blocks of so many bytes and frees them: how many MiB more are resident than before
 *   cycle=BYTES  takes and frees 14 such blocks 20,000 times, and fills them the last time
 *   trim         the same number, of before the last `free` or `cycle`, after malloc_trim
 *   trim_of_another   likewise, after malloc_trim in another thread, while the first one waits
 *   lock=BYTES   as a user without rights that may lock so much: locks all memory, now and later
 *   fill=BYTES   takes blocks of so many bytes until there are no more, 1000 at most: how many it got */
#include <grp.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { nobody = 65534, all_bytes = 96 << 20, most_blocks = all_bytes / 500 };
static void* blocks[most_blocks];
static long before;

static long resident_kib(void) {
  long pages = 0;
  FILE* const file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1) exit(3);
  fclose(file);
  return pages * (sysconf(_SC_PAGESIZE) >> 10);
}

/* A few more calls of each kind: whatever the heap has put off comes due. */
static void use_the_heap_a_little(void) {
  for (int i = 0; i < 3000; ++i)
    for (size_t size = 40; size < 200000; size *= 50)
      free(memset(malloc(size), 2, size));
}

static void print_resident(void) {
  printf("%ld\n", (resident_kib() - before) >> 10);
}

static void fill_and_free(size_t size) {
  const size_t count = all_bytes / size;
  use_the_heap_a_little();
  memset(blocks, 0, sizeof blocks);
  before = resident_kib();
  for (size_t i = 0; i < count; ++i)
    blocks[i] = memset(malloc(size), 1, size);
  for (size_t i = 0; i < count; ++i)
    free(blocks[i]);
  use_the_heap_a_little();
  print_resident();
}

static void cycle(size_t size) {
  enum { live = 14, rounds = 20000 };
  use_the_heap_a_little();
  before = resident_kib();
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < live; ++i) {
      blocks[i] = malloc(size);
      if (round == rounds - 1) memset(blocks[i], 1, size);
    }
    for (int i = 0; i < live; ++i)
      free(blocks[i]);
  }
}

static void* trim(void* unused) {
  malloc_trim(0);
  print_resident();
  return unused;
}

static void trim_in_another_thread(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, trim, NULL) != 0 || pthread_join(thread, NULL) != 0) exit(3);
}

static void lock(size_t bytes) {
  const struct rlimit limit = {bytes, bytes};
  if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0) puts("no limit");
  if (geteuid() == 0 && (setgroups(0, NULL) != 0 || setgid(nobody) != 0 || setuid(nobody) != 0)) puts("still root");
  puts(mlockall(MCL_CURRENT | MCL_FUTURE) == 0 ? "locked" : "refused");
}

static void fill(size_t size) {
  int count = 0;
  while (count < 1000 && malloc(size) != NULL)
    ++count;
  printf("%d\n", count);
}

int main(int count, char** arguments) {
  for (int i = 1; i < count; ++i) {
    const char* const equals = strchr(arguments[i], '=');
    const long value = equals == NULL ? 0 : strtol(equals + 1, NULL, 10);
    const size_t length = equals == NULL ? strlen(arguments[i]) : (size_t)(equals - arguments[i]);
    const char* const names[] = {"trim", "mmap", "mmap_max", "free", "lock", "fill", "cycle"};
    size_t name = 0;
    while (name < 7 && (strlen(names[name]) != length || strncmp(names[name], arguments[i], length) != 0))
      ++name;
    const int parameters[] = {M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_MMAP_MAX};
    if (name == 0 && equals == NULL) {
      (void)trim(NULL);
    } else if (strcmp(arguments[i], "trim_of_another") == 0) {
      trim_in_another_thread();
    } else if (name < 3) {
      if (mallopt(parameters[name], (int)value) != 1) return 2;
    } else if (name < 7) {
      void (*const act[])(size_t) = {fill_and_free, lock, fill, cycle};
      act[name - 3]((size_t)value);
    } else {
      return 2;
    }
  }
  return 0;
}
