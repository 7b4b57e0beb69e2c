// pthread_create and thrd_create: when the program makes its second thread, the heap's own starts
// (heap/background.hpp), before it: here a sandbox lets threads be made, and no signal handler and no lock is in the
// way. unshare and setns: the heap's thread ends before them, since some namespaces are for processes of one thread
// alone; it comes back with the program's next thread. Open it when a thread or a namespace is not made as it would be
// without the preload. Not part of libsluice.a, where the heap's thread starts with the second cache.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <threads.h>

#include <atomic>

#include "base/keep_errno.hpp"
#include "heap/background.hpp"
#include "heap/heap.hpp"
#include "os/thread.hpp"

#define SLUICE_EXPORT __attribute__((visibility("default")))

namespace {

using CreateFunction = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
using CreateC11Function = int(thrd_t*, thrd_start_t, void*);
using UnshareFunction = int(int);
using SetnsFunction = int(int, int);

// Of the libraries behind this one, which may stand before libc, too.
std::atomic<CreateFunction*> next_create{nullptr};
std::atomic<CreateC11Function*> next_create_c11{nullptr};
std::atomic<UnshareFunction*> next_unshare{nullptr};
std::atomic<SetnsFunction*> next_setns{nullptr};
std::atomic<bool> found{false};

// A function of libc itself, whatever stands before it. Since glibc 2.34 libc.so.6 has those of threads.
void* find_in_libc(const char* name) noexcept {
  void* function = nullptr;
  for (const char* library : {"libc.so.6", "libpthread.so.0"}) {
    void* const handle = function == nullptr ? dlopen(library, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
    if (handle == nullptr) continue;
    function = dlsym(handle, name);
    dlclose(handle);  // in use as before: this ends the reference of the dlopen above
  }
  return function;
}

// Where another preload stands before dlsym, what is next may be ours.
template <typename Function>
Function* find_next(const char* name, Function* own) noexcept {
  auto* const function = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
  return function != nullptr && function != own ? function : reinterpret_cast<Function*>(find_in_libc(name));
}

// All are looked for at the first call, as a rule on the only thread: later another one may hold the loader's lock, and
// wait for a thread that is to be made. Threads that look at once find the same.
void find_all() noexcept {
  next_create.store(find_next<CreateFunction>("pthread_create", pthread_create), std::memory_order_relaxed);
  next_create_c11.store(find_next<CreateC11Function>("thrd_create", thrd_create), std::memory_order_relaxed);
  next_unshare.store(find_next<UnshareFunction>("unshare", unshare), std::memory_order_relaxed);
  next_setns.store(find_next<SetnsFunction>("setns", setns), std::memory_order_relaxed);
  using sluice::os::ThreadCreateFunction;
  using sluice::os::ThreadJoinFunction;
  auto* const create = reinterpret_cast<ThreadCreateFunction*>(find_in_libc("pthread_create"));
  auto* const join = reinterpret_cast<ThreadJoinFunction*>(find_in_libc("pthread_join"));
  if (create != nullptr && join != nullptr) sluice::os::use_thread_functions(create, join);
  found.store(true, std::memory_order_release);
}

void before_a_thread() noexcept {
  const sluice::KeepErrno keep;
  if (!found.load(std::memory_order_acquire)) find_all();  // pairs with its last store
  if (!sluice::heap::stands_aside()) sluice::background::start();
}

void before_a_namespace() noexcept {
  const sluice::KeepErrno keep;
  if (!found.load(std::memory_order_acquire)) find_all();  // pairs with its last store
  if (!sluice::heap::stands_aside()) sluice::background::stop();
}

int unknown_function() noexcept {
  errno = ENOSYS;
  return -1;
}

}  // namespace

extern const char stands_before_pthread_create;
const char stands_before_pthread_create = 1;

extern "C" {

SLUICE_EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                                 void* argument) noexcept {
  before_a_thread();
  CreateFunction* const create = next_create.load(std::memory_order_relaxed);
  return create != nullptr ? create(thread, attributes, run, argument) : EAGAIN;
}

SLUICE_EXPORT int thrd_create(thrd_t* thread, thrd_start_t run, void* argument) {
  before_a_thread();
  CreateC11Function* const create = next_create_c11.load(std::memory_order_relaxed);
  return create != nullptr ? create(thread, run, argument) : thrd_error;
}

SLUICE_EXPORT int unshare(int flags) noexcept {
  before_a_namespace();
  UnshareFunction* const next = next_unshare.load(std::memory_order_relaxed);
  return next != nullptr ? next(flags) : unknown_function();
}

SLUICE_EXPORT int setns(int fd, int kind) noexcept {
  before_a_namespace();
  SetnsFunction* const next = next_setns.load(std::memory_order_relaxed);
  return next != nullptr ? next(fd, kind) : unknown_function();
}

}  // extern "C"
