// sluice::stack_pool: room for N objects inside an object, whose free slots are a stack of pointers. Open it when
// objects of one type come and go one by one, and the most that can live is known: particles, connections, requests.
//
//   sluice::stack_pool<Particle, 1000> particles;                    // static, on the stack, or a member
//   if (Particle* const spark = particles.create(position, speed)) {  // null rather than a 1001st
//     spark->step();
//     particles.destroy(spark);
//   }
//
// When not: their number is not known (pool), what names them should be smaller than a pointer (index_pool), or they
// end together (marker_arena).
//
// Complexity: all functions take constant time (in constant expressions, releasing and owns() look through the slots),
// the constructor and clear() too when unchecked: nothing is written to a slot that was never handed out. Unchecked, an
// object whose bytes are all zero is an empty pool, so that a static one lies in .bss.
// Memory per element: sizeof(T) and a pointer (64 bits); two counters for all. Any size and alignment of T will do.
// Order: what is released last is acquired first, while it is in the cache; slots that were never handed out follow in
// the order of their addresses.
// Validity: objects do not move; pointers are valid until the object is destroyed or released. The pool is neither
// copied nor moved.
// Checked (violation.hpp): double releases, pointers from elsewhere or into the middle of an object, leaks at
// destruction, writes behind an object and to a released one; costs 8 bytes (rounded up to the alignment) and a bit an
// element, and time in proportion to its size. Damage is reported when the element is released or acquired again, or
// the pool ends; the operation then goes on.
// Thread-safety: none.
#pragma once

#include "sluice/detail/require_cpp20.hpp"

#include <cstddef>
#include <memory>
#include <type_traits>
#include <utility>

#include "sluice/detail/slot_array.hpp"
#include "sluice/detail/smallest_uint.hpp"
#include "sluice/violation.hpp"

namespace sluice {

template <class T, std::size_t N, class Checks = default_checks>
class stack_pool {
  static_assert(N > 0, "a pool of no slot");
  static_assert(std::is_object_v<T> && !std::is_const_v<T> && !std::is_array_v<T>);

  using counter = detail::counter_to<N>;

 public:
  using value_type = T;

  // Effects: all slots are free.
  constexpr stack_pool() noexcept : stack_pool("") {}
  constexpr explicit stack_pool(const char* name) noexcept : slots_("stack_pool", this, name) {
    if (std::is_constant_evaluated())  // a constant has no part without a value
      for (T*& each : free_)
        each = nullptr;
  }
  // Requires: all objects are destroyed; none is destroyed here.
  constexpr ~stack_pool() = default;
  stack_pool(const stack_pool&) = delete;
  stack_pool& operator=(const stack_pool&) = delete;

  // Returns: an object made from the arguments; null when all slots are handed out.
  // Throws what the constructor throws; nothing has changed then.
  template <class... Arguments>
  constexpr T* create(Arguments&&... arguments) {
    // In constant expressions the address is not looked at: with -fsanitize=undefined gcc takes it for one that may be
    // null.
    if (std::is_constant_evaluated() && full()) return nullptr;
    T* const storage = try_acquire();
    if (!std::is_constant_evaluated() && storage == nullptr) return nullptr;
    return detail::construct(
        storage, [this](T* unused) { release(unused); }, std::forward<Arguments>(arguments)...);
  }
  // Effects: ends an object that create() made, and takes its slot back.
  constexpr void destroy(T* object) noexcept {
    if constexpr (Checks::enabled)
      if (!slots_.check(object, violation_kind::double_release)) return;
    std::destroy_at(object);
    release(object);  // looks again: the destructor may have released it
  }

  // Returns: storage for an object that does not live yet; null when all slots are handed out.
  [[nodiscard]] constexpr T* try_acquire() noexcept {
    T* storage;
    if (const counter released = released_; released != 0) [[likely]] {
      storage = detail::initialized(free_[released - 1]);
      released_ = released - 1;
    } else {
      if (fresh_ == N) return nullptr;
      storage = slots_.at(fresh_);
      ++fresh_;
    }
    if constexpr (Checks::enabled) slots_.hand_out(slots_.place_of(storage));
    return storage;
  }
  // Effects: takes storage back. Requires: it is handed out, and no object lives in it.
  constexpr void release(T* storage) noexcept {
    if constexpr (Checks::enabled)
      if (!slots_.check(storage, violation_kind::double_release)) return;
    take_back(storage);
  }
  // Effects: takes all slots back, as in a new pool. Objects end without a destructor's call.
  constexpr void clear() noexcept requires std::is_trivially_destructible_v<T> {
    if constexpr (Checks::enabled) slots_.take_back_all();
    released_ = fresh_ = 0;
  }

  // Returns: whether it is the address of a slot of this pool, handed out or not.
  [[nodiscard]] constexpr bool owns(const T* object) const noexcept { return slots_.find(object) != N; }
  // Returns: how many slots are handed out.
  [[nodiscard]] constexpr std::size_t size() const noexcept { return fresh_ - released_; }
  // Returns: how many slots are free.
  [[nodiscard]] constexpr std::size_t available() const noexcept { return N - size(); }
  [[nodiscard]] static constexpr std::size_t capacity() noexcept { return N; }
  // Returns: whether no slot is handed out.
  [[nodiscard]] constexpr bool empty() const noexcept { return size() == 0; }
  // Returns: whether all slots are handed out.
  [[nodiscard]] constexpr bool full() const noexcept { return size() == N; }

 private:
  constexpr void take_back(T* storage) noexcept {
    if constexpr (Checks::enabled) slots_.take_back(slots_.place_of(storage));
    if (released_ >= N) __builtin_unreachable();  // so that loops need not think of a counter that starts again at 0
    free_[released_] = storage;
    ++released_;
  }

  // The free slots are free_[0] … free_[released_ - 1], the last of which is handed out next, and then those from
  // fresh_ on. released_ <= fresh_ <= N.
  detail::slot_array<T, N, Checks> slots_;
  T* free_[N];
  counter released_ = 0;  // as many were handed out before and are free
  counter fresh_ = 0;     // as many were ever handed out
};

}  // namespace sluice
