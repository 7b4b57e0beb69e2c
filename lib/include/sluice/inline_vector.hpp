// A vector with room for its first N elements inside the object, behind a base that does not know N. Open it when a
// sequence is mostly short, or when a function should fill a vector and not care how much room its caller gave it.
//
//   void find_neighbours(const grid& cells, position at, sluice::vector_base<position>& found) { found.push_back(...);
//   }
//
//   sluice::inline_vector<position, 8> found;  // takes memory only for the ninth
//   find_neighbours(cells, here, found);
//   for (const position& next : found) ...
//
// When to use it: for locals and members that seldom hold more than a few elements. Functions take vector_base<T>&,
// which copies and moves between any N. When not: for vectors that are mostly empty or mostly long (the room inside
// is paid for in each object, and moving what is inside moves each element); where moving must keep pointers valid.
//
// Interface: std::vector's, and is_inline(), append(), resize_for_overwrite(), C++23's …_range functions. Constexpr: in
// constant expressions the elements are never inside. A vector of bool is one of bools. T is complete where the vector
// is one, even with N = 0; vector_base<T>& and pointers to it need not know T.
//
// Complexity: as std::vector; capacity doubles. Moving is O(1) from the heap, O(size) from inside.
// Memory: 32 bytes and N elements; where an element has fewer than 4 bytes, 40 bytes and N elements. At most 2^32 - 1
// elements of 4 bytes or more; of smaller ones as many as an object can have.
//
// Memory resource: a std::pmr::memory_resource (or std::pmr::polymorphic_allocator), by default the default resource
// as it is when memory is first taken; elements that take an allocator are given it. As with std::pmr::vector it stays
// with the object: copies use the default resource unless they are given one, moves keep the source's, and assignment
// and swap leave both where they are, moving element by element when the resources are not equal.
//
// Errors: std::length_error, std::bad_alloc, and what elements throw; a program without exceptions ends instead.
// Nothing has changed after an exception, unless a move of an element can throw, an element was assigned to (assign,
// =), or T can neither be copied nor moved without throwing.
//
// Invalidation: growing and shrink_to_fit invalidate everything; insert and erase what is at and behind the place;
// moving and swapping everything when elements are inside. Thread-safety: as std::vector.
#pragma once

#include "sluice/detail/require_cpp20.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory_resource>
#include <ranges>
#include <type_traits>
#include <utility>

#include "sluice/detail/vector_base.hpp"

namespace sluice {

namespace detail {

// Room for N elements, none of which lives.
template <class T, std::size_t N>
struct inline_room {
  constexpr inline_room() noexcept {
    if (std::is_constant_evaluated()) initialized = 0;
  }
  constexpr ~inline_room() {}
  inline_room(const inline_room&) = delete;
  inline_room& operator=(const inline_room&) = delete;

  union {
    T elements[N];
    char initialized;  // for constant expressions, which may not leave a static object without a value
  };
};
template <class T>
struct inline_room<T, 0> {};

}  // namespace detail

template <class T, std::size_t N>
class inline_vector : public vector_base<T> {
  static_assert(N <= std::numeric_limits<std::uint32_t>::max() && N <= vector_base<T>::max_size());
  using base = vector_base<T>;
  using argument = detail::resource_argument;

 public:
  // Effects: an empty vector, or one with the elements that are given. Its resource is the one that is given, else the
  // default one; only a move takes the other's.
  constexpr inline_vector() noexcept : inline_vector(argument()) {}
  constexpr explicit inline_vector(argument resource) noexcept
      : base(std::is_constant_evaluated() ? nullptr : room(), N, resource.get(), room_offset) {}
  constexpr explicit inline_vector(std::size_t size, argument resource = {}) : inline_vector(resource) {
    this->resize(size);
  }
  constexpr inline_vector(std::size_t size, const T& value, argument resource = {}) : inline_vector(resource) {
    this->append(size, value);
  }
  template <std::input_iterator Iterator, std::sentinel_for<Iterator> Sentinel>
  constexpr inline_vector(Iterator first, Sentinel last, argument resource = {}) : inline_vector(resource) {
    this->append(std::move(first), std::move(last));
  }
  template <detail::elements_for<T> Range>
  requires(!std::is_base_of_v<base, std::remove_cvref_t<Range>>)
      // NOLINTNEXTLINE(bugprone-forwarding-reference-overload): the constraint keeps it from hiding copies and moves
      constexpr explicit inline_vector(Range&& range, argument resource = {})
      : inline_vector(resource) {
    this->append(std::ranges::begin(range), std::ranges::end(range));
  }
  constexpr inline_vector(std::initializer_list<T> elements, argument resource = {}) : inline_vector(resource) {
    this->append(elements.begin(), elements.end());
  }
  constexpr inline_vector(const inline_vector& other) : inline_vector() {
    if constexpr (copies_whole_room) {
      if (!std::is_constant_evaluated() && other.is_inline()) {
        this->size_ = other.size_;
        copy_room(room(), other);
        return;
      }
    }
    this->begin_with(other.begin(), other.size(), "inline_vector::inline_vector");
  }
  constexpr inline_vector(const base& other, argument resource = {})  // NOLINT: a copy, whatever its room
      : inline_vector(resource) {
    this->begin_with(other.begin(), other.size(), "inline_vector::inline_vector");
  }

