// Room for one object that need not live. Open it when an array should have places for objects without making them.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

namespace sluice::detail {

// Neither makes nor ends the value: std::construct_at, or construct() below, and std::destroy_at do. As trivial to copy
// and to end as the value is. A constant's bytes are zero until it has a value, so that a static array lies in .bss.
template <class T, bool = std::is_trivially_destructible_v<T>>
union slot {
  constexpr slot() noexcept {
    if (std::is_constant_evaluated()) none = 0;  // a constant has no part without a value
  }
  constexpr T* address() noexcept { return std::addressof(value); }
  constexpr const T* address() const noexcept { return std::addressof(value); }

  T value;
  unsigned char none;
};
template <class T>
union slot<T, false> {
  constexpr slot() noexcept {
    if (std::is_constant_evaluated()) none = 0;
  }
  constexpr ~slot() {}  // NOLINT: a default one is deleted
  constexpr T* address() noexcept { return std::addressof(value); }
  constexpr const T* address() const noexcept { return std::addressof(value); }

  T value;
  unsigned char none;
};

// Where clang needs braces for an aggregate it warns of the members that are left to their initializers.
#if defined(__clang__)
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wmissing-field-initializers"
#endif

// Effects: makes an object in the storage. When its constructor throws, calls `give_back(storage)` and goes on with it.
template <class T, class GiveBack, class... Arguments>
constexpr T* construct(T* storage, [[maybe_unused]] GiveBack give_back, Arguments&&... arguments) {
  if constexpr (std::is_nothrow_constructible_v<T, Arguments...>) {
    return std::construct_at(storage, std::forward<Arguments>(arguments)...);
  } else {
    struct guard {
      GiveBack& give_back;
      T* storage;
      constexpr ~guard() {
        if (storage != nullptr) give_back(storage);
      }
    } not_made{give_back, storage};
    T* element = nullptr;
    if constexpr (std::is_constructible_v<T, Arguments...>) {
      element = std::construct_at(storage, std::forward<Arguments>(arguments)...);
    } else {  // an aggregate, for compilers that want braces; one that moves, in constant expressions
      if constexpr (std::is_move_constructible_v<T>)
        if (std::is_constant_evaluated())
          element = std::construct_at(storage, T{std::forward<Arguments>(arguments)...});
      if (element == nullptr) element = ::new (static_cast<void*>(storage)) T{std::forward<Arguments>(arguments)...};
    }
    not_made.storage = nullptr;
    return element;
  }
}

#if defined(__clang__)
#pragma clang diagnostic pop
#endif

}  // namespace sluice::detail
