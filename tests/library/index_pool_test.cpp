// What must hold for index_pool. Open it when indices name the wrong object, or a mistake of its user goes unseen.
#include "sluice/index_pool.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "constant.hpp"
#include "tracked.hpp"
#include "violations.hpp"

namespace {

using library_test::Constant;
using library_test::ThrowingMove;
using library_test::Tracked;
using library_test::Tracking;
using library_test::Violations;
using sluice::checked;
using sluice::index_pool;
using sluice::unchecked;
using sluice::violation;
using sluice::violation_kind;

struct Sprite {  // an aggregate
  int x;
  int y = 5;
};

template <class Checks>
constexpr bool creates_and_destroys() {
  index_pool<Sprite, 2, std::uint8_t, Checks> pool;
  const auto a = pool.create(1, 2), b = pool.create(3);
  bool right = *a == 0 && *b == 1 && pool[*a].y == 2 && pool[*b].y == 5 && !pool.create(4) && pool.full();
  const auto& constant = pool;
  right = right && pool.index_of(constant[*b]) == *b && pool.size() == 2 && pool.available() == 0;
  pool.destroy(*a);
  right = right && pool.create(6, 7) == a && pool[*a].x == 6;
  pool.destroy(*b);
  pool.clear();
  const auto c = pool.try_acquire();
  std::construct_at(&pool[*c], Sprite{8, 9});
  right = right && *c == 0 && pool[0].x == 8;
  pool.release(*c);
  return right && pool.empty();
}
static_assert(creates_and_destroys<checked>());
static_assert(creates_and_destroys<unchecked>());

template <class Checks>
struct ReleasesTwice {
  constexpr void operator()() const {
    index_pool<int, 4, std::uint8_t, Checks> pool;
    const auto a = pool.try_acquire(), b = pool.try_acquire();
    pool.release(*a);
    pool.release(*a);
    static_cast<void>(b);
  }
};
template <class Checks>
struct Leaks {
  constexpr void operator()() const {
    index_pool<int, 4, std::uint8_t, Checks> pool;
    pool.create(1);
  }
};
static_assert(!Constant<ReleasesTwice<checked>> && !Constant<Leaks<checked>>, "the compiler finds them");
static_assert(Constant<ReleasesTwice<unchecked>> && Constant<Leaks<unchecked>>, "and only the checks do");

// The slots, an index for each, and two counters of four bytes.
static_assert(sizeof(index_pool<double, 256, std::uint8_t, unchecked>) == 256 * (8 + 1) + 8);
static_assert(sizeof(index_pool<char, 1000, std::uint16_t, unchecked>) == 1000 * (1 + 2) + 8);
static_assert(std::is_same_v<index_pool<int, 256>::index_type, std::uint8_t>);
static_assert(std::is_same_v<index_pool<int, 257>::index_type, std::uint16_t>);
static_assert(std::is_trivially_destructible_v<index_pool<double, 256, std::uint8_t, unchecked>>);
static_assert(!std::is_copy_constructible_v<index_pool<int, 4>> && !std::is_move_constructible_v<index_pool<int, 4>>);
static_assert(!std::is_copy_assignable_v<index_pool<int, 4>> && !std::is_move_assignable_v<index_pool<int, 4>>);

constinit index_pool<Sprite, 256, std::uint8_t, unchecked> in_bss;

TEST(IndexPool, AStaticOneIsAllZeroBytes) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&in_bss);
  for (std::size_t i = 0; i < sizeof in_bss; ++i)
    ASSERT_EQ(bytes[i], 0) << i;
  const auto sprite = in_bss.create(1, 2);
  EXPECT_EQ(in_bss[*sprite].y, 2);
  in_bss.destroy(*sprite);
}

template <class Checks>
void names_256_objects_by_a_byte() {
  Tracking tracking;
  index_pool<Tracked, 256, std::uint8_t, Checks> pool;
  for (int i = 0; i < 256; ++i)
    ASSERT_EQ(pool.create(i), i);
  EXPECT_EQ(pool.create(256), std::nullopt);
  EXPECT_EQ(pool.try_acquire(), std::nullopt);
  for (int i = 0; i < 256; ++i) {
    const auto index = static_cast<std::uint8_t>(i);
    EXPECT_EQ(pool[index].value(), i);
    EXPECT_EQ(pool.index_of(pool[index]), i);
  }
  for (int i = 0; i < 256; ++i)
    pool.destroy(static_cast<std::uint8_t>(i * 7));
  EXPECT_TRUE(pool.empty());
}
TEST(IndexPool, NamesTwoHundredAndFiftySixObjectsByAByte) {
  names_256_objects_by_a_byte<checked>();
  names_256_objects_by_a_byte<unchecked>();
}

