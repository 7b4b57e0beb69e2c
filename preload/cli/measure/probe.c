/* libsluice-probe.so: preloaded before an allocator, it writes down which library serves malloc in a process. Open it
 * when `sluice compare` refuses a run.
 *
 * LIBSLUICE_PROBE names a file, to which each process that loads the probe appends, in one write each:
 *
 *   start PID FILE-OF-MALLOC FILE-OF-FREE NAME
 *   end PID BYTES        what the C library's own malloc has given out; missing after _exit or a signal
 *
 * A zero byte ends each word, since a path may hold any other.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "append.h"

static char path[4096];

static const char* file_of(void* address, const ElfW(Sym) * *symbol) {
  Dl_info info;
  *symbol = NULL;
  const int is_known = address != NULL && dladdr1(address, &info, (void**)symbol, RTLD_DL_SYMENT) != 0;
  return is_known && info.dli_fname != NULL ? info.dli_fname : "";
}

/* Returns: the file that calls of a function end in. A program that is not position-independent and takes the
 * function's address has a stand-in for it, which is an undefined symbol of its own; calls go to what follows this
 * library. What measures calls only passes them on. */
static const char* origin(const char* name) {
  const ElfW(Sym) * symbol;
  const char* file = file_of(dlsym(RTLD_DEFAULT, name), &symbol);
  if (symbol != NULL && symbol->st_shndx == SHN_UNDEF) file = file_of(dlsym(RTLD_NEXT, name), &symbol);
  void* (*next)(const char*) = NULL;
  *(void**)&next = dlsym(RTLD_DEFAULT, "libsluice_latency_next");
  const ElfW(Sym) * ignored;
  if (next == NULL || strcmp(file, file_of((void*)next, &ignored)) != 0) return file;
  return file_of(next(name), &ignored);
}

__attribute__((constructor)) static void start(void) {
  const char* const wanted = getenv("LIBSLUICE_PROBE");
  if (wanted == NULL || snprintf(path, sizeof path, "%s", wanted) >= (int)sizeof path) {
    path[0] = '\0';
    return;
  }
  char name[16] = "";
  prctl(PR_GET_NAME, name);
  static char record[3 * 4096];
  const int length = snprintf(record, sizeof record, "start%c%d%c%s%c%s%c%s%c", 0, (int)getpid(), 0, origin("malloc"),
                              0, origin("free"), 0, name, 0);
  if (length < (int)sizeof record) append_record(path, record, (size_t)length);
}

__attribute__((destructor)) static void end(void) {
  if (path[0] == '\0') return;
  /* mallinfo2 of the C library itself, whatever stands before it. */
  void* const library = dlopen("libc.so.6", RTLD_NOLOAD | RTLD_LAZY);
  struct mallinfo2 (*info)(void) = NULL;
  if (library != NULL) *(void**)&info = dlsym(library, "mallinfo2");
  if (info == NULL) return;
  const struct mallinfo2 given = info();
  char record[64];
  const int length =
      snprintf(record, sizeof record, "end%c%d%c%zu%c", 0, (int)getpid(), 0, given.uordblks + given.hblkhd, 0);
  append_record(path, record, (size_t)length);
}
