// The size-blind base of inline_string: what changes a string, as functions that std::basic_string has. Open it to add
// or to correct one of them; sluice/detail/string_storage.hpp is how characters move. sluice/inline_string.hpp says
// when to use it.
//
// Every argument may be a part of the string itself, and everything that can fail comes before the first change.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <memory_resource>
#include <string_view>
#include <type_traits>
#include <utility>

#include "sluice/detail/failure.hpp"
#include "sluice/detail/string_reading.hpp"
#include "sluice/detail/string_storage.hpp"

namespace sluice {

template <class Char, std::size_t N>
class basic_inline_string;

namespace detail {

// A pointer type exactly, so that the literal 0 is a number and no iterator.
template <class Iterator, class Char>
concept own_position = std::is_same_v<Iterator, Char*> || std::is_same_v<Iterator, const Char*>;

template <class Range>
concept iterable = requires(Range& range) {
  std::begin(range);
  std::end(range);
};

}  // namespace detail

// A string of any inline capacity. Functions take it by reference; it is not copied by itself.
template <class Char>
class basic_string_base : public detail::string_storage<Char> {
  using reading = detail::string_reading<Char>;
  using storage = detail::string_storage<Char>;
  using traits = std::char_traits<Char>;

 public:
  using reading::npos;
  using typename reading::const_iterator;
  using typename reading::iterator;
  using typename reading::size_type;
  using typename reading::view_type;

  // Assignment. The resource stays; a move takes over the other's block when that came from an equal resource and is
  // larger than what fits inside, and copies otherwise. What was moved from is empty, except by itself.
  // Throws std::bad_alloc and std::length_error, and then both are as they were.
  constexpr basic_string_base& operator=(const basic_string_base& other) { return assign(other.data_, other.size_); }
  constexpr basic_string_base& operator=(basic_string_base&& other) {  // NOLINT: may take memory, for another resource
    return assign(std::move(other));
  }
  template <detail::foreign_text<Char> Text>
  constexpr basic_string_base& operator=(const Text& text) {
    return assign(view_type(text));
  }
  constexpr basic_string_base& operator=(const Char* text) { return assign(text); }
  constexpr basic_string_base& operator=(Char one) { return assign(1, one); }
  constexpr basic_string_base& operator=(std::initializer_list<Char> list) { return assign(list.begin(), list.size()); }
  basic_string_base& operator=(std::nullptr_t) = delete;

  constexpr basic_string_base& assign(const Char* text, size_type count) {
    if (count < capacity_) {
      move(data_, text, count);
      set_size(count);
    } else {
      assign_grown(text, count);
    }
    return *this;
  }
  constexpr basic_string_base& assign(const Char* text) { return assign(text, traits::length(text)); }
  constexpr basic_string_base& assign(size_type count, Char one) {
    traits::assign(open_gap(0, size_, count, "inline_string::assign"), count, one);
    return *this;
  }
  template <detail::foreign_text<Char> Text>
  constexpr basic_string_base& assign(const Text& text) {
    const view_type view(text);
    return assign(view.data(), view.size());
  }
  constexpr basic_string_base& assign(const basic_string_base& other) { return assign(other.data_, other.size_); }
  template <detail::text<Char> Text>
  constexpr basic_string_base& assign(const Text& text, size_type position, size_type count = npos) {
    return assign(reading::part_of(view_type(text), position, count));
  }
  constexpr basic_string_base& assign(basic_string_base&& other) {
    if (this == &other) return *this;
    if (this->can_steal(other)) {
      this->steal(other);
      other.start();
    } else {
      assign(other.data_, other.size_);
      other.clear();
    }
    return *this;
  }
  template <std::input_iterator Iterator>
  constexpr basic_string_base& assign(Iterator first, Iterator last) {
    return replace_by_positions(0, size_, first, last);
  }
  constexpr basic_string_base& assign(std::initializer_list<Char> list) { return assign(list.begin(), list.size()); }
  template <detail::iterable Range>
  constexpr basic_string_base& assign_range(Range&& range) {
    return replace_by_positions(0, size_, std::begin(range), std::end(range));
  }

