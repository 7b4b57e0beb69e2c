// What a string with inline storage can be asked: characters, iterators, comparison, search. Open it to change how a
// string is read; sluice/detail/string_base.hpp is what changes it. Searching is std::basic_string_view's.
#pragma once

#include <cstddef>
#include <iterator>
#include <string_view>
#include <type_traits>

#include "sluice/detail/failure.hpp"
#include "sluice/detail/inline_storage.hpp"

namespace sluice::detail {

template <class Char>
class string_reading;

// Whatever a view of characters can be made of, pointers among it.
template <class T, class Char>
concept viewable = std::is_convertible_v<const T&, std::basic_string_view<Char>>;

// The same without our own strings, whatever their inline storage.
template <class T, class Char>
concept other_text = viewable<T, Char> && !std::is_base_of_v<string_reading<Char>, T>;

// Views and strings without pointers, for which functions have overloads of their own.
template <class T, class Char>
concept text = viewable<T, Char> && !std::is_convertible_v<const T&, const Char*>;

template <class T, class Char>
concept foreign_text = text<T, Char> && other_text<T, Char>;

// Invariants, besides those of inline_storage, whose counts include the terminator here:
//   inline_capacity_ >= 1, size_ < capacity_, data_[size_] == 0; on the heap capacity_ >= inline_capacity_
// In a constant expression a block for inline_capacity_ characters from std::allocator stands for the inline storage.
template <class Char>
class string_reading : public inline_storage<Char> {
 public:
  using traits_type = std::char_traits<Char>;
  using value_type = Char;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using reference = Char&;
  using const_reference = const Char&;
  using pointer = Char*;
  using const_pointer = const Char*;
  using iterator = Char*;
  using const_iterator = const Char*;
  using reverse_iterator = std::reverse_iterator<iterator>;
  using const_reverse_iterator = std::reverse_iterator<const_iterator>;
  using view_type = std::basic_string_view<Char>;

  static constexpr size_type npos = static_cast<size_type>(-1);

  [[nodiscard]] constexpr size_type size() const noexcept { return size_; }
  [[nodiscard]] constexpr size_type length() const noexcept { return size_; }
  [[nodiscard]] constexpr bool empty() const noexcept { return size_ == 0; }
  // Returns: how many characters fit without taking memory (anew).
  [[nodiscard]] constexpr size_type capacity() const noexcept { return capacity_ - 1; }
  // Returns: how many characters fit inside the object.
  [[nodiscard]] constexpr size_type inline_capacity() const noexcept { return storage::inline_capacity() - 1; }
  [[nodiscard]] static constexpr size_type max_size() noexcept { return storage::max_count() - 1; }

  // Returns: the characters, ended by a Char() that is not counted.
  [[nodiscard]] constexpr Char* data() noexcept { return data_; }
  [[nodiscard]] constexpr const Char* data() const noexcept { return data_; }
  [[nodiscard]] constexpr const Char* c_str() const noexcept { return data_; }

  // Returns: the characters, valid until the string changes.
  [[nodiscard]] constexpr view_type view() const noexcept { return view_type(data_, size_); }
  // Returns: `count` characters from `position`, fewer where the string ends. Throws std::out_of_range.
  [[nodiscard]] constexpr view_type view(size_type position, size_type count = npos) const {
    check_position(position, "inline_string::view");
    return view().substr(position, count);
  }
  constexpr operator view_type() const noexcept { return view(); }

  // Requires: index <= size(); what stands at size() must stay 0.
  [[nodiscard]] constexpr reference operator[](size_type index) noexcept { return data_[index]; }
  [[nodiscard]] constexpr const_reference operator[](size_type index) const noexcept { return data_[index]; }
  // Throws std::out_of_range.
  [[nodiscard]] constexpr reference at(size_type index) {
    if (index >= size_) throw_out_of_range("inline_string::at");
    return data_[index];
  }
  [[nodiscard]] constexpr const_reference at(size_type index) const {
    if (index >= size_) throw_out_of_range("inline_string::at");
    return data_[index];
  }
  [[nodiscard]] constexpr reference front() noexcept { return data_[0]; }
  [[nodiscard]] constexpr const_reference front() const noexcept { return data_[0]; }
  [[nodiscard]] constexpr reference back() noexcept { return data_[size_ - 1]; }
  [[nodiscard]] constexpr const_reference back() const noexcept { return data_[size_ - 1]; }

