// How a string with inline storage keeps its characters: how it grows, opens and closes gaps, and puts text into them.
// Open it to change how strings take memory, or what happens when an argument is a part of the string itself.
//
// An argument may be a part of the string that changes, its terminator included: where memory is taken the old
// characters live until the new ones are complete, and where characters move within the string, replace_characters()
// says where the source has gone. Everything that can fail comes before the first change.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>
#include <type_traits>

#include "sluice/detail/failure.hpp"
#include "sluice/detail/string_reading.hpp"

namespace sluice::detail {

template <class Char>
class string_storage : public string_reading<Char> {
  using reading = string_reading<Char>;
  using traits = std::char_traits<Char>;

 protected:
  using reading::capacity_;
  using reading::data_;
  using reading::size_;
  using typename reading::count_type;
  using typename reading::size_type;

  using reading::reading;
  constexpr ~string_storage() = default;

  // Effects: the string is empty. Called as soon as the inline storage of the derived object lives.
  constexpr void start() noexcept {
    if (std::is_constant_evaluated() && data_ == nullptr)
      this->adopt(allocate_characters(this->inline_capacity_), this->inline_capacity_);
    set_size(0);
  }

  constexpr void set_size(size_type size) noexcept {
    size_ = static_cast<count_type>(size);
    data_[size] = Char();
  }

  // Returns: memory for `characters`, the terminator among them. Throws std::bad_alloc.
  constexpr Char* allocate_characters(size_type characters) {
    Char* const block = this->allocate_block(characters);
    if (std::is_constant_evaluated())
      for (size_type i = 0; i < characters; ++i)
        std::construct_at(block + i);
    return block;
  }

  // Effects: moves the characters into a new block of that size, the terminator included.
  [[gnu::noinline]] constexpr void move_to_block(size_type characters) {
    Char* const block = allocate_characters(characters);
    traits::copy(block, data_, size_ + 1);
    this->adopt(block, characters);
  }

  // Returns: the capacity of a block for the string after `removed` characters made room for `added`.
  constexpr size_type block_capacity(size_type removed, size_type added, const char* function) const {
    const size_type kept = size_ - removed;
    if (added > reading::max_size() - kept) throw_length_error(function);
    const size_type grown = this->grown_capacity(kept + added + 1, function);
    return grown < least_block ? least_block : grown;
  }

  // Effects: replaces in a new block. The text may be a part of the string, whose old characters live until the end.
  [[gnu::noinline]] constexpr void replace_grown(size_type position, size_type removed, const Char* text,
                                                 size_type added, const char* function) {
    const size_type characters = block_capacity(removed, added, function);
    Char* const block = allocate_characters(characters);
    const size_type tail = size_ - position - removed;
    traits::copy(block, data_, position);
    traits::copy(block + position, text, added);
    traits::copy(block + position + added, data_ + position + removed, tail);
    this->adopt(block, characters);
    set_size(position + added + tail);
  }

  // Effects: the text replaces everything, in a new block. It may be a part of the string.
  [[gnu::noinline]] constexpr void assign_grown(const Char* text, size_type count) {
    const size_type characters = block_capacity(size_, count, "inline_string::assign");
    Char* const block = allocate_characters(characters);
    traits::copy(block, text, count);
    this->adopt(block, characters);
    set_size(count);
  }

  // Apart, so that the character of push_back() needs no address.
  [[gnu::noinline]] constexpr void push_back_grown(Char one) {
    replace_grown(size_, 0, &one, 1, "inline_string::push_back");
  }

  // Returns: where `added` characters may be written, in place of the `removed` ones; the size is then the new one.
  constexpr Char* open_gap(size_type position, size_type removed, size_type added, const char* function) {
    const size_type tail = size_ - position - removed;
    if (added > removed && added - removed >= capacity_ - size_)
      open_gap_grown(position, removed, added, function);
    else if (added != removed && tail != 0)
      move(data_ + position + added, data_ + position + removed, tail);
    set_size(position + added + tail);
    return data_ + position;
  }
  [[gnu::noinline]] constexpr void open_gap_grown(size_type position, size_type removed, size_type added,
                                                  const char* function) {
    const size_type characters = block_capacity(removed, added, function);
    Char* const block = allocate_characters(characters);
    traits::copy(block, data_, position);
    traits::copy(block + position + added, data_ + position + removed, size_ - position - removed);
    this->adopt(block, characters);
  }

  // traits::move(), which in constant expressions asks whether addresses are equal, as it may not of literals.
  static constexpr void move(Char* target, const Char* source, size_type number) {
    if (std::is_constant_evaluated()) {
      Char* const between = new Char[number]();
      traits::copy(between, source, number);
      traits::copy(target, between, number);
      delete[] between;
    } else {
      traits::move(target, source, number);
    }
  }

  // Returns: whether the text begins in this string, its terminator included.
  bool begins_inside(const Char* text) const noexcept {
    return !std::less<>()(text, data_) && !std::less<>()(data_ + size_, text);
  }

  // Effects: replaces, in place if there is room. The text may be a part of the string.
  constexpr void replace_characters(size_type position, size_type removed, const Char* text, size_type added) {
    if (added > removed && added - removed >= capacity_ - size_) {
      replace_grown(position, removed, text, added, "inline_string::replace");
      return;
    }
    if (std::is_constant_evaluated()) {  // which cannot tell where the text is
      replace_by_copy(position, removed, text, added);
      return;
    }
    Char* const gap = data_ + position;
    const size_type tail = size_ - position - removed + 1;  // with the terminator
    if (added <= removed) {
      // What is written lies within what goes, so that the tail is whole when it moves.
      move(gap, text, added);
      if (added != removed) move(gap + added, gap + removed, tail);
    } else if (!begins_inside(text)) {
      move(gap + added, gap + removed, tail);
      traits::copy(gap, text, added);
    } else {
      // The part of the text behind what goes moves with the tail; that before it stays, up to where the tail begins.
      move(gap + added, gap + removed, tail);
      const size_type staying = text < gap + removed ? static_cast<size_type>(gap + removed - text) : 0;
      const size_type before = staying < added ? staying : added;
      move(gap, text, before);
      traits::copy(gap + before, text + before + (added - removed), added - before);
    }
    size_ = static_cast<count_type>(size_ - removed + added);
  }

  constexpr void replace_by_copy(size_type position, size_type removed, const Char* text, size_type added) {
    Char* const between = new Char[added + 1]();
    traits::copy(between, text, added);
    traits::copy(open_gap(position, removed, added, "inline_string::replace"), between, added);
    delete[] between;
  }

 private:
  static constexpr size_type least_block = 16;  // characters; a malloc gives as much anyway
};

}  // namespace sluice::detail
