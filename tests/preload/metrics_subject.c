/* A program that allocates until its standard input ends, for metrics_test.py: `metrics_subject MODE`.
   same: blocks of one size, one at a time, which never leave the thread's cache
   many: more blocks than a cache holds
   rests: two threads that do nothing
   forks: as same, in a child too */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int goes_on(void) {
  struct pollfd input = {STDIN_FILENO, POLLIN, 0};
  return poll(&input, 1, 0) == 0;
}

static void* volatile sink;

static void same(void) {
  while (goes_on())
    for (int i = 0; i < 1000; ++i) {
      sink = malloc(100);
      free(sink);
    }
}

static void many(void) {
  static void* blocks[20000];
  while (goes_on()) {
    for (int i = 0; i < 20000; ++i)
      blocks[i] = malloc(100);
    for (int i = 0; i < 20000; ++i)
      free(blocks[i]);
  }
}

static void* rest(void* argument) {
  for (;;)
    pause();
  return argument;
}

int main(int argc, char** argv) {
  const char* const mode = argc > 1 ? argv[1] : "";
  if (strcmp(mode, "same") == 0) same();
  if (strcmp(mode, "many") == 0) many();
  if (strcmp(mode, "rests") == 0) {
    pthread_t thread;
    char byte;
    if (pthread_create(&thread, NULL, rest, NULL) != 0) return 1;
    if (read(STDIN_FILENO, &byte, 1) < 0) return 1;
  }
  if (strcmp(mode, "forks") == 0) {
    const pid_t child = fork();
    if (child < 0) return 1;
    same();
    if (child == 0) exit(0);
    if (waitpid(child, NULL, 0) != child) return 1;
  }
  return 0;
}
