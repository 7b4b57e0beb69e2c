// operator new and operator delete, in all their forms. libsluice.so links no C++ runtime: what it needs of one when
// memory runs out (the new-handler, std::bad_alloc, catching what a handler throws) it finds in the program at run
// time.
//
// This file alone is compiled with exceptions.
#include <dlfcn.h>

#include <cstdlib>
#include <new>

#include "front.hpp"

namespace front = sluice::front;

namespace std {
__attribute__((weak)) new_handler get_new_handler() noexcept;
__attribute__((weak)) void __throw_bad_alloc();  // of libstdc++ and of libc++
}  // namespace std

// What the compiler refers to for the handlers below. A program without a C++ runtime never gets there.
asm(".weak __gxx_personality_v0\n.weak __cxa_begin_catch\n.weak __cxa_end_catch\n.weak _Unwind_Resume\n.weak "
    "_ZSt9terminatev\n"
    ".weak __cxa_call_terminate\n");

namespace {

// A function of the C++ runtime; one that was loaded after this library is found by name.
template <typename Function>
Function* runtime_function(Function* bound, const char* name) noexcept {
  if (bound != nullptr) return bound;
  void* found = dlsym(RTLD_DEFAULT, name);
  // A library that was opened with RTLD_LOCAL keeps its runtime to itself.
  for (const char* library : {"libstdc++.so.6", "libc++.so.1"}) {
    if (found != nullptr) break;
    if (void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD)) found = dlsym(handle, name);
  }
  return reinterpret_cast<Function*>(found);
}

// Calls the program's new-handler. False when there is none.
bool call_new_handler() {
  auto* get = runtime_function(&std::get_new_handler, "_ZSt15get_new_handlerv");
  const std::new_handler handler = get != nullptr ? get() : nullptr;
  if (handler == nullptr) return false;
  handler();
  return true;
}

[[noreturn]] void throw_bad_alloc() {
  if (auto* raise = runtime_function(&std::__throw_bad_alloc, "_ZSt17__throw_bad_allocv")) raise();
  std::abort();  // operator new without a C++ runtime: there is nothing that could be thrown
}

void* allocate_once(size_t size, size_t alignment) noexcept {
  return front::allocate_aligned(alignment, size);
}

// Tries until there is memory, the handler throws, or there is no handler any more.
void* allocate_or_throw(size_t size, size_t alignment) {
  for (;;) {
    if (void* block = allocate_once(size, alignment)) return block;
    if (!call_new_handler()) throw_bad_alloc();
  }
}

void* allocate_or_null(size_t size, size_t alignment) noexcept {
  for (;;) {
    if (void* block = allocate_once(size, alignment)) return block;
    try {
      if (!call_new_handler()) return nullptr;
    } catch (...) {
      return nullptr;
    }
  }
}

__attribute__((noinline)) void* new_slow(size_t size, sluice::ThreadCache* cache) {
  if (void* block = front::place_at_cursor(size, cache)) [[likely]]
    return block;
  if (void* block = front::allocate_rest(size, cache)) return block;
  return allocate_or_throw(size, sluice::min_alignment);
}
__attribute__((noinline)) void* new_slow_nothrow(size_t size, sluice::ThreadCache* cache) {
  if (void* block = front::place_at_cursor(size, cache)) [[likely]]
    return block;
  if (void* block = front::allocate_rest(size, cache)) return block;
  return allocate_or_null(size, sluice::min_alignment);
}

}  // namespace

#define SLUICE_EXPORT __attribute__((visibility("default")))

SLUICE_EXPORT void* operator new(size_t size) {
  return front::allocate<new_slow>(size);
}
SLUICE_EXPORT void* operator new[](size_t size) {
  return front::allocate<new_slow>(size);
}
SLUICE_EXPORT void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return front::allocate<new_slow_nothrow>(size);
}
SLUICE_EXPORT void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return front::allocate<new_slow_nothrow>(size);
}
SLUICE_EXPORT void* operator new(size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<size_t>(alignment));
}
SLUICE_EXPORT void* operator new[](size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<size_t>(alignment));
}
SLUICE_EXPORT void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate_or_null(size, static_cast<size_t>(alignment));
}
SLUICE_EXPORT void* operator new[](size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate_or_null(size, static_cast<size_t>(alignment));
}

// The class of a block comes from its address: sizes and alignments that the caller gets wrong do no harm.
SLUICE_EXPORT void operator delete(void* block) noexcept {
  front::free(block);
}
SLUICE_EXPORT void operator delete[](void* block) noexcept {
  front::free(block);
}
SLUICE_EXPORT void operator delete(void* block, const std::nothrow_t&) noexcept {
  front::free(block);
}
SLUICE_EXPORT void operator delete[](void* block, const std::nothrow_t&) noexcept {
  front::free(block);
}
SLUICE_EXPORT void operator delete(void* block, size_t) noexcept {
  front::free(block);
}
SLUICE_EXPORT void operator delete[](void* block, size_t) noexcept {
  front::free(block);
}
SLUICE_EXPORT void operator delete(void* block, std::align_val_t) noexcept {
  front::free(block);
}
SLUICE_EXPORT void operator delete[](void* block, std::align_val_t) noexcept {
  front::free(block);
}
SLUICE_EXPORT void operator delete(void* block, std::align_val_t, const std::nothrow_t&) noexcept {
  front::free(block);
}
SLUICE_EXPORT void operator delete[](void* block, std::align_val_t, const std::nothrow_t&) noexcept {
  front::free(block);
}
SLUICE_EXPORT void operator delete(void* block, size_t, std::align_val_t) noexcept {
  front::free(block);
}
SLUICE_EXPORT void operator delete[](void* block, size_t, std::align_val_t) noexcept {
  front::free(block);
}