  // Capacity. Complexity: O(size()) where characters move, else constant.
  //
  // Effects: makes room for `count` characters. Throws std::length_error, std::bad_alloc.
  constexpr void reserve(size_type count) {
    if (count < capacity_) return;
    if (count > reading::max_size()) detail::throw_length_error("inline_string::reserve");
    move_to_block(count + 1);
  }
  // Effects: moves the characters back inside if they fit there, else to a block of just their size if there is memory
  // for it. Invalidates what points into the string.
  constexpr void shrink_to_fit() noexcept {
    if (this->is_inline() || std::is_constant_evaluated()) return;
    if (size_ < this->inline_capacity_) {
      traits::copy(this->inline_data(), data_, size_ + 1);
      this->release();
    } else if (size_ + 1 < capacity_) {
#if defined(__cpp_exceptions)
      try {
        move_to_block(size_ + 1);
      } catch (...) {  // the larger block will do
        return;
      }
#endif
    }
  }
  constexpr void clear() noexcept {
    set_size(0);
  }
  constexpr void resize(size_type count, Char one = Char()) {
    if (count > size_)
      append(count - size_, one);
    else
      set_size(count);
  }
  // Effects: as resize(), but new characters have any value.
  constexpr void resize_for_overwrite(size_type count) {
    if (count > size_)
      open_gap(size_, 0, count - size_, "inline_string::resize_for_overwrite");
    else
      set_size(count);
  }
  // Effects: calls `write(characters, count)`, which may write `count` characters, keeps what it finds there of the old
  // ones, and returns the new size, at most `count`. Requires: `write` does not throw.
  template <class Write>
  constexpr void resize_and_overwrite(size_type count, Write write) {
    reserve(count);
    set_size(static_cast<size_type>(std::move(write)(data_, count)));
  }

  // At the end. Each throws std::length_error and std::bad_alloc, and then the string is as it was.
  constexpr void push_back(Char one) {
    const size_type size = size_;
    if (size + 1 < capacity_) [[likely]] {
      const Char ended[2] = {one, Char()};
      size_ = static_cast<count_type>(size + 1);
      traits::copy(data_ + size, ended, 2);
    } else {
      push_back_grown(one);
    }
  }
  // Requires: not empty.
  constexpr void pop_back() noexcept {
    set_size(size_ - 1);
  }
  constexpr basic_string_base& append(const Char* text, size_type count) {
    if (count < capacity_ - size_) [[likely]] {
      move(data_ + size_, text, count);
      set_size(size_ + count);
    } else {
      replace_grown(size_, 0, text, count, "inline_string::append");
    }
    return *this;
  }
  constexpr basic_string_base& append(const Char* text) {
    return append(text, traits::length(text));
  }
  constexpr basic_string_base& append(size_type count, Char one) {
    traits::assign(open_gap(size_, 0, count, "inline_string::append"), count, one);
    return *this;
  }
  template <detail::text<Char> Text>
  constexpr basic_string_base& append(const Text& text) {
    const view_type view(text);
    return append(view.data(), view.size());
  }
  template <detail::text<Char> Text>
  constexpr basic_string_base& append(const Text& text, size_type position, size_type count = npos) {
    return append(reading::part_of(view_type(text), position, count));
  }
  template <std::input_iterator Iterator>
  constexpr basic_string_base& append(Iterator first, Iterator last) {
    return replace_by_positions(size_, 0, first, last);
  }
  constexpr basic_string_base& append(std::initializer_list<Char> list) {
    return append(list.begin(), list.size());
  }
  template <detail::iterable Range>
  constexpr basic_string_base& append_range(Range&& range) {
    return replace_by_positions(size_, 0, std::begin(range), std::end(range));
  }
  template <detail::text<Char> Text>
  constexpr basic_string_base& operator+=(const Text& text) {
    return append(text);
  }
  constexpr basic_string_base& operator+=(const Char* text) {
    return append(text);
  }
  constexpr basic_string_base& operator+=(Char one) {
    push_back(one);
    return *this;
  }
  constexpr basic_string_base& operator+=(std::initializer_list<Char> list) {
    return append(list);
  }

