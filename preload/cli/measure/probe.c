/* libsluice-probe.so: preloaded behind an allocator, it writes down which library serves malloc in a process. Open it
 * when `sluice compare` refuses a run.
 *
 * LIBSLUICE_PROBE names a file, to which each process that loads the probe appends, in one write each:
 *
 *   start PID FILE-OF-MALLOC FILE-OF-FREE     tabs between them
 *   end PID BYTES                             what the C library's own malloc has given out; missing after _exit or a
 * signal
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static char path[4096];

static void append(const char* line, int length) {
  const int file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) return;
  if (length > 0) {
    const ssize_t written = write(file, line, (size_t)length);
    (void)written;
  }
  close(file);
}

static const char* origin(const char* symbol) {
  Dl_info info;
  void* const address = dlsym(RTLD_DEFAULT, symbol);
  return address != NULL && dladdr(address, &info) != 0 && info.dli_fname != NULL ? info.dli_fname : "";
}

__attribute__((constructor)) static void start(void) {
  const char* const wanted = getenv("LIBSLUICE_PROBE");
  if (wanted == NULL || snprintf(path, sizeof path, "%s", wanted) >= (int)sizeof path) {
    path[0] = '\0';
    return;
  }
  static char line[3 * 4096];
  const int length =
      snprintf(line, sizeof line, "start\t%d\t%s\t%s\n", (int)getpid(), origin("malloc"), origin("free"));
  if (length < (int)sizeof line) append(line, length);
}

__attribute__((destructor)) static void end(void) {
  if (path[0] == '\0') return;
  /* mallinfo2 of the C library itself, whatever stands before it. */
  void* const library = dlopen("libc.so.6", RTLD_NOLOAD | RTLD_LAZY);
  struct mallinfo2 (*info)(void) = NULL;
  if (library != NULL) *(void**)&info = dlsym(library, "mallinfo2");
  if (info == NULL) return;
  const struct mallinfo2 given = info();
  char line[64];
  append(line, snprintf(line, sizeof line, "end\t%d\t%zu\n", (int)getpid(), given.uordblks + given.hblkhd));
}
