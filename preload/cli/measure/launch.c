/* sluice-launch: starts one program, waits for it, and says what it used. `sluice compare` runs every measurement
 * through it. Open it to change how a program is started, limited or cleaned up after.
 *
 *   sluice-launch FILE_DESCRIPTOR PROGRAM NAME ARGUMENTS...     NAME is what the program is told to be called
 *
 * Why a program of its own: the kernel counts the peak memory of a child from that of the process that forked it, and
 * this one is smaller than anything it is asked to measure. It is the reaper of all that the program leaves behind,
 * wherever that hides, so that nothing outlives a measurement: SIGTERM, or the death of its own parent, ends them all.
 * It has a session of its own, so that no key pressed on the terminal ends it before what it looks after; the program
 * therefore has no terminal. The program starts with every signal at its default.
 *
 * The environment is the program's, but for SLUICE_LAUNCH_PRELOAD, which becomes its LD_PRELOAD. Lines go to the file
 * descriptor: the name of what could not be done and errno; or "started" and the process id, and after the program's
 * end "ended" and the numbers that main() writes last.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Milliseconds that processes of the program may outlive it, as the last ones of a pipe do. */
enum { grace_ms = 200 };
/* Milliseconds after which those that cannot be ended are left alone, as they belong to another user. */
enum { ending_ms = 3000 };

static volatile sig_atomic_t told_to_end;
static volatile pid_t program; /* 0 before it has started */
static volatile sig_atomic_t program_has_ended;

/* A program may have left the group that it was given. */
static void kill_program(void) {
  if (program <= 0) return;
  kill(-program, SIGKILL);
  if (!program_has_ended) kill(program, SIGKILL);
}

static void on_end(int signal) {
  (void)signal;
  told_to_end = 1;
  kill_program();
}

static long long nanoseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static long long microseconds(struct timeval time) {
  return time.tv_sec * 1000000LL + time.tv_usec;
}

static void say(int out, const char* what, int error) {
  dprintf(out, "%s %d\n", what, error);
}

/* Returns: whether nobody will read what is said: the parent has died. */
static int is_alone(int out) {
  struct pollfd reader = {out, 0, 0};
  return poll(&reader, 1, 0) > 0 && (reader.revents & POLLERR) != 0;
}

/* Effects: every signal is at its default, and none is blocked, whatever this process has inherited. */
static void reset_signals(void) {
  for (int number = 1; number < NSIG; ++number)
    signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Returns: how many children there are, orphans of the program among them; kills them if asked to. */
static int children(int kill_them) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
  FILE* const file = fopen(path, "re");
  if (file == NULL) return 0;
  int count = 0, pid = 0;
  while (fscanf(file, "%d", &pid) == 1) {
    ++count;
    if (kill_them) kill(pid, SIGKILL);
  }
  fclose(file);
  return count;
}

/* The name that a process has, which exec changes, in 16 bytes; empty when it is not known. Works for those that have
 * ended and were not waited for. */
static void name_of(pid_t pid, char* name) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t length = file < 0 ? 0 : read(file, name, 16);
  name[length > 0 ? length - 1 : 0] = '\0'; /* its line feed */
  if (file >= 0) close(file);
  for (char* letter = name; *letter != '\0'; ++letter)
    if (*letter == '\n') *letter = '?';
}

/* Effects: waits for what the program has left, and ends it when it does not end by itself. Returns: how many had to
 * be ended. */
static int clean_up(int left_running) {
  const struct timespec pause = {0, 2000000};
  const long long end = nanoseconds() + (left_running ? grace_ms * 1000000LL : 0);
  int left = 0;
  for (;;) {
    const pid_t pid = waitpid(-1, NULL, WNOHANG);
    if (pid < 0 && errno == ECHILD) return left;
    if (pid > 0) continue;
    if (told_to_end || nanoseconds() >= end) {
      const int now = children(1);
      if (now > left) left = now;
      kill_program();
      if (nanoseconds() >= end + ending_ms * 1000000LL) return left;
    }
    nanosleep(&pause, NULL);
  }
}

int main(int count, char** arguments) {
  if (count < 4) {
    fputs("sluice-launch: a part of `sluice compare`; it is not run by hand\n", stderr);
    return 2;
  }
  const int out = atoi(arguments[1]);
  fcntl(out, F_SETFD, FD_CLOEXEC);
  const char* const preload = getenv("SLUICE_LAUNCH_PRELOAD");
  if (preload != NULL && setenv("LD_PRELOAD", preload, 1) != 0) return 2;
  unsetenv("SLUICE_LAUNCH_PRELOAD");

  setsid();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  reset_signals();
  signal(SIGPIPE, SIG_IGN); /* the parent's death is no reason to leave the program behind */
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_end;
  sigaction(SIGTERM, &action, NULL);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (is_alone(out)) told_to_end = 1; /* it died before that */

  /* The child says by this pipe why it could not become the program; it is closed when it has. */
  int failure[2];
  if (pipe2(failure, O_CLOEXEC) != 0) {
    say(out, "pipe", errno);
    return 1;
  }
  const long long start = nanoseconds();
  const pid_t child = fork();
  if (child < 0) {
    say(out, "fork", errno);
    return 1;
  }
  if (child == 0) {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* if this process is ended from outside */
    reset_signals();
    execvp(arguments[2], arguments + 3); /* by a path; unlike execv it runs scripts without #! too */
    const int error = errno;
    const ssize_t written = write(failure[1], &error, sizeof error);
    _exit(written == (ssize_t)sizeof error ? 127 : 126);
  }
  setpgid(child, child);
  program = child;
  if (told_to_end) kill_program();
  close(failure[1]);
  int error = 0;
  ssize_t got;
  while ((got = read(failure[0], &error, sizeof error)) < 0 && errno == EINTR) {
  }
  const int refused = got == (ssize_t)sizeof error;
  if (!refused) say(out, "started", (int)child);

  int status = 0;
  struct rusage used;
  memset(&used, 0, sizeof used);
  siginfo_t about;
  while (waitid(P_PID, (id_t)child, &about, WEXITED | WNOWAIT) < 0 && errno == EINTR) {
  }
  const long long end = nanoseconds();
  char name[16];
  name_of(child, name);
  while (wait4(child, &status, 0, &used) < 0 && errno == EINTR) {
  }
  program_has_ended = 1;
  if (refused) {
    say(out, "exec", error);
    return 1;
  }
  const int left = clean_up(!told_to_end);
  /* Process id, wait status, ns of wall time, µs of user and system time, KiB of peak memory, page faults
   * without and with input, context switches voluntary and not, processes that had to be ended, last name */
  dprintf(out, "ended %d %d %lld %lld %lld %ld %ld %ld %ld %ld %d %s\n", (int)child, status, end - start,
          microseconds(used.ru_utime), microseconds(used.ru_stime), used.ru_maxrss, used.ru_minflt, used.ru_majflt,
          used.ru_nvcsw, used.ru_nivcsw, left, name);
  return 0;
}
