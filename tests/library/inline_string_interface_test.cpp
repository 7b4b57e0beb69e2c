// What can be written with inline_string: conversions, overloads, operators, streams, hashing, constant expressions.
#include <gtest/gtest.h>

#include <cstddef>
#include <functional>
#include <iterator>
#include <list>
#include <map>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <version>
#if defined(__cpp_lib_format)
#include <format>
#endif

#include "sluice/inline_string.hpp"

namespace {

using sluice::inline_string;
using sluice::string_base;
using std::string_view;

static_assert(std::is_convertible_v<const inline_string<4>&, string_view>);
static_assert(!std::is_convertible_v<string_view, inline_string<4>> &&
              std::is_constructible_v<inline_string<4>, string_view>);
static_assert(std::is_convertible_v<inline_string<9>, inline_string<4>> &&
              std::is_convertible_v<const string_base&, inline_string<4>>);
static_assert(!std::is_constructible_v<inline_string<4>, std::nullptr_t>);
static_assert(!std::is_assignable_v<inline_string<4>&, std::nullptr_t>);
static_assert(std::is_same_v<decltype(std::declval<inline_string<4>&>() = "abc"), inline_string<4>&>);
static_assert(std::contiguous_iterator<inline_string<4>::iterator>);
static_assert(std::uses_allocator_v<inline_string<4>, std::pmr::polymorphic_allocator<>>);

void fill(string_base& text) {
  text = "filled through the base";
}

TEST(InlineStringInterface, IsPassedAsABaseThatKnowsNoN) {
  inline_string<4> small;
  inline_string<100> large;
  fill(small);
  fill(large);
  EXPECT_EQ(small, large);
  EXPECT_FALSE(small.is_inline());
  EXPECT_TRUE(large.is_inline());
  EXPECT_EQ(large.inline_capacity(), 100u);
  const string_base& base = small;
  const inline_string<8> copy = base;
  EXPECT_EQ(copy, base);
}

TEST(InlineStringInterface, IsMadeOfWhatStdStringIsMadeOf) {
  const std::list<char> list = {'a', 'b', 'c'};
  const string_view view = "abcdef";
  EXPECT_EQ(inline_string<4>(), "");
  EXPECT_EQ(inline_string<4>("abcdef"), view);
  EXPECT_EQ(inline_string<4>("abcdef", 3), "abc");
  EXPECT_EQ(inline_string<4>(5, 'x'), "xxxxx");
  EXPECT_EQ((inline_string<4>{'a', 'b'}), "ab");
  EXPECT_EQ(inline_string<4>(list.begin(), list.end()), "abc");
  EXPECT_EQ(inline_string<4>(view), view);
  EXPECT_EQ(inline_string<4>(view, 2), "cdef");
  EXPECT_EQ(inline_string<4>(view, 2, 2), "cd");
  EXPECT_EQ(inline_string<4>(inline_string<9>("abcdef"), 4), "ef");
  EXPECT_EQ(inline_string<4>(std::string("std")), "std");
  EXPECT_EQ(std::string(inline_string<4>("ours")), "ours");
  EXPECT_THROW(inline_string<4>(view, 7), std::out_of_range);
}

TEST(InlineStringInterface, TakesLiteralZeroAsAnIndex) {
  inline_string<16> text("abc");
  text.insert(0, 2, 'x').insert(0, "y").replace(0, 0, "z").replace(0, 1, 1, 'Z').erase(0, 1);
  EXPECT_EQ(text, "yxxabc");
  EXPECT_EQ(text.erase(0), "");
  text = {};
  EXPECT_EQ(text, "");
}

TEST(InlineStringInterface, PositionsBeyondTheEndAreOutOfRange) {
  inline_string<8> text("abc");
  const std::string other("xyz");
  char target[4] = {};
  EXPECT_THROW((void)text.at(3), std::out_of_range);
  EXPECT_THROW(text.insert(4, "x"), std::out_of_range);
  EXPECT_THROW(text.insert(4, 1, 'x'), std::out_of_range);
  EXPECT_THROW(text.erase(4), std::out_of_range);
  EXPECT_THROW(text.replace(4, 0, "x"), std::out_of_range);
  EXPECT_THROW(text.replace(0, 1, other, 4), std::out_of_range);
  EXPECT_THROW(text.append(other, 4), std::out_of_range);
  EXPECT_THROW(text.assign(other, 4), std::out_of_range);
  EXPECT_THROW((void)text.substr(4), std::out_of_range);
  EXPECT_THROW((void)text.view(4), std::out_of_range);
  EXPECT_THROW((void)text.compare(4, 1, "x"), std::out_of_range);
  EXPECT_THROW(text.copy(target, 1, 4), std::out_of_range);
  EXPECT_EQ(text.copy(target, 9, 1), 2u);
  EXPECT_EQ(string_view(target), "bc");
  EXPECT_EQ(text.at(2), 'c');
  EXPECT_EQ(text.substr(3), "");
  EXPECT_EQ(text, "abc");
}

TEST(InlineStringInterface, TakesPartsOfItselfAtEachPlace) {
  // Each start, length and place, when the result fits inside and when it does not.
  const std::string whole = "0123456789";
  for (std::size_t from = 0; from <= whole.size(); ++from) {
    for (std::size_t count = 0; from + count <= whole.size(); ++count) {
      for (std::size_t at = 0; at <= whole.size(); ++at) {
        for (std::size_t gone = 0; at + gone <= whole.size(); ++gone) {
          const std::string expected = std::string(whole).replace(at, gone, whole.substr(from, count));
          inline_string<40> inside(whole);
          inside.replace(at, gone, inside.data() + from, count);
          inline_string<10> outside(whole);
          outside.replace(at, gone, outside.view(from, count));
          ASSERT_EQ(inside, expected) << from << ' ' << count << ' ' << at << ' ' << gone;
          ASSERT_EQ(outside, expected) << from << ' ' << count << ' ' << at << ' ' << gone;
          ASSERT_EQ(inside.c_str()[expected.size()], '\0');
        }
      }
    }
  }
}

TEST(InlineStringInterface, ComparesWithAllThatAViewCanBeMadeOf) {
  const inline_string<4> text("abc");
  const inline_string<30> same("abc"), more("abcd");
  const std::string standard("abd");
  EXPECT_TRUE(text == same && same == text && text == "abc" && "abc" == text && text == string_view("abc"));
  EXPECT_TRUE(text != more && text < more && more > text && text <= same && text != standard && standard > text);
  EXPECT_TRUE((text <=> "abc") == std::strong_ordering::equal && string_view("abb") < text);
  const inline_string<4> with_zero("a\0b", 3), high("\xff");
  EXPECT_NE(with_zero, "a");
  EXPECT_GT(high, "a");
  const std::map<std::string, int, std::less<>> map = {{"abc", 1}};
  EXPECT_EQ(map.count(text), 1u);
}

TEST(InlineStringInterface, AddsWhateverCanBeAdded) {
  const inline_string<4> a("a");
  const inline_string<9> b("bb");
  static_assert(std::is_same_v<decltype(a + b), inline_string<9>>);
  static_assert(std::is_same_v<decltype(a + "x"), inline_string<4>>);
  EXPECT_EQ(a + b, "abb");
  EXPECT_EQ(a + "x", "ax");
  EXPECT_EQ("x" + a, "xa");
  EXPECT_EQ(a + 'x', "ax");
  EXPECT_EQ('x' + a, "xa");
  EXPECT_EQ(a + std::string("std") + string_view("view") + b, "astdviewbb");
  EXPECT_EQ(string_view("view") + (a + a), "viewaa");
  EXPECT_EQ((b + b) + (a + a), "bbbbaa");
  const string_base& base = b;
  EXPECT_EQ(a + base, "abb");
}

TEST(InlineStringInterface, AddsItselfToItselfWhenMovedFrom) {
  inline_string<32> inside("ab"), outside(std::string(40, 'x'));
  // NOLINTBEGIN(bugprone-use-after-move): nothing has moved until both are read
  EXPECT_EQ(std::move(inside) + inside, "abab");
  EXPECT_EQ(std::move(outside) + outside, std::string(80, 'x'));
  // NOLINTEND(bugprone-use-after-move)
}

TEST(InlineStringInterface, HashesLikeAViewAndIsLookedUpByOne) {
  const inline_string<8> text("key");
  const string_base& base = text;
  EXPECT_EQ(std::hash<inline_string<8>>()(text), std::hash<string_view>()("key"));
  EXPECT_EQ(std::hash<string_base>()(base), std::hash<string_view>()("key"));
  std::unordered_map<inline_string<8>, int, std::hash<inline_string<8>>, std::equal_to<>> map;
  map[text] = 7;
  EXPECT_EQ(map.find(string_view("key"))->second, 7);
  EXPECT_EQ(map.find("none"), map.end());
}

TEST(InlineStringInterface, IsWrittenLikeStdString) {
  std::ostringstream out;
  out.width(6);
  out.fill('.');
  out << inline_string<2>("text") << '|' << inline_string<9>("more");
  EXPECT_EQ(out.str(), "..text|more");
  std::wostringstream wide;
  wide << sluice::inline_wstring<2>(L"wide");
  EXPECT_EQ(wide.str(), L"wide");
}

TEST(InlineStringInterface, IsReadLikeStdString) {
  const char* const inputs[] = {"", " ", "word", "  two words\nlines\n\nend", "abcdefghijklmnopqrstuvwxyz and more\n"};
  for (const char* const input : inputs) {
    for (const int width : {0, 3}) {
      std::istringstream ours_in(input), model_in(input);
      inline_string<5> ours("old");
      std::string model("old");
      for (int i = 0; i < 6; ++i) {
        SCOPED_TRACE(std::string(input) + ", read " + std::to_string(i));
        if (i % 2 == 0) {
          ours_in.width(width), model_in.width(width);
          ours_in >> ours, model_in >> model;
        } else {
          getline(ours_in, ours), getline(model_in, model);
        }
        EXPECT_EQ(ours, model);
        EXPECT_EQ(ours_in.rdstate(), model_in.rdstate());
        EXPECT_EQ(ours_in.width(), model_in.width());
      }
    }
  }
  std::istringstream in("a;b");
  inline_string<5> text;
  EXPECT_TRUE(getline(in, text, ';') && text == "a");
  EXPECT_TRUE(getline(std::istringstream("line\n"), text) && text == "line");
  std::wistringstream wide(L"wide text");
  sluice::inline_wstring<2> word;
  wide >> word;
  EXPECT_EQ(word, L"wide");
}

// A source of text that fails, even with the exception of streams.
class BrokenSource : public std::streambuf {
 protected:
  int_type underflow() override { throw std::ios_base::failure("the source is gone"); }
};

TEST(InlineStringInterface, AStreamSaysWhenItsSourceFails) {
  for (const bool whole_line : {false, true}) {
    BrokenSource source;
    std::istream in(&source);
    in.unsetf(std::ios_base::skipws);
    inline_string<3> text;
    const auto read = [&]() -> std::istream& { return whole_line ? getline(in, text) : in >> text; };
    EXPECT_NO_THROW(read());
    EXPECT_TRUE(in.bad());
    in.clear();
    in.exceptions(std::ios_base::badbit);
    EXPECT_THROW(read(), std::ios_base::failure);
    EXPECT_TRUE(in.bad());
  }
  std::istringstream empty("");
  empty.exceptions(std::ios_base::failbit);
  inline_string<3> text;
  EXPECT_THROW(empty >> text, std::ios_base::failure);
}

TEST(InlineStringInterface, AStreamSaysWhenThereIsNoMemoryForAWord) {
  std::istringstream in("more than four characters");
  inline_string<3> text(std::pmr::null_memory_resource());
  in >> text;
  EXPECT_TRUE(in.bad());
  EXPECT_EQ(text, "mor");
  std::istringstream throwing("more");
  throwing.exceptions(std::ios_base::badbit);
  EXPECT_THROW(throwing >> text, std::bad_alloc);
}

#if defined(__cpp_lib_format)
TEST(InlineStringInterface, IsFormattedLikeAView) {
  const inline_string<4> text("text");
  const string_base& base = text;
  EXPECT_EQ(std::format("{}|{:>6}|{:.2}", text, base, text), "text|  text|te");
  EXPECT_EQ(std::format(L"{:*<6}", sluice::inline_wstring<4>(L"wide")), L"wide**");
}
#endif

TEST(InlineStringInterface, ErasesByValueAndPredicate) {
  inline_string<8> text("a-b-c-");
  EXPECT_EQ(erase(text, '-'), 3u);
  EXPECT_EQ(erase_if(text, [](char one) { return one < 'c'; }), 2u);
  EXPECT_EQ(text, "c");
}

constexpr bool works_in_constant_expressions() {
  inline_string<4> text("abc");
  text += " and more than four";
  text.insert(0, text).replace(0, 3, text.view(4, 3)).erase(6, 4);
  inline_string<4> moved(std::move(text)), copy(moved);
  text = moved.substr(0, 3);
  moved.swap(text);
  text.shrink_to_fit();
  copy = text + moved + 'x';
  copy.resize(3);
  copy.push_back('!');
  return moved == "and" && text.starts_with("and") && copy == "and!" && copy.find('!') == 3 && text.c_str()[0] == 'a' &&
         inline_string<0>().empty() && inline_string<200>("x", 1) < inline_string<0>("y");
}
static_assert(works_in_constant_expressions());

}  // namespace