  // In between, in O(size() + what is inserted). Those with an index throw std::out_of_range, all of them
  // std::length_error and std::bad_alloc, and then the string is as it was.
  constexpr basic_string_base& insert(size_type position, const Char* text, size_type count) {
    return replace(position, 0, text, count);
  }
  constexpr basic_string_base& insert(size_type position, const Char* text) {
    return replace(position, 0, text, traits::length(text));
  }
  constexpr basic_string_base& insert(size_type position, size_type count, Char one) {
    return replace(position, 0, count, one);
  }
  template <detail::text<Char> Text>
  constexpr basic_string_base& insert(size_type position, const Text& text) {
    return replace(position, 0, text);
  }
  template <detail::text<Char> Text>
  constexpr basic_string_base& insert(size_type position, const Text& text, size_type text_position,
                                      size_type count = npos) {
    return replace(position, 0, text, text_position, count);
  }
  template <detail::own_position<Char> Position>
  constexpr iterator insert(Position position, Char one) {
    return insert(position, 1, one);
  }
  template <detail::own_position<Char> Position>
  constexpr iterator insert(Position position, size_type count, Char one) {
    const size_type index = index_of(position);
    replace(index, 0, count, one);
    return data_ + index;
  }
  template <detail::own_position<Char> Position, std::input_iterator Iterator>
  constexpr iterator insert(Position position, Iterator first, Iterator last) {
    const size_type index = index_of(position);
    replace_by_positions(index, 0, first, last);
    return data_ + index;
  }
  template <detail::own_position<Char> Position>
  constexpr iterator insert(Position position, std::initializer_list<Char> list) {
    return insert(position, list.begin(), list.end());
  }
  template <detail::own_position<Char> Position, detail::iterable Range>
  constexpr iterator insert_range(Position position, Range&& range) {
    const size_type index = index_of(position);
    replace_by_positions(index, 0, std::begin(range), std::end(range));
    return data_ + index;
  }

  constexpr basic_string_base& erase(size_type position = 0, size_type count = npos) {
    this->check_position(position, "inline_string::erase");
    open_gap(position, this->shortened(position, count), 0, "inline_string::erase");
    return *this;
  }
  template <detail::own_position<Char> Position>
  constexpr iterator erase(Position position) noexcept {
    return open_gap(index_of(position), 1, 0, "inline_string::erase");
  }
  template <detail::own_position<Char> First, detail::own_position<Char> Last>
  constexpr iterator erase(First first, Last last) noexcept {
    return open_gap(index_of(first), static_cast<size_type>(last - first), 0, "inline_string::erase");
  }

  constexpr basic_string_base& replace(size_type position, size_type count, const Char* text, size_type text_count) {
    this->check_position(position, "inline_string::replace");
    replace_characters(position, this->shortened(position, count), text, text_count);
    return *this;
  }
  constexpr basic_string_base& replace(size_type position, size_type count, const Char* text) {
    return replace(position, count, text, traits::length(text));
  }
  constexpr basic_string_base& replace(size_type position, size_type count, size_type one_count, Char one) {
    this->check_position(position, "inline_string::replace");
    Char* const gap = open_gap(position, this->shortened(position, count), one_count, "inline_string::replace");
    traits::assign(gap, one_count, one);
    return *this;
  }
  template <detail::text<Char> Text>
  constexpr basic_string_base& replace(size_type position, size_type count, const Text& text) {
    const view_type view(text);
    return replace(position, count, view.data(), view.size());
  }
  template <detail::text<Char> Text>
  constexpr basic_string_base& replace(size_type position, size_type count, const Text& text, size_type text_position,
                                       size_type text_count = npos) {
    return replace(position, count, reading::part_of(view_type(text), text_position, text_count));
  }
  // Requires: [first, last) lies in the string.
  template <detail::own_position<Char> First, detail::own_position<Char> Last, class... Text>
  requires(sizeof...(Text) > 0) constexpr basic_string_base& replace(First first, Last last, const Text&... text) {
    return replace_between(index_of(first), static_cast<size_type>(last - first), text...);
  }
  template <detail::own_position<Char> First, detail::own_position<Char> Last>
  constexpr basic_string_base& replace(First first, Last last, std::initializer_list<Char> list) {
    return replace(index_of(first), static_cast<size_type>(last - first), list.begin(), list.size());
  }

