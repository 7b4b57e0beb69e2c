// inline_string<N>: a string with room for N characters inside the object, which takes memory only beyond that. Open it
// for names, keys, words and lines whose usual length is known, and for functions that fill a string whatever its N.
//
//   void read_name(sluice::string_base& name);   // the base is the same type for every N
//   sluice::inline_string<24> name("anonymous");  // in the object
//   read_name(name);
//   name += ", a name";                           // beyond 24 characters on the heap
//   std::unordered_map<sluice::inline_string<24>, int> seen;
//
// When not: for strings that are only looked at (std::string_view), for text of any length that is rarely short
// (std::string is 32 bytes; this one is 40 and N + 1, rounded up to 8), for bytes (inline_buffer).
//
// Interface: that of std::basic_string with std::pmr::polymorphic_allocator, with these differences.
//   - A function of the base that returns the string returns the base: `auto s = a.append(b)` does not compile.
//   - substr() is a member of inline_string<N> and makes another one; view(position, count) is the same without a copy,
//     and the base has it too.
//   - A copy has the default resource, a move the other's, and assignment keeps its own. A moved-from string is empty.
//   - Iterators are pointers. From C++23: contains, append_range, resize_and_overwrite.
//   - Converts to std::basic_string_view by itself, from it explicitly. fmt formats it through that conversion; for a
//     library that does not, pass view().
//
// Characters are contiguous and always followed by a Char(). Arguments may be parts of the string itself.
// Complexity: as std::string; construction, copy and move are O(N) at most when the characters are inside.
// Memory: sizeof is 40 bytes (32 where a character has 4 bytes) and N + 1 characters; on the heap the capacity doubles.
// Invalidation: as std::string; also moving or swapping a string whose characters are inside.
// Errors: std::length_error, std::out_of_range, and std::bad_alloc or what the resource throws; then the string is
// unchanged. Without exceptions the program ends.
// Thread-safety: none beyond that of int: distinct objects, or many readers of one.
#pragma once

#include "sluice/detail/require_cpp20.hpp"

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <limits>
#include <memory_resource>
#include <string_view>
#include <type_traits>
#include <utility>

#include "sluice/detail/string_base.hpp"
#include "sluice/detail/string_io.hpp"
#include "sluice/detail/string_reading.hpp"

namespace sluice {

// Every constructor but the default, copy and move ones takes a std::pmr::memory_resource* or polymorphic_allocator
// last; left out or null it is the default resource at the time when memory is first taken. Constructors throw
// std::bad_alloc and std::length_error, those with a position std::out_of_range.
template <class Char, std::size_t N>
class basic_inline_string : public basic_string_base<Char> {
  static_assert(N < std::numeric_limits<std::uint32_t>::max());
  using base = basic_string_base<Char>;
  using traits = std::char_traits<Char>;
  using source = detail::resource_argument;

 public:
  using base::npos;
  using typename base::size_type;
  using typename base::view_type;

  constexpr basic_inline_string() noexcept : basic_inline_string(source()) {}
  constexpr explicit basic_inline_string(source memory) noexcept : base(characters_, N, memory.get()) { this->start(); }
  constexpr basic_inline_string(const Char* text, source memory = {})
      : basic_inline_string(text, traits::length(text), memory) {}
  constexpr basic_inline_string(const Char* text, size_type count, source memory = {}) : basic_inline_string(memory) {
    this->assign(text, count);
  }
  constexpr basic_inline_string(size_type count, Char one, source memory = {}) : basic_inline_string(memory) {
    this->assign(count, one);
  }
  constexpr basic_inline_string(std::initializer_list<Char> list, source memory = {})
      : basic_inline_string(list.begin(), list.size(), memory) {}
  template <std::input_iterator Iterator>
  constexpr basic_inline_string(Iterator first, Iterator last, source memory = {}) : basic_inline_string(memory) {
    this->append(first, last);
  }
  template <detail::foreign_text<Char> Text>
  constexpr explicit basic_inline_string(const Text& text, source memory = {}) : basic_inline_string(memory) {
    this->assign(text);
  }
  template <detail::text<Char> Text>
  constexpr basic_inline_string(const Text& text, size_type position, size_type count = npos, source memory = {})
      : basic_inline_string(memory) {
    this->assign(text, position, count);
  }
  basic_inline_string(std::nullptr_t) = delete;

