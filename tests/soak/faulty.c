/* A malloc that does wrong on purpose, in front of the one that serves: preloaded, it shows that the soak programs
 * notice what they are there to notice. SOAK_FAULT says what is wrong: "damage" (a byte of an older block changes now
 * and then), "twice" (a block is handed out twice), "leak" (one free in eight does nothing), "hang" (a call never comes
 * back), "child" (one in a forked child never does). */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EVERY = 5000 };

static void* (*next_malloc)(size_t);
static void (*next_free)(void*);
static void* (*next_realloc)(void*, size_t);
static atomic_ulong calls;
static void* _Atomic remembered;
static const char* fault;
static pid_t first_process;

static int is(const char* name) {
  return fault != NULL && strcmp(fault, name) == 0;
}

__attribute__((constructor)) static void start(void) {
  fault = getenv("SOAK_FAULT");
  first_process = getpid();
}

static void find_next(void) {
  *(void**)&next_realloc = dlsym(RTLD_NEXT, "realloc");
  *(void**)&next_free = dlsym(RTLD_NEXT, "free");
  *(void**)&next_malloc = dlsym(RTLD_NEXT, "malloc");
}

void* malloc(size_t size) {
  if (next_malloc == NULL) find_next();
  const unsigned long call = atomic_fetch_add(&calls, 1);
  if (fault == NULL || call % EVERY != EVERY - 1) {
    void* const block = next_malloc(size);
    if (call % EVERY == EVERY - 40 && size >= 64) atomic_store(&remembered, block);
    return block;
  }
  if (is("hang") || (is("child") && getpid() != first_process)) pause();
  unsigned char* const old = atomic_exchange(&remembered, NULL);
  if (is("twice") && old != NULL && size <= 64) return old;
  if (is("damage") && old != NULL) old[40] ^= 0x55;
  return next_malloc(size);
}

void free(void* block) {
  if (next_free == NULL) find_next();
  if (block != NULL && block == atomic_load(&remembered)) atomic_store(&remembered, NULL);
  if (is("leak") && atomic_fetch_add(&calls, 1) % 8 == 0) return;
  next_free(block);
}

void* realloc(void* block, size_t size) {
  if (next_realloc == NULL) find_next();
  if (block != NULL && block == atomic_load(&remembered)) atomic_store(&remembered, NULL);
  return next_realloc(block, size);
}
