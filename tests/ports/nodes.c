// Where the memory lies that threads on two memory nodes (NUMA) get from malloc. Run on a machine with processor 0 on
// the first and processor 1 on the second; open it when memory of such a machine is far from who uses it. nodes
// PATTERN: prints how many pages of the blocks lie on the other node, of how many, and the peak of resident memory in
// KiB.
//   turns    two threads, one after the other again and again, each of which frees all before the other goes on
//   ended    as that, with a new thread each time
//   handed   each allocates what the other has freed: what one filled, the other frees
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { small_blocks = 40000, large_blocks = 60, large_bytes = 200000, rounds = 12 };
#define PAGE ((uintptr_t)4096)

struct set {
  char* small[small_blocks];
  char* large[large_blocks];
};
static struct set sets[2];
static pthread_barrier_t turn;
static unsigned long far_pages, all_pages;
static int handed;

static void run_on(int processor) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  if (pthread_setaffinity_np(pthread_self(), sizeof set, &set) != 0) {
    fputs("nodes: there is no second processor\n", stderr);
    exit(2);
  }
}

static int by_address(const void* a, const void* b) {
  uintptr_t left = *(const uintptr_t*)a, right = *(const uintptr_t*)b;
  return (left > right) - (left < right);
}

// Counts the pages in which the set's blocks begin, and all pages of its large ones.
static void look(struct set* s, int node) {
  static uintptr_t pages[small_blocks + large_blocks * (large_bytes / PAGE + 2)];
  static int places[sizeof pages / sizeof pages[0]];
  size_t n = 0, different = 0;
  for (int i = 0; i < small_blocks; ++i)
    pages[n++] = (uintptr_t)s->small[i] & -PAGE;
  for (int i = 0; i < large_blocks; ++i)
    for (uintptr_t at = (uintptr_t)s->large[i] & -PAGE; at < (uintptr_t)s->large[i] + large_bytes; at += PAGE)
      pages[n++] = at;
  qsort(pages, n, sizeof pages[0], by_address);
  for (size_t i = 0; i < n; ++i)
    if (different == 0 || pages[different - 1] != pages[i]) pages[different++] = pages[i];
  if (syscall(SYS_move_pages, 0, different, pages, NULL, places, 0) != 0) return;
  for (size_t i = 0; i < different; ++i) {
    if (places[i] < 0) continue;
    ++all_pages;
    far_pages += places[i] != node;
  }
}

static void fill(struct set* s, unsigned round) {
  for (int i = 0; i < small_blocks; ++i) {
    size_t bytes = 16 + (i * 37 + round * 11) % 800;
    memset(s->small[i] = malloc(bytes), 1, bytes);
  }
  for (int i = 0; i < large_blocks; ++i)
    memset(s->large[i] = malloc(large_bytes + i * 1000), 1, large_bytes);
}

static void clear(struct set* s) {
  for (int i = 0; i < small_blocks; ++i)
    free(s->small[i]);
  for (int i = 0; i < large_blocks; ++i)
    free(s->large[i]);
  memset(s, 0, sizeof *s);
}

static void* once(void* number) {
  int node = (int)(intptr_t)number;
  run_on(node);
  fill(&sets[node], 0);
  look(&sets[node], node);
  clear(&sets[node]);
  return NULL;
}

static void* in_turns(void* number) {
  int node = (int)(intptr_t)number;
  run_on(node);
  for (unsigned round = 0; round < rounds; ++round)
    for (int who = 0; who < 2; ++who) {
      pthread_barrier_wait(&turn);
      if (who != node) continue;
      struct set* own = &sets[node];
      if (handed && sets[!node].small[0] != NULL) clear(&sets[!node]);
      fill(own, round);
      look(own, node);
      if (!handed) clear(own);
    }
  return NULL;
}

int main(int argc, char** argv) {
  const char* pattern = argc == 2 ? argv[1] : "";
  handed = strcmp(pattern, "handed") == 0;
  if (!handed && strcmp(pattern, "turns") != 0 && strcmp(pattern, "ended") != 0) {
    fputs("usage: nodes turns|ended|handed\n", stderr);
    return 2;
  }
  pthread_barrier_init(&turn, NULL, 2);
  pthread_t threads[2];
  if (strcmp(pattern, "ended") == 0) {
    for (int i = 0; i < 2 * rounds; ++i) {
      if (pthread_create(&threads[0], NULL, once, (void*)(intptr_t)(i % 2)) != 0) return 2;
      pthread_join(threads[0], NULL);
    }
  } else {
    for (int i = 0; i < 2; ++i)
      if (pthread_create(&threads[i], NULL, in_turns, (void*)(intptr_t)i) != 0) return 2;
    for (int i = 0; i < 2; ++i)
      pthread_join(threads[i], NULL);
  }
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  printf("%lu of %lu, %ld\n", far_pages, all_pages, usage.ru_maxrss);
  return 0;
}
