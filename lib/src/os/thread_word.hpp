// A word that each thread has for itself, and that costs malloc one load: where the thread's cache is found. Open it
// when that word is wrong before the library has started or at the end of a thread.
//
// On Linux a thread_local variable with a fixed place in the block of each thread is one (base/mutex.hpp,
// heap/thread_cache.hpp). On macOS the loader makes the variables of a library at a thread's first use, by malloc,
// which is here: a slot of pthread's specific data stands in. The slots of a thread lie behind a register, a slot for
// each key, so that one can be read without a call. (Go finds its word in the same way.)
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::os {

#if defined(__APPLE__)
#define SLUICE_THREAD_SLOTS 1

// The slot that the words are in. Until there is one, a slot that no key has been given for: it reads as null.
extern constinit size_t thread_slot __attribute__((visibility("hidden")));

// Effects: asks the system for a slot; called once, at start. False when it has none.
bool prepare_thread_words() noexcept;

namespace thread_word_detail {

#if defined(__x86_64__)
inline void* load() noexcept {
  void* value;
  asm volatile("movq %%gs:(,%1,8), %0" : "=r"(value) : "r"(thread_slot));
  return value;
}
inline void store(void* value) noexcept {
  asm volatile("movq %0, %%gs:(,%1,8)" : : "r"(value), "r"(thread_slot) : "memory");
}
inline bool change(void*& seen, void* to) noexcept {
  bool changed;
  asm volatile("cmpxchgq %3, %%gs:(,%2,8)" : "=@ccz"(changed), "+a"(seen) : "r"(thread_slot), "r"(to) : "memory");
  return changed;
}
inline uintptr_t thread() noexcept {
  uintptr_t self;
  asm("movq %%gs:0, %0" : "=r"(self));  // the first slot: the thread's own address
  return self;
}
#elif defined(__aarch64__)
inline uintptr_t thread() noexcept {
  uintptr_t slots;
  asm("mrs %0, TPIDRRO_EL0" : "=r"(slots));
  return slots & ~uintptr_t{7};  // older systems keep the processor's number there
}
inline void** slot() noexcept {
  return reinterpret_cast<void**>(thread()) + thread_slot;
}
inline void* load() noexcept {
  return __atomic_load_n(slot(), __ATOMIC_RELAXED);
}
inline void store(void* value) noexcept {
  __atomic_store_n(slot(), value, __ATOMIC_RELAXED);
}
inline bool change(void*& seen, void* to) noexcept {
  return __atomic_compare_exchange_n(slot(), &seen, to, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}
#endif

}  // namespace thread_word_detail

// What tells the calling thread from others: a multiple of 8, and not 0.
inline uintptr_t own_address() noexcept {
  return thread_word_detail::thread();
}

// The word, as a pointer. A thread that has not written it yet reads `at_first`.
template <typename Pointee>
class ThreadWord {
 public:
  constexpr explicit ThreadWord(Pointee& at_first) noexcept : at_first_(at_first) {}

  operator Pointee*() const noexcept {
    auto* value = static_cast<Pointee*>(thread_word_detail::load());
    if (value == nullptr) [[unlikely]] {
      value = &at_first_;
      asm("" : "+r"(value));  // or compilers load the address before they know that it is needed
    }
    return value;
  }
  Pointee* operator->() const noexcept { return *this; }
  Pointee& operator*() const noexcept { return *operator->(); }
  const ThreadWord& operator=(Pointee* value) const noexcept {
    thread_word_detail::store(value);
    return *this;
  }
  // As compare_exchange_strong of an atomic: a signal handler of the thread may come in between.
  bool change(Pointee*& seen, Pointee* to) const noexcept {
    void* before = seen != &at_first_ ? seen : nullptr;
    if (thread_word_detail::change(before, to)) return true;
    seen = before != nullptr ? static_cast<Pointee*>(before) : &at_first_;
    return false;
  }

 private:
  Pointee& at_first_;
};

#else

inline bool prepare_thread_words() noexcept {
  return true;
}

#endif

}  // namespace sluice::os
