/* Another preloaded library, which redirects what programs ask of sockets, also by libc's syscall(). It ends a process
 * that asks for one: it may stand for a library that is not ready before its constructor has run. And it pretends
 * another user. */
#include <dlfcn.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "../call_words.h"

#define HOOK __attribute__((visibility("default")))

HOOK uid_t getuid(void) {
  return 12345;
}

HOOK uid_t geteuid(void) {
  return 12345;
}

HOOK long syscall(long number, ...) {
  if (number == SYS_socket || number == SYS_bind || number == SYS_listen || number == SYS_accept4) _exit(99);
  long words[most_words];
  TAKE_WORDS(words, number);
  long (*const next)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
  return next(number, words[0], words[1], words[2], words[3], words[4], words[5]);
}
