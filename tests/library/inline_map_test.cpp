// inline_map has the interface of a standard map, for any N through its base.
#include "sluice/inline_map.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <ranges>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sluice/inline_set.hpp"

namespace {

using testing::Pair;
using testing::UnorderedElementsAre;
using Words = sluice::inline_map<std::string, int, 4>;
using WordsBase = sluice::map_base<std::string, int>;

static_assert(std::ranges::forward_range<Words> && std::ranges::forward_range<const WordsBase>);
static_assert(std::ranges::common_range<Words> && std::forward_iterator<Words::const_iterator>);
static_assert(std::is_convertible_v<Words::iterator, Words::const_iterator>);
static_assert(!std::is_convertible_v<Words::const_iterator, Words::iterator>);
static_assert(std::is_nothrow_move_constructible_v<sluice::inline_map<int, int, 4>>);
static_assert(!std::is_copy_constructible_v<WordsBase> && !std::is_destructible_v<WordsBase>);
static_assert(sizeof(sluice::inline_map<int, int, 0>) == 64);
static_assert(sizeof(sluice::inline_map<int, int, 8>) == 64 + 16 + 8 * 8);
static_assert(alignof(sluice::inline_set<std::uint64_t, 8>) == 16);

void count(WordsBase& words, std::string_view word) {
  ++words[word];
}

TEST(inline_map, AFunctionTakesTheBaseWhateverN) {
  sluice::inline_map<std::string, int, 0> none;
  sluice::inline_map<std::string, int, 1> one;
  Words four;
  for (const char* word : {"a", "b", "a", "c", "d", "e", "a"}) {
    count(none, word);
    count(one, word);
    count(four, word);
  }
  EXPECT_THAT(four, UnorderedElementsAre(Pair("a", 3), Pair("b", 1), Pair("c", 1), Pair("d", 1), Pair("e", 1)));
  EXPECT_TRUE(none == one && one == four);
  ++four["b"];
  EXPECT_TRUE(one != four);
}

TEST(inline_map, IsConstructedInEveryWay) {
  const std::vector<std::pair<std::string, int>> list{{"one", 1}, {"two", 2}, {"one", 3}};
  const Words from_range(list.begin(), list.end());
  const Words from_list{{"one", 1}, {"two", 2}};
  EXPECT_EQ(from_range, from_list);
  const sluice::inline_map<std::string, int, 9> of_other_size(from_list);
  EXPECT_EQ(of_other_size, from_list);
  const sluice::inline_map<std::string, int, 1> smaller(of_other_size);
  EXPECT_EQ(smaller, from_list);
  EXPECT_FALSE(smaller.is_inline());
  Words assigned;
  assigned = smaller;
  EXPECT_EQ(assigned, from_list);
  assigned = {{"three", 3}};
  EXPECT_THAT(assigned, UnorderedElementsAre(Pair("three", 3)));
  assigned = sluice::inline_map<std::string, int, 1>(from_list);
  EXPECT_EQ(assigned, from_list);
  WordsBase& base = assigned;
  WordsBase& same = assigned;
  base = same;
  base = std::move(same);
  EXPECT_EQ(assigned, from_list);
}

TEST(inline_map, InsertsInEveryWay) {
  Words words;
  EXPECT_TRUE(words.insert({"a", 1}).second);
  EXPECT_FALSE(words.insert(std::pair("a", 2)).second);
  EXPECT_FALSE(words.insert_or_assign("a", 3).second);
  EXPECT_EQ(words.at("a"), 3);
  EXPECT_TRUE(words.emplace("b", 4).second);
  EXPECT_TRUE(words.emplace(std::piecewise_construct, std::forward_as_tuple(3, 'c'), std::forward_as_tuple(5)).second);
  EXPECT_FALSE(words.emplace(std::pair<std::string, int>("ccc", 6)).second);
  EXPECT_TRUE(words.try_emplace(std::string("d"), 7).second);
  EXPECT_EQ(words.try_emplace(words.end(), "d", 8)->second, 7);
  EXPECT_EQ(words.emplace_hint(words.begin(), "e", 9)->first, "e");
  EXPECT_EQ(words.insert(words.begin(), std::pair("f", 10))->second, 10);
  words.insert({{"g", 11}, {"h", 12}});
  EXPECT_EQ(words.size(), 8u);
  EXPECT_THROW(words.at("none"), std::out_of_range);
  EXPECT_EQ(std::as_const(words).at(std::string("h")), 12);
}

TEST(inline_map, WhatIsNotInsertedIsNotMovedFrom) {
  sluice::inline_map<int, std::unique_ptr<int>, 2> map;
  map.try_emplace(1, std::make_unique<int>(1));
  auto kept = std::make_unique<int>(2);
  map.try_emplace(1, std::move(kept));
  ASSERT_TRUE(kept);  // NOLINT(bugprone-use-after-move): it says so
  map.emplace(1, std::move(kept));
  ASSERT_TRUE(kept);  // NOLINT(bugprone-use-after-move)
  map.insert_or_assign(1, std::move(kept));
  EXPECT_EQ(*map.at(1), 2);
}

// As inserting and erasing by one's own elements does, also while the map grows.
TEST(inline_map, KeysAndValuesMayBeItsOwn) {
  sluice::inline_map<std::string, std::string, 1> map;
  map["the first key, which is on the heap"] = "the first value, which is on the heap";
  for (int i = 0; i < 200; ++i) {
    const auto at = map.find("the first key, which is on the heap");
    map.try_emplace(at->first + std::to_string(i), at->second);
    EXPECT_FALSE(map.insert(*map.begin()).second);
    EXPECT_FALSE(map.try_emplace(map.begin()->first, "other").second);
    ASSERT_EQ(map.at("the first key, which is on the heap" + std::to_string(i)),
              map.at("the first key, which is on the heap"));
  }
  EXPECT_EQ(map.size(), 201u);
  while (!map.empty())
    ASSERT_EQ(map.erase(map.begin()->first), 1u);

  sluice::inline_set<std::string, 2> set{"words within one another"};
  for (std::size_t i = 1; i < 20; ++i) {
    const std::string_view longest = *std::ranges::max_element(set, {}, &std::string::size);
    EXPECT_TRUE(set.insert(longest.substr(i)).second);
  }
  EXPECT_EQ(set.size(), 20u);
}

TEST(inline_map, ErasesWhileIteratorsToOthersStayValid) {
  sluice::inline_map<int, int, 8> map;
  for (int i = 0; i < 300; ++i)
    map[i] = i;
  std::vector<std::pair<sluice::inline_map<int, int, 8>::iterator, int>> places;
  for (auto place = map.begin(); place != map.end(); ++place)
    places.emplace_back(place, place->first);
  auto walker = map.begin();
  std::size_t seen = 0;
  for (const auto& [place, key] : places)
    if (key % 3 != 0 && place != walker) map.erase(place);
  for (; walker != map.end(); ++walker)
    ++seen;
  EXPECT_EQ(seen, map.size());
  for (const auto& [place, key] : places) {
    if (key % 3 == 0) {
      EXPECT_EQ(place->second, key);
    }
  }
  map.erase(map.begin(), map.end());
  EXPECT_TRUE(map.empty());
}

TEST(inline_map, AnEqualRangeIsTheElementOrNone) {
  Words words{{"a", 1}, {"b", 2}};
  const auto [first, last] = words.equal_range("a");
  EXPECT_EQ(std::distance(first, last), 1);
  const auto none = std::as_const(words).equal_range("z");
  EXPECT_TRUE(none.first == none.second);
  EXPECT_EQ(words.count("b"), 1u);
}

TEST(inline_map, MergingTakesWhatIsMissing) {
  Words a{{"a", 1}, {"b", 2}}, b{{"b", 3}, {"c", 4}, {"d", 5}, {"e", 6}, {"f", 7}};
  a.merge(b);
  EXPECT_EQ(a.size(), 6u);
  EXPECT_THAT(b, UnorderedElementsAre(Pair("b", 3)));
}

// A key that has been moved from no more tells where its element was.
TEST(inline_map, MergingForgetsNoElementThatStays) {
  for (int count = 1; count < 400; count += 13) {
    sluice::inline_map<std::string, int, 20> a, b;
    for (int i = 0; i < count; ++i) {
      b["a key on the heap, number " + std::to_string(i)] = i;
      if (i % 3 == 0) a["a key on the heap, number " + std::to_string(i)] = -1;
    }
    a.merge(b);
    EXPECT_EQ(a.size(), static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      ASSERT_EQ(b.contains("a key on the heap, number " + std::to_string(i)), i % 3 == 0) << i << " of " << count;
      ASSERT_TRUE(a.contains("a key on the heap, number " + std::to_string(i))) << i << " of " << count;
    }
  }
}

// Counts how many are made.
struct Name {
  explicit Name(std::string_view from) : text(from) { ++made; }
  Name(const Name& other) : text(other.text) { ++made; }
  operator std::string_view() const { return text; }  // NOLINT(google-explicit-constructor): it is string-like
  std::string text;
  static inline int made = 0;
};
TEST(inline_map, LookingUpAStringMakesNoKey) {
  sluice::inline_map<Name, int, 8> map;
  map["tile"] = 1;
  EXPECT_EQ(Name::made, 1);
  EXPECT_TRUE(map.contains("tile"));
  EXPECT_TRUE(map.contains(std::string("tile")));
  EXPECT_EQ(map.find(std::string_view("tile"))->second, 1);
  EXPECT_EQ(map["tile"], 1);
  EXPECT_EQ(map.at("tile"), 1);
  EXPECT_FALSE(map.try_emplace("tile", 2).second);
  EXPECT_FALSE(map.emplace("tile", 2).second);
  EXPECT_FALSE(map.insert_or_assign("tile", 3).second);
  EXPECT_EQ(map.count("none"), 0u);
  EXPECT_EQ(map.erase("tile"), 1u);
  EXPECT_EQ(Name::made, 1);
  sluice::inline_set<Name, 8> set;
  set.insert("tile");
  EXPECT_FALSE(set.insert("tile").second);
  EXPECT_FALSE(set.emplace(std::string("tile")).second);
  EXPECT_EQ(set.erase("tile"), 1u);
  EXPECT_EQ(Name::made, 2);
}

TEST(inline_map, ReservesShrinksAndRehashes) {
  sluice::inline_map<int, int, 8> map;
  map.reserve(1000);
  const std::size_t capacity = map.capacity();
  EXPECT_GE(capacity, 1000u);
  for (int i = 0; i < 1000; ++i)
    map[i] = i;
  EXPECT_EQ(map.capacity(), capacity);
  erase_if(map, [](const auto& element) { return element.first >= 20; });
  map.shrink_to_fit();
  EXPECT_LT(map.capacity(), 100u);
  EXPECT_FALSE(map.is_inline());
  map.rehash(500);
  EXPECT_GE(map.capacity(), 500u);
  erase_if(map, [](const auto& element) { return element.first >= 8; });
  map.rehash(0);
  EXPECT_TRUE(map.is_inline());
  EXPECT_EQ(map.size(), 8u);
  EXPECT_THROW(map.reserve(map.max_size() + 1), std::length_error);
  EXPECT_EQ(map.size(), 8u);
}

}  // namespace
