/* What guard_test.py runs under SLUICE_GUARD_RATE: one bug for each name, and programs without any. Prints "went on"
   when it comes to its end. It is linked with -rdynamic, so that reports name its functions. */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sluice/sluice.h"

enum { tries = 8 }; /* one block in four lies at the start of its pages, the others at their end */

static volatile char sink;
static volatile char* volatile nowhere;

char* the_allocator(size_t size) {
  char* block = malloc(size);
  memset(block, 'a', size);
  return block;
}

void the_freer(void* block) {
  free(block);
  sink = 0; /* no tail call: the frame is seen */
}

static void* free_in_thread(void* block) {
  the_freer(block);
  return NULL;
}

static void write_after_the_end(void) {
  for (int i = 0; i < tries; ++i)
    the_allocator(48)[48] = 1;
}
static void read_far_after_the_end(void) {
  for (int i = 0; i < tries; ++i)
    sink = the_allocator(100000)[100000 + sysconf(_SC_PAGESIZE) - 1000];
}
static void write_before_the_start(void) {
  for (int i = 0; i < tries; ++i)
    the_allocator(48)[-1] = 1;
}
static void damage_after_the_end(void) {
  char* block = the_allocator(25);
  block[25] = 1;
  the_freer(block);
}
static void read_after_free(void) {
  char* block = the_allocator(24);
  pthread_t thread;
  pthread_create(&thread, NULL, free_in_thread, block);
  pthread_join(thread, NULL);
  sink = block[8];
  block[9] = 1; /* the same block: one report for both */
}
static void write_after_free(void) {
  char* block = the_allocator(30000);
  the_freer(block);
  block[20000] = 1;
}
static void free_twice(void) {
  char* block = the_allocator(24);
  the_freer(block);
  the_freer(block);
}
static void resize_after_free(void) {
  char* block = the_allocator(24);
  the_freer(block);
  free(realloc(block, 100));
}
static void free_inside(void) {
  char* block = the_allocator(200000); /* four units, of which the second is named */
  the_freer(block + 100000);
  the_freer(block);
}
static void leak(void) {
  for (volatile int i = 0; i < 5; ++i) /* a loop that stays one: all five have one trace */
    the_allocator(40);
  the_freer(the_allocator(40));
}
static void follow_null(void) {
  *nowhere = 1;
}
static void send_a_fault(void) {
  kill(getpid(), SIGSEGV);
}

static void on_fault(int signal_number, siginfo_t* info, void* context) {
  (void)context;
  _exit(signal_number == SIGSEGV && info->si_code == SEGV_MAPERR && info->si_addr == NULL ? 33 : 1);
}
static void handle_own_fault(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, NULL);
  follow_null();
}
static void print_action(void) {
  struct sigaction action;
  sigaction(SIGSEGV, NULL, &action);
  puts(action.sa_handler == SIG_DFL ? "default" : "handler");
}

static int fault_in_child(void) {
  char* block = the_allocator(24);
  const pid_t child = fork();
  if (child == 0) {
    the_freer(the_allocator(100));
    the_freer(block);
    sink = block[1];
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  the_freer(block);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV ? 0 : 1;
}

/* A guarded block has exactly the size that was asked for; others are rounded up to an even one. */
static int is_guarded(void* block, size_t size) {
  return malloc_usable_size(block) == size;
}

static void count_guarded(void) {
  int guarded = 0;
  for (int i = 0; i < 10000; ++i) {
    char* block = malloc(33);
    guarded += is_guarded(block, 33);
    free(block);
  }
  printf("%d\n", guarded);
}
static void count_live_guarded(void) {
  static char* blocks[3000];
  int guarded = 0;
  for (int i = 0; i < 3000; ++i) {
    blocks[i] = the_allocator(33);
    guarded += is_guarded(blocks[i], 33);
  }
  for (int i = 0; i < 3000; ++i)
    free(blocks[i]);
  printf("%d\n", guarded);
}
static void count_guarded_in_scope(void) {
  int guarded = 0;
  sluice_scope scope;
  (void)sluice_scope_enter(&scope, 0);
  for (int i = 0; i < 10000; ++i) {
    char* block = i % 2 != 0 ? malloc(33) : calloc(3, 11);
    guarded += is_guarded(block, 33);
    free(block);
  }
  sluice_scope_leave(&scope);
  printf("%d\n", guarded);
}

/* Blocks of all kinds: exact, aligned, zeroed where that is asked for, copied by realloc. Returns 0 when all is well.
 */
static int use_all_kinds(void) {
  for (size_t size = 1; size <= (1 << 20); size += size / 3 + 2) {
    const size_t odd = size | 1;
    const size_t alignments[] = {16, 64, 1024, 4096};
    for (int i = 0; i < 4; ++i) {
      char* block = aligned_alloc(alignments[i], odd);
      if (!is_guarded(block, odd) || (uintptr_t)block % alignments[i] != 0) return 1;
      memset(block, 1, odd);
      free(block);
    }
    unsigned char* block = calloc(1, odd);
    if (odd <= (1 << 20) && !is_guarded(block, odd)) return 2;
    for (size_t at = 0; at < odd; ++at)
      if (block[at] != 0) return 3;
    memset(block, 7, odd);
    block = realloc(block, 2 * odd + 1);
    if (2 * odd + 1 <= (1 << 20) && !is_guarded(block, 2 * odd + 1)) return 4;
    for (size_t at = 0; at < odd; ++at)
      if (block[at] != 7) return 5;
    block = realloc(block, 1);
    if (!is_guarded(block, 1) || block[0] != 7) return 6;
    free(block);
  }
  char* const nothing = malloc(0);
  char* const another = malloc(0);
  if (nothing == NULL || nothing == another) return 7;
  free(nothing);
  free(another);
  char* const huge = malloc(5 << 20);
  if (huge == NULL || is_guarded(huge, 5 << 20) != 1) return 8; /* a multiple of the page size, whoever serves it */
  free(huge);
  return 0;
}

static const struct {
  const char* name;
  void (*run)(void);
} cases[] = {
    {"write_after_the_end", write_after_the_end},
    {"read_far_after_the_end", read_far_after_the_end},
    {"write_before_the_start", write_before_the_start},
    {"damage_after_the_end", damage_after_the_end},
    {"read_after_free", read_after_free},
    {"write_after_free", write_after_free},
    {"free_twice", free_twice},
    {"resize_after_free", resize_after_free},
    {"free_inside", free_inside},
    {"leak", leak},
    {"follow_null", follow_null},
    {"send_a_fault", send_a_fault},
    {"handle_own_fault", handle_own_fault},
    {"print_action", print_action},
    {"count_guarded", count_guarded},
    {"count_live_guarded", count_live_guarded},
    {"count_guarded_in_scope", count_guarded_in_scope},
};

int main(int count, char** arguments) {
  if (count != 2) return 99;
  setvbuf(stdout, NULL, _IONBF, 0); /* nothing of stdio's is among the guarded blocks */
  if (strcmp(arguments[1], "fault_in_child") == 0) return fault_in_child();
  if (strcmp(arguments[1], "use_all_kinds") == 0) return use_all_kinds();
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
    if (strcmp(arguments[1], cases[i].name) != 0) continue;
    cases[i].run();
    puts("went on");
    return 0;
  }
  return 98;
}
