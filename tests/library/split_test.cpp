// Splitting a text into a vector behind its size-blind base, and joining it again.
#include "sluice/split.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <memory_resource>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "counting_resource.hpp"
#include "sluice/inline_string.hpp"
#include "sluice/inline_vector.hpp"

namespace {

using library_test::CountingResource;
using sluice::empty_pieces;

template <class String>
std::vector<std::string> copied(const sluice::vector_base<String>& pieces) {
  std::vector<std::string> copies;
  for (const String& piece : pieces)
    copies.emplace_back(std::string_view(piece));
  return copies;
}

using Strings = std::vector<std::string>;

// The functions a caller would write: they know no N, of the vector or of the string.
template <class String>
void split_path(std::string_view path, sluice::vector_base<String>& out) {
  sluice::split(path, '/', out);
}
void split_words(std::string_view text, sluice::vector_base<sluice::inline_string<24>>& out) {
  sluice::split_any_of(text, " \t\n", out, empty_pieces::skip);
}

// What must come out, found character by character.
template <class IsSeparatorAt>
Strings model(const std::string& text, std::size_t size, IsSeparatorAt separator_at, empty_pieces empty) {
  Strings pieces;
  std::string piece;
  const auto put = [&] {
    if (!piece.empty() || empty == empty_pieces::keep) pieces.push_back(piece);
    piece.clear();
  };
  for (std::size_t i = 0; i < text.size();) {
    if (separator_at(i)) {
      put();
      i += size;
    } else {
      piece += text[i++];
    }
  }
  put();
  return pieces;
}

TEST(Split, CompilesForAnyStringAndAnyRoomBehindTheBase) {
  sluice::inline_vector<sluice::inline_string<24>, 8> usual;
  sluice::inline_vector<sluice::inline_string<7>, 0> none_inside;
  sluice::inline_vector<std::string, 1> standard;
  sluice::inline_vector<std::string_view, 2> views;
  sluice::inline_vector<std::pmr::string, 2> with_resource;
  sluice::vector_base<sluice::inline_string<7>>& base = none_inside;
  const std::string_view path = "usr/include/a directory with a long name/x";
  const Strings expected = {"usr", "include", "a directory with a long name", "x"};
  split_path(path, usual);
  EXPECT_EQ(copied(usual), expected);
  split_path(path, base);
  EXPECT_EQ(copied(base), expected);
  split_path(path, standard);
  EXPECT_EQ(copied(standard), expected);
  split_path(path, views);
  EXPECT_EQ(copied(views), expected);
  EXPECT_EQ(views[1].data(), path.data() + 4);
  split_path(path, with_resource);
  EXPECT_EQ(copied(with_resource), expected);
}

TEST(Split, SplitsWideTextToo) {
  sluice::inline_vector<sluice::inline_wstring<7>, 4> pieces;
  sluice::split(L"a;b;;long enough for the heap", L';', pieces);
  ASSERT_EQ(pieces.size(), 4u);
  EXPECT_EQ(pieces[3], L"long enough for the heap");
  sluice::split_any_of(L"a;b,c", L",;", pieces);
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[2], L"c");
  sluice::inline_wstring<4> joined;
  sluice::join(pieces, L"::", joined);
  EXPECT_EQ(joined, L"a::b::c");
}

TEST(Split, KeepsEmptyPiecesOrSkipsThem) {
  sluice::inline_vector<std::string_view, 8> pieces;
  sluice::split("", ',', pieces);
  EXPECT_EQ(copied(pieces), Strings{""});
  sluice::split("", ',', pieces, empty_pieces::skip);
  EXPECT_TRUE(pieces.empty());
  sluice::split(",a,,b,", ',', pieces);
  EXPECT_EQ(copied(pieces), (Strings{"", "a", "", "b", ""}));
  sluice::split(",a,,b,", ',', pieces, empty_pieces::skip);
  EXPECT_EQ(copied(pieces), (Strings{"a", "b"}));
  sluice::split(std::string_view(), ',', pieces);
  EXPECT_EQ(copied(pieces), Strings{""});
}

TEST(Split, SeparatorsMayBeTextsAndAnEmptyOneIsNowhere) {
  sluice::inline_vector<std::string_view, 8> pieces;
  sluice::split("a, b, c,d", ", ", pieces);
  EXPECT_EQ(copied(pieces), (Strings{"a", "b", "c,d"}));
  sluice::split("aaaa-aaa", "aa", pieces);  // from left to right
  EXPECT_EQ(copied(pieces), (Strings{"", "", "-", "a"}));
  sluice::split("abc", "", pieces);
  EXPECT_EQ(copied(pieces), Strings{"abc"});
  sluice::split("abc", "abcd", pieces);
  EXPECT_EQ(copied(pieces), Strings{"abc"});
}

TEST(Split, AnyOfManySeparatorsTakesBytesAboveAsciiAndZero) {
  sluice::inline_vector<sluice::inline_string<24>, 8> words;
  split_words("  in the\tbeginning\n", words);
  EXPECT_EQ(copied(words), (Strings{"in", "the", "beginning"}));
  sluice::split_any_of(std::string_view("a\0b\xff"
                                        "c\x7f"
                                        "d",
                                        7),
                       std::string_view("\0\xff\x7f", 3), words);
  EXPECT_EQ(copied(words), (Strings{"a", "b", "c", "d"}));
  sluice::split_any_of("abc", "", words);
  EXPECT_EQ(copied(words), Strings{"abc"});
}

