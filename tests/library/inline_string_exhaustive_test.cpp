// inline_string where the cases are few enough to try all of them: each part of a string put at each place of itself,
// each short text against each other, each way to read a stream.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <iomanip>
#include <ios>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "counting_resource.hpp"
#include "sluice/inline_string.hpp"

namespace {

using library_test::CountingResource;
using sluice::inline_string;

// Of `length` different letters, with room for `room` more on the heap unless all fits inside.
template <std::size_t N>
inline_string<N> letters(std::size_t length, std::size_t room, CountingResource& resource) {
  inline_string<N> text(&resource);
  text.reserve(length + room);
  for (std::size_t i = 0; i < length; ++i)
    text.push_back(static_cast<char>('a' + i));
  return text;
}

template <std::size_t N>
void expect_is(const inline_string<N>& text, std::string_view expected) {
  ASSERT_EQ(text.view(), expected);
  ASSERT_EQ(text.data()[text.size()], '\0');
}

template <std::size_t N>
void put_each_part_everywhere(std::size_t length, std::size_t room) {
  CountingResource resource;
  const std::string model(letters<N>(length, room, resource).view());
  for (std::size_t from = 0; from <= length; ++from) {
    for (std::size_t count = 0; count <= length - from + 1; ++count) {  // the terminator too
      const std::string part(model.c_str() + from, count);
      auto assigned = letters<N>(length, room, resource);
      assigned.assign(assigned.data() + from, count);
      expect_is(assigned, part);
      auto appended = letters<N>(length, room, resource);
      appended.append(appended.data() + from, count);
      expect_is(appended, model + part);
      for (std::size_t at = 0; at <= length; ++at) {
        for (std::size_t gone = 0; gone <= length - at; ++gone) {
          auto replaced = letters<N>(length, room, resource);
          replaced.replace(at, gone, replaced.data() + from, count);
          expect_is(replaced, std::string(model).replace(at, gone, part));
          if (from == length) continue;
          auto repeated = letters<N>(length, room, resource);
          repeated.replace(at, gone, count, repeated[from]);
          expect_is(repeated, std::string(model).replace(at, gone, count, model[from]));
        }
      }
    }
  }
}

TEST(InlineStringExhaustive, EachPartOfAStringCanBePutAnywhereInIt) {
  for (std::size_t length = 0; length <= 6; ++length) {
    for (const std::size_t room : {0u, 1u, 3u, 9u}) {
      put_each_part_everywhere<0>(length, room);
      put_each_part_everywhere<4>(length, room);
      put_each_part_everywhere<20>(length, room);
    }
  }
}

int sign(int order) {
  return (order > 0) - (order < 0);
}

// Every text of up to two of these characters: a zero, a letter, and two that are negative as char.
std::vector<std::string> short_texts() {
  std::vector<std::string> texts{""};
  for (const char first : {'\0', 'a', '\x80', '\xff'}) {
    texts.emplace_back(1, first);
    for (const char second : {'\0', 'a', '\x80', '\xff'})
      texts.push_back({first, second});
  }
  return texts;
}

TEST(InlineStringExhaustive, ComparesAndSearchesShortTextsAsViewsDo) {
  const std::size_t npos = std::string_view::npos;
  for (const std::string& left : short_texts()) {
    for (const std::string& right : short_texts()) {
      const inline_string<1> a(left);
      const inline_string<5> b(right);
      const std::string_view x(left), y(right);
      ASSERT_EQ(a == b, x == y);
      ASSERT_EQ(a <=> b, x <=> y);
      ASSERT_EQ(a <=> right, x <=> y);
      ASSERT_EQ(left <=> b, x <=> y);
      ASSERT_EQ(sign(a.compare(b)), sign(x.compare(y)));
      ASSERT_EQ(a.starts_with(b), x.starts_with(y));
      ASSERT_EQ(a.ends_with(b), x.ends_with(y));
      for (const std::size_t from : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{3}, npos - 1, npos}) {
        ASSERT_EQ(a.find(b, from), x.find(y, from));
        ASSERT_EQ(a.rfind(b, from), x.rfind(y, from));
        ASSERT_EQ(a.find_first_of(b, from), x.find_first_of(y, from));
        ASSERT_EQ(a.find_last_of(b, from), x.find_last_of(y, from));
        ASSERT_EQ(a.find_first_not_of(b, from), x.find_first_not_of(y, from));
        ASSERT_EQ(a.find_last_not_of(b, from), x.find_last_not_of(y, from));
        if (from > left.size())
          ASSERT_THROW((void)a.compare(from, 1, b), std::out_of_range);
        else
          ASSERT_EQ(sign(a.compare(from, 1, b)), sign(x.compare(from, 1, y)));
      }
    }
  }
}

// Returns: what reading leaves: the string, the stream's state and width, and the rest of the text.
template <class String>
std::string read(const std::string& text, int way) {
  std::istringstream in(text);
  String read{"before"};
  if (way == 0) in >> read;
  if (way == 1) in >> std::setw(3) >> read;
  if (way == 2) in >> std::noskipws >> read;
  if (way == 3) in >> read >> read;
  if (way == 4) getline(in, read);
  if (way == 5) getline(in, read, 'x');
  std::ostringstream found;
  found << std::setw(9) << std::left << std::setfill('_') << read << ' ' << in.rdstate() << ' ' << in.width() << ' ';
  in.clear();
  found << in.rdbuf();
  return found.str();
}

TEST(InlineStringExhaustive, IsReadFromStreamsAsStdStringIs) {
  using namespace std::string_literals;
  for (const std::string& text : {""s, " "s, "a"s, "abc"s, "abcd"s, " abc def"s, "abc\n"s, "\n"s, "\nab"s, "abx\ncd"s,
                                  "x"s, "xx"s, "a\0b c"s, "a\tb\vc\fd\r\n"s, "ab "s})
    for (int way = 0; way < 6; ++way)
      EXPECT_EQ(read<inline_string<2>>(text, way), read<std::string>(text, way)) << text << ", way " << way;
}

}  // namespace
