// The process as reports see it, on macOS; see process.hpp.
#include "os/process.hpp"

#include <dlfcn.h>
#include <mach-o/dyld.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cstdint>

#include "os/keep_errno.hpp"
#include "os/macos_calls.hpp"

namespace sluice::os {

void* map_scratch(size_t bytes) noexcept {
  const KeepErrno keep;
  void* const result = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON | MAP_NORESERVE, -1, 0);
  return result != MAP_FAILED ? result : nullptr;
}

void unmap_scratch(void* address, size_t bytes) noexcept {
  const KeepErrno keep;
  (void)munmap(address, bytes);
}

// As the program was called: a path that may go over links.
size_t program_file(char* path, size_t capacity) noexcept {
  auto size = static_cast<uint32_t>(capacity < UINT32_MAX ? capacity : UINT32_MAX);
  return _NSGetExecutablePath(path, &size) == 0 ? strnlen(path, capacity) : 0;
}

const char* program_called() noexcept {
  const char* const name = getprogname();
  return name != nullptr ? name : "";
}

// The first thread has no name of its own.
void thread_name(char* name) noexcept {
  const KeepErrno keep;
  name[0] = '\0';
  (void)pthread_getname_np(pthread_self(), name, thread_name_capacity);
  if (name[0] != '\0' || pthread_main_np() == 0) return;
  const char* const program = program_called();
  const size_t length = strnlen(program, thread_name_capacity - 1);
  memcpy(name, program, length);
  name[length] = '\0';
}

void sleep_briefly() noexcept {
  const KeepErrno keep;
  const timespec duration{0, 1'000'000};
  (void)nanosleep(&duration, nullptr);
}

// The only timers that send signals are the program's own, one of a kind (setitimer).
bool signal_later(int, unsigned milliseconds, void*) noexcept {
  return milliseconds == 0;
}

void forget_signal_later() noexcept {}

void end_by(int signal) noexcept {
  const KeepErrno keep;
  struct sigaction default_action {};
  default_action.sa_handler = SIG_DFL;
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, signal);
  (void)sigaction(signal, &default_action, nullptr);
  (void)pthread_kill(pthread_self(), signal);
  (void)pthread_sigmask(SIG_UNBLOCK, &one, nullptr);
}

// Not by its name: where libSystem lacks it, the loader would refuse the library, and the linker does with older
// headers.
void run_at_quick_exit(void (*function)()) noexcept {
  using Register = int(void (*)());
  auto* const at_quick_exit = reinterpret_cast<Register*>(dlsym(RTLD_DEFAULT, "at_quick_exit"));
  if (at_quick_exit != nullptr) (void)at_quick_exit(function);
}

void end_process(int status) noexcept {
  for (;;)
    _exit(status);
}

}  // namespace sluice::os