TEST(Split, AgreesWithASimpleModelOnRandomTexts) {
  std::mt19937 random(20240517);
  sluice::inline_vector<sluice::inline_string<2>, 3> pieces;
  for (int round = 0; round < 20000; ++round) {
    std::string text(random() % 20, ' ');
    for (char& one : text)
      one = "ab,;"[random() % 4];
    const empty_pieces empty = random() % 2 == 0 ? empty_pieces::keep : empty_pieces::skip;
    SCOPED_TRACE("round " + std::to_string(round) + ", text " + text);
    sluice::split(text, ',', pieces, empty);
    ASSERT_EQ(copied(pieces), model(
                                  text, 1, [&](std::size_t i) { return text[i] == ','; }, empty));
    const std::string_view separator = std::array{"a,", ",,", ";", "aab"}[random() % 4];
    sluice::split(text, separator, pieces, empty);
    ASSERT_EQ(copied(pieces),
              model(
                  text, separator.size(),
                  [&](std::size_t i) { return text.compare(i, separator.size(), separator) == 0; }, empty));
    sluice::split_any_of(text, ",;", pieces, empty);
    ASSERT_EQ(copied(pieces), model(
                                  text, 1, [&](std::size_t i) { return text[i] == ',' || text[i] == ';'; }, empty));
    sluice::split(text, ',', pieces);
    sluice::inline_string<4> joined;
    sluice::join(pieces, ',', joined);
    ASSERT_EQ(joined, text);
  }
}

TEST(Split, TakesNoMemoryWhenPiecesFitInside) {
  CountingResource resource;
  std::pmr::memory_resource* const before = std::pmr::set_default_resource(&resource);
  {
    sluice::inline_vector<sluice::inline_string<24>, 8> fields(&resource);
    sluice::split("one,two,three,four,five,six,seven,a field of 24 characters", ',', fields);
    EXPECT_EQ(fields.size(), 8u);
    sluice::inline_string<80> joined(&resource);
    sluice::join(fields, ", ", joined);
    EXPECT_EQ(resource.allocations(), 0u);
  }
  std::pmr::set_default_resource(before);
}

TEST(Split, GivesThePiecesTheResourceOfTheVector) {
  CountingResource resource;
  sluice::inline_vector<sluice::inline_string<2>, 4> fields(&resource);
  sluice::split("longer than two,x", ',', fields);
  EXPECT_EQ(resource.allocations(), 1u);
  EXPECT_EQ(fields[0].resource(), &resource);
}

TEST(Split, UsesTheMemoryOfTheLinesBefore) {
  CountingResource resource;
  sluice::inline_vector<sluice::inline_string<2>, 1> fields(&resource);
  sluice::split("longer than two,also longer,more than one", ',', fields);
  const std::size_t taken = resource.allocations();
  sluice::split("a,b", ',', fields);
  EXPECT_EQ(fields.size(), 2u);
  sluice::split("longer than t2o,also longe2", ',', fields);
  EXPECT_EQ(copied(fields), (Strings{"longer than t2o", "also longe2"}));
  EXPECT_EQ(resource.allocations(), taken);
}

TEST(Split, LeavesTheVectorValidWhenMemoryRunsOut) {
  for (std::size_t successes = 0;; ++successes) {
    CountingResource resource;
    sluice::inline_vector<sluice::inline_string<2>, 1> fields(&resource);
    sluice::split("a,b,c", ',', fields);
    resource.fail_after(successes);
    bool threw = false;
    try {
      sluice::split("longer,than,two,characters,each", ',', fields);
    } catch (const std::bad_alloc&) {
      threw = true;
    }
    if (!threw) {
      EXPECT_EQ(fields.size(), 5u);
      EXPECT_GT(successes, 3u);
      break;
    }
    for (const auto& field : fields)
      EXPECT_EQ(field.c_str()[field.size()], '\0');
  }
}

TEST(Join, PutsSeparatorsBetweenAndTakesMemoryOnce) {
  CountingResource resource;
  sluice::inline_string<4> out("old", &resource);
  sluice::join(Strings{}, ", ", out);
  EXPECT_EQ(out, "");
  sluice::join(Strings{"a"}, ", ", out);
  EXPECT_EQ(out, "a");
  sluice::join(std::array<std::string_view, 3>{"", "", ""}, "-", out);
  EXPECT_EQ(out, "--");
  const char* const words[] = {"some", "words", "on", "the", "heap", "with", "several", "characters"};
  sluice::join(words, ' ', out);
  EXPECT_EQ(out, "some words on the heap with several characters");
  EXPECT_EQ(resource.allocations(), 1u);
}

TEST(Join, LeavesTheStringWhenMemoryRunsOut) {
  CountingResource resource;
  resource.fail_after(0);
  sluice::inline_string<4> out("old", &resource);
  EXPECT_THROW(sluice::join(Strings{"longer", "than", "four"}, ' ', out), std::bad_alloc);
  EXPECT_EQ(out, "old");
}

constexpr bool splits_in_a_constant_expression() {
  sluice::inline_vector<sluice::inline_string<3>, 2> pieces;
  sluice::split("a;bcdef;", ';', pieces);
  sluice::inline_string<3> joined;
  sluice::join(pieces, "+", joined);
  return pieces.size() == 3 && joined == "a+bcdef+";
}
static_assert(splits_in_a_constant_expression());

}  // namespace
