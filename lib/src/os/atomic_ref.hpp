// std::atomic_ref, also with C++ libraries that lack it: LLVM's before version 19, which Apple's compilers have before
// Xcode 16.3. Open it when an atomic operation on a plain variable is missing.
#pragma once

#include <atomic>

namespace sluice {

#if defined(__cpp_lib_atomic_ref)

using std::atomic_ref;

#else

template <typename T>
class atomic_ref {
 public:
  explicit atomic_ref(T& value) noexcept : value_(&value) {}

  T load(std::memory_order order) const noexcept {
    T result;
    __atomic_load(value_, &result, number_of(order));
    return result;
  }
  void store(T to, std::memory_order order) const noexcept { __atomic_store(value_, &to, number_of(order)); }
  T exchange(T to, std::memory_order order) const noexcept {
    T result;
    __atomic_exchange(value_, &to, &result, number_of(order));
    return result;
  }
  T fetch_or(T bits, std::memory_order order) const noexcept {
    return __atomic_fetch_or(value_, bits, number_of(order));
  }
  bool compare_exchange_strong(T& expected, T to, std::memory_order order) const noexcept {
    return __atomic_compare_exchange(value_, &expected, &to, false, number_of(order), number_of(after_failure(order)));
  }

 private:
  static_assert(static_cast<int>(std::memory_order_seq_cst) == __ATOMIC_SEQ_CST);
  static constexpr int number_of(std::memory_order order) noexcept { return static_cast<int>(order); }
  // What the standard says of the load that remains.
  static constexpr std::memory_order after_failure(std::memory_order order) noexcept {
    if (order == std::memory_order_acq_rel) return std::memory_order_acquire;
    return order == std::memory_order_release ? std::memory_order_relaxed : order;
  }

  T* value_;
};

#endif

}  // namespace sluice
