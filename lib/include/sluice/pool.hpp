// sluice::pool: objects of one type, from chunks of memory. Open it when many objects come and go one by one: nodes,
// entities, messages, matrices.
//
//   sluice::pool<Entity> entities(1000);     // room for 1000 is taken here
//   Entity* const hero = entities.create("hero", 100);
//   if (Entity* const extra = entities.try_create("extra", 1)) entities.destroy(extra);  // null when all are in use
//   entities.destroy(hero);
//
// When not: the most that can live is known and small (stack_pool, inside the object), objects end together
// (marker_arena), handles should be smaller than a pointer (index_pool), threads share it (lock it yourself), or a
// container asks for nodes (pool_resource).
//
// Complexity: acquiring and releasing take constant time, a few instructions; growing is rare (the capacity doubles);
// size() and empty() count what is free.
// Memory per element: the larger of sizeof(T) and sizeof(void*), rounded up to alignof(T), and nothing beside it; some
// 24 bytes a chunk. Chunks go back when the pool ends. What is released last is acquired first.
// Validity: elements do not move; pointers are valid until the element is destroyed or released. The pool is neither
// copied nor moved.
// Checked (violation.hpp): double releases, foreign pointers, leaks at destruction, writes behind an element and to a
// released one; costs 16 bytes an element, and time in proportion to its size and to the logarithm of the capacity.
// Damage is reported when the element is released, acquired again, or the pool ends; the operation then goes on.
// Thread-safety: none.
#pragma once

#include "sluice/detail/require_cpp20.hpp"

#include <cstddef>
#include <memory>
#include <memory_resource>
#include <type_traits>
#include <utility>

#include "sluice/detail/block_pool.hpp"
#include "sluice/detail/slot.hpp"
#include "sluice/violation.hpp"

namespace sluice {

// In constant expressions, where memory cannot be cut to pieces, each element comes from std::allocator; the rest is
// the same, but for owns().
template <class T, class Checks = default_checks>
class pool {
  static_assert(std::is_object_v<T> && !std::is_const_v<T> && !std::is_array_v<T>);

 public:
  using value_type = T;

  // Effects: takes memory for `capacity` elements from the resource; without one, from std::pmr's current default.
  // Throws std::bad_alloc.
  constexpr explicit pool(std::size_t capacity = 0, std::pmr::memory_resource* resource = nullptr,
                          const char* name = "")
      : blocks_(resource_or_default(resource), detail::reporter<Checks>("pool", this, name)) {
    reserve(capacity);
  }
  // Requires: all elements are back. Effects: gives the memory back; runs no destructor of an element.
  constexpr ~pool() = default;
  pool(const pool&) = delete;
  pool& operator=(const pool&) = delete;

  // Returns: storage for an element that does not live yet; null when the capacity is used up. Takes no memory.
  [[nodiscard]] constexpr T* try_acquire() noexcept {
    if (std::is_constant_evaluated()) return size() == capacity() ? nullptr : allocate_constant();
    return static_cast<T*>(blocks_.try_acquire());
  }
  // Returns: the same, after doubling the capacity if it is used up. Throws std::bad_alloc; nothing has changed then.
  [[nodiscard]] constexpr T* acquire() {
    if (std::is_constant_evaluated()) {
      if (size() == capacity()) blocks_.count_capacity(size() == 0 ? 1 : size() * 2);
      return allocate_constant();
    }
    return static_cast<T*>(blocks_.acquire());
  }
  // Effects: takes storage back. Requires: it is handed out, and no element lives in it.
  constexpr void release(T* storage) noexcept {
    if (std::is_constant_evaluated()) {
      std::allocator<T>().deallocate(storage, 1);
      blocks_.count_released();
      return;
    }
    blocks_.release(storage);
  }

  // Returns: an element made from the arguments. Throws std::bad_alloc, and what the constructor throws; nothing has
  // changed then, but that the capacity may have grown.
  template <class... Arguments>
  constexpr T* create(Arguments&&... arguments) {
    return construct(acquire(), std::forward<Arguments>(arguments)...);
  }
  // Returns: the same, or null when the capacity is used up. Throws only what the constructor throws.
  template <class... Arguments>
  constexpr T* try_create(Arguments&&... arguments) {
    T* const storage = try_acquire();
    return storage == nullptr ? nullptr : construct(storage, std::forward<Arguments>(arguments)...);
  }
  // Effects: ends an element that create() made, and takes its storage back.
  constexpr void destroy(T* element) noexcept {
    if constexpr (Checks::enabled)
      if (!std::is_constant_evaluated() && !blocks_.check_release(element)) return;
    std::destroy_at(element);
    release(element);
  }

  // Effects: afterwards `capacity` elements fit without taking memory. Throws std::bad_alloc; nothing has changed then.
  constexpr void reserve(std::size_t capacity) {
    if (std::is_constant_evaluated())
      blocks_.count_capacity(capacity);
    else
      blocks_.reserve(capacity);
  }

  // Returns: how many elements are handed out. Complexity: constant if checked; else linear in how many are free, which
  // are counted here so that acquiring and releasing need not.
  [[nodiscard]] constexpr std::size_t size() const noexcept { return blocks_.in_use(); }
  // Returns: how many can be handed out without taking memory, with those that are.
  [[nodiscard]] constexpr std::size_t capacity() const noexcept { return blocks_.capacity(); }
  // Returns: whether no element is handed out. Complexity: as size().
  [[nodiscard]] constexpr bool empty() const noexcept { return size() == 0; }
  // Returns: whether it is the address of an element of this pool, handed out or not.
  // Complexity: linear in how many chunks were taken: the logarithm of the capacity, and the calls of reserve().
  [[nodiscard]] bool owns(const T* element) const noexcept { return blocks_.owns(element); }
  [[nodiscard]] std::pmr::memory_resource* resource() const noexcept { return blocks_.upstream(); }

 private:
  static constexpr std::pmr::memory_resource* resource_or_default(std::pmr::memory_resource* resource) noexcept {
    if (std::is_constant_evaluated() || resource != nullptr) return resource;
    return std::pmr::get_default_resource();
  }
  constexpr T* allocate_constant() {
    blocks_.count_acquired();
    return std::allocator<T>().allocate(1);
  }

  template <class... Arguments>
  constexpr T* construct(T* storage, Arguments&&... arguments) {
    return detail::construct(
        storage, [this](T* unused) { release(unused); }, std::forward<Arguments>(arguments)...);
  }

  detail::block_pool<sizeof(T), alignof(T), Checks> blocks_;
};

}  // namespace sluice
