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

// Tries until there is memory, the handler throws, or there is no handler any more.
void* allocate_or_throw(size_t size, size_t alignment, const void* caller) {
  for (;;) {
    if (void* block = allocate_once(size, alignment)) return block;
    if (!call_new_handler(caller)) throw_bad_alloc(caller);
  }
}

void* allocate_or_null(size_t size, size_t alignment, const void* caller) noexcept {
  for (;;) {
    if (void* block = allocate_once(size, alignment)) return block;
    // What a handler throws is caught by the names above, which are those of a runtime that the whole process sees.
    if (&std::get_new_handler == nullptr) return nullptr;
    try {
      if (!call_new_handler(caller)) return nullptr;
    } catch (...) {
      return nullptr;
    }
  }
}

__attribute__((noinline)) void* new_rest(size_t size, sluice::ThreadCache* cache, const void* caller) {
  if (!program_malloc::serves) [[likely]]
    if (void* block = front::allocate_rest(size, cache)) return block;
  return allocate_or_throw(size, sluice::min_alignment, caller);
}
__attribute__((noinline)) void* new_rest_nothrow(size_t size, sluice::ThreadCache* cache, const void* caller) {
  if (!program_malloc::serves) [[likely]]
    if (void* block = front::allocate_rest(size, cache)) return block;
  return allocate_or_null(size, sluice::min_alignment, caller);
}

// The fast paths; none of them needs a frame.
template <auto rest>
__attribute__((noinline)) void* new_slow(size_t size, sluice::ThreadCache* cache, const void* caller) {
  if (void* block = front::place_at_cursor(size, cache)) [[likely]]
    return block;
  if (void* block = front::take_unguarded(size, cache)) return block;
  return rest(size, cache, caller);
}

// These become part of operator new itself, so that the caller is that of operator new.
inline __attribute__((always_inline)) void* new_here(size_t size, sluice::ThreadCache* cache) {
  return new_slow<new_rest>(size, cache, SLUICE_CALLER);
}
inline __attribute__((always_inline)) void* new_nothrow_here(size_t size, sluice::ThreadCache* cache) {
  return new_slow<new_rest_nothrow>(size, cache, SLUICE_CALLER);
}

// The default build takes the slow path for all requests where the program's malloc serves; see pass_on_new().
template <auto slow, auto rest>
inline __attribute__((always_inline)) void* allocate_short(size_t size) {
  if (sluice::secure && program_malloc::serves) [[unlikely]]
    return rest(size, sluice::thread_cache, SLUICE_CALLER);
  return front::allocate<slow>(size);
}

__attribute__((noinline, cold)) void end_unknown(void* block) noexcept {
  if (block != nullptr && program_malloc::serves)
    program_malloc::free(block);
  else
    sluice::heap::free_unknown(block);
}

inline __attribute__((always_inline)) void end(void* block) noexcept {
#if defined(SLUICE_SECURE)
  if (sluice::unit_index_of(block) >= sluice::region_window_units) [[unlikely]]
    return end_unknown(block);
  front::free(block);
#else
  sluice::heap::free<front::free_slow, end_unknown>(block);
#endif
}
inline __attribute__((always_inline)) void end(void* block, [[maybe_unused]] size_t size) noexcept {
#if defined(SLUICE_SECURE)
  if (sluice::unit_index_of(block) >= sluice::region_window_units) [[unlikely]]
    return end_unknown(block);
  front::free_sized(block, size);
#else
  end(block);
#endif
}

}  // namespace

#define SLUICE_EXPORT __attribute__((visibility("default")))

SLUICE_EXPORT void* operator new(size_t size) {
  return allocate_short<new_here, new_rest>(size);
}
SLUICE_EXPORT void* operator new[](size_t size) {
  return allocate_short<new_here, new_rest>(size);
}
SLUICE_EXPORT void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return allocate_short<new_nothrow_here, new_rest_nothrow>(size);
}
SLUICE_EXPORT void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return allocate_short<new_nothrow_here, new_rest_nothrow>(size);
}
SLUICE_EXPORT void* operator new(size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<size_t>(alignment), SLUICE_CALLER);
}
SLUICE_EXPORT void* operator new[](size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<size_t>(alignment), SLUICE_CALLER);
}
SLUICE_EXPORT void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate_or_null(size, static_cast<size_t>(alignment), SLUICE_CALLER);
}
SLUICE_EXPORT void* operator new[](size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate_or_null(size, static_cast<size_t>(alignment), SLUICE_CALLER);
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