// Hands out all slots, twice.
template <std::size_t N, class Index>
void names_each_slot_once() {
  static_assert(std::is_same_v<typename index_pool<char, N>::index_type, Index>);
  const auto pool = std::make_unique<index_pool<char, N>>();
  for (int round = 0; round < 2; ++round) {
    std::vector<bool> seen(N);
    std::vector<Index> all;
    all.reserve(N);
    while (const std::optional<Index> index = pool->try_acquire()) {
      ASSERT_LT(*index, N);
      ASSERT_FALSE(seen[*index]);
      seen[*index] = true;
      all.push_back(*index);
    }
    ASSERT_EQ(all.size(), N);
    ASSERT_TRUE(pool->full());
    for (const Index index : all)
      pool->release(index);
    ASSERT_TRUE(pool->empty());
  }
}
TEST(IndexPool, AnyNumberOfSlotsIsHandedOutToTheLast) {
  names_each_slot_once<1, std::uint8_t>();
  names_each_slot_once<255, std::uint8_t>();
  names_each_slot_once<257, std::uint16_t>();
  names_each_slot_once<65'536, std::uint16_t>();
  names_each_slot_once<65'537, std::uint32_t>();
}

TEST(IndexPool, AnEnumerationCanBeTheIndex) {
  enum class Voice : std::uint16_t {};
  index_pool<std::string, 300, Voice, checked> pool;
  const auto voice = pool.create(40, 'x');
  EXPECT_EQ(voice, Voice(0));
  EXPECT_EQ(pool[*voice].size(), 40u);
  EXPECT_EQ(pool.index_of(pool[*voice]), *voice);
  pool.destroy(*voice);
}

template <class Checks>
void gives_back_what_a_constructor_leaves() {
  Tracking tracking;
  index_pool<ThrowingMove, 2, std::uint8_t, Checks> pool;
  const auto one = pool.create(1);
  Tracking::throw_after(0);
  for (int i = 0; i < 5; ++i)
    EXPECT_THROW(pool.create(2), std::runtime_error);
  Tracking::never_throw();
  EXPECT_EQ(pool.size(), 1u);
  const auto two = pool.create(2);
  ASSERT_TRUE(two);
  pool.destroy(*one);
  pool.destroy(*two);
}
TEST(IndexPool, TheSlotGoesBackWhenTheConstructorThrows) {
  gives_back_what_a_constructor_leaves<checked>();
  gives_back_what_a_constructor_leaves<unchecked>();
}

TEST(IndexPool, AlignmentIsKept) {
  struct alignas(64) Wide {
    char one;
  };
  index_pool<Wide, 5, std::uint8_t, checked> pool;
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&pool[*pool.create()]) % 64, 0u);
  pool.clear();
}

TEST(IndexPool, ReleasingWhatIsNotHandedOutIsReported) {
  Violations violations;
  index_pool<int, 8, std::uint8_t, checked> pool("sprites");
  const auto a = pool.create(1), b = pool.create(2);
  pool.destroy(*a);
  pool.destroy(*a);
  const violation found = violations.take();
  EXPECT_EQ(found.kind, violation_kind::double_release);
  EXPECT_STREQ(found.component, "index_pool");
  EXPECT_STREQ(found.name, "sprites");
  EXPECT_EQ(found.object, &pool);
  EXPECT_EQ(found.value, *a);
  pool.release(*a);
  violations.expect(violation_kind::double_release);
  pool.release(5);
  violations.expect(violation_kind::double_release);
  pool.release(8);
  violations.expect(violation_kind::foreign);
  pool.destroy(255);
  violations.expect(violation_kind::foreign);
  EXPECT_EQ(pool.size(), 1u);
  pool.destroy(*b);
}

