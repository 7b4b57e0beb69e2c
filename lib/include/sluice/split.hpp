// split: a text's pieces between separators, into a vector of any strings and any inline capacity; join: the way back.
// Open it to take lines, fields and words apart without an allocation for each.
//
//   sluice::inline_vector<sluice::inline_string<24>, 8> fields;
//   sluice::split("name,size,date", ',', fields);                           // three strings
//   sluice::split_any_of(line, " \t", fields, sluice::empty_pieces::skip);  // words
//   sluice::inline_string<100> path;
//   sluice::join(fields, "/", path);
//
// When not: for quoted fields and other grammars; to look at pieces once, one by one (find does). Elements that are
// std::string_view cost least; they are valid as long as the text is.
//
// The vector is a vector_base<String>, where String can be made of a std::basic_string_view of its value_type:
// inline_string of any N, std::string, std::string_view and others. Its old elements go; where strings have assign(),
// new pieces are written over them, so that a vector that is used again for each line soon takes no memory.
//
// Complexity: O(size of the text), by split() at a text times its length at worst. Thread-safety: as its arguments.
// Errors: what taking memory throws; then the vector holds some of the pieces and some of its old elements.
// Invalidation: everything that points into the vector or its elements. The text must not lie in there.
#pragma once

#include "sluice/detail/require_cpp20.hpp"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>
#include <type_traits>

#include "sluice/detail/string_base.hpp"
#include "sluice/inline_vector.hpp"

namespace sluice {

// What becomes of pieces without characters: at both ends of the text and between adjacent separators.
enum class empty_pieces : unsigned char { keep, skip };

namespace detail {

// The characters to split at; O(1) a character where they are bytes.
template <class Char>
class separator_set {
 public:
  constexpr explicit separator_set(std::basic_string_view<Char> separators) noexcept : separators_(separators) {
    if constexpr (sizeof(Char) == 1)
      for (const Char one : separators)
        bits_[static_cast<unsigned char>(one) / 64] |= std::uint64_t{1} << static_cast<unsigned char>(one) % 64;
  }
  // Returns: where the next one is, or the size of the text.
  constexpr std::size_t next(std::basic_string_view<Char> text, std::size_t from) const noexcept {
    while (from < text.size() && !has(text[from]))
      ++from;
    return from;
  }

 private:
  constexpr bool has(Char one) const noexcept {
    if constexpr (sizeof(Char) == 1)
      return (bits_[static_cast<unsigned char>(one) / 64] >> static_cast<unsigned char>(one) % 64 & 1) != 0;
    else
      return separators_.find(one) != separators_.npos;
  }

  std::basic_string_view<Char> separators_;
  std::uint64_t bits_[sizeof(Char) == 1 ? 4 : 1] = {};
};

// Effects: replaces the elements of `out` by the pieces of the text. `find(from)` says where the next separator begins,
// npos or the size of the text when there is none.
template <class String, class Find>
constexpr void split_by(std::basic_string_view<typename String::value_type> text, std::size_t separator_size, Find find,
                        vector_base<String>& out, empty_pieces empty) {
  std::size_t pieces = 0;
  const auto put = [&](std::size_t from, std::size_t to) {
    if (from == to && empty == empty_pieces::skip) return;
    const std::basic_string_view<typename String::value_type> piece(text.data() + from, to - from);
    if (pieces == out.size())
      out.emplace_back(piece);
    else if constexpr (requires { out[pieces].assign(piece.data(), piece.size()); })
      out[pieces].assign(piece.data(), piece.size());
    else
      out[pieces] = String(piece);
    ++pieces;
  };
  std::size_t from = 0;
  for (std::size_t at = find(from); at < text.size(); at = find(from)) {
    put(from, at);
    from = at + separator_size;
  }
  put(from, text.size());
  out.erase(out.begin() + pieces, out.end());
}

}  // namespace detail

// Effects: replaces the elements of `out` by the pieces of the text between separators: one more than there are
// separators when empty ones are kept, so that an empty text is one empty piece.
template <class String>
constexpr void split(std::basic_string_view<typename String::value_type> text, typename String::value_type separator,
                     vector_base<String>& out, empty_pieces empty = empty_pieces::keep) {
  detail::split_by(
      text, 1, [&](std::size_t from) { return text.find(separator, from); }, out, empty);
}
// The same at each place where the whole of `separator` stands, from left to right; nowhere when that is empty.
template <class String>
constexpr void split(std::basic_string_view<typename String::value_type> text,
                     std::basic_string_view<typename String::value_type> separator, vector_base<String>& out,
                     empty_pieces empty = empty_pieces::keep) {
  detail::split_by(
      text, separator.size(),
      [&](std::size_t from) { return separator.empty() ? text.npos : text.find(separator, from); }, out, empty);
}
// The same at each character that is one of `separators`.
template <class String>
constexpr void split_any_of(std::basic_string_view<typename String::value_type> text,
                            std::basic_string_view<typename String::value_type> separators, vector_base<String>& out,
                            empty_pieces empty = empty_pieces::keep) {
  const detail::separator_set<typename String::value_type> set(separators);
  detail::split_by(
      text, 1, [&](std::size_t from) { return set.next(text, from); }, out, empty);
}

// Effects: replaces `out` by the pieces, a separator between each two. Takes memory once, if at all; throws
// std::bad_alloc and std::length_error, and then `out` is as it was. Requires: pieces convert to a view; neither they
// nor the separator are parts of `out`. Pieces are looked at twice.
template <class Range, class Char>
constexpr void join(const Range& pieces, std::type_identity_t<std::basic_string_view<Char>> separator,
                    basic_string_base<Char>& out) {
  using view = std::basic_string_view<Char>;
  std::size_t size = 0;
  for (const auto& piece : pieces)
    size += view(piece).size() + separator.size();
  if (size != 0) size -= separator.size();
  out.reserve(size);
  out.clear();
  bool first = true;
  for (const auto& piece : pieces) {
    if (!first) out.append(separator);
    first = false;
    out.append(view(piece));
  }
}
template <class Range, class Char>
constexpr void join(const Range& pieces, std::type_identity_t<Char> separator, basic_string_base<Char>& out) {
  join(pieces, std::basic_string_view<Char>(&separator, 1), out);
}

}  // namespace sluice
