/* How the preloaded helpers write a record: in one write to the end of a file that many processes share. Open it when a
 * record is missing or torn. */
#ifndef SLUICE_MEASURE_APPEND_H
#define SLUICE_MEASURE_APPEND_H

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>
#include <unistd.h>

/* Effects: writes a record. A process that may write no files, by its limit on their size, is not ended for it. */
static inline void append_record(const char* path, const char* record, size_t length) {
  const int file = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
  if (file < 0) return;
  sigset_t too_large, earlier;
  sigemptyset(&too_large);
  sigaddset(&too_large, SIGXFSZ);
  sigprocmask(SIG_BLOCK, &too_large, &earlier);
  if (write(file, record, length) < 0 && errno == EFBIG && !sigismember(&earlier, SIGXFSZ)) {
    const struct timespec at_once = {0, 0};
    sigtimedwait(&too_large, NULL, &at_once);
  }
  sigprocmask(SIG_SETMASK, &earlier, NULL);
  close(file);
}

#endif
