// operator new and operator delete, in all their forms. libsluice.so links no C++ runtime: what it needs of one when
// memory runs out (the new-handler, std::bad_alloc, catching what a handler throws) it finds at run time, where the
// caller of operator new would find it: a library opened with RTLD_LOCAL may be the only one to have a C++ runtime.
//
// This file alone is compiled with exceptions.
#include <dlfcn.h>

#include <cstdlib>
#include <new>

#include "front.hpp"
#include "program_malloc.hpp"

namespace front = sluice::front;
namespace program_malloc = sluice::program_malloc;

namespace std {
__attribute__((weak)) new_handler get_new_handler() noexcept;
__attribute__((weak)) void __throw_bad_alloc();  // of libstdc++ and of libc++
}  // namespace std

// What the compiler refers to for the handlers below. A program without a C++ runtime never gets there.
asm(".weak __gxx_personality_v0\n.weak __cxa_begin_catch\n.weak __cxa_end_catch\n.weak _Unwind_Resume\n.weak "
    "_ZSt9terminatev\n"
    ".weak __cxa_call_terminate\n");

namespace {

// In a form of operator new, and in what is inlined into it: the code that called it.
#define SLUICE_CALLER __builtin_return_address(0)

void* find_in(const char* library, const char* name) noexcept {
  void* const handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return nullptr;
  void* const found = dlsym(handle, name);
  dlclose(handle);  // in use by others as before: this ends the reference of the dlopen above
  return found;
}

// A name of the C++ runtime as the code at `caller` would find it: what the whole process sees comes first, then what
// is seen from the caller's library, then the usual runtimes.
template <typename Found>
Found* runtime_symbol(const char* name, const void* caller) noexcept {
  void* found = dlsym(RTLD_DEFAULT, name);
  Dl_info place{};
  if (found == nullptr && dladdr(caller, &place) != 0 && place.dli_fname != nullptr)
    found = find_in(place.dli_fname, name);
  for (const char* library : {"libstdc++.so.6", "libc++.so.1"})
    if (found == nullptr) found = find_in(library, name);
  return reinterpret_cast<Found*>(found);
}

// Calls the program's new-handler. False when there is none.
bool call_new_handler(const void* caller) {
  auto* get = &std::get_new_handler;
  if (get == nullptr) get = runtime_symbol<std::new_handler() noexcept>("_ZSt15get_new_handlerv", caller);
  const std::new_handler handler = get != nullptr ? get() : nullptr;
  if (handler == nullptr) return false;
  handler();
  return true;
}

// A runtime that the process sees has a function that throws. One that is linked into a library need not have it, but
// it has the parts of a throw expression, under their names in the C++ ABI.
[[noreturn]] void throw_bad_alloc(const void* caller) {
  if (&std::__throw_bad_alloc != nullptr) std::__throw_bad_alloc();
  auto* const allocate = runtime_symbol<void*(size_t) noexcept>("__cxa_allocate_exception", caller);
  auto* const raise = runtime_symbol<void(void*, void*, void (*)(void*))>("__cxa_throw", caller);
  auto* const type = runtime_symbol<void>("_ZTISt9bad_alloc", caller);
  auto* const destructor = runtime_symbol<void(void*)>("_ZNSt9bad_allocD1Ev", caller);
  auto* const table = runtime_symbol<void*>("_ZTVSt9bad_alloc", caller);
  if (allocate != nullptr && raise != nullptr && type != nullptr && destructor != nullptr && table != nullptr) {
    // The object is nothing but the address of its virtual functions, which begin after two words of their table.
    void* const exception = allocate(sizeof(void*));
    *static_cast<void***>(exception) = table + 2;
    raise(exception, type, destructor);
  }
  std::abort();  // operator new without a C++ runtime: there is nothing that could be thrown
}

void* allocate_once(size_t size, size_t alignment) noexcept {
  if (program_malloc::serves) [[unlikely]]
    return program_malloc::allocate(size, alignment);
  return front::allocate_aligned(alignment, size);
}

// What is done when there is no memory. Returns: whether to try again.
using OutOfMemory = bool (*)(const void* caller);

bool throw_unless_handled(const void* caller) {
  if (!call_new_handler(caller)) throw_bad_alloc(caller);
  return true;
}

bool give_up_unless_handled(const void* caller) noexcept {
  // What a handler throws is caught by the names above, which are those of a runtime that the whole process sees.
  if (&std::get_new_handler == nullptr) return false;
  try {
    return call_new_handler(caller);
  } catch (...) {
    return false;
  }
}

// Effects: while `block` is null, asks the policy and tries again.
template <OutOfMemory policy>
inline void* insist(void* block, size_t size, size_t alignment, const void* caller) {
  while (block == nullptr && policy(caller))
    block = allocate_once(size, alignment);
  return block;
}

template <OutOfMemory policy>
void* allocate_aligned(size_t size, size_t alignment, const void* caller) {
  return insist<policy>(allocate_once(size, alignment), size, alignment, caller);
}

// What remains of malloc's slow path after those parts of it that need no frame.
template <OutOfMemory policy, auto rest>
__attribute__((noinline)) void* new_rest(size_t size, sluice::ThreadCache* cache, const void* caller) {
  void* const block =
      program_malloc::serves ? program_malloc::allocate(size, sluice::min_alignment) : rest(size, cache);
  return insist<policy>(block, size, sluice::min_alignment, caller);
}

// As heap::ReturnNull.
template <OutOfMemory policy>
struct InNew {
  const void* caller;

