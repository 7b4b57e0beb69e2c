/* A program that is asked while it runs, for attach_test.py: `attach_subject MODE [ARGUMENT...]`. It prints "ready"
   (and what a mode says), and ends when its standard input does. serves: a thread allocates in hold_memory(), one block
   after each line on standard input, and keeps it closes FILE: closes all descriptors but the first three, and gives
   their numbers to FILE forks: its child prints its pid, too leaves: the first thread ends by pthread_exit, and no
   other is left lost: leaves, and cannot connect() any more execs PROGRAM...: becomes the program without socket(),
   which then fails full: makes a thread where there is room for one beside the first sandbox: forbids all threads
   getpgid(), which it does not need strict: forbids all threads accept4(), which ends the process */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

void* volatile attach_subject_kept;

__attribute__((noinline)) void hold_memory(void) {
  attach_subject_kept = malloc(100000);
  memset(attach_subject_kept, 1, 100000);
}

static void say(const char* word) {
  dprintf(STDOUT_FILENO, "%s\n", word);
}

static void wait_for_end(void) {
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
}

static void* serve(void* unused) {
  char byte;
  free(malloc(100));
  say("ready");
  while (read(STDIN_FILENO, &byte, 1) > 0) {
    hold_memory();
    say("held");
  }
  return unused;
}

static void* end_at_once(void* unused) {
  return unused;
}

/* Variables of each thread, which lie on its stack. */
#if defined(ATTACH_SUBJECT_VARIABLES)
__thread char attach_subject_variables[ATTACH_SUBJECT_VARIABLES];
#endif

static int forbid(int number, unsigned flags, unsigned action) {
  struct sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                               BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)number, 0, 1),
                               BPF_STMT(BPF_RET | BPF_K, action), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog program = {sizeof code / sizeof *code, code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program) == 0;
}

static int close_all(const char* path) {
  for (int number = 3; number < 1024; ++number)
    close(number);
  for (int i = 0; i < 60; ++i)
    if (open(path, O_RDWR) < 0) return 1;
  say("ready");
  wait_for_end();
  for (int number = 3; number < 63; ++number)
    if (fcntl(number, F_GETFD) < 0) return 1;
  return 0;
}

int main(int argc, char** argv) {
  const char* const mode = argc > 1 ? argv[1] : "";
  pthread_t thread;
  if (strcmp(mode, "serves") == 0) {
    if (pthread_create(&thread, NULL, serve, NULL) != 0) return 1;
    pthread_join(thread, NULL);
    return 0;
  }
  if (strcmp(mode, "closes") == 0) return close_all(argv[2]);
  if (strcmp(mode, "leaves") == 0 || strcmp(mode, "lost") == 0) {
    free(malloc(100));
    if (strcmp(mode, "lost") == 0 && !forbid(SYS_connect, SECCOMP_FILTER_FLAG_TSYNC, SECCOMP_RET_ERRNO | EPERM))
      return 1;
    pthread_exit(NULL);
  }
  if (strcmp(mode, "execs") == 0) {
    if (!forbid(SYS_socket, 0, SECCOMP_RET_ERRNO | EPERM)) return 1;
    execv(argv[2], argv + 2);
    return 1;
  }
  if (strcmp(mode, "forks") == 0) {
    const pid_t child = fork();
    if (child == 0) {
      dprintf(STDOUT_FILENO, "%d\n", getpid());
      wait_for_end();
      _exit(0);
    }
    wait_for_end();
    return child < 0 || waitpid(child, NULL, 0) != child;
  }
  if (strcmp(mode, "full") == 0) {
    /* A user that nobody else is at the same time. */
    const uid_t user = 20000 + (uid_t)(getpid() % 40000);
    const struct rlimit two = {2, 2};
    if (setgid(user) != 0 || setuid(user) != 0 || setrlimit(RLIMIT_NPROC, &two) != 0) return 1;
    if (pthread_create(&thread, NULL, end_at_once, NULL) != 0 || pthread_join(thread, NULL) != 0) return 2;
  }
  if (strcmp(mode, "sandbox") == 0 && !forbid(SYS_getpgid, SECCOMP_FILTER_FLAG_TSYNC, SECCOMP_RET_ERRNO | EPERM))
    return 1;
  if (strcmp(mode, "strict") == 0 && !forbid(SYS_accept4, SECCOMP_FILTER_FLAG_TSYNC, SECCOMP_RET_KILL_PROCESS))
    return 1;
#if defined(ATTACH_SUBJECT_VARIABLES)
  attach_subject_variables[0] = 1;
#endif
  say("ready");
  wait_for_end();
  return 0;
}
