/* A program for libsluice.so on musl: every entry point of malloc that musl has, on threads, in a fork and in a
 * thread's destructor, with payloads. Usage: musl_program [secure]; ends with status 0 when every block kept its own.
 */
#include <malloc.h>
#include <pthread.h>
#include <sluice/frame.h>
#include <sluice/sluice.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int faults;
static int has_scopes = 1; /* libsluice-secure.so has none */
static pthread_key_t key;

static void check(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "musl_program: %s\n", what);
  __atomic_fetch_add(&faults, 1, __ATOMIC_RELAXED);
}

static int is_filled(const unsigned char* block, size_t size, unsigned char value) {
  for (size_t i = 0; i < size; ++i) {
    if (block[i] != value) return 0;
  }
  return 1;
}

static void use_sizes(void) {
  enum { count = 3000 };
  unsigned char** const blocks = calloc(count, sizeof *blocks);
  for (size_t i = 0; i < count; ++i) {
    const size_t size = i % 100 == 0 ? i * 50 + 1 : i % 1200 + 1;
    blocks[i] = i % 3 == 0 ? calloc(1, size) : malloc(size);
    check(blocks[i] != NULL && (uintptr_t)blocks[i] % 16 == 0 && malloc_usable_size(blocks[i]) >= size, "malloc");
    check(i % 3 != 0 || is_filled(blocks[i], size, 0), "calloc");
    memset(blocks[i], (int)(i & 0xff), size);
    blocks[i] = realloc(blocks[i], size * 2);
    check(blocks[i] != NULL && is_filled(blocks[i], size, (unsigned char)i), "realloc");
  }
  for (size_t i = 0; i < count; ++i)
    free(blocks[i * 1009 % count]);
  free(blocks);
}

static void use_alignments(void) {
  for (size_t alignment = 16; alignment <= 1 << 20; alignment *= 2) {
    void* block = NULL;
    check(posix_memalign(&block, alignment, 100) == 0 && (uintptr_t)block % alignment == 0, "posix_memalign");
    free(block);
    block = aligned_alloc(alignment, alignment);
    check(block != NULL && (uintptr_t)block % alignment == 0, "aligned_alloc");
    free(block);
  }
}

static void* use_everything(void* unused) {
  pthread_setspecific(key, malloc(500));
  use_sizes();
  use_alignments();
  const sluice_mark mark = sluice_frame_mark();
  for (size_t i = 1; i < 2000; ++i)
    check(sluice_frame_alloc(i, 16) != NULL, "frame");
  sluice_frame_rewind(mark);
  sluice_scope scope;
  const int entered = sluice_scope_enter(&scope, SLUICE_ROUTE) == 0;
  check(entered == has_scopes, "scope");
  use_sizes();
  if (entered) sluice_scope_leave(&scope);
  free(strdup("text of libc"));
  return unused;
}

static void replace_at_end(void* block) {
  free(block);
  free(malloc(100));
}

/* A stack that musl gives a thread whose program asks for little; its default is 128 KiB. */
static void use_small_stack(void) {
  pthread_attr_t attributes;
  pthread_t thread;
  check(pthread_attr_init(&attributes) == 0 && pthread_attr_setstacksize(&attributes, 16 << 10) == 0, "attributes");
  check(pthread_create(&thread, &attributes, use_everything, NULL) == 0 && pthread_join(thread, NULL) == 0,
        "small stack");
  pthread_attr_destroy(&attributes);
}

/* A fork that calls no handlers, the heap's among them. */
static void use_bare_fork(void) {
  const pid_t child = _Fork();
  if (child == 0) {
    use_everything(NULL);
    _exit(faults != 0);
  }
  int status = -1;
  check(waitpid(child, &status, 0) == child && status == 0, "child of _Fork");
}

int main(int count, char** arguments) {
  has_scopes = count == 1 || strcmp(arguments[1], "secure") != 0;
  check(sluice_present(), "the program does not run on libsluice.so");
  check(pthread_key_create(&key, replace_at_end) == 0, "key");
  use_everything(NULL);
  use_bare_fork();
  use_small_stack();
  pthread_t threads[4];
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 4; ++i)
      check(pthread_create(&threads[i], NULL, use_everything, NULL) == 0, "thread");
    const pid_t child = fork();
    if (child == 0) {
      use_everything(NULL);
      _exit(faults != 0);
    }
    int status = -1;
    check(waitpid(child, &status, 0) == child && status == 0, "child");
    for (int i = 0; i < 4; ++i)
      pthread_join(threads[i], NULL);
  }
  puts("reached the end");
  return faults != 0;
}
