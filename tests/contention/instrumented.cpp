// What code that is compiled with -fsanitize=thread calls at each access: here it does the access and tells the model.
// It takes the place of ThreadSanitizer's own library, which is not linked. Open it when a compiler calls a function
// that is missing. Source: the names and arguments of compiler-rt's tsan_interface.h and tsan_interface_atomic.h.
#include <cstdint>

#include "processors.hpp"

using sluice::contention::Access;
using sluice::contention::access;

// Compilers know these names, some with other types of pointers.
#pragma GCC diagnostic ignored "-Wbuiltin-declaration-mismatch"
#pragma GCC diagnostic ignored "-Wmissing-declarations"

#define SLUICE_PLAIN(bytes)                                \
  void __tsan_read##bytes(void* address) {                 \
    access(address, bytes, Access::Read);                  \
  }                                                        \
  void __tsan_write##bytes(void* address) {                \
    access(address, bytes, Access::Write);                 \
  }                                                        \
  void __tsan_read_write##bytes(void* address) {           \
    access(address, bytes, Access::Write);                 \
  }                                                        \
  void __tsan_unaligned_read##bytes(const void* address) { \
    access(address, bytes, Access::Read);                  \
  }                                                        \
  void __tsan_unaligned_write##bytes(void* address) {      \
    access(address, bytes, Access::Write);                 \
  }                                                        \
  void __tsan_unaligned_read_write##bytes(void* address) { \
    access(address, bytes, Access::Write);                 \
  }

// One thread runs at a time, so that the strongest order will do for all.
#define SLUICE_FETCH(bits, name, operation)                                                           \
  int##bits##_t __tsan_atomic##bits##_fetch_##name(volatile int##bits##_t* a, int##bits##_t v, int) { \
    access(a, sizeof *a, Access::Update);                                                             \
    return operation(a, v, __ATOMIC_SEQ_CST);                                                         \
  }
#define SLUICE_COMPARE(bits, name)                                                                                   \
  int __tsan_atomic##bits##_compare_exchange_##name(volatile int##bits##_t* a, int##bits##_t* seen, int##bits##_t v, \
                                                    int, int) {                                                      \
    access(a, sizeof *a, Access::Update);                                                                            \
    return __atomic_compare_exchange_n(a, seen, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ? 1 : 0;               \
  }
#define SLUICE_ATOMIC(bits)                                                                               \
  int##bits##_t __tsan_atomic##bits##_load(const volatile int##bits##_t* a, int) {                        \
    access(a, sizeof *a, Access::Read);                                                                   \
    return __atomic_load_n(a, __ATOMIC_SEQ_CST);                                                          \
  }                                                                                                       \
  void __tsan_atomic##bits##_store(volatile int##bits##_t* a, int##bits##_t v, int) {                     \
    access(a, sizeof *a, Access::Write);                                                                  \
    __atomic_store_n(a, v, __ATOMIC_SEQ_CST);                                                             \
  }                                                                                                       \
  int##bits##_t __tsan_atomic##bits##_exchange(volatile int##bits##_t* a, int##bits##_t v, int) {         \
    access(a, sizeof *a, Access::Update);                                                                 \
    return __atomic_exchange_n(a, v, __ATOMIC_SEQ_CST);                                                   \
  }                                                                                                       \
  SLUICE_FETCH(bits, add, __atomic_fetch_add)                                                             \
  SLUICE_FETCH(bits, sub, __atomic_fetch_sub)                                                             \
  SLUICE_FETCH(bits, and, __atomic_fetch_and)                                                             \
  SLUICE_FETCH(bits, or, __atomic_fetch_or)                                                               \
  SLUICE_FETCH(bits, xor, __atomic_fetch_xor)                                                             \
  SLUICE_COMPARE(bits, strong)                                                                            \
  SLUICE_COMPARE(bits, weak)                                                                              \
  int##bits##_t __tsan_atomic##bits##_compare_exchange_val(volatile int##bits##_t* a, int##bits##_t seen, \
                                                           int##bits##_t v, int, int) {                   \
    (void)__tsan_atomic##bits##_compare_exchange_strong(a, &seen, v, 0, 0);                               \
    return seen;                                                                                          \
  }

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void** address, void*) {
  access(address, sizeof *address, Access::Write);
}
void __tsan_vptr_read(void** address) {
  access(address, sizeof *address, Access::Read);
}
void __tsan_read_range(void* address, unsigned long bytes) {
  access(address, bytes, Access::Read);
}
void __tsan_write_range(void* address, unsigned long bytes) {
  access(address, bytes, Access::Write);
}
void __tsan_atomic_thread_fence(int) {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
void __tsan_atomic_signal_fence(int) {
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
}

SLUICE_PLAIN(1)
SLUICE_PLAIN(2)
SLUICE_PLAIN(4)
SLUICE_PLAIN(8)
SLUICE_PLAIN(16)
SLUICE_ATOMIC(8)
SLUICE_ATOMIC(16)
SLUICE_ATOMIC(32)
SLUICE_ATOMIC(64)

}  // extern "C"