  constexpr basic_inline_string(const basic_inline_string& other) : basic_inline_string(other, source()) {}
  constexpr basic_inline_string(const basic_inline_string& other, source memory) : basic_inline_string(memory) {
    if (other.is_inline())
      copy_inside(other);
    else
      this->assign(other);
  }
  constexpr basic_inline_string(const base& other, source memory = {}) : basic_inline_string(memory) {
    this->assign(other);
  }
  constexpr basic_inline_string(basic_inline_string&& other) noexcept : base(other, characters_, N) {
    if (this->is_inline()) copy_inside(other);
    other.start();
  }
  constexpr basic_inline_string(base&& other)
      : basic_inline_string(std::move(other), source(base::resource_of(other))) {}
  // Apart from the next one, to which a copy would be preferred.
  constexpr basic_inline_string(basic_inline_string&& other, source memory)
      : basic_inline_string(static_cast<base&&>(other), memory) {}
  constexpr basic_inline_string(base&& other, source memory) : basic_inline_string(memory) {
    this->assign(std::move(other));
  }
  constexpr ~basic_inline_string() = default;

  constexpr basic_inline_string& operator=(const basic_inline_string& other) {
    if (this->is_inline() && other.is_inline() && this != &other)
      copy_inside(other);
    else
      this->assign(other);
    return *this;
  }
  constexpr basic_inline_string& operator=(basic_inline_string&& other) {  // NOLINT: as the base
    if (this->is_inline() && other.is_inline() && this != &other) {
      copy_inside(other);
      other.clear();
    } else {
      this->assign(std::move(other));
    }
    return *this;
  }
  template <class Text>
  requires std::is_assignable_v<base&, Text> &&
      (!std::is_same_v<std::remove_cvref_t<Text>, basic_inline_string>)constexpr basic_inline_string&
      operator=(Text&& text) {
    base::operator=(std::forward<Text>(text));
    return *this;
  }
  constexpr basic_inline_string& operator=(std::initializer_list<Char> list) {
    base::operator=(list);
    return *this;
  }

  // Returns: a string of `count` characters from `position`, fewer where this one ends. Throws std::out_of_range.
  [[nodiscard]] constexpr basic_inline_string substr(size_type position = 0, size_type count = npos) const& {
    return basic_inline_string(*this, position, count);
  }
  [[nodiscard]] constexpr basic_inline_string substr(size_type position = 0, size_type count = npos) && {
    this->assign(this->view(position, count));
    return std::move(*this);
  }

 private:
  static constexpr std::size_t copied_whole = 64;  // bytes that are copied faster than counted

  // Requires: both are inside, and not the same.
  void copy_inside(const basic_inline_string& other) noexcept {
    if constexpr (sizeof(characters_) <= copied_whole)
      std::memcpy(characters_, other.characters_, sizeof(characters_));
    else
      traits::copy(characters_, other.characters_, other.size_ + 1);
    this->size_ = other.size_;
  }