  [[nodiscard]] constexpr iterator begin() noexcept { return data_; }
  [[nodiscard]] constexpr const_iterator begin() const noexcept { return data_; }
  [[nodiscard]] constexpr const_iterator cbegin() const noexcept { return data_; }
  [[nodiscard]] constexpr iterator end() noexcept { return data_ + size_; }
  [[nodiscard]] constexpr const_iterator end() const noexcept { return data_ + size_; }
  [[nodiscard]] constexpr const_iterator cend() const noexcept { return data_ + size_; }
  [[nodiscard]] constexpr reverse_iterator rbegin() noexcept { return reverse_iterator(end()); }
  [[nodiscard]] constexpr const_reverse_iterator rbegin() const noexcept { return const_reverse_iterator(end()); }
  [[nodiscard]] constexpr const_reverse_iterator crbegin() const noexcept { return const_reverse_iterator(end()); }
  [[nodiscard]] constexpr reverse_iterator rend() noexcept { return reverse_iterator(begin()); }
  [[nodiscard]] constexpr const_reverse_iterator rend() const noexcept { return const_reverse_iterator(begin()); }
  [[nodiscard]] constexpr const_reverse_iterator crend() const noexcept { return const_reverse_iterator(begin()); }

  // Effects: copies up to `count` characters from `position` to `target`, without a terminator.
  // Returns: how many. Throws std::out_of_range.
  constexpr size_type copy(Char* target, size_type count, size_type position = 0) const {
    check_position(position, "inline_string::copy");
    const size_type copied = shortened(position, count);
    traits_type::copy(target, data_ + position, copied);
    return copied;
  }

  // Returns: negative, 0 or positive, by the characters and then by the length. Those with a position compare the
  // characters from there, at most `count` of them, and throw std::out_of_range.
  template <viewable<Char> Text>
  [[nodiscard]] constexpr int compare(const Text& other) const noexcept(noexcept(view_type(other))) {
    return view().compare(view_type(other));
  }
  template <viewable<Char> Text>
  [[nodiscard]] constexpr int compare(size_type position, size_type count, const Text& other) const {
    check_position(position, "inline_string::compare");
    return view().compare(position, count, view_type(other));
  }
  template <text<Char> Text>
  [[nodiscard]] constexpr int compare(size_type position, size_type count, const Text& other, size_type other_position,
                                      size_type other_count = npos) const {
    check_position(position, "inline_string::compare");
    return view().compare(position, count, part_of(view_type(other), other_position, other_count));
  }
  [[nodiscard]] constexpr int compare(size_type position, size_type count, const Char* other,
                                      size_type other_count) const {
    check_position(position, "inline_string::compare");
    return view().compare(position, count, view_type(other, other_count));
  }

  template <viewable<Char> Text>
  [[nodiscard]] constexpr bool starts_with(const Text& start) const noexcept(noexcept(view_type(start))) {
    return view().starts_with(view_type(start));
  }
  [[nodiscard]] constexpr bool starts_with(Char start) const noexcept { return view().starts_with(start); }
  template <viewable<Char> Text>
  [[nodiscard]] constexpr bool ends_with(const Text& end) const noexcept(noexcept(view_type(end))) {
    return view().ends_with(view_type(end));
  }
  [[nodiscard]] constexpr bool ends_with(Char end) const noexcept { return view().ends_with(end); }
  template <viewable<Char> Text>
  [[nodiscard]] constexpr bool contains(const Text& part) const noexcept(noexcept(view_type(part))) {
    return view().find(view_type(part)) != npos;
  }
  [[nodiscard]] constexpr bool contains(Char part) const noexcept { return view().find(part) != npos; }

