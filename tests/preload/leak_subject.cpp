// A program with known leaks, for leaks_test.py: `leak_subject MODE [LIBRARY]`. The sites are functions with names of
// their own; what becomes of their blocks is what the test expects.
#include <dlfcn.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <vector>

#if defined(__clang__)
#define ALONE __attribute__((noinline))
#else
#define ALONE __attribute__((noinline, noipa))  // nor is anything concluded from what it does
#endif
#define SITE extern "C" ALONE void*

struct Node {
  Node* next;
  char rest[40];
};

namespace {

volatile uintptr_t hidden;  // an address with all bits turned: no pointer

// A block whose address nobody can have seen in registers or on the stack.
__attribute__((noinline)) void hide(void* block) {
  hidden = ~reinterpret_cast<uintptr_t>(block);
}

// Overwrites what calls have left on the stack and in registers.
ALONE void scrub() {
  volatile char rest[16384];
  for (volatile char& each : rest)
    each = 0;
  asm volatile(""
               :
               :
               : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
                 "memory");
}

}  // namespace

SITE site_direct() {
  return malloc(100);
}
SITE site_head() {
  return malloc(sizeof(Node));
}
SITE site_chain() {
  return calloc(1, sizeof(Node));
}
SITE site_circle() {
  return calloc(1, sizeof(Node));
}
SITE site_in_ended_thread() {
  return malloc(200);
}
SITE site_in_living_thread() {
  return malloc(300);
}
SITE site_passed_to_thread() {
  return malloc(310);
}
SITE site_in_tls() {
  return malloc(400);
}
SITE site_in_thread_tls() {
  return malloc(410);
}
SITE site_on_stack() {
  return malloc(500);
}
SITE site_in_register() {
  return malloc(600);
}
SITE site_interior() {
  return malloc(700);
}
SITE site_behind_end() {
  return malloc(704);
}
SITE site_in_mapping() {
  return malloc(800);
}
SITE site_in_shared_mapping() {
  return malloc(810);
}
SITE site_in_library() {
  return malloc(900);
}
SITE site_tagged_low() {
  return malloc(1000);
}
SITE site_tagged_high() {
  return malloc(1010);
}
SITE site_large() {
  return malloc(3000000);
}
SITE site_in_large() {
  return malloc(1100);
}
SITE site_in_result() {
  return malloc(1200);
}
SITE site_self() {
  return calloc(1, 1300);
}
SITE site_no_bytes() {
  return malloc(0);
}
SITE site_specific() {
  return malloc(1400);
}
SITE site_unaligned() {
  return malloc(1500);
}
SITE site_closed() {
  return malloc(40000);
}
SITE site_first() {
  return malloc(2000);
}
SITE site_second() {
  return malloc(2100);
}
SITE site_third() {
  return malloc(2200);
}

