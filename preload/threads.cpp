// pthread_create and thrd_create: when the program makes its second thread, the heap's own (heap/background.hpp) starts
// before it: here a sandbox lets threads be made, and no signal handler and no lock is in the way. Open it when a
// thread is not made as it would be without the preload. Not part of libsluice.a, where the heap's thread starts with
// the second cache.
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <threads.h>

#include <atomic>

#include "glibc_floor.hpp"
#include "glibc_names.hpp"
#include "heap/background.hpp"
#include "heap/heap.hpp"
#include "os/keep_errno.hpp"
#include "os/process.hpp"
#include "os/thread.hpp"
#include "program_malloc.hpp"

namespace {

using CreateFunction = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
using CreateC11Function = int(thrd_t*, thrd_start_t, void*);

// Of the libraries behind this one, which may stand before libc, too.
std::atomic<CreateFunction*> next_create{nullptr};
std::atomic<CreateC11Function*> next_create_c11{nullptr};
std::atomic<bool> found{false};

struct Places {
  uintptr_t one;
  uintptr_t other;
};

int has_both(dl_phdr_info* object, size_t, void* places) noexcept {
  const auto* const wanted = static_cast<const Places*>(places);
  bool has_one = false;
  bool has_other = false;
  for (size_t i = 0; i != object->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = object->dlpi_phdr[i];
    if (part.p_type != PT_LOAD) continue;
    const uintptr_t begin = object->dlpi_addr + part.p_vaddr;
    has_one = has_one || wanted->one - begin < part.p_memsz;
    has_other = has_other || wanted->other - begin < part.p_memsz;
  }
  return has_one && has_other ? 1 : 0;
}

// What nobody stands before shows where libc is.
bool is_of_libc(void* function) noexcept {
  Places places{reinterpret_cast<uintptr_t>(function),
                reinterpret_cast<uintptr_t>(dlsym(RTLD_NEXT, "gnu_get_libc_version"))};
  return function != nullptr && places.other != 0 && dl_iterate_phdr(has_both, &places) == 1;
}

// A function of libc itself, whatever stands before it. Since glibc 2.34 libc.so.6 has those of threads. It is asked of
// dlopen only where another preload stands before it: one may stand before dlopen, too, and make a thread there under a
// lock of its own (heaptrack), which would come here again.
void* find_in_libc(const char* name) noexcept {
  void* function = dlsym(RTLD_NEXT, name);
  if (is_of_libc(function)) return function;
  function = nullptr;
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

// At load, or at a call that comes before: later another thread may hold the loader's lock, and wait for a thread that
// is to be made, and what dlerror() has to say is the program's.
__attribute__((constructor(101))) void find_all() noexcept {
  sluice::glibc_floor::look_for_threads();
  next_create.store(find_next<CreateFunction>("pthread_create", pthread_create), std::memory_order_relaxed);
  next_create_c11.store(find_next<CreateC11Function>("thrd_create", thrd_create), std::memory_order_relaxed);
  using sluice::os::ThreadCreateFunction;
  using sluice::os::ThreadJoinFunction;
  auto* const create = reinterpret_cast<ThreadCreateFunction*>(find_in_libc("pthread_create"));
  auto* const join = reinterpret_cast<ThreadJoinFunction*>(find_in_libc("pthread_join"));
  if (create != nullptr && join != nullptr) sluice::os::use_thread_functions(create, join);
  found.store(true, std::memory_order_release);
}

void before_a_thread() noexcept {
  const sluice::KeepErrno keep;
  // Pairs with its last store. Before glibc 2.34 a program may have loaded the functions of threads since.
  if (!found.load(std::memory_order_acquire) || next_create.load(std::memory_order_relaxed) == nullptr) find_all();
  if (sluice::heap::stands_aside() || sluice::program_malloc::serves) return;
  sluice::heap::prepare_for_threads();
  sluice::background::start();
}

// Effects: ends the heap's thread and the one that answers (stats/attach.hpp) for good: the program's, which could not
// be made beside them, goes first. Returns: whether there was one, so that it pays to try again.
bool makes_room() noexcept {
  const sluice::KeepErrno keep;
  return sluice::background::stop_for_good();
}

// Tries it again where there is room now. The system counts a thread for a moment longer than it takes to join it.
// `again(result)`: whether the result may come of that.
template <typename Create, typename Again>
int create_with_room(Create create, Again again) noexcept {
  constexpr unsigned most_tries = 100;  // a millisecond each
  int result = create();
  if (!again(result) || !makes_room()) return result;
  for (unsigned i = 0; i < most_tries; ++i) {
    result = create();
    if (!again(result)) return result;
    const sluice::KeepErrno keep;
    sluice::os::sleep_briefly();
  }
  return result;
}

}  // namespace

extern const char stands_before_pthread_create;
const char stands_before_pthread_create = 1;

extern "C" {

SLUICE_EXPORT int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                                 void* argument) SLUICE_OF_LIBC {
  before_a_thread();
  CreateFunction* const create = next_create.load(std::memory_order_relaxed);
  if (create == nullptr) return EAGAIN;
  return create_with_room([=]() { return create(thread, attributes, run, argument); },
                          [](int error) { return error == EAGAIN; });
}

SLUICE_EXPORT int thrd_create(thrd_t* thread, thrd_start_t run, void* argument) {
  before_a_thread();
  CreateC11Function* const create = next_create_c11.load(std::memory_order_relaxed);
  if (create == nullptr) return thrd_error;
  return create_with_room([=]() { return create(thread, run, argument); },
                          [](int result) { return result != thrd_success; });
}

}  // extern "C"
