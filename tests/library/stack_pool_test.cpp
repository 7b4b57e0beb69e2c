// What must hold for stack_pool. Open it when objects overlap, get lost, or are not constructed and destroyed once.
// stack_pool_checks_test.cpp has what `checked` finds.
#include "sluice/stack_pool.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
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
using sluice::stack_pool;
using sluice::unchecked;

struct Pair {  // an aggregate
  int first;
  int second = 5;
};
struct Owner {  // not trivial in any way
  constexpr explicit Owner(int value) : held(new int(value)) {}
  constexpr ~Owner() { delete held; }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;
  int* held;
};

template <class Checks>
constexpr bool creates_and_destroys() {
  stack_pool<Owner, 2, Checks> pool;
  Owner* const a = pool.create(1);
  Owner* b = pool.create(2);
  bool right = *a->held == 1 && *b->held == 2 && pool.create(3) == nullptr && pool.full() && pool.owns(a);
  pool.destroy(b);
  b = pool.create(4);
  right = right && *b->held == 4 && pool.size() == 2;
  pool.destroy(a);
  pool.destroy(b);
  stack_pool<Pair, 3, Checks> pairs;
  Pair* const c = pairs.create(1, 2);
  Pair* const d = pairs.create(3);
  right = right && c->second == 2 && d->second == 5 && pairs.create(Pair{7, 8})->first == 7;
  pairs.clear();
  int* outside = nullptr;
  stack_pool<int, 2, Checks> numbers;
  int* const storage = numbers.try_acquire();
  right = right && *std::construct_at(storage, 9) == 9 && !numbers.owns(outside) && numbers.available() == 1;
  numbers.release(storage);
  return right && pairs.empty() && numbers.empty() && pool.empty();
}
static_assert(creates_and_destroys<checked>());
static_assert(creates_and_destroys<unchecked>());

template <class Checks>
struct ReleasesTwice {
  constexpr void operator()() const {
    stack_pool<int, 4, Checks> pool;
    int *const a = pool.try_acquire(), *const b = pool.try_acquire();
    pool.release(a);
    pool.release(a);
    static_cast<void>(b);
  }
};
template <class Checks>
struct Leaks {
  constexpr void operator()() const {
    stack_pool<int, 4, Checks> pool;
    static_cast<void>(pool.try_acquire());
  }
};
template <class Checks>
struct ReleasesWhatIsNotIts {
  constexpr void operator()() const {
    int outside = 0;
    stack_pool<int, 4, Checks> pool;
    int* const a = pool.try_acquire();
    pool.release(&outside);
    static_cast<void>(a);
  }
};
static_assert(!Constant<ReleasesTwice<checked>> && !Constant<Leaks<checked>>, "the compiler finds them");
static_assert(!Constant<ReleasesWhatIsNotIts<checked>>);
static_assert(Constant<ReleasesTwice<unchecked>> && Constant<Leaks<unchecked>>, "and only the checks do");

// The slots, a pointer for each, and two counters of four bytes.
static_assert(sizeof(stack_pool<double, 100, unchecked>) == 100 * (8 + 8) + 8);
static_assert(sizeof(stack_pool<char, 64, unchecked>) == 64 * (1 + 8) + 8, "smaller than a pointer");
static_assert(std::is_trivially_destructible_v<stack_pool<double, 100, unchecked>>);
static_assert(!std::is_copy_constructible_v<stack_pool<int, 4>> && !std::is_move_constructible_v<stack_pool<int, 4>>);
static_assert(!std::is_copy_assignable_v<stack_pool<int, 4>> && !std::is_move_assignable_v<stack_pool<int, 4>>);

constinit stack_pool<double, 50, unchecked> in_bss;
constinit stack_pool<std::string, 50, unchecked> strings_in_bss;

template <class Pool>
void is_all_zero(const Pool& pool) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&pool);
  for (std::size_t i = 0; i < sizeof pool; ++i)
    ASSERT_EQ(bytes[i], 0) << i;
}