  template <auto rest>
  __attribute__((always_inline)) void* finish(size_t size, sluice::ThreadCache* cache) const {
    return new_rest<policy, rest>(size, cache, caller);
  }
};

template <OutOfMemory policy>
__attribute__((noinline)) void* new_slow(size_t size, sluice::ThreadCache* cache, const void* caller) {
  return front::allocate_slow_with(size, cache, InNew<policy>{caller});
}

// Becomes part of operator new itself, so that the caller is that of operator new.
template <OutOfMemory policy>
inline __attribute__((always_inline)) void* new_here(size_t size, sluice::ThreadCache* cache) {
  return new_slow<policy>(size, cache, SLUICE_CALLER);
}

// The default build takes the slow path for all requests where the program's malloc serves; see pass_on_new().
template <OutOfMemory policy>
inline __attribute__((always_inline)) void* allocate(size_t size) {
  if (sluice::secure && program_malloc::serves) [[unlikely]]
    return new_here<policy>(size, sluice::thread_cache);
  return front::allocate<new_here<policy>, new_here<policy>>(size);
}

__attribute__((noinline, cold)) void end_unknown(void* block) noexcept {
  if (block != nullptr && program_malloc::serves)
    program_malloc::free(block);
  else
    sluice::heap::free_unknown(block);
}

inline __attribute__((always_inline)) void end(void* block) noexcept {
#if defined(SLUICE_SECURE)
  if (sluice::unit_index_of(block) >= sluice::region_range_units) [[unlikely]]
    return end_unknown(block);
  front::free(block);
#else
  sluice::heap::free<front::free_slow, end_unknown>(block);
#endif
}
inline __attribute__((always_inline)) void end(void* block, [[maybe_unused]] size_t size) noexcept {
#if defined(SLUICE_SECURE)
  if (sluice::unit_index_of(block) >= sluice::region_range_units) [[unlikely]]
    return end_unknown(block);
  front::free_sized(block, size);
#else
  end(block);
#endif
}

}  // namespace

#define SLUICE_EXPORT __attribute__((visibility("default")))

SLUICE_EXPORT void* operator new(size_t size) {
  return allocate<throw_unless_handled>(size);
}
SLUICE_EXPORT void* operator new[](size_t size) {
  return allocate<throw_unless_handled>(size);
}
SLUICE_EXPORT void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return allocate<give_up_unless_handled>(size);
}
SLUICE_EXPORT void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return allocate<give_up_unless_handled>(size);
}
SLUICE_EXPORT void* operator new(size_t size, std::align_val_t alignment) {
  return allocate_aligned<throw_unless_handled>(size, static_cast<size_t>(alignment), SLUICE_CALLER);
}
SLUICE_EXPORT void* operator new[](size_t size, std::align_val_t alignment) {
  return allocate_aligned<throw_unless_handled>(size, static_cast<size_t>(alignment), SLUICE_CALLER);
}
SLUICE_EXPORT void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate_aligned<give_up_unless_handled>(size, static_cast<size_t>(alignment), SLUICE_CALLER);
}
SLUICE_EXPORT void* operator new[](size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate_aligned<give_up_unless_handled>(size, static_cast<size_t>(alignment), SLUICE_CALLER);
}

// Sizes that the caller gets wrong are found in libsluice-secure.so, and do no harm in the other builds.
SLUICE_EXPORT void operator delete(void* block) noexcept {
  end(block);
}
SLUICE_EXPORT void operator delete[](void* block) noexcept {
  end(block);
}
SLUICE_EXPORT void operator delete(void* block, const std::nothrow_t&) noexcept {
  end(block);
}
SLUICE_EXPORT void operator delete[](void* block, const std::nothrow_t&) noexcept {
  end(block);
}
SLUICE_EXPORT void operator delete(void* block, size_t size) noexcept {
  end(block, size);
}
SLUICE_EXPORT void operator delete[](void* block, size_t size) noexcept {
  end(block, size);
}
SLUICE_EXPORT void operator delete(void* block, std::align_val_t) noexcept {
  end(block);
}
SLUICE_EXPORT void operator delete[](void* block, std::align_val_t) noexcept {
  end(block);
}
SLUICE_EXPORT void operator delete(void* block, std::align_val_t, const std::nothrow_t&) noexcept {
  end(block);
}
SLUICE_EXPORT void operator delete[](void* block, std::align_val_t, const std::nothrow_t&) noexcept {
  end(block);
}
SLUICE_EXPORT void operator delete(void* block, size_t size, std::align_val_t) noexcept {
  end(block, size);
}
SLUICE_EXPORT void operator delete[](void* block, size_t size, std::align_val_t) noexcept {
  end(block, size);
}