  // Effects: exchanges the characters; each string keeps its resource. Blocks are exchanged where that is possible;
  // throws std::bad_alloc only when the resources are unequal or the inline capacities differ, and then the strings
  // are as they were.
  constexpr void swap(basic_string_base& other) {  // NOLINT: see above
    if (this == &other) return;
    if (std::is_constant_evaluated() || (!this->is_inline() && !other.is_inline())) {
      if (this->can_steal(other) && other.can_steal(*this)) {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
        return;
      }
    } else if (this->is_inline() != other.is_inline()) {
      basic_string_base& inside = this->is_inline() ? *this : other;
      basic_string_base& outside = this->is_inline() ? other : *this;
      const count_type inside_size = inside.size_;
      if (inside_size < outside.inline_capacity_ && inside.can_steal(outside)) {
        traits::copy(outside.inline_data(), inside.data_, inside_size + 1);
        inside.steal(outside);
        outside.size_ = inside_size;
        return;
      }
    }
    swap_characters(other);
  }

 protected:
  using storage::capacity_;
  using storage::data_;
  using storage::size_;
  using typename storage::count_type;

  // The derived object calls start() as soon as its inline storage lives.
  constexpr basic_string_base(Char* inline_data, std::size_t inline_capacity,
                              std::pmr::memory_resource* resource) noexcept
      : storage(inline_data, inline_capacity + 1, resource, sizeof(basic_string_base)) {}
  // Takes over the block of `other`, or leaves the characters inside there. Requires: the same inline capacity.
  constexpr basic_string_base(basic_string_base& other, Char* inline_data, std::size_t inline_capacity) noexcept
      : storage(other, inline_data, inline_capacity + 1, sizeof(basic_string_base)) {}
  constexpr ~basic_string_base() = default;

  // Returns: null for the default resource that was not yet asked for.
  static constexpr std::pmr::memory_resource* resource_of(const basic_string_base& text) noexcept {
    return text.resource_;
  }

 private:
  using storage::assign_grown;
  using storage::move;
  using storage::move_to_block;
  using storage::open_gap;
  using storage::push_back_grown;
  using storage::replace_characters;
  using storage::replace_grown;
  using storage::set_size;

  constexpr size_type index_of(const Char* position) const noexcept {
    return static_cast<size_type>(position - data_);
  }

  // replace() between iterators, by what it puts there.
  template <class Text>
  requires detail::viewable<Text, Char>
  constexpr basic_string_base& replace_between(size_type position, size_type removed, const Text& text) {
    const view_type view(text);
    return replace(position, removed, view.data(), view.size());
  }
  constexpr basic_string_base& replace_between(size_type position, size_type removed, const Char* text,
                                               size_type added) {
    return replace(position, removed, text, added);
  }
  constexpr basic_string_base& replace_between(size_type position, size_type removed, size_type added, Char one) {
    return replace(position, removed, added, one);
  }
  template <std::input_iterator Iterator>
  constexpr basic_string_base& replace_between(size_type position, size_type removed, Iterator first, Iterator last) {
    return replace_by_positions(position, removed, first, last);
  }

  template <class Iterator, class Sentinel>
  constexpr basic_string_base& replace_by_positions(size_type position, size_type removed, Iterator first,
                                                    Sentinel last) {
    if constexpr (std::contiguous_iterator<Iterator> && std::is_same_v<std::iter_value_t<Iterator>, Char> &&
                  std::sized_sentinel_for<Sentinel, Iterator>) {
      replace_characters(position, removed, std::to_address(first), static_cast<size_type>(last - first));
    } else {  // reading may throw, or read this string
      basic_inline_string<Char, 256 / sizeof(Char)> text(this->resource_);
      for (; first != last; ++first)
        text.push_back(static_cast<Char>(*first));
      replace_characters(position, removed, text.data(), text.size());
    }
    return *this;
  }

  constexpr void swap_characters(basic_string_base& other) {
    reserve(other.size_);
    other.reserve(size_);
    basic_string_base& longer = size_ < other.size_ ? other : *this;
    basic_string_base& shorter = size_ < other.size_ ? *this : other;
    const size_type common = shorter.size_ + size_type{1};
    for (size_type i = 0; i < common; ++i)
      std::swap(longer.data_[i], shorter.data_[i]);
    // The terminator of the shorter one is among them, but that of the longer one is not.
    if (longer.size_ >= common)
      traits::copy(shorter.data_ + common, longer.data_ + common, longer.size_ - shorter.size_);
    std::swap(size_, other.size_);
  }
};

}  // namespace sluice