  // Effects: takes over the other's block, or moves its elements; it is empty afterwards. Without a resource given,
  // the other's. Throws only if the elements' moves do, or if memory must be taken: for another resource, or for
  // elements that are inside a larger N.
  constexpr inline_vector(inline_vector&& other) noexcept(detail::relocates_safely<T>)
      : base(other, std::is_constant_evaluated() ? nullptr : room(), N, room_offset) {
    if (std::is_constant_evaluated() || !this->is_inline()) return;
    if constexpr (copies_whole_room)
      copy_room(room(), other);
    else
      this->move_inside(other);
    other.size_ = 0;
  }
  constexpr inline_vector(base&& other)
      : inline_vector(std::move(other), base::resource_of(other)) {}  // NOLINT: a move
  constexpr inline_vector(base&& other, argument resource) : inline_vector(resource) {
    base::operator=(std::move(other));
  }
  constexpr ~inline_vector() { detail::destroy_elements(this->data_, this->size_); }

  constexpr inline_vector& operator=(const inline_vector& other) {
    if constexpr (copies_whole_room) {
      if (!std::is_constant_evaluated() && other.is_inline() && this->capacity_ != 0 && this != &other) {
        copy_room(this->data_, other);
        this->size_ = other.size_;
        return *this;
      }
    }
    base::operator=(other);
    return *this;
  }
  // NOLINTNEXTLINE(performance-noexcept-move-constructor): it throws where memory must be taken
  constexpr inline_vector& operator=(inline_vector&& other) {
    if (!std::is_constant_evaluated() && this != &other) {
      if (!other.is_inline()) {
        if (this->resource_ == other.resource_) {
          this->truncate(0);
          this->steal_from_twin(other, other.room(), N, room_offset);
          return *this;
        }
      } else if constexpr (copies_whole_room) {
        if (this->capacity_ != 0) {
          copy_room(this->data_, other);
          this->size_ = other.size_;
          other.size_ = 0;
          return *this;
        }
      }
    }
    base::operator=(std::move(other));
    return *this;
  }
  constexpr inline_vector& operator=(const base& other) {
    base::operator=(other);
    return *this;
  }
  constexpr inline_vector& operator=(base&& other) {
    base::operator=(std::move(other));
    return *this;
  }
  constexpr inline_vector& operator=(std::initializer_list<T> elements) {
    base::operator=(elements);
    return *this;
  }

 private:
  // Whether all of the room is copied rather than the elements in it, since a constant number of bytes needs no loop.
  static constexpr bool copies_whole_room = N != 0 && detail::moves_as_bytes<T> && N * sizeof(T) <= 256;

  // Where room_ lies: behind the base, which has no padding that it could use.
  static constexpr std::size_t room_offset = N == 0 ? 0 : (sizeof(base) + alignof(T) - 1) / alignof(T) * alignof(T);

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"  // bytes without an element are copied as well
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
  // Effects: the elements are copied, but not the size. Requires: the other's elements are inside; those here too, or
  // on the heap, where there is at least as much room.
  void copy_room(T* target, const inline_vector& other) noexcept {
    std::memcpy(static_cast<void*>(target), static_cast<const void*>(&other.room_), N * sizeof(T));
  }
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

  // The elements of room_; compilers take its name for a use of what is in it, and here it is not yet initialized.
  T* room() noexcept {
    return reinterpret_cast<T*>(reinterpret_cast<std::uintptr_t>(this) + room_offset);
  }

  [[no_unique_address]] detail::inline_room<T, N> room_;
};

// A better match than std::swap.
template <class T, std::size_t N>
constexpr void swap(inline_vector<T, N>& first, inline_vector<T, N>& second) {
  first.swap(second);
}

// Effects: removes the elements that are equal to `value`, or that satisfy `predicate`. Returns: how many went.
template <class T, class Predicate>
constexpr std::size_t erase_if(vector_base<T>& vector, Predicate predicate) {
  T* const kept = std::remove_if(vector.begin(), vector.end(), std::move(predicate));
  const auto gone = static_cast<std::size_t>(vector.end() - kept);
  vector.erase(kept, vector.end());
  return gone;
}
template <class T, class U>
constexpr std::size_t erase(vector_base<T>& vector, const U& value) {
  return erase_if(vector, [&](const T& element) { return element == value; });
}

}  // namespace sluice
