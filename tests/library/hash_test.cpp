// sluice::hash spreads keys over all its bits, agrees with equality, and takes any string for any other.
#include "sluice/hash.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace {

// The eight highest bits, which are marks in tables, and the lowest, which choose groups.
template <class K>
void expect_spread(const std::vector<K>& keys, const char* what) {
  SCOPED_TRACE(what);
  const sluice::hash<K> hash;
  std::vector<int> marks(256), homes(1024);
  std::set<std::size_t> different;
  for (const K& key : keys) {
    const std::uint64_t value = hash(key);
    different.insert(value);
    ++marks[value >> 56];
    ++homes[value % 1024];
  }
  EXPECT_EQ(different.size(), keys.size());
  // Chi-squared, whose mean is the number of places; far above it would be uneven.
  const auto uneven = [&](const std::vector<int>& places) {
    const double expected = static_cast<double>(keys.size()) / static_cast<double>(places.size());
    double sum = 0;
    for (const int count : places)
      sum += (count - expected) * (count - expected) / expected;
    return sum / static_cast<double>(places.size());
  };
  EXPECT_LT(uneven(marks), 2.0);
  EXPECT_LT(uneven(homes), 2.0);
}

TEST(hash, NumbersInARowAndInStepsAreSpread) {
  std::vector<std::uint64_t> row, steps, high;
  std::vector<int> negative;
  std::vector<double> halves;
  std::vector<void*> pointers;
  for (std::uint64_t i = 0; i < 40000; ++i) {
    row.push_back(i);
    steps.push_back(i * 4096);
    high.push_back(i << 40);
    negative.push_back(-static_cast<int>(i));
    halves.push_back(static_cast<double>(i) / 2);
    pointers.push_back(reinterpret_cast<void*>(0x7f0000000000 + i * 64));
  }
  expect_spread(row, "row");
  expect_spread(steps, "steps");
  expect_spread(high, "high");
  expect_spread(negative, "negative");
  expect_spread(halves, "halves");
  expect_spread(pointers, "pointers");
}

TEST(hash, StringsOfAllLengthsAreSpread) {
  for (std::size_t padding : {0, 3, 8, 11, 16, 27, 60}) {
    std::vector<std::string> in_front, behind;
    for (int i = 0; i < 30000; ++i) {
      in_front.push_back(std::to_string(i) + std::string(padding, 'x'));
      behind.push_back(std::string(padding, 'x') + std::to_string(i));
    }
    expect_spread(in_front, "in front");
    expect_spread(behind, "behind");
  }
  std::vector<std::string> lengths;
  for (std::size_t i = 0; i < 4000; ++i)
    lengths.emplace_back(i % 800 + 1, static_cast<char>(i / 800));
  std::set<std::size_t> different;
  for (const std::string& text : lengths)
    different.insert(sluice::hash<std::string>()(text));
  EXPECT_EQ(different.size(), lengths.size());
}

TEST(hash, EveryByteOfAStringCounts) {
  for (std::size_t length = 1; length < 150; ++length) {
    std::string text(length, 'a');
    std::set<std::size_t> different{sluice::hash<std::string>()(text)};
    for (std::size_t i = 0; i < length; ++i) {
      text[i] = 'b';
      different.insert(sluice::hash<std::string>()(text));
      text[i] = 'a';
    }
    ASSERT_EQ(different.size(), length + 1);
  }
}

TEST(hash, PairsAndTuplesAreSpread) {
  std::vector<std::pair<int, int>> pairs;
  std::vector<std::tuple<short, int, char>> tuples;
  for (int x = 0; x < 200; ++x) {
    for (int y = 0; y < 200; ++y) {
      pairs.emplace_back(x, y);
      tuples.emplace_back(static_cast<short>(x), 5, static_cast<char>(y));
    }
  }
  expect_spread(pairs, "pairs");
  expect_spread(tuples, "tuples");
}

TEST(hash, EqualKeysHaveEqualHashes) {
  EXPECT_EQ(sluice::hash<double>()(0.0), sluice::hash<double>()(-0.0));
  EXPECT_EQ(sluice::hash<float>()(0.0f), sluice::hash<float>()(-0.0f));
  EXPECT_EQ(sluice::hash<long double>()(0.0L), sluice::hash<long double>()(-0.0L));
  const std::string text = "some text";
  const sluice::hash<std::string> hash;
  EXPECT_EQ(hash(text), hash("some text"));
  EXPECT_EQ(hash(text), hash(std::string_view("some text, and more").substr(0, 9)));
  EXPECT_EQ(hash(text), sluice::hash<std::string_view>()("some text"));
  // A pointer to characters is a pointer.
  const std::string same = text;
  EXPECT_NE(sluice::hash<const char*>()(text.c_str()), sluice::hash<const char*>()(same.c_str()));
  enum class colour : signed char { red = -1 };
  EXPECT_EQ(sluice::hash<colour>()(colour::red), sluice::hash<colour>()(colour::red));
  const auto owner = std::make_unique<int>(1);
  EXPECT_EQ(sluice::hash<std::unique_ptr<int>>()(owner), sluice::hash<std::unique_ptr<int>>()(owner));
  EXPECT_EQ(sluice::hash<std::wstring>()(L"wide"), sluice::hash<std::wstring>()(std::wstring(L"wide")));
}

}  // namespace
