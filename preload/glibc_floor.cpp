// The library runs on glibc 2.17 and later, whatever version it was linked with: references to functions that have a
// newer version there (--wrap, see CMakeLists.txt) come here, and go on to the version that every glibc has. Open it
// when exports_test finds a symbol that is too new.
//
// Before glibc 2.34 some of them were in libdl.so.2 and libpthread.so.0. This library names neither, which nobody else
// needs any more: where the program has not loaded them, it asks libc's loader for the first, and does without the
// second until the program makes threads. Part of the shared libraries alone: a static program has one libc, its own.
#if defined(SLUICE_GLIBC_FLOOR)
#include "glibc_floor.hpp"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>

#include <atomic>
#include <cstddef>

#if defined(__x86_64__)
#define SLUICE_OLDEST "GLIBC_2.2.5"
#define SLUICE_OLDEST_OF_CANCELLATION "GLIBC_2.3.3"
#define SLUICE_STAT_VERSION 1
#else
#define SLUICE_OLDEST "GLIBC_2.17"
#define SLUICE_OLDEST_OF_CANCELLATION "GLIBC_2.17"
#define SLUICE_STAT_VERSION 0
#endif

// old_NAME: the oldest version of a function; null where the library that has it is not loaded.
#define SLUICE_OLD_VERSION(name, version)       \
  asm(".symver old_" #name ", " #name version); \
  extern "C" __attribute__((weak)) decltype(name) old_##name;
#define SLUICE_OLD(name) SLUICE_OLD_VERSION(name, "@" SLUICE_OLDEST)

SLUICE_OLD(dlsym)
SLUICE_OLD(dlvsym)
SLUICE_OLD(dladdr)
SLUICE_OLD(dlclose)
SLUICE_OLD(pthread_key_create)
SLUICE_OLD(pthread_key_delete)
SLUICE_OLD(pthread_setspecific)
SLUICE_OLD(pthread_join)
SLUICE_OLD(pthread_attr_setstacksize)

extern "C" {

// libc's own loader, for its plug-ins: no version since 2.34 has it.
__attribute__((weak)) void* __libc_dlopen_mode(const char*, int) noexcept;
__attribute__((weak)) void* __libc_dlsym(void*, const char*) noexcept;

// What fstat and lstat are compiled to before 2.33, which is still there.
int __fxstat(int version, int descriptor, struct stat*) noexcept;
int __lxstat(int version, const char* path, struct stat*) noexcept;
}

SLUICE_OLD_VERSION(__pthread_register_cancel, "@" SLUICE_OLDEST_OF_CANCELLATION)
SLUICE_OLD_VERSION(__pthread_unregister_cancel, "@" SLUICE_OLDEST_OF_CANCELLATION)
SLUICE_OLD_VERSION(__pthread_unwind_next, "@" SLUICE_OLDEST_OF_CANCELLATION)

namespace {

constexpr int from_program = static_cast<int>(0x80000000u);  // __RTLD_DLOPEN: as if dlopen had been called

void* open_by_libc(const char* library, int mode) noexcept {
  if (__libc_dlopen_mode == nullptr || __libc_dlsym == nullptr) return nullptr;
  return __libc_dlopen_mode(library, mode | from_program);
}

template <typename Function>
Function* function_of(void* library, const char* name) noexcept {
  return library != nullptr ? reinterpret_cast<Function*>(__libc_dlsym(library, name)) : nullptr;
}

// libdl.so.2 where the program does without; opened once, at load or at a call that comes before.
struct LibDl {
  void* handle;
  decltype(dlsym)* sym;
  decltype(dlvsym)* vsym;
  decltype(dladdr)* addr;
  decltype(dlclose)* close;
};
constinit LibDl libdl_found{};
constinit std::atomic<bool> libdl_is_open{false};

const LibDl& libdl() noexcept {
  if (libdl_is_open.load(std::memory_order_acquire)) return libdl_found;  // pairs with the store below
  void* const handle = open_by_libc("libdl.so.2", RTLD_LAZY);
  // Threads that ask at once write the same.
  libdl_found = {handle, function_of<decltype(dlsym)>(handle, "dlsym"), function_of<decltype(dlvsym)>(handle, "dlvsym"),
                 function_of<decltype(dladdr)>(handle, "dladdr"), function_of<decltype(dlclose)>(handle, "dlclose")};
  libdl_is_open.store(true, std::memory_order_release);
  return libdl_found;
}

// libpthread.so.0 where the program has loaded it since the start. Until then there is one thread, whose end is the end
// of the process: keys are kept in mind.
struct LibPthread {
  decltype(pthread_key_create)* key_create;
  decltype(pthread_setspecific)* setspecific;
  decltype(pthread_join)* join;
  decltype(pthread_attr_setstacksize)* attr_setstacksize;
};
constinit LibPthread libpthread{};
constinit std::atomic<bool> libpthread_is_there{false};

struct Key {
  void (*destructor)(void*);
  pthread_key_t real;
};
constexpr pthread_key_t most_keys = 4;  // more than the library makes
constinit Key keys[most_keys]{};
constinit pthread_key_t key_count = 0;

bool has_late_threads() noexcept {
  return libpthread_is_there.load(std::memory_order_acquire);  // pairs with look_for_threads()
}

__attribute__((constructor(101))) void start() noexcept {
  if (old_dlsym == nullptr) (void)libdl();  // later a signal handler may ask
}

}  // namespace

void sluice::glibc_floor::look_for_threads() noexcept {
  if (old_pthread_key_create != nullptr || has_late_threads()) return;
  void* const handle = open_by_libc("libpthread.so.0", RTLD_LAZY | RTLD_NOLOAD);
  const LibPthread found = {function_of<decltype(pthread_key_create)>(handle, "pthread_key_create"),
                            function_of<decltype(pthread_setspecific)>(handle, "pthread_setspecific"),
                            function_of<decltype(pthread_join)>(handle, "pthread_join"),
                            function_of<decltype(pthread_attr_setstacksize)>(handle, "pthread_attr_setstacksize")};
  if (found.key_create == nullptr || found.setspecific == nullptr || found.join == nullptr) return;
  for (pthread_key_t i = 0; i < key_count; ++i)
    if (found.key_create(&keys[i].real, keys[i].destructor) != 0) return;  // tried again before the next thread
  libpthread = found;
  libpthread_is_there.store(true, std::memory_order_release);  // pairs with has_late_threads()
}

extern "C" {

// What stands behind this library goes on by its name: libc knows the caller by the return address.
void* __wrap_dlsym(void* handle, const char* name) noexcept {
  if (old_dlsym != nullptr) return old_dlsym(handle, name);
  const LibDl& late = libdl();
  void* const found = late.sym != nullptr ? late.sym(handle, name) : nullptr;
  if (found != nullptr || (handle != RTLD_NEXT && handle != RTLD_DEFAULT)) return found;
  // libdl.so.2 was opened for this library alone, so that nothing finds its functions; or there is none, and libc
  // serves.
  void* const in_libdl = function_of<void>(late.handle, name);
  return in_libdl != nullptr ? in_libdl : function_of<void>(open_by_libc("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), name);
}

void* __wrap_dlvsym(void* handle, const char* name, const char* version) noexcept {
  auto* const function = old_dlvsym != nullptr ? old_dlvsym : libdl().vsym;
  return function != nullptr ? function(handle, name, version) : nullptr;
}

int __wrap_dladdr(const void* address, Dl_info* info) noexcept {
  auto* const function = old_dladdr != nullptr ? old_dladdr : libdl().addr;
  return function != nullptr ? function(address, info) : 0;
}

int __wrap_dlclose(void* handle) noexcept {
  auto* const function = old_dlclose != nullptr ? old_dlclose : libdl().close;
  return function != nullptr ? function(handle) : -1;
}

int __wrap_pthread_key_create(pthread_key_t* key, void (*destructor)(void*)) noexcept {
  if (old_pthread_key_create != nullptr) return old_pthread_key_create(key, destructor);
  if (key_count == most_keys) return EAGAIN;
  Key& made = keys[key_count];
  made.destructor = destructor;
  const int error = has_late_threads() ? libpthread.key_create(&made.real, destructor) : 0;
  if (error == 0) *key = key_count++;
  return error;
}

int __wrap_pthread_key_delete(pthread_key_t key) noexcept {
  return old_pthread_key_delete != nullptr ? old_pthread_key_delete(key) : EINVAL;
}

int __wrap_pthread_setspecific(pthread_key_t key, const void* value) noexcept {
  if (old_pthread_setspecific != nullptr) return old_pthread_setspecific(key, value);
  return has_late_threads() ? libpthread.setspecific(keys[key].real, value) : 0;
}

int __wrap_pthread_join(pthread_t thread, void** result) {
  if (old_pthread_join != nullptr) return old_pthread_join(thread, result);
  return has_late_threads() ? libpthread.join(thread, result) : ESRCH;
}

int __wrap_pthread_attr_setstacksize(pthread_attr_t* attributes, size_t size) noexcept {
  if (old_pthread_attr_setstacksize != nullptr) return old_pthread_attr_setstacksize(attributes, size);
  return has_late_threads() && libpthread.attr_setstacksize != nullptr ? libpthread.attr_setstacksize(attributes, size)
                                                                       : ENOSYS;
}

// Of one thread in glibc, as pthread_sigmask.
int __wrap_pthread_sigmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  return sigprocmask(how, set, before) == 0 ? 0 : errno;
}

// What the macro pthread_cleanup_push calls. Without libpthread.so.0 nothing is cancelled.
void __wrap___pthread_register_cancel(__pthread_unwind_buf_t* buffer) {
  if (old___pthread_register_cancel != nullptr) old___pthread_register_cancel(buffer);
}
void __wrap___pthread_unregister_cancel(__pthread_unwind_buf_t* buffer) {
  if (old___pthread_unregister_cancel != nullptr) old___pthread_unregister_cancel(buffer);
}
[[noreturn]] void __wrap___pthread_unwind_next(__pthread_unwind_buf_t* buffer) {
  old___pthread_unwind_next(buffer);
  __builtin_unreachable();
}

int __wrap_fstat(int descriptor, struct stat* about) noexcept {
  return __fxstat(SLUICE_STAT_VERSION, descriptor, about);
}
int __wrap_lstat(const char* path, struct stat* about) noexcept {
  return __lxstat(SLUICE_STAT_VERSION, path, about);
}

}  // extern "C"
#endif
