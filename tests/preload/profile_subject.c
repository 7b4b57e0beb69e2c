/* A program whose allocations are known, for profile_test.py: `profile_subject MODE [LIBRARY]`. The sites are functions
   with names of their own; what each allocates is what the test expects. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define SITE __attribute__((noinline)) void*

static void* volatile sink;

static void* out(void* block) {
  if (block == NULL) abort();
  sink = block;
  return (void*)sink;
}

#if defined(APART)
__attribute__((section(".apart"))) /* a part of the program that lies by itself: see CMakeLists.txt */
#endif
SITE site_small(void) {
  return out(malloc(100));
}
SITE site_medium(void) {
  return out(malloc(5000));
}
SITE site_large(void) {
  return out(malloc(300000));
}
SITE site_zeroed(void) {
  return out(calloc(3, 100));
}
SITE site_aligned(void) {
  return out(aligned_alloc(64, 640));
}
SITE site_dropped(void) {
  return out(malloc(200));
}
SITE site_grown(void) {
  void* block = out(malloc(10));
  for (size_t size = 20; size <= 1000000; size *= 2)
    block = out(realloc(block, size));
  return block;
}
SITE site_in_thread(void) {
  return out(malloc(48));
}
SITE site_in_handler(void) {
  return out(malloc(64));
}
SITE site_in_child(void) {
  return out(malloc(777));
}

static void* kept[4096];
static size_t kept_count;
static void keep(void* block) {
  kept[kept_count++] = block;
}

__attribute__((noinline)) static void known(void) {
  for (int i = 0; i < 1000; ++i)
    keep(site_small());
  for (int i = 0; i < 200; ++i)
    keep(site_medium());
  for (int i = 0; i < 20; ++i)
    keep(site_large());
  for (int i = 0; i < 100; ++i)
    keep(site_zeroed());
  for (int i = 0; i < 100; ++i)
    keep(site_aligned());
  for (int i = 0; i < 500; ++i)
    free(site_dropped());
  keep(site_grown());
}

static void* run_thread(void* name) {
  pthread_setname_np(pthread_self(), name);
  for (int i = 0; i < 250; ++i)
    keep(site_in_thread());
  return NULL;
}

static void threads(void) {
  char* names[] = {"first", "second", "third", "fourth"};
  for (int i = 0; i < 4; ++i) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_thread, names[i]) != 0) abort();
    pthread_join(thread, NULL);
  }
  while (kept_count != 500) /* freed by another thread than the one that allocated them */
    free(kept[--kept_count]);
}

static volatile int handled;
static void on_signal(int signal) {
  (void)signal;
  free(site_in_handler());
  keep(site_in_handler());
  ++handled;
}

__attribute__((noinline)) static void handlers(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  sigaction(SIGUSR1, &action, NULL);
  for (int i = 0; i < 100; ++i)
    raise(SIGUSR1);
}

static void storm(void) { /* signals in the middle of malloc and free */
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  sigaction(SIGALRM, &action, NULL);
  timer_t timer;
  struct itimerspec often = {{0, 20000}, {0, 20000}};
  if (timer_create(CLOCK_MONOTONIC, NULL, &timer) != 0 || timer_settime(timer, 0, &often, NULL) != 0) abort();
  while (handled < 1000)
    free(site_small());
  memset(&often, 0, sizeof often);
  timer_settime(timer, 0, &often, NULL);
}

#if defined(__x86_64__)
/* Code that has no tables, in a file that has some, as the built-in functions of node's V8 are. */
void* without_table(void* (*site)(void));
__asm__(
    ".text\n"
    ".type without_table, @function\n"
    "without_table:\n"
    "  push %rbp\n"
    "  mov %rsp, %rbp\n"
    "  call *%rdi\n"
    "  pop %rbp\n"
    "  ret\n"
    ".size without_table, .-without_table\n");

#if defined(GOS) /* as Go's compiler notes it */
__asm__(
    ".section .note.go.buildid, \"a\", @note\n"
    ".balign 4\n"
    ".long 4, 4, 4\n"
    ".asciz \"Go\\0\"\n"
    ".long 0\n"
    ".text\n");
#endif

/* Likewise, and it changes the stack, as Go does before it calls C. */
void* on_another_stack(void* (*site)(void), void* stack_end);
__asm__(
    ".type on_another_stack, @function\n"
    "on_another_stack:\n"
    "  push %rbp\n"
    "  mov %rsp, %rbp\n"
    "  mov %rsi, %rsp\n"
    "  call *%rdi\n"
    "  mov %rbp, %rsp\n"
    "  pop %rbp\n"
    "  ret\n"
    ".size on_another_stack, .-on_another_stack\n");

__attribute__((noinline)) static void switched(void) {
  char* const stack = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack == MAP_FAILED) abort();
  for (int i = 0; i < 100; ++i)
    keep(on_another_stack(site_small, stack + 65536));
}

__attribute__((noinline)) static void generated(void) { /* that function, called by code of no file */
  unsigned char code[] = {0x55, 0x48, 0x89, 0xe5, 0x48, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xd0, 0x5d, 0xc3};
  void* (*const target)(void* (*)(void)) = without_table;
  memcpy(code + 6, &target, sizeof target);
  void* const page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) abort();
  memcpy(page, code, sizeof code);
  void* (*call)(void* (*)(void));
  memcpy(&call, &page, sizeof call);
  for (int i = 0; i < 100; ++i)
    keep(call(site_small));
}
#else
static void generated(void) {
  abort();
}
static void switched(void) {
  abort();
}
#endif

static void signals(void) { /* one file after each */
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 100; ++k)
      keep(site_small());
    raise(SIGUSR2);
  }
}

static void children(void) {
  keep(site_small());
  const pid_t child = fork();
  if (child == 0) {
    keep(site_in_child());
    exit(0);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) abort();
}

__attribute__((noinline)) static void library(const char* path) {
  for (int i = 0; i < 3; ++i) {
    void* const handle = dlopen(path, RTLD_NOW);
    if (handle == NULL) abort();
    void* (*const allocate)(size_t) = (void* (*)(size_t))dlsym(handle, "allocate");
    if (allocate == NULL) abort();
    keep(out(allocate(321)));
    dlclose(handle);
    keep(site_small());
  }
}

int main(int count, char** arguments) {
  const char* const mode = count > 1 ? arguments[1] : "";
  if (strcmp(mode, "threads") == 0)
    threads();
  else if (strcmp(mode, "handlers") == 0)
    handlers();
  else if (strcmp(mode, "storm") == 0)
    storm();
  else if (strcmp(mode, "generated") == 0)
    generated();
  else if (strcmp(mode, "switched") == 0)
    switched();
  else if (strcmp(mode, "children") == 0)
    children();
  else if (strcmp(mode, "signals") == 0)
    signals();
  else if (strcmp(mode, "library") == 0 && count > 2)
    library(arguments[2]);
  else
    known();
  if (strcmp(mode, "_exit") == 0) _exit(0);
  if (strcmp(mode, "quick_exit") == 0) quick_exit(0);
  if (strcmp(mode, "SIGTERM") == 0) raise(SIGTERM);
  if (strcmp(mode, "exec") == 0) execl(arguments[0], arguments[0], "threads", (char*)NULL);
  return 0;
}
