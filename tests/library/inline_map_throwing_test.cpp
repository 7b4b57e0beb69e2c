// Whatever throws, at whatever step, while two maps exchange elements: both stay whole and usable, nothing leaks, no
// key that was moved from stays in a map, and what is promised of failed insertions holds.
#include <gtest/gtest.h>

#include <functional>
#include <memory_resource>
#include <new>
#include <set>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "counting_resource.hpp"
#include "table_whole.hpp"

namespace {

using library_test::CountingResource;
using library_test::Counts;

// All that can throw asks here first.
struct Fault {
  static inline int left = -1;
  static inline int living = 0;
  static void step() {
    if (left == 0) throw std::runtime_error("told to throw");
    if (left > 0) --left;
  }
};

// Moved from, its number is another, and so is its hash.
template <bool Nothrow, bool Copies>
struct Number {
  explicit Number(int value) : number(value) {
    Fault::step();
    ++Fault::living;
  }
  Number(const Number& other) requires Copies : number(other.number) {
    Fault::step();
    ++Fault::living;
  }
  Number(Number&& other) noexcept(Nothrow) : number(other.number) {
    if constexpr (!Nothrow) Fault::step();
    other.number = -1 - other.number % 7;
    ++Fault::living;
  }
  Number& operator=(Number&& other) noexcept(Nothrow) {
    if constexpr (!Nothrow) Fault::step();
    number = std::exchange(other.number, -1);
    return *this;
  }
  Number& operator=(const Number& other) requires Copies {
    Fault::step();
    number = other.number;
    return *this;
  }
  ~Number() { --Fault::living; }
  friend bool operator==(const Number& a, const Number& b) { return a.number == b.number; }
  int number;
};

template <int Bits>
struct Hash {
  using is_avalanching = void;
  template <class Key>
  std::size_t operator()(const Key& key) const {
    Fault::step();
    return sluice::hash<int>()(key.number) & (Bits == 0 ? 0 : ~std::size_t{0} >> (64 - Bits) % 64);
  }
};
struct Equal {
  template <class Key>
  bool operator()(const Key& a, const Key& b) const {
    Fault::step();
    return a.number == b.number;
  }
};

enum class Promise { nothing_changed, nothing_lost, none };

// What a test does with a map, and another one.
template <class Map>
struct Operation {
  const char* name;
  Promise promise;  // if it fails
  std::function<void(Map&, Map&)> run;
};

struct FaultyMemory final : std::pmr::memory_resource {
  CountingResource counted;
  void* do_allocate(std::size_t size, std::size_t align) override {
    Fault::step();
    return counted.allocate(size, align);
  }
  void do_deallocate(void* block, std::size_t size, std::size_t align) override {
    counted.deallocate(block, size, align);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }
};

template <class Map>
std::set<int> numbers_of(const Map& map) {
  std::set<int> numbers;
  for (const auto& element : map)
    numbers.insert(element.first.number);
  return numbers;
}

template <class Map>
void expect_usable(Map& map) {
  using Key = typename Map::key_type;
  using Value = typename Map::mapped_type;
  ASSERT_NO_FATAL_FAILURE(library_test::expect_whole(map, Counts::enough));
  std::set<int> numbers;
  for (const auto& [key, value] : map) {
    ASSERT_GE(key.number, 0) << "a key that was moved from";
    ASSERT_TRUE(numbers.insert(key.number).second) << "a key is there twice";
    ASSERT_TRUE(map.contains(key));
  }
  ASSERT_EQ(numbers.size(), map.size());
  int turn = 0;
  while (map.size() > 2) {
    if (++turn % 2 == 0)
      map.erase(map.begin());
    else
      ASSERT_EQ(map.erase(Key(*numbers.rbegin())), 1u);
    ASSERT_NO_FATAL_FAILURE(library_test::expect_whole(map, Counts::enough));
    numbers = numbers_of(map);
  }
  for (int i = 1000; i < 1030; ++i)
    ASSERT_TRUE(map.try_emplace(Key(i), Value(i)).second);
  ASSERT_NO_FATAL_FAILURE(library_test::expect_whole(map, Counts::enough));
  for (int i = 1000; i < 1030; ++i)
    ASSERT_TRUE(map.contains(Key(i)));
}

template <class Map>
std::vector<Operation<Map>> operations() {
  using Key = typename Map::key_type;
  using Value = typename Map::mapped_type;
  std::vector<Operation<Map>> all = {
      {"try_emplace", Promise::nothing_changed, [](Map& a, Map&) { a.try_emplace(Key(500), Value(1)); }},
      {"emplace", Promise::nothing_changed, [](Map& a, Map&) { a.emplace(Key(500), Value(1)); }},
      {"insert", Promise::nothing_changed, [](Map& a, Map&) { a.insert(std::pair<Key, Value>(Key(500), Value(1))); }},
      {"emplace made", Promise::nothing_changed,
       [](Map& a, Map&) { a.emplace(std::piecewise_construct, std::forward_as_tuple(500), std::forward_as_tuple(1)); }},
      {"insert_or_assign", Promise::none, [](Map& a, Map&) { a.insert_or_assign(Key(1), Value(1)); }},
      {"erase a key", Promise::none, [](Map& a, Map&) { a.erase(Key(2)); }},
      {"erase the first", Promise::none,
       [](Map& a, Map&) {
         if (!a.empty()) a.erase(a.begin());
       }},
      {"erase_if", Promise::none,
       [](Map& a, Map&) { erase_if(a, [](const auto& e) { return e.first.number % 2 == 0; }); }},
      {"reserve", Promise::none, [](Map& a, Map&) { a.reserve(a.size() + 20); }},
      {"shrink_to_fit", Promise::none, [](Map& a, Map&) { a.shrink_to_fit(); }},
      {"move assignment", Promise::none, [](Map& a, Map& b) { a = std::move(b); }},
      {"move back", Promise::none, [](Map& a, Map& b) { b = std::move(a); }},
      {"swap", Promise::none, [](Map& a, Map& b) { a.swap(b); }},
      {"merge", Promise::nothing_lost, [](Map& a, Map& b) { a.merge(b); }},
      {"merge back", Promise::nothing_lost, [](Map& a, Map& b) { b.merge(a); }},
      {"compare", Promise::none, [](Map& a, Map& b) { (void)(a == b); }},
      {"move construction", Promise::none,
       [](Map& a, Map&) { sluice::inline_map<Key, Value, 16, typename Map::hasher, Equal> made(std::move(a)); }},
      {"move construction elsewhere", Promise::none,
       [](Map& a, Map& b) {
         sluice::inline_map<Key, Value, 13, typename Map::hasher, Equal> made(std::move(a), b.get_allocator());
       }},
  };
  if constexpr (std::is_copy_constructible_v<Key>) {
    all.push_back({"copy assignment", Promise::none, [](Map& a, Map& b) { a = b; }});
    all.push_back({"copy construction", Promise::none, [](Map& a, Map&) {
                     const sluice::inline_map<Key, Value, 16, typename Map::hasher, Equal> made(a, a.get_allocator());
                   }});
    all.push_back({"insert a range", Promise::none, [](Map& a, Map& b) { a.insert(b.begin(), b.end()); }});
  }
  return all;
}

// Of the first steps, each one throws in turn; in the slow build of a sanitizer every third.
#if defined(SLUICE_TEST_SANITIZER)
constexpr int stride = 3;
#else
constexpr int stride = 1;
#endif

template <class Key, std::size_t N, std::size_t M, int Bits>
void exchanges_that_fail() {
  using Map = sluice::map_base<Key, Key, Hash<Bits>, Equal>;
  SCOPED_TRACE(testing::Message() << "N " << N << " and " << M << ", bits " << Bits);
  for (const auto& operation : operations<Map>()) {
    for (const int sizes : {305, 1614, 2816, 1340}) {
      for (const bool shared : {true, false}) {
        for (int steps = 0;; steps += steps < 30 ? stride : 7) {
          SCOPED_TRACE(testing::Message()
                       << operation.name << ", sizes " << sizes << ", shared " << shared << ", steps " << steps);
          bool failed = false;
          {
            FaultyMemory memory, other_memory;
            sluice::inline_map<Key, Key, N, Hash<Bits>, Equal> a(&memory);
            sluice::inline_map<Key, Key, M, Hash<Bits>, Equal> b(shared ? &memory : &other_memory);
            for (int i = 0; i < sizes / 100; ++i)
              a.try_emplace(Key(i * 3), Key(i));
            for (int i = 0; i < sizes % 100; ++i)
              b.try_emplace(Key(i * 2), Key(i));
            for (int i = 0; i < sizes % 100; i += 5)
              b.erase(Key(i * 2));
            ASSERT_NO_FATAL_FAILURE(library_test::expect_whole(a));
            ASSERT_NO_FATAL_FAILURE(library_test::expect_whole(b));
            const auto before = numbers_of(a), before_there = numbers_of(b);
            Fault::left = steps;
            try {
              operation.run(a, b);
            } catch (const std::runtime_error&) {
              failed = true;
            }
            Fault::left = -1;
            // What moves without throwing is moved when a map grows, and lost when the hash function throws then.
            if (failed && std::is_copy_constructible_v<Key> && !std::is_nothrow_move_constructible_v<Key>) {
              if (operation.promise == Promise::nothing_changed) {
                ASSERT_EQ(numbers_of(a), before);
              }
              if (operation.promise == Promise::nothing_lost) {
                auto all = before, after = numbers_of(a);
                all.insert(before_there.begin(), before_there.end());
                after.merge(numbers_of(b));
                ASSERT_EQ(after, all);
              }
            }
            ASSERT_NO_FATAL_FAILURE(expect_usable(a));
            ASSERT_NO_FATAL_FAILURE(expect_usable(b));
          }
          ASSERT_EQ(Fault::living, 0);
          if (!failed) break;
        }
      }
    }
  }
}
template <class Key>
void all_exchanges_that_fail() {
  exchanges_that_fail<Key, 16, 16, 64>();
  exchanges_that_fail<Key, 3, 30, 64>();
  exchanges_that_fail<Key, 30, 30, 1>();
  exchanges_that_fail<Key, 0, 40, 1>();
}
TEST(inline_map_throwing, MovesThatDoNotThrow) {
  all_exchanges_that_fail<Number<true, true>>();
}
TEST(inline_map_throwing, MovesThatThrow) {
  all_exchanges_that_fail<Number<false, true>>();
}
TEST(inline_map_throwing, MovesThatThrowOfWhatCannotBeCopied) {
  all_exchanges_that_fail<Number<false, false>>();
}

}  // namespace
