// The process as reports see it, on Linux; see process.hpp.
#include "os/linux_call.hpp"
#include "os/process.hpp"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace sluice::os {
namespace {

constexpr int no_timer = -1;
constinit std::atomic<int> timer{no_timer};

void delete_timer(int which) noexcept {
  if (which != no_timer) (void)system_call(SYS_timer_delete, which);
}

}  // namespace

void* map_scratch(size_t bytes) noexcept {
  const long result = system_call(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0L);
  return result < 0 && result > -4096 ? nullptr : reinterpret_cast<void*>(result);
}

void unmap_scratch(void* address, size_t bytes) noexcept {
  (void)system_call(SYS_munmap, address, bytes);
}

size_t program_file(char* path, size_t capacity) noexcept {
  const long length = system_call(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", path, capacity);
  return length < 0 ? 0 : static_cast<size_t>(length);
}

const char* program_called() noexcept {
  return program_invocation_short_name;
}

void thread_name(char* name) noexcept {
  name[0] = '\0';
  (void)system_call(SYS_prctl, PR_GET_NAME, name, 0, 0, 0);
}

void sleep_briefly() noexcept {
  const timespec duration{0, 1'000'000};
  (void)system_call(SYS_nanosleep, &duration, nullptr);
}

bool signal_later(int signal, unsigned milliseconds, void* note) noexcept {
  delete_timer(timer.exchange(no_timer));
  if (milliseconds == 0) return true;
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = signal;
  event.sigev_value.sival_ptr = note;
  int made = no_timer;
  if (system_call(SYS_timer_create, CLOCK_MONOTONIC, &event, &made) != 0) return false;
  delete_timer(timer.exchange(made));
  const itimerspec once{{0, 0}, {milliseconds / 1000, milliseconds % 1000 * 1'000'000L}};
  const long error = -system_call(SYS_timer_settime, made, 0, &once, nullptr);
  return error == 0 || error == EINVAL;  // another thread's order has come, which deleted this timer
}

void forget_signal_later() noexcept {
  timer = no_timer;
}

void end_by(int signal) noexcept {
  const struct { unsigned long words[4]; } default_action{};
  const uint64_t one = uint64_t{1} << (signal - 1);
  (void)system_call(SYS_rt_sigaction, signal, &default_action, nullptr, sizeof one);
  (void)system_call(SYS_rt_sigprocmask, SIG_UNBLOCK, &one, nullptr, sizeof one);
  (void)system_call(SYS_tgkill, system_call(SYS_getpid), system_call(SYS_gettid), signal);
}

void run_at_quick_exit(void (*function)()) noexcept {
  (void)at_quick_exit(function);
}

void end_process(int status) noexcept {
  for (;;)
    (void)system_call(SYS_exit_group, status);
}

}  // namespace sluice::os
