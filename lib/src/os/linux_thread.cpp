// See thread.hpp.
#include "os/linux_call.hpp"
#include "os/thread.hpp"

#include <errno.h>
#include <link.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace sluice::os {
namespace {

// libc puts the thread's variables (TLS) on its stack, those of all libraries loaded at start. It refuses where they do
// not fit, but not where they leave no room: usual_variables do.
constexpr size_t least_stack = size_t{64} << 10;
constexpr size_t most_stack = size_t{8} << 20;
constexpr size_t usual_variables = size_t{8} << 10;

constinit std::atomic<size_t> stack_bytes{0};  // 0: not known yet

int add_variables(dl_phdr_info* info, size_t, void* sum) noexcept {
  for (unsigned i = 0; i < info->dlpi_phnum; ++i)
    if (const auto& header = info->dlpi_phdr[i]; header.p_type == PT_TLS)
      *static_cast<size_t*>(sum) += header.p_memsz + header.p_align;
  return 0;
}

// Asks the loader once, before the program's second thread: a forked child finds it asked.
size_t find_stack_bytes() noexcept {
  size_t known = stack_bytes.load(std::memory_order_relaxed);
  if (known != 0) return known;
  size_t variables = 0;
  (void)dl_iterate_phdr(add_variables, &variables);
  known = least_stack;
  if (variables > usual_variables) known += (variables - usual_variables + least_stack - 1) / least_stack * least_stack;
  stack_bytes.store(known, std::memory_order_relaxed);
  return known;
}

int create_by_libc(unsigned long* thread, const void* attributes, void* (*run)(void*), void* argument) {
  return pthread_create(thread, static_cast<const pthread_attr_t*>(attributes), run, argument);
}

constinit std::atomic<ThreadCreateFunction*> create{create_by_libc};
constinit std::atomic<ThreadJoinFunction*> join{pthread_join};

// On the stack of the thread that starts another one, up to when has_begun is set.
struct Beginning {
  const char* name;
  void (*run)() noexcept;
  std::atomic<uintptr_t> has_begun{0};
};

void* begin(void* beginning) {
  auto& own = *static_cast<Beginning*>(beginning);
  void (*const run)() noexcept = own.run;
  (void)system_call(SYS_prctl, PR_SET_NAME, own.name, 0, 0, 0);
  own.has_begun.store(1, std::memory_order_release);  // pairs with start_thread
  // Should it be gone by now, somebody wakes up for nothing, as futexes have it.
  (void)system_call(SYS_futex, &own.has_begun, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  run();
  return nullptr;
}

// All signals but SIGSYS and those that libc keeps for itself, from 32 to the first real-time signal of programs: by
// these it cancels, and has all threads change their rights. libcap does that by SIGSYS, and a sandbox that is to see a
// system call sends it to the thread that made it.
uint64_t blocked_signals() noexcept {
  constexpr int first_of_libc = 32;
  uint64_t blocked = ~(uint64_t{1} << (SIGSYS - 1));
  for (int signal = first_of_libc; signal < SIGRTMIN; ++signal)
    blocked &= ~(uint64_t{1} << (signal - 1));
  return blocked;
}

}  // namespace

void use_thread_functions(ThreadCreateFunction* create_function, ThreadJoinFunction* join_function) noexcept {
  create.store(create_function, std::memory_order_relaxed);
  join.store(join_function, std::memory_order_relaxed);
}

bool start_thread(const char* name, void (*run)() noexcept, uintptr_t* thread) noexcept {
  static_assert(sizeof(pthread_t) == sizeof(uintptr_t));
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return false;
  Beginning beginning{name, run};
  const uint64_t blocked = blocked_signals();
  uint64_t before = 0;
  const bool masked = system_call(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, &before, sizeof blocked) == 0;
  int error = masked ? EINVAL : EPERM;
  for (size_t stack = find_stack_bytes(); error == EINVAL && stack <= most_stack; stack *= 4) {
    unsigned long made = 0;
    if (pthread_attr_setstacksize(&attributes, stack) == 0)
      error = create.load(std::memory_order_relaxed)(&made, &attributes, begin, &beginning);
    *thread = made;
  }
  if (masked) (void)system_call(SYS_rt_sigprocmask, SIG_SETMASK, &before, nullptr, sizeof before);
  (void)pthread_attr_destroy(&attributes);
  while (error == 0 && beginning.has_begun.load(std::memory_order_acquire) == 0)
    wait_for(beginning.has_begun, 0, until_woken);
  return error == 0;
}

void join_thread(uintptr_t thread) noexcept {
  (void)join.load(std::memory_order_relaxed)(thread, nullptr);
}

void wait_for(std::atomic<uintptr_t>& word, uintptr_t expected, uint64_t milliseconds) noexcept {
  const timespec limit{static_cast<time_t>(milliseconds / 1000), static_cast<long>(milliseconds % 1000 * 1'000'000)};
  (void)system_call(SYS_futex, &word, FUTEX_WAIT_PRIVATE, static_cast<uint32_t>(expected),
                    milliseconds == until_woken ? nullptr : &limit, nullptr, 0);
}

uint32_t process_id() noexcept {
  return static_cast<uint32_t>(system_call(SYS_getpid));
}

}  // namespace sluice::os