TEST(StackPool, AStaticOneIsAllZeroBytes) {
  is_all_zero(in_bss);
  is_all_zero(strings_in_bss);
  std::string* const text = strings_in_bss.create(100, 'x');
  EXPECT_EQ(*text, std::string(100, 'x'));
  strings_in_bss.destroy(text);
}

template <class Checks>
void hands_out_each_slot_once() {
  Tracking tracking;
  stack_pool<Tracked, 100, Checks> pool;
  EXPECT_EQ(pool.capacity(), 100u);
  std::vector<Tracked*> all;
  for (int i = 0; i < 100; ++i) {
    all.push_back(pool.create(i));
    ASSERT_NE(all.back(), nullptr);
    ASSERT_TRUE(pool.owns(all.back()));
  }
  EXPECT_EQ(pool.create(100), nullptr) << "not a pointer of -1";
  EXPECT_EQ(pool.try_acquire(), nullptr);
  EXPECT_EQ(Tracking::living(), 100u);
  EXPECT_TRUE(pool.full());
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(all[i]->value(), i);
  Tracked* const last = all[50];
  for (Tracked* each : all)
    if (each != last) pool.destroy(each);
  pool.destroy(last);
  EXPECT_TRUE(pool.empty());
  Tracked* const again = pool.create(7);
  EXPECT_EQ(again, last) << "the last released comes first";
  pool.destroy(again);
}
TEST(StackPool, HandsOutEachSlotOnce) {
  hands_out_each_slot_once<checked>();
  hands_out_each_slot_once<unchecked>();
}

template <class Checks>
void gives_back_what_a_constructor_leaves() {
  Tracking tracking;
  stack_pool<ThrowingMove, 2, Checks> pool;
  ThrowingMove* const one = pool.create(1);
  Tracking::throw_after(0);
  for (int i = 0; i < 5; ++i)
    EXPECT_THROW(pool.create(2), std::runtime_error);
  Tracking::never_throw();
  EXPECT_EQ(pool.size(), 1u);
  ThrowingMove* const two = pool.create(2);
  ASSERT_NE(two, nullptr);
  pool.destroy(one);
  pool.destroy(two);
}
TEST(StackPool, StorageGoesBackWhenTheConstructorThrows) {
  gives_back_what_a_constructor_leaves<checked>();
  gives_back_what_a_constructor_leaves<unchecked>();
}

struct alignas(128) Wide {
  std::uint8_t bytes[130];
};
template <class T, class Checks>
void keeps_alignment() {
  struct {
    char before;
    stack_pool<T, 9, Checks> pool;
  } holder{};
  std::vector<T*> all;
  while (T* const each = holder.pool.try_acquire()) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(each) % alignof(T), 0u);
    EXPECT_GE(reinterpret_cast<char*>(each), reinterpret_cast<char*>(&holder.pool));
    EXPECT_LE(reinterpret_cast<char*>(each + 1), reinterpret_cast<char*>(&holder.pool + 1));
    all.push_back(each);
  }
  EXPECT_EQ(all.size(), 9u);
  for (T* each : all)
    holder.pool.release(each);
}
TEST(StackPool, AnySizeAndAlignmentWillDo) {
  Violations violations;
  keeps_alignment<Wide, checked>();
  keeps_alignment<Wide, unchecked>();
  keeps_alignment<char, checked>();
  keeps_alignment<char, unchecked>();
  keeps_alignment<std::uint16_t, checked>();
  keeps_alignment<void*, unchecked>();
  keeps_alignment<long double, checked>();
}

