/* A program for limits and strange surroundings: does what its arguments say, in order, and ends with status 0 if all
 * of it worked. Usage: resource_limits WORD... heap         blocks of many sizes, filled, grown and freed threads the
 * same on four threads; fork: in a child lock         mlockall of what is there and what will come; a refusal is told
 * on standard output lock_future  mlockall of what will come; fill: takes memory until there is none, and gives it back
 *   maps         prints the mappings of the process while it holds blocks
 *   nothread     a thread cannot be started (the limit on processes), and the heap goes on
 *   chroot=DIR   goes into DIR and makes it the root */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static void fail(const char* what) {
  fprintf(stderr, "limits: %s\n", what);
  exit(1);
}

static void* use_the_heap(void* unused) {
  enum { count = 2000 };
  static __thread unsigned char* blocks[count];
  for (size_t i = 0; i < count; ++i) {
    const size_t size = i % 50 == 0 ? i * 60 + 1 : i % 900 + 1;
    blocks[i] = malloc(size);
    if (blocks[i] == NULL) fail("malloc failed");
    memset(blocks[i], (int)i, size);
    blocks[i] = realloc(blocks[i], size * 2);
    if (blocks[i] == NULL || blocks[i][size - 1] != (unsigned char)i) fail("realloc failed or lost a byte");
  }
  for (size_t i = 0; i < count; ++i)
    free(blocks[i * 1009 % count]);
  void* const large = calloc(3, 1000000);
  if (large == NULL) fail("calloc failed");
  memset(large, 1, 3000000);
  free(large);
  malloc_trim(0);
  return unused;
}

static void use_threads(void) {
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) {
    if (pthread_create(&threads[i], NULL, use_the_heap, NULL) != 0) fail("no thread");
  }
  for (int i = 0; i < 4; ++i)
    pthread_join(threads[i], NULL);
}

static void use_in_child(void) {
  const pid_t child = fork();
  if (child < 0) fail("no fork");
  if (child == 0) {
    use_the_heap(NULL);
    _exit(0);
  }
  int status = -1;
  if (waitpid(child, &status, 0) != child || status != 0) fail("the child failed");
}

static void fill_the_heap(void) {
  enum { most = 4000 };
  static void* blocks[most];
  size_t got = 0;
  for (errno = 0; got < most && (blocks[got] = malloc(100000)) != NULL; ++got)
    memset(blocks[got], 1, 100000);
  if (got == most) puts("never full");
  if (got < most && errno != ENOMEM) fail("errno is not ENOMEM");
  for (size_t i = 0; i < got; ++i)
    free(blocks[i]);
  void* const again = malloc(1000);
  if (again == NULL && got > 0) fail("nothing is used again");
  free(again);
}

static void print_mappings(void) {
  void* const small = malloc(100);
  void* const large = malloc(5000000);
  FILE* const file = fopen("/proc/self/smaps", "r");
  if (small == NULL || large == NULL || file == NULL) fail("no blocks or no mappings");
  for (int c = 0; (c = getc(file)) != EOF;)
    putchar(c);
  fclose(file);
  free(large);
  free(small);
}

static void be_refused_a_thread(void) {
  for (int i = 0; i < 100; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, use_the_heap, NULL) == 0) {
      pthread_join(thread, NULL);
      puts("a thread was started");
      return;
    }
  }
}

static void do_word(const char* word) {
  if (strcmp(word, "heap") == 0) {
    use_the_heap(NULL);
  } else if (strcmp(word, "threads") == 0) {
    use_threads();
  } else if (strcmp(word, "fork") == 0) {
    use_in_child();
  } else if (strcmp(word, "lock") == 0) {
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) puts("not locked");
  } else if (strcmp(word, "lock_future") == 0) {
    if (mlockall(MCL_FUTURE) != 0) puts("not locked");
  } else if (strcmp(word, "fill") == 0) {
    fill_the_heap();
  } else if (strcmp(word, "maps") == 0) {
    print_mappings();
  } else if (strcmp(word, "nothread") == 0) {
    be_refused_a_thread();
  } else if (strncmp(word, "chroot=", 7) == 0) {
    if (chroot(word + 7) != 0 || chdir("/") != 0) fail("no chroot");
  } else {
    fail("unknown word");
  }
}

int main(int count, char** arguments) {
  for (int i = 1; i < count; ++i)
    do_word(arguments[i]);
  puts("reached the end");
  return 0;
}
