/* Preloaded beside libsluice.so, says where a program crashed: whether it used a null pointer that it was given for
 * want of memory, in its own code, or stepped on something else. Open it when a real program dies in
 * refused_calls_test.py. */
#include <dlfcn.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

static void on_crash(int signal, siginfo_t* info, void* context) {
  const ucontext_t* const state = context;
#if defined(__x86_64__)
  void* const instruction = (void*)(uintptr_t)state->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
  void* const instruction = (void*)(uintptr_t)state->uc_mcontext.pc;
#else
  void* const instruction = NULL;
#endif
  Dl_info site;
  memset(&site, 0, sizeof site);
  (void)dladdr(instruction, &site);
  char line[512];
  const int length =
      snprintf(line, sizeof line, "crash: signal %d in %s: %s\n", signal, site.dli_fname != NULL ? site.dli_fname : "?",
               (uintptr_t)info->si_addr < 65536 ? "null" : "not null");
  if (length > 0) (void)!write(STDERR_FILENO, line, (size_t)length);
}

__attribute__((constructor)) static void start(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_crash;
  action.sa_flags = SA_SIGINFO | (int)SA_RESETHAND; /* the instruction is tried again, and ends the program */
  (void)sigaction(SIGSEGV, &action, NULL);
  (void)sigaction(SIGBUS, &action, NULL);
}