  Char characters_[N + 1];
};

template <std::size_t N>
using inline_string = basic_inline_string<char, N>;
template <std::size_t N>
using inline_wstring = basic_inline_string<wchar_t, N>;
template <std::size_t N>
using inline_u8string = basic_inline_string<char8_t, N>;
template <std::size_t N>
using inline_u16string = basic_inline_string<char16_t, N>;
template <std::size_t N>
using inline_u32string = basic_inline_string<char32_t, N>;
using string_base = basic_string_base<char>;
using wstring_base = basic_string_base<wchar_t>;
using u8string_base = basic_string_base<char8_t>;
using u16string_base = basic_string_base<char16_t>;
using u32string_base = basic_string_base<char32_t>;

// Comparison, by characters and then by length, of strings with any N and with whatever a view can be made of.
template <class Char>
[[nodiscard]] constexpr bool operator==(const basic_string_base<Char>& left,
                                        const std::type_identity_t<basic_string_base<Char>>& right) noexcept {
  return left.view() == right.view();
}
template <class Char, detail::other_text<Char> Text>
[[nodiscard]] constexpr bool operator==(const basic_string_base<Char>& left, const Text& right) {
  return left.view() == std::basic_string_view<Char>(right);
}
template <class Char>
[[nodiscard]] constexpr std::strong_ordering operator<=>(
    const basic_string_base<Char>& left, const std::type_identity_t<basic_string_base<Char>>& right) noexcept {
  return left.compare(right) <=> 0;
}
template <class Char, detail::other_text<Char> Text>
[[nodiscard]] constexpr std::strong_ordering operator<=>(const basic_string_base<Char>& left, const Text& right) {
  return left.compare(right) <=> 0;
}

namespace detail {

template <class T>
inline constexpr bool is_inline_string = false;
template <class Char, std::size_t N>
inline constexpr bool is_inline_string<basic_inline_string<Char, N>> = true;

// What can be added to an inline_string, besides another one.
template <class T, class Char>
concept addend = std::is_same_v<T, Char> ||(viewable<T, Char> && !is_inline_string<T>);

template <class Char, class T>
constexpr std::basic_string_view<Char> as_view(const T& text) {
  if constexpr (std::is_same_v<T, Char>)
    return std::basic_string_view<Char>(&text, 1);
  else
    return std::basic_string_view<Char>(text);
}

template <class Char, std::size_t N>
constexpr basic_inline_string<Char, N> concatenation(std::basic_string_view<Char> left,
                                                     std::basic_string_view<Char> right) {
  basic_inline_string<Char, N> result;
  result.reserve(left.size() + right.size());
  result.append(left);
  result.append(right);
  return result;
}

}  // namespace detail

// Returns: both, one behind the other, in the larger inline capacity. What is moved from gives its block and resource.
template <class Char, std::size_t N, detail::addend<Char> Text>
[[nodiscard]] constexpr basic_inline_string<Char, N> operator+(const basic_inline_string<Char, N>& left,
                                                               const Text& right) {
  return detail::concatenation<Char, N>(left, detail::as_view<Char>(right));
}
template <class Char, std::size_t N, detail::addend<Char> Text>
[[nodiscard]] constexpr basic_inline_string<Char, N> operator+(const Text& left,
                                                               const basic_inline_string<Char, N>& right) {
  return detail::concatenation<Char, N>(detail::as_view<Char>(left), right);
}
template <class Char, std::size_t N, std::size_t M>
[[nodiscard]] constexpr basic_inline_string<Char, (N < M ? M : N)> operator+(
    const basic_inline_string<Char, N>& left, const basic_inline_string<Char, M>& right) {
  return detail::concatenation<Char, (N < M ? M : N)>(left, right);
}
template <class Char, std::size_t N, detail::addend<Char> Text>
[[nodiscard]] constexpr basic_inline_string<Char, N> operator+(basic_inline_string<Char, N>&& left, const Text& right) {
  left.append(detail::as_view<Char>(right));
  return std::move(left);
}
template <class Char, std::size_t N, detail::addend<Char> Text>
[[nodiscard]] constexpr basic_inline_string<Char, N> operator+(const Text& left, basic_inline_string<Char, N>&& right) {
  right.insert(0, detail::as_view<Char>(left));
  return std::move(right);
}
template <class Char, std::size_t N, std::size_t M>
[[nodiscard]] constexpr basic_inline_string<Char, (N < M ? M : N)> operator+(
    basic_inline_string<Char, N>&& left, const basic_inline_string<Char, M>& right) {
  if constexpr (N == M) {  // both may be the same string
    left.append(right);
    return std::move(left);
  } else {
    basic_inline_string<Char, (N < M ? M : N)> result(std::move(left));
    result.append(right);
    return result;
  }
}

template <class Char>
constexpr void swap(basic_string_base<Char>& first, basic_string_base<Char>& second) {  // NOLINT: may throw
  first.swap(second);
}
template <class Char, std::size_t N>  // a better match than std::swap
constexpr void swap(basic_inline_string<Char, N>& first, basic_inline_string<Char, N>& second) {  // NOLINT: may throw
  first.swap(second);
}

// Effects: removes the characters that satisfy `predicate`, or that are equal to `value`. Returns: how many went.
template <class Char, class Predicate>
constexpr std::size_t erase_if(basic_string_base<Char>& text, Predicate predicate) {
  Char* const kept = std::remove_if(text.begin(), text.end(), std::move(predicate));
  const auto gone = static_cast<std::size_t>(text.end() - kept);
  text.erase(kept, text.end());
  return gone;
}
template <class Char, class Value>
constexpr std::size_t erase(basic_string_base<Char>& text, const Value& value) {
  return erase_if(text, [&](Char one) { return one == value; });
}

}  // namespace sluice
