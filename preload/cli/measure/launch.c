/* sluice-launch: starts one program, waits for it, and says what it used. `sluice compare` runs every measurement
 * through it. Open it to change how a program is started, limited or cleaned up after.
 *
 *   sluice-launch FILE_DESCRIPTOR PROGRAM NAME ARGUMENTS...     NAME is what the program is told to be called
 *
 * Why a program of its own: the kernel counts the peak memory of a child from that of the process that forked it, and
 * this one is smaller than anything it is asked to measure. It is the reaper of all that the program leaves behind,
 * wherever that hides, so that nothing outlives a measurement: SIGTERM, or the death of its own parent, ends them all.
 *
 * The environment is the program's, but for SLUICE_LAUNCH_PRELOAD, which becomes its LD_PRELOAD. One line goes to the
 * file descriptor: the name of what could not be done and errno, or "ended" and the numbers of `report` below.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
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

static volatile sig_atomic_t told_to_end;
static volatile pid_t program; /* 0 before it has started */

static void on_end(int signal) {
  (void)signal;
  told_to_end = 1;
  if (program > 0) kill(-program, SIGKILL);
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

/* Effects: waits for what the program has left, and ends it when it does not end by itself. Returns: how many were
 * ended. */
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
      if (program > 0) kill(-program, SIGKILL);
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

  prctl(PR_SET_CHILD_SUBREAPER, 1);
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_end;
  sigaction(SIGTERM, &action, NULL);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() == 1) told_to_end = 1;

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
    signal(SIGTERM, SIG_DFL);
    execvp(arguments[2], arguments + 3); /* by a path; unlike execv it runs scripts without #! too */
    const int error = errno;
    const ssize_t written = write(failure[1], &error, sizeof error);
    _exit(written == (ssize_t)sizeof error ? 127 : 126);
  }
  setpgid(child, child);
  program = child;
  if (told_to_end) kill(-child, SIGKILL);
  close(failure[1]);
  int error = 0;
  const int refused = read(failure[0], &error, sizeof error) == (ssize_t)sizeof error;
  if (!refused) say(out, "started", (int)child);

  int status = 0;
  struct rusage used;
  memset(&used, 0, sizeof used);
  while (wait4(child, &status, 0, &used) < 0 && errno == EINTR) {
  }
  const long long end = nanoseconds();
  if (refused) {
    say(out, "exec", error);
    return 1;
  }
  const int left = clean_up(!told_to_end);
  /* Process id, wait status, ns of wall time, µs of user and system time, KiB of peak memory, page faults
   * without and with input, context switches voluntary and not, processes that had to be ended */
  dprintf(out, "ended %d %d %lld %lld %lld %ld %ld %ld %ld %ld %d\n", (int)child, status, end - start,
          microseconds(used.ru_utime), microseconds(used.ru_stime), used.ru_maxrss, used.ru_minflt, used.ru_majflt,
          used.ru_nvcsw, used.ru_nivcsw, left);
  return 0;
}
