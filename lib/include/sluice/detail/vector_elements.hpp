// Rows of elements in raw memory: making, ending and relocating them, in constant expressions too. Open it to change
// how inline_vector moves elements about, or which types it may move as bytes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <memory>
#include <memory_resource>
#include <type_traits>
#include <utility>

namespace sluice::detail {

// Whether an element wants to be told the container's resource: std::pmr::string, containers of ours, pairs of them.
template <class T>
inline constexpr bool takes_allocator = std::uses_allocator_v<T, std::pmr::polymorphic_allocator<T>>;
template <class First, class Second>
inline constexpr bool takes_allocator<std::pair<First, Second>> = takes_allocator<First> || takes_allocator<Second>;

// Whether bytes may be copied in place of elements: not where a copy is told its container's resource.
template <class T>
inline constexpr bool moves_as_bytes = std::is_trivially_copyable_v<T> && !takes_allocator<T>;

// Whether a copy of an element is cheap and observed by no one, so that it may be made before there is room.
template <class T>
inline constexpr bool held_in_registers = moves_as_bytes<T>&& std::is_copy_constructible_v<T> &&
                                          sizeof(T) <= 2 * sizeof(void*);

// Whether elements can change their place without the chance of being lost half-way.
template <class T>
inline constexpr bool relocates_safely = moves_as_bytes<T> || std::is_nothrow_move_constructible_v<T>;

template <class T>
constexpr void destroy_elements(T* first, std::size_t count) noexcept {
  if (!std::is_trivially_destructible_v<T> || std::is_constant_evaluated()) {
    for (; count != 0; --count, ++first)
      std::destroy_at(first);
  }
}

// Elements that are being made, one behind the other; destroyed when making the next one throws.
template <class T>
class elements_in_making {
 public:
  constexpr explicit elements_in_making(T* first) noexcept : first_(first), next_(first) {}
  // Takes over `count` elements that are made.
  constexpr elements_in_making(T* first, std::size_t count) noexcept : first_(first), next_(first + count) {}
  constexpr ~elements_in_making() { destroy_elements(first_, static_cast<std::size_t>(next_ - first_)); }
  elements_in_making(const elements_in_making&) = delete;
  elements_in_making& operator=(const elements_in_making&) = delete;

  constexpr T* next() const noexcept { return next_; }
  constexpr void made_one() noexcept { ++next_; }
  constexpr void keep() noexcept { first_ = next_; }

 private:
  T* first_;
  T* next_;
};

// Whether a row is so short that a loop moves its bytes sooner than a call of memmove. That, besides, reads what was
// written a moment ago by pieces of other sizes, for which a processor waits.
template <class T>
constexpr bool is_short_row(std::size_t count) noexcept {
  return count <= (sizeof(T) <= 16 ? 16 : 256 / sizeof(T));
}
template <class T>
void relocate_one(T* from, T*& to) noexcept {
  struct alignas(T) piece {
    unsigned char bytes[sizeof(T)];
  } aside;
  std::memcpy(&aside, static_cast<const void*>(from), sizeof(T));
  std::memcpy(static_cast<void*>(to), &aside, sizeof(T));
#if defined(__GNUC__)
  asm("" : "+r"(to));  // which keeps the compiler from making a memmove of the loop
#endif
}

// Effects: elements live at `target`, which is `first` or before it, and no more where they were.
template <class T>
constexpr void relocate_down(T* first, std::size_t count, T* target) noexcept {
  static_assert(relocates_safely<T>);
  if (moves_as_bytes<T> && !std::is_constant_evaluated()) {
    if (is_short_row<T>(count)) {
      for (T* const end = first + count; first != end; ++first, ++target)
        relocate_one(first, target);
    } else {
      std::memmove(static_cast<void*>(target), static_cast<const void*>(first), count * sizeof(T));
    }
  } else {
    for (std::size_t i = 0; i != count; ++i) {
      std::construct_at(target + i, std::move(first[i]));
      std::destroy_at(first + i);
    }
  }
}
// The same, but `target` is `first` or behind it.
template <class T>
constexpr void relocate_up(T* first, std::size_t count, T* target) noexcept {
  static_assert(relocates_safely<T>);
  if (moves_as_bytes<T> && !std::is_constant_evaluated()) {
    if (is_short_row<T>(count)) {
      T* from = first + count;
      for (T* to = target + count; from != first;)
        relocate_one(--from, --to);
    } else {
      std::memmove(static_cast<void*>(target), static_cast<const void*>(first), count * sizeof(T));
    }
  } else {
    for (std::size_t i = count; i-- != 0;) {
      std::construct_at(target + i, std::move(first[i]));
      std::destroy_at(first + i);
    }
  }
}

// Effects: as those, between rows that do not overlap. Elements whose move may throw are copied if they can be.
// Throws what that throws, and then elements live where they were, unchanged if they were copied.
template <class T>
constexpr void transfer(T* first, std::size_t count, T* target) noexcept(relocates_safely<T>) {
  if constexpr (relocates_safely<T>) {
    if (moves_as_bytes<T> && !std::is_constant_evaluated()) {
      if (count != 0) std::memcpy(static_cast<void*>(target), static_cast<const void*>(first), count * sizeof(T));
    } else {  // not those: these rows may be in different blocks of a constant expression, which have no order
      for (std::size_t i = 0; i != count; ++i) {
        std::construct_at(target + i, std::move(first[i]));
        std::destroy_at(first + i);
      }
    }
  } else {
    elements_in_making<T> made(target);
    for (std::size_t i = 0; i != count; ++i, made.made_one())
      std::construct_at(made.next(), std::move_if_noexcept(first[i]));
    made.keep();
    destroy_elements(first, count);
  }
}

// Whether a row that an iterator of this type begins can be copied to elements of type T as bytes.
template <class Iterator, class T>
inline constexpr bool reads_as_bytes = false;
template <std::contiguous_iterator Iterator, class T>
inline constexpr bool reads_as_bytes<Iterator, T> =
    moves_as_bytes<T>&& std::is_same_v<std::iter_value_t<Iterator>, T> &&
    !std::is_volatile_v<std::remove_reference_t<std::iter_reference_t<Iterator>>>;

}  // namespace sluice::detail
