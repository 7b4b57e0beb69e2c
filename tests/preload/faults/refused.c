/* A C program that copes with every call of malloc's family that fails: what it holds stays whole, errno says ENOMEM,
 * and once memory is there again all it asks for is served. Run by faults_test.py under refuse_calls; open it when a
 * run says what was wrong.
 *
 * Usage: refused [strict]. In strict mode no allocation may fail from the start. Ends with status 0 when all held, 1
 * and a line when not. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "relief.h"

enum { cells = 96, rounds = 400, enough = 40 };

struct cell {
  unsigned char* data;
  size_t size;
  unsigned char seed;
};

struct table {
  struct cell cell[cells];
  uint64_t random;
  int strict;
  int refused; /* since the work began; after `enough` it is pointless to go on */
};

static void fail(const char* what) {
  fprintf(stderr, "refused: %s\n", what);
  _exit(1);
}

static uint64_t next(struct table* table, uint64_t limit) {
  table->random = table->random * 6364136223846793005u + 1442695040888963407u;
  return (table->random >> 33) % limit;
}

/* Small, middling and large blocks; some so large that their pages are moved by realloc. */
static size_t some_size(struct table* table) {
  const uint64_t kind = next(table, 100);
  if (kind < 60) return 1 + next(table, 600);
  if (kind < 85) return 1 + next(table, 60000);
  if (kind < 97) return 1 + next(table, 900000);
  return 1 + next(table, 6000000);
}

/* Every byte of small blocks is checked; of large ones each 509th. */
static size_t stride(size_t size) {
  return size <= 4096 ? 1 : 509;
}
static void fill(const struct cell* cell) {
  for (size_t i = 0; i < cell->size; i += stride(cell->size))
    cell->data[i] = (unsigned char)(cell->seed + i);
  if (cell->size != 0) cell->data[cell->size - 1] = (unsigned char)(cell->seed ^ 0x5a);
}
static int is_whole(const struct cell* cell, size_t bytes) {
  for (size_t i = 0; i < bytes && i + 1 < cell->size; i += stride(cell->size))
    if (cell->data[i] != (unsigned char)(cell->seed + i)) return 0;
  return bytes < cell->size || cell->size == 0 || cell->data[cell->size - 1] == (unsigned char)(cell->seed ^ 0x5a);
}

static void drop(struct cell* cell) {
  if (cell->data != NULL && !is_whole(cell, cell->size)) fail("a block changed while it was held");
  errno = 77;
  free(cell->data);
  if (errno != 77) fail("free changed errno");
  memset(cell, 0, sizeof *cell);
}

static void accept(struct table* table, struct cell* cell, void* data, size_t size, size_t alignment, int error) {
  if (data == NULL) {
    if (table->strict) fail("no memory though the system has it");
    if (error != ENOMEM) fail("null without ENOMEM");
    ++table->refused;
    return;
  }
  if ((uintptr_t)data % alignment != 0) fail("wrong alignment");
  if (malloc_usable_size(data) < size) fail("usable size is too small");
  cell->data = data;
  cell->size = size;
  cell->seed = (unsigned char)next(table, 256);
  fill(cell);
}

static void zeroed(struct table* table, struct cell* cell, size_t size) {
  errno = 0;
  unsigned char* const data = calloc(1, size);
  const int error = errno;
  for (size_t i = 0; data != NULL && i < size; ++i)
    if (data[i] != 0) fail("calloc: not zero");
  accept(table, cell, data, size, 16, error);
}

static void aligned(struct table* table, struct cell* cell, size_t size) {
  const size_t alignment = (size_t)16 << next(table, 14);
  void* data = cell;
  const int error = posix_memalign(&data, alignment, size);
  if (error != 0 && data != cell) fail("posix_memalign touched its result");
  accept(table, cell, error == 0 ? data : NULL, size, alignment, error);
}

static void resize(struct table* table, struct cell* cell, size_t size) {
  errno = 0;
  void* const data = realloc(cell->data, size);
  const int error = errno;
  if (data == NULL) {
    if (cell->data != NULL && !is_whole(cell, cell->size)) fail("a failed realloc touched its block");
    accept(table, cell, NULL, size, 16, error);
    return;
  }
  cell->data = data;
  if (!is_whole(cell, cell->size < size ? cell->size : size)) fail("realloc lost contents");
  accept(table, cell, data, size, 16, error);
}

static void work(struct table* table) {
  table->refused = 0;
  for (int i = 0; i < rounds && table->refused < enough; ++i) {
    struct cell* const cell = &table->cell[next(table, cells)];
    const uint64_t what = next(table, 100);
    if (what < 30) {
      resize(table, cell, some_size(table));
      continue;
    }
    drop(cell);
    const size_t size = some_size(table);
    if (what < 45) {
      zeroed(table, cell, size);
    } else if (what < 55) {
      aligned(table, cell, size);
    } else if (what < 85) {
      errno = 0;
      void* const data = malloc(size);
      accept(table, cell, data, size, 16, errno);
    }
    if (i % 200 == 199) (void)malloc_trim(0);
  }
}

static void drop_all(struct table* table) {
  for (int i = 0; i < cells; ++i)
    drop(&table->cell[i]);
}

/* A thread of its own: its first call may find no memory for a cache. It gives half of its blocks to the caller. */
static void* work_on_thread(void* argument) {
  struct table* const table = argument;
  work(table);
  for (int i = 0; i < cells; i += 2)
    drop(&table->cell[i]);
  return NULL;
}

static void use_threads(int strict) {
  static struct table tables[2];
  pthread_t threads[2];
  int started[2];
  for (int i = 0; i < 2; ++i) {
    tables[i].random = (uint64_t)i + 5;
    tables[i].strict = strict;
    started[i] = pthread_create(&threads[i], NULL, work_on_thread, &tables[i]) == 0;
    if (strict && !started[i]) fail("no thread though the system has memory");
    if (started[i]) (void)pthread_join(threads[i], NULL);
  }
  for (int i = 0; i < 2; ++i)
    drop_all(&tables[i]);
}

int main(int count, char** arguments) {
  static struct table table;
  table.strict = count > 1 && strcmp(arguments[1], "strict") == 0;
  work(&table);
  use_threads(table.strict);
  work(&table);
  ask_for_relief();
  table.strict = 1;
  work(&table);
  use_threads(1);
  drop_all(&table);
  return 0;
}
