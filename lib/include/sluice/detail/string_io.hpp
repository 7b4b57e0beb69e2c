// Streams, std::format and std::hash for strings with inline storage. Open it when one of them should treat our strings
// unlike std::string; that is the only thing it must not do.
#pragma once

#include <cstddef>
#include <functional>
#include <istream>
#include <locale>
#include <ostream>
#include <string_view>
#include <version>
#if defined(__cpp_lib_format)
#include <format>
#endif

#include "sluice/detail/string_base.hpp"

namespace sluice {

template <class Char>
std::basic_ostream<Char>& operator<<(std::basic_ostream<Char>& out, const basic_string_base<Char>& text) {
  return out << text.view();
}

namespace detail {

// Effects: appends characters from the stream while `takes(c)`, at most `most`, and leaves the next one there.
// Returns: the state to set.
template <class Char, class Takes>
std::ios_base::iostate append_from(std::basic_istream<Char>& in, basic_string_base<Char>& text, std::size_t most,
                                   Takes takes) {
  using traits = std::char_traits<Char>;
  std::basic_streambuf<Char>* const from = in.rdbuf();
  for (std::size_t taken = 0; taken < most; ++taken) {
    const typename traits::int_type next = taken == 0 ? from->sgetc() : from->snextc();
    if (traits::eq_int_type(next, traits::eof())) return std::ios_base::eofbit;
    if (!takes(traits::to_char_type(next))) return std::ios_base::goodbit;
    text.push_back(traits::to_char_type(next));
  }
  from->sbumpc();
  return std::ios_base::goodbit;
}

// Effects: what a formatted or unformatted input function does about an exception while it reads: it sets badbit, and
// lets the exception through if the stream is to throw for that.
template <class Char, class Read>
void read_guarded(std::basic_istream<Char>& in, Read read) {
#if defined(__cpp_exceptions)
  std::ios_base::iostate state = std::ios_base::goodbit;
  try {
    state = read();
  } catch (...) {
    const bool rethrow = (in.exceptions() & std::ios_base::badbit) != 0;
    try {
      in.setstate(std::ios_base::badbit);
    } catch (const std::ios_base::failure&) {  // what came first is thrown instead
    }
    if (rethrow) throw;
  }
  in.setstate(state);
#else
  in.setstate(read());
#endif
}

}  // namespace detail

// Effects: reads a word, up to white space or in.width() characters, in place of the text; failbit when there is none.
template <class Char>
std::basic_istream<Char>& operator>>(std::basic_istream<Char>& in, basic_string_base<Char>& text) {
  const typename std::basic_istream<Char>::sentry ready(in);
  if (!ready) return in;
  detail::read_guarded(in, [&] {
    text.clear();
    const std::locale locale = in.getloc();
    const auto& kinds = std::use_facet<std::ctype<Char>>(locale);
    const std::size_t most = in.width() > 0 ? static_cast<std::size_t>(in.width()) : text.max_size();
    std::ios_base::iostate state =
        detail::append_from(in, text, most, [&](Char one) { return !kinds.is(std::ctype_base::space, one); });
    in.width(0);
    if (text.empty()) state |= std::ios_base::failbit;
    return state;
  });
  return in;
}

// Effects: reads a line, without its end, in place of the text; failbit when there is none.
template <class Char>
std::basic_istream<Char>& getline(std::basic_istream<Char>& in, basic_string_base<Char>& text, Char end) {
  const typename std::basic_istream<Char>::sentry ready(in, true);
  if (!ready) return in;
  detail::read_guarded(in, [&] {
    text.clear();
    std::ios_base::iostate state = detail::append_from(in, text, text.max_size(), [&](Char one) { return one != end; });
    if (state == std::ios_base::goodbit) {
      if (text.size() == text.max_size())
        state = std::ios_base::failbit;
      else
        in.rdbuf()->sbumpc();
    } else if (text.empty()) {
      state |= std::ios_base::failbit;
    }
    return state;
  });
  return in;
}
template <class Char>
std::basic_istream<Char>& getline(std::basic_istream<Char>& in, basic_string_base<Char>& text) {
  return getline(in, text, in.widen('\n'));
}
template <class Char>
std::basic_istream<Char>& getline(std::basic_istream<Char>&& in, basic_string_base<Char>& text, Char end) {
  return getline(in, text, end);
}
template <class Char>
std::basic_istream<Char>& getline(std::basic_istream<Char>&& in, basic_string_base<Char>& text) {
  return getline(in, text, in.widen('\n'));
}

namespace detail {

// Equal to std::hash of a view with the same characters; takes anything a view can be made of.
template <class Char>
struct hash_as_view {
  using is_transparent = void;
  std::size_t operator()(std::basic_string_view<Char> text) const noexcept {
    return std::hash<std::basic_string_view<Char>>()(text);
  }
};

}  // namespace detail
}  // namespace sluice

template <class Char>
struct std::hash<sluice::basic_string_base<Char>> : sluice::detail::hash_as_view<Char> {};
template <class Char, std::size_t N>
struct std::hash<sluice::basic_inline_string<Char, N>> : sluice::detail::hash_as_view<Char> {};

#if defined(__cpp_lib_format)
template <class Char>
struct std::formatter<sluice::basic_string_base<Char>, Char> : std::formatter<std::basic_string_view<Char>, Char> {};
template <class Char, std::size_t N>
struct std::formatter<sluice::basic_inline_string<Char, N>, Char> : std::formatter<std::basic_string_view<Char>, Char> {
};
#endif