TEST(IndexPool, LookingAtWhatIsNotHandedOutIsReported) {
  Violations violations;
  index_pool<int, 8, std::uint8_t, checked> pool;
  const auto a = pool.create(1);
  static_cast<void>(pool[3]);
  EXPECT_EQ(violations.take().value, 3u);
  const auto& constant = pool;
  static_cast<void>(constant[200]);
  violations.expect(violation_kind::foreign);
  const int outside = 0;
  static_cast<void>(pool.index_of(outside));
  violations.expect(violation_kind::foreign);
  pool.destroy(*a);
  static_cast<void>(pool[*a]);
  violations.expect(violation_kind::foreign);
}

TEST(IndexPool, WhatIsNotGivenBackIsALeak) {
  Violations violations;
  {
    index_pool<int, 100, std::uint8_t, checked> pool("leaky");
    for (int i = 0; i < 3; ++i)
      pool.create(i);
  }
  const violation found = violations.take();
  EXPECT_EQ(found.kind, violation_kind::leak);
  EXPECT_STREQ(found.component, "index_pool");
  EXPECT_EQ(found.value, 3u);
  {
    index_pool<int, 100, std::uint8_t, unchecked> pool;
    pool.create(1);
  }
  EXPECT_TRUE(violations.none());
}

struct ReleasesItself {
  explicit ReleasesItself(index_pool<ReleasesItself, 4, std::uint8_t, checked>& owner) : pool(&owner) {}
  ~ReleasesItself() { pool->release(pool->index_of(*this)); }
  index_pool<ReleasesItself, 4, std::uint8_t, checked>* pool;
};
TEST(IndexPool, ADestructorThatReleasesItsOwnSlotIsFound) {
  Violations violations;
  index_pool<ReleasesItself, 4, std::uint8_t, checked> pool;
  const auto one = pool.create(pool);
  pool.destroy(*one);
  violations.expect(violation_kind::double_release);
  EXPECT_EQ(pool.size(), 0u);
}

TEST(IndexPool, DamageIsReported) {
  Violations violations;
  index_pool<std::uint64_t, 4, std::uint8_t, checked> pool;
  const auto a = pool.create(1u);
  auto* const bytes = reinterpret_cast<volatile unsigned char*>(&pool[*a]);
  bytes[8] = 1;
  pool.destroy(*a);
  violations.expect(violation_kind::write_past_end);
  bytes[3] = 1;
  EXPECT_EQ(pool.create(1u), a);
  violations.expect(violation_kind::write_after_release);
  pool.destroy(*a);
}

template <std::size_t N, class Checks>
void agrees_with_a_map(unsigned seed) {
  SCOPED_TRACE(testing::Message() << "seed " << seed << " capacity " << N);
  Violations violations;
  std::mt19937 random(seed);
  index_pool<std::uint64_t, N, std::uint16_t, Checks> pool;
  std::map<std::uint16_t, std::uint64_t> model;
  unsigned leaning = 50;
  for (int step = 0; step < 10'000; ++step) {
    if (step % 300 == 0) leaning = random() % 101;
    if (random() % 100 < leaning) {
      const std::uint64_t value = random();
      const auto index = pool.create(value);
      ASSERT_EQ(index.has_value(), model.size() < N);
      if (!index) continue;
      ASSERT_LT(*index, N);
      ASSERT_TRUE(model.emplace(*index, value).second) << "handed out twice";
    } else if (!model.empty()) {
      auto victim = model.lower_bound(static_cast<std::uint16_t>(random() % N));
      if (victim == model.end()) victim = model.begin();
      ASSERT_EQ(pool[victim->first], victim->second);
      pool.destroy(victim->first);
      model.erase(victim);
    }
    if (random() % 2000 == 0) {
      pool.clear();
      model.clear();
    }
    ASSERT_EQ(pool.size(), model.size());
    if (step % 50 != 0) continue;
    for (const auto& [index, value] : model) {
      ASSERT_EQ(pool[index], value);
      ASSERT_EQ(pool.index_of(pool[index]), index);
    }
  }
  for (const auto& [index, value] : model)
    pool.destroy(index);
}
TEST(IndexPool, AgreesWithAMapOverRandomOperations) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    agrees_with_a_map<1, checked>(seed);
    agrees_with_a_map<70, checked>(seed);
    agrees_with_a_map<300, unchecked>(seed);
  }
}

}  // namespace