namespace {

void* volatile global;
void* volatile behind;
void* volatile global_closed;
void* volatile empty;
volatile uintptr_t tagged;
volatile uintptr_t high;
thread_local void* volatile in_tls;
std::vector<std::string>* volatile strings;
std::vector<std::string> global_strings;

ALONE void leak(void* (*site)()) {
  hide(site());
}

Node* chain_of(void* (*head)(), void* (*site)(), unsigned length) {
  Node* const first = static_cast<Node*>(head());
  Node* last = first;
  for (unsigned i = 0; i < length; ++i)
    last = last->next = static_cast<Node*>(site());
  return first;
}

ALONE void leak_chain() {
  Node* const first = chain_of(site_head, site_chain, 9);
  hide(first);
}

ALONE void leak_circle() {
  Node* const first = chain_of(site_circle, site_circle, 4);
  Node* last = first;
  while (last->next != nullptr)
    last = last->next;
  last->next = first;
}

void* ended(void*) {
  leak(site_in_ended_thread);
  scrub();
  return nullptr;
}
volatile pid_t ended_thread;
void* with_result(void*) {
  ended_thread = static_cast<pid_t>(syscall(SYS_gettid));
  return site_in_result();
}

pthread_barrier_t barrier;
void* living(void*) {
  void* volatile block = site_in_living_thread();
  in_tls = site_in_thread_tls();
  pthread_barrier_wait(&barrier);
  for (;;)
    pause();
  return block;
}
// Never calls malloc.
void* waiting(void* argument) {
  void* volatile passed = argument;
  pthread_barrier_wait(&barrier);
  for (;;)
    pause();
  return passed;
}

void start_threads() {
  pthread_t thread;
  for (int i = 0; i < 3; ++i) {
    pthread_create(&thread, nullptr, ended, nullptr);
    pthread_join(thread, nullptr);
  }
  pthread_barrier_init(&barrier, nullptr, 3);
  pthread_create(&thread, nullptr, living, nullptr);
  pthread_create(&thread, nullptr, waiting, site_passed_to_thread());
  pthread_barrier_wait(&barrier);
  pthread_create(&thread, nullptr, with_result, nullptr);
  // It has ended, and nobody has asked for its result.
  while (ended_thread == 0 || syscall(SYS_tgkill, getpid(), ended_thread, 0) == 0)
    usleep(100);
}

void* map(int flags) {
  return mmap(nullptr, 65536, PROT_READ | PROT_WRITE, flags | MAP_ANONYMOUS, -1, 0);
}

ALONE void keep_everywhere(const char* library) {
  in_tls = site_in_tls();
  global = static_cast<char*>(site_interior()) + 350;
  behind = static_cast<char*>(site_behind_end()) + 704;
  static_cast<void**>(map(MAP_PRIVATE))[1000] = site_in_mapping();
  static_cast<void**>(map(MAP_SHARED))[1000] = site_in_shared_mapping();
  static void** volatile large;
  large = static_cast<void**>(site_large());
  memset(large, 0, 3000000);
  large[300000] = site_in_large();
  tagged = reinterpret_cast<uintptr_t>(site_tagged_low()) | 1;
  high = reinterpret_cast<uintptr_t>(site_tagged_high()) | uintptr_t{1} << 63;
  empty = site_no_bytes();
  static pthread_key_t key;
  pthread_key_create(&key, nullptr);
  pthread_setspecific(key, site_specific());
  static char packed[64];
  void* const block = site_unaligned();
  memcpy(packed + 3, &block, sizeof block);
  char* const closed = static_cast<char*>(site_closed());
  global_closed = closed;
  const uintptr_t page = 4096;
  mprotect(closed + (page - reinterpret_cast<uintptr_t>(closed) % page), page, PROT_NONE);
  void** const self = static_cast<void**>(site_self());
  self[5] = self;
  void* const opened = dlopen(library, RTLD_NOW);
  if (opened == nullptr) abort();
  *static_cast<void**>(dlsym(opened, "kept_by_library")) = site_in_library();
}

// Ends with the only pointer to one block on the stack, and to another in a register.
ALONE void end_with_stack_and_register() {
  leak(site_in_register);
  void* volatile on_stack = site_on_stack();
  scrub();
#if defined(__x86_64__)
  asm volatile(
      "movq %0, %%r15\n\t"
      "notq %%r15\n\t"
      "movq $0, %0\n\t"
      "andq $-16, %%rsp\n\t"
      "xorl %%edi, %%edi\n\t"
      "call *%1"
      : "+m"(hidden)
      : "r"(&exit), "m"(on_stack)
      : "r15", "rdi", "memory");
#endif
  exit(on_stack != nullptr ? 0 : 1);
}

// The same, without the pointers.
ALONE void end_without() {
  leak(site_in_register);
  leak(site_on_stack);
  hidden = 0;
  scrub();
  exit(0);
}

// The system refuses a call from now on, or ends the process for it.
void forbid(unsigned call, unsigned action) {
  sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1), BPF_STMT(BPF_RET | BPF_K, action),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program{sizeof filter / sizeof *filter, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    _exit(77);
}

void on_child(int) {
  constexpr char text[] = "the end of a child was told\n";
  (void)!write(STDERR_FILENO, text, sizeof text - 1);
}

// Two profiles at signals, and what is born and dies around them.
void write_profiles() {
  static void* volatile kept[100];
  for (int i = 0; i < 10; ++i)
    kept[i] = site_first();
  raise(SIGUSR2);
  for (int i = 0; i < 5; ++i) {
    free(kept[i]);
    kept[i] = site_first();
  }
  for (int i = 10; i < 30; ++i)
    kept[i] = site_second();
  for (int i = 0; i < 7; ++i)
    free(site_second());
  raise(SIGUSR2);
  for (int i = 30; i < 60; ++i)
    kept[i] = site_third();
  leak(site_third);
}

}  // namespace

int main(int argc, char** argv) {
  signal(SIGCHLD, on_child);
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "leaks") {
    leak(site_direct);
    leak(site_direct);
    leak_chain();
    leak_circle();
  } else if (mode == "places") {
    keep_everywhere(argv[2]);
  } else if (mode == "threads") {
    start_threads();
  } else if (mode == "exit") {
    end_with_stack_and_register();
  } else if (mode == "exit_without") {
    end_without();
  } else if (mode == "containers") {
    for (int i = 0; i < 100; ++i)
      global_strings.emplace_back(100, 'x');
    strings = new std::vector<std::string>(global_strings);
  } else if (mode == "_exit") {
    leak(site_direct);
    scrub();
    _exit(3);
  } else if (mode == "refused") {
    leak(site_direct);
    forbid(SYS_clone, SECCOMP_RET_ERRNO | EPERM);
  } else if (mode == "ended") {
    leak(site_direct);
    forbid(SYS_pread64, SECCOMP_RET_KILL_PROCESS);
  } else if (mode == "between") {
    write_profiles();
  } else if (mode == "signal") {
    leak(site_direct);
    scrub();
    raise(SIGTERM);
  }
  hidden = 0;
  scrub();
  return 0;
}