  // Each returns an index, or npos when there is none. Complexity: O(size() · what is looked for) at worst.
  template <viewable<Char> Text>
  [[nodiscard]] constexpr size_type find(const Text& part, size_type from = 0) const noexcept {
    return view().find(view_type(part), from);
  }
  [[nodiscard]] constexpr size_type find(const Char* part, size_type from, size_type count) const noexcept {
    return view().find(part, from, count);
  }
  [[nodiscard]] constexpr size_type find(Char part, size_type from = 0) const noexcept {
    return view().find(part, from);
  }
  template <viewable<Char> Text>
  [[nodiscard]] constexpr size_type rfind(const Text& part, size_type from = npos) const noexcept {
    return view().rfind(view_type(part), from);
  }
  [[nodiscard]] constexpr size_type rfind(const Char* part, size_type from, size_type count) const noexcept {
    return view().rfind(part, from, count);
  }
  [[nodiscard]] constexpr size_type rfind(Char part, size_type from = npos) const noexcept {
    return view().rfind(part, from);
  }
  template <viewable<Char> Text>
  [[nodiscard]] constexpr size_type find_first_of(const Text& set, size_type from = 0) const noexcept {
    return view().find_first_of(view_type(set), from);
  }
  [[nodiscard]] constexpr size_type find_first_of(const Char* set, size_type from, size_type count) const noexcept {
    return view().find_first_of(set, from, count);
  }
  [[nodiscard]] constexpr size_type find_first_of(Char one, size_type from = 0) const noexcept {
    return view().find(one, from);
  }
  template <viewable<Char> Text>
  [[nodiscard]] constexpr size_type find_last_of(const Text& set, size_type from = npos) const noexcept {
    return view().find_last_of(view_type(set), from);
  }
  [[nodiscard]] constexpr size_type find_last_of(const Char* set, size_type from, size_type count) const noexcept {
    return view().find_last_of(set, from, count);
  }
  [[nodiscard]] constexpr size_type find_last_of(Char one, size_type from = npos) const noexcept {
    return view().rfind(one, from);
  }
  template <viewable<Char> Text>
  [[nodiscard]] constexpr size_type find_first_not_of(const Text& set, size_type from = 0) const noexcept {
    return view().find_first_not_of(view_type(set), from);
  }
  [[nodiscard]] constexpr size_type find_first_not_of(const Char* set, size_type from, size_type count) const noexcept {
    return view().find_first_not_of(set, from, count);
  }
  [[nodiscard]] constexpr size_type find_first_not_of(Char one, size_type from = 0) const noexcept {
    return view().find_first_not_of(one, from);
  }
  template <viewable<Char> Text>
  [[nodiscard]] constexpr size_type find_last_not_of(const Text& set, size_type from = npos) const noexcept {
    return view().find_last_not_of(view_type(set), from);
  }
  [[nodiscard]] constexpr size_type find_last_not_of(const Char* set, size_type from, size_type count) const noexcept {
    return view().find_last_not_of(set, from, count);
  }
  [[nodiscard]] constexpr size_type find_last_not_of(Char one, size_type from = npos) const noexcept {
    return view().find_last_not_of(one, from);
  }

 protected:
  using storage = inline_storage<Char>;
  using storage::capacity_;
  using storage::data_;
  using storage::size_;
  using storage::storage;
  using typename storage::count_type;

  constexpr ~string_reading() = default;

  constexpr void check_position(size_type position, const char* function) const {
    if (position > size_) throw_out_of_range(function);
  }
  // Returns: how many of `count` characters from `position` there are.
  constexpr size_type shortened(size_type position, size_type count) const noexcept {
    return count < size_ - position ? count : size_ - position;
  }
  static constexpr view_type part_of(view_type whole, size_type position, size_type count) {
    if (position > whole.size()) throw_out_of_range("inline_string: position in the argument");
    return whole.substr(position, count);
  }
};

}  // namespace sluice::detail
