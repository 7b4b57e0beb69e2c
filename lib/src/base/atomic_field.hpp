// An atomic that may be a member of a union and may begin its life in memory that reads as zero: std::atomic has a
// constructor and can do neither. Open it for fields of descriptors that several threads use.
#pragma once

#include "os/atomic_ref.hpp"

namespace sluice {

template <typename T>
struct AtomicField {
  T value;  // for the functions here alone

  T load(std::memory_order order) const noexcept { return ref().load(order); }
  void store(T to, std::memory_order order) noexcept { ref().store(to, order); }
  T exchange(T to, std::memory_order order) noexcept { return ref().exchange(to, order); }
  T fetch_or(T bits, std::memory_order order) noexcept { return ref().fetch_or(bits, order); }
  bool compare_exchange_strong(T& expected, T to, std::memory_order order) noexcept {
    return ref().compare_exchange_strong(expected, to, order);
  }

 private:
  atomic_ref<T> ref() const noexcept { return atomic_ref<T>(const_cast<T&>(value)); }
};

}  // namespace sluice
