// sluice::handle_stack: free objects as small values that say where they are: a tile of a texture by its page and
// its place there, a voice by its device and channel. Open it when such a name fits a register and is no index from 0.
//
//   struct Tile { std::uint8_t x, y; std::uint16_t page; };
//   sluice::handle_stack<Tile, 64 * 64> free_tiles;            // 16 KiB and a counter; empty at first
//   for (std::uint8_t y = 0; y < 64; ++y)
//     for (std::uint8_t x = 0; x < 64; ++x) free_tiles.push({x, y, 0});
//   if (const std::optional<Tile> tile = free_tiles.pop()) free_tiles.push(*tile);
//
// When not: the names are 0, 1, 2 … (index_stack), or numbers of an odd width (split_index_stack); the stack should
// grow (std::vector).
//
// Complexity: constant for all functions, the constructor too; checked, a push looks through the stack.
// Memory per element: 8 * sizeof(T) bits, and a counter for all. Unchecked, an object whose bytes are all zero is an
// empty stack, so that a static one lies in .bss.
// Checked (violation.hpp): a push of a value that is in the stack already, which means that one object was released
// twice. It needs a T with ==, or one without padding and without pointers; for others nothing is found. That values
// are missing at the end is no mistake: nothing is lost with them.
// Thread-safety: none. Copies are independent of each other.
#pragma once

#include "sluice/detail/require_cpp20.hpp"

#include <bit>
#include <cstddef>
#include <memory>
#include <optional>
#include <type_traits>

#include "sluice/detail/checks.hpp"
#include "sluice/detail/slot.hpp"
#include "sluice/detail/smallest_uint.hpp"
#include "sluice/violation.hpp"

namespace sluice {

template <class T, std::size_t N, class Checks = default_checks>
class handle_stack {
  static_assert(N > 0, "a stack of no value");
  static_assert(std::is_object_v<T> && !std::is_const_v<T> && !std::is_array_v<T>);
  static_assert(std::is_trivially_copyable_v<T> && std::is_copy_constructible_v<T>, "handles are copied as bytes");

 public:
  using value_type = T;

  // Effects: the stack is empty.
  constexpr handle_stack() noexcept : handle_stack("") {}
  constexpr explicit handle_stack(const char* name) noexcept : name_(name) {}

  // Effects: the value is on top. Returns: false, and nothing has changed, when the stack is full.
  // Requires: the value is not in the stack.
  constexpr bool push(const T& value) noexcept {
    if constexpr (Checks::enabled)
      if (!check_push(value)) return false;
    if (size_ == N) return false;
    std::construct_at(items_[size_].address(), value);
    ++size_;
    return true;
  }
  // Effects: takes the value on top off the stack and puts it into `value`. Returns: false, and nothing has changed,
  // when the stack is empty. The faster of the two: an optional of a struct takes the way through memory.
  constexpr bool pop(T& value) noexcept {
    if (size_ == 0) return false;
    --size_;
    value = items_[size_].value;
    return true;
  }
  // Returns: the value that was on top, and is there no more; nothing when the stack is empty.
  constexpr std::optional<T> pop() noexcept {
    if (size_ == 0) return std::nullopt;
    --size_;
    return items_[size_].value;
  }
  // Returns: the value on top; nothing when the stack is empty.
  [[nodiscard]] constexpr std::optional<T> top() const noexcept {
    if (size_ == 0) return std::nullopt;
    return items_[size_ - 1].value;
  }
  // Effects: the stack is empty.
  constexpr void clear() noexcept { size_ = 0; }

  [[nodiscard]] constexpr std::size_t size() const noexcept { return size_; }
  [[nodiscard]] static constexpr std::size_t capacity() noexcept { return N; }
  [[nodiscard]] constexpr bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] constexpr bool full() const noexcept { return size_ == N; }

 private:
  static constexpr bool same(const T& a, const T& b) noexcept {
    if constexpr (requires { static_cast<bool>(a == b); }) {
      return static_cast<bool>(a == b);
    } else if constexpr (std::has_unique_object_representations_v<T>) {
      struct bytes {
        unsigned char at[sizeof(T)];
        constexpr bool operator==(const bytes&) const = default;
      };
      return std::bit_cast<bytes>(a) == std::bit_cast<bytes>(b);
    } else {
      return false;
    }
  }
  constexpr bool check_push(const T& value) const noexcept {
    for (std::size_t i = 0; i < size_; ++i) {
      if (!same(items_[i].value, value)) continue;
      detail::report(violation_kind::double_release, "handle_stack", name_, this, i);
      return false;
    }
    return true;
  }

  detail::slot<T> items_[N];  // those below size_ live
  detail::counter_to<N> size_ = 0;
  [[no_unique_address]] detail::object_name<Checks> name_;
};

}  // namespace sluice