struct Unmovable {
  Unmovable(int& counter, std::string text) : counter_(counter), text_(std::move(text)) { ++counter_; }
  ~Unmovable() { --counter_; }
  Unmovable(const Unmovable&) = delete;
  Unmovable& operator=(const Unmovable&) = delete;
  Unmovable* operator&() = delete;  // NOLINT: addresses are taken without it
  int& counter_;
  std::string text_;
};
TEST(StackPool, ArgumentsArePassedOn) {
  int living = 0;
  stack_pool<Unmovable, 3, checked> pool;
  std::string text(50, 'x');
  Unmovable* const one = pool.create(living, std::move(text));
  EXPECT_EQ(living, 1);
  EXPECT_EQ(one->text_, std::string(50, 'x'));
  EXPECT_TRUE(text.empty()) << "moved, not copied";  // NOLINT
  pool.destroy(one);
  EXPECT_EQ(living, 0);
}

TEST(StackPool, AggregatesWithoutACopyAreMadeInPlace) {
  struct Aggregate {
    Unmovable* first;
    std::pair<int, int> second;
    struct NoCopy {
      NoCopy() = default;
      NoCopy(const NoCopy&) = delete;
    } third{};
  };
  stack_pool<Aggregate, 3, checked> pool;
  Aggregate* const one = pool.create(nullptr, std::pair(1, 2));
  EXPECT_EQ(one->second.second, 2);
  pool.destroy(one);
}

TEST(StackPool, OwnsItsSlotsAndNothingElse) {
  stack_pool<std::uint64_t, 4, unchecked> pool, other;
  std::uint64_t* const mine = pool.try_acquire();
  std::uint64_t* const theirs = other.try_acquire();
  EXPECT_TRUE(pool.owns(mine) && other.owns(theirs));
  EXPECT_FALSE(pool.owns(theirs) || other.owns(mine) || pool.owns(nullptr));
  const auto at = [mine](std::ptrdiff_t offset) {
    return reinterpret_cast<std::uint64_t*>(reinterpret_cast<std::uintptr_t>(mine) +
                                            static_cast<std::uintptr_t>(offset));
  };
  EXPECT_TRUE(pool.owns(at(3 * 8))) << "handed out or not";
  EXPECT_FALSE(pool.owns(at(4)) || pool.owns(at(4 * 8)) || pool.owns(at(-8)));
}

template <class Checks, std::size_t N>
void agrees_with_a_set(unsigned seed) {
  SCOPED_TRACE(testing::Message() << "seed " << seed << " capacity " << N);
  Violations violations;
  std::mt19937 random(seed);
  stack_pool<std::uint64_t, N, Checks> pool;
  std::vector<std::pair<std::uint64_t*, std::uint64_t>> out;
  std::set<std::uint64_t*> addresses;
  std::vector<std::uint64_t*> returned;
  unsigned leaning = 50;
  for (int step = 0; step < 10'000; ++step) {
    if (step % 300 == 0) leaning = random() % 101;
    if (random() % 100 < leaning) {
      const std::uint64_t value = random();
      std::uint64_t* const object = pool.create(value);
      ASSERT_EQ(object != nullptr, out.size() < N);
      if (object == nullptr) continue;
      ASSERT_TRUE(addresses.insert(object).second) << "handed out twice";
      if (!returned.empty()) {
        ASSERT_EQ(object, returned.back()) << "the last released comes first";
        returned.pop_back();
      }
      out.emplace_back(object, value);
    } else if (!out.empty()) {
      std::swap(out[random() % out.size()], out.back());
      const auto [object, value] = out.back();
      ASSERT_EQ(*object, value) << "overwritten by another";
      pool.destroy(object);
      addresses.erase(object);
      returned.push_back(object);
      out.pop_back();
    }
    if (random() % 2000 == 0) {
      pool.clear();
      out.clear();
      addresses.clear();
      returned.clear();
    }
    ASSERT_EQ(pool.size(), out.size());
    ASSERT_EQ(pool.available(), N - out.size());
  }
  for (const auto& [object, value] : out)
    pool.destroy(object);
}
TEST(StackPool, AgreesWithASetOverRandomOperations) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    agrees_with_a_set<checked, 1>(seed);
    agrees_with_a_set<checked, 70>(seed);
    agrees_with_a_set<unchecked, 1>(seed);
    agrees_with_a_set<unchecked, 300>(seed);
  }
}

}  // namespace
