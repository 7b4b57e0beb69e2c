// See thread.hpp.
#include "os/thread.hpp"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include "os/macos_calls.hpp"

namespace sluice::os {
namespace {

constexpr size_t stack_bytes = size_t{64} << 10;

int create_by_libc(unsigned long* thread, const void* attributes, void* (*run)(void*), void* argument) {
  pthread_t made = nullptr;
  const int error = pthread_create(&made, static_cast<const pthread_attr_t*>(attributes), run, argument);
  *thread = reinterpret_cast<uintptr_t>(made);
  return error;
}

int join_by_libc(unsigned long thread, void** result) {
  return pthread_join(reinterpret_cast<pthread_t>(thread), result);
}

constinit std::atomic<ThreadCreateFunction*> create{create_by_libc};
constinit std::atomic<ThreadJoinFunction*> join{join_by_libc};
constinit const char* name_of_next = nullptr;
constinit std::atomic<uintptr_t> has_begun{0};

void* begin(void* run) {
  (void)pthread_setname_np(name_of_next);
  has_begun.store(1, std::memory_order_release);  // pairs with start_thread
  wake_on(has_begun);
  reinterpret_cast<void (*)() noexcept>(run)();
  return nullptr;
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
  name_of_next = name;
  has_begun.store(0, std::memory_order_relaxed);
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  const bool masked = pthread_sigmask(SIG_SETMASK, &all, &before) == 0;
  unsigned long made = 0;
  const bool started =
      masked && pthread_attr_setstacksize(&attributes, stack_bytes) == 0 &&
      create.load(std::memory_order_relaxed)(&made, &attributes, begin, reinterpret_cast<void*>(run)) == 0;
  *thread = made;
  if (masked) (void)pthread_sigmask(SIG_SETMASK, &before, nullptr);
  (void)pthread_attr_destroy(&attributes);
  while (started && has_begun.load(std::memory_order_acquire) == 0)
    wait_for(has_begun, 0, until_woken);
  return started;
}

void join_thread(uintptr_t thread) noexcept {
  (void)join.load(std::memory_order_relaxed)(thread, nullptr);
}

void wait_for(std::atomic<uintptr_t>& word, uintptr_t expected, uint64_t milliseconds) noexcept {
  constexpr uint64_t most = UINT32_MAX / 1000;
  if (milliseconds == 0) return;
  if (milliseconds == until_woken) return wait_on(word, expected, 0);
  wait_on(word, expected, static_cast<uint32_t>((milliseconds < most ? milliseconds : most) * 1000));
}

uint32_t process_id() noexcept {
  return static_cast<uint32_t>(getpid());
}

}  // namespace sluice::os
