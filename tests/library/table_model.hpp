// Random operations on an inline_set and an inline_map, each compared with the standard's container after every step.
// Open it to add an operation or a kind of key.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>

#include "sluice/inline_map.hpp"
#include "sluice/inline_set.hpp"
#include "table_whole.hpp"
#include "tracked.hpp"

namespace library_test {

// Keys are made of numbers, and can be asked for them.
template <class K>
struct KeyOf {
  static K make(int number) { return K(number); }
  static int number(const K& key) { return static_cast<int>(key); }
};
template <>
struct KeyOf<std::string> {
  static std::string make(int number) {
    return std::string(number % 3 == 0 ? "" : "longer than std::string's own room ") + std::to_string(number);
  }
  static int number(const std::string& key) { return std::stoi(key.substr(key.find_last_of(' ') + 1)); }
};
template <bool NothrowMove>
struct KeyOf<BasicTracked<NothrowMove>> {
  static BasicTracked<NothrowMove> make(int number) { return number; }
  static int number(const BasicTracked<NothrowMove>& key) { return key.value(); }
};
struct Pointed {
  std::unique_ptr<int> number;
  friend bool operator==(const Pointed& a, const Pointed& b) { return *a.number == *b.number; }
};
template <>
struct KeyOf<Pointed> {
  static Pointed make(int number) { return {std::make_unique<int>(number)}; }
  static int number(const Pointed& key) { return *key.number; }
};
struct alignas(64) Aligned {
  int number;
  friend bool operator==(const Aligned&, const Aligned&) = default;
};
template <>
struct KeyOf<Aligned> {
  static Aligned make(int number) { return {number}; }
  static int number(const Aligned& key) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(&key) % 64, 0u);
    return key.number;
  }
};

struct GoodHash {
  template <class K>
  std::size_t operator()(const K& key) const {
    return sluice::hash<int>()(KeyOf<K>::number(key));
  }
};
struct Identity {
  template <class K>
  std::size_t operator()(const K& key) const {
    return static_cast<std::size_t>(KeyOf<K>::number(key));
  }
};
// The worst there is: all elements have one home and one mark, and nothing is mixed.
struct AllEqual {
  using is_avalanching = void;
  template <class K>
  std::size_t operator()(const K&) const {
    return 42;
  }
};

// Masks and changes of random control bytes, compared with what table_group.hpp says of each byte.
inline void control_bytes_mean_what_they_say() {
  using group = sluice::detail::table_group;
  std::mt19937 random(7);
  for (int round = 0; round < 10000; ++round) {
    alignas(16) unsigned char control[16];
    for (unsigned char& byte : control)
      byte = static_cast<unsigned char>(random() % 3 == 0 ? random() % 5 : random());
    const std::uint64_t hash = static_cast<std::uint64_t>(random() % 3 == 0 ? random() % 6 : random() % 256) << 53;
    unsigned matches = 0, empties = 0, taken = 0;
    for (unsigned i = 0; i < 16; ++i) {
      matches |= static_cast<unsigned>(control[i] == group::mark_of(hash)) << i;
      empties |= static_cast<unsigned>(control[i] <= group::fresh_end) << i;
      taken |= static_cast<unsigned>(control[i] >= group::lowest_mark) << i;
    }
    ASSERT_EQ(group::matches(control, group::pattern_of(hash)), matches) << round;
    ASSERT_EQ(group::empties(control), empties) << round;
    ASSERT_EQ(group::taken(control), taken) << round;
    const unsigned slot = group::first_slot + random() % group::most_slots;
    unsigned char expected[16];
    std::memcpy(expected, control, 16);
    expected[slot] = group::mark_of(hash);
    group::set(control, slot, group::pattern_of(hash));
    ASSERT_EQ(std::memcmp(control, expected, 16), 0) << round;
    const unsigned char behind = control[slot + 1];
    expected[slot] = behind >= group::lowest_mark ? group::hole : behind == group::closed ? group::fresh_end : behind;
    group::empty(control, slot);
    ASSERT_EQ(std::memcmp(control, expected, 16), 0) << round;
  }
}

template <class Map>
void expect_same(const Map& map, const std::unordered_map<int, int>& model) {
  using Key = KeyOf<typename Map::key_type>;
  ASSERT_NO_FATAL_FAILURE(expect_whole(map));
  ASSERT_EQ(map.size(), model.size());
  std::size_t seen = 0;
  for (const auto& [key, value] : map) {
    const auto place = model.find(Key::number(key));
    ASSERT_NE(place, model.end()) << "an element that is not there: " << Key::number(key);
    ASSERT_EQ(value, place->second);
    ++seen;
  }
  ASSERT_EQ(seen, model.size());
  for (const auto& [number, value] : model) {
    const auto place = map.find(Key::make(number));
    ASSERT_NE(place, map.end()) << "lost: " << number;
    ASSERT_EQ(place->second, value);
  }
}

// Through the base: what happens does not depend on N.
template <class K, class Hash>
void run_map(sluice::map_base<K, int, Hash, std::equal_to<K>>& map, unsigned seed, int steps, int numbers) {
  using Other = sluice::inline_map<K, int, 3, Hash, std::equal_to<K>>;
  using Key = KeyOf<K>;
  SCOPED_TRACE(testing::Message() << "seed " << seed << ", N " << map.inline_capacity());
  std::mt19937 random(seed);
  const auto below = [&](int limit) { return static_cast<int>(random() % static_cast<unsigned>(limit)); };
  std::unordered_map<int, int> model;
  for (int step = 0; step < steps && !testing::Test::HasFatalFailure(); ++step) {
    const int number = below(numbers), value = below(1000);
    switch (below(24)) {
      case 0:
      case 1:
      case 2:
      case 3:
        ASSERT_EQ(map.try_emplace(Key::make(number), value).second, model.try_emplace(number, value).second);
        break;
      case 4:
      case 5:
        map[Key::make(number)] = value;
        model[number] = value;
        break;
      case 6:
        ASSERT_EQ(map.insert_or_assign(Key::make(number), value).second, model.insert_or_assign(number, value).second);
        break;
      case 7:
      case 8:
        ASSERT_EQ(map.emplace(Key::make(number), value).second, model.emplace(number, value).second);
        break;
      case 9:
        ASSERT_EQ(map.insert(std::pair<K, int>(Key::make(number), value)).second,
                  model.insert(std::pair(number, value)).second);
        break;
      case 10:
      case 11:
      case 12:
      case 13:
      case 14:
        ASSERT_EQ(map.erase(Key::make(number)), model.erase(number));
        break;
      case 15:
        if (const auto place = map.find(Key::make(number)); place != map.end()) {
          map.erase(place);
          model.erase(number);
        }
        break;
      case 16:
        ASSERT_EQ(map.contains(Key::make(number)), model.contains(number));
        break;
      case 17:  // erases while iterating
        if (below(8) == 0) {
          for (auto place = map.begin(); place != map.end();) {
            const bool odd = (Key::number(place->first) + value) % 2 != 0;
            place = odd ? map.erase(place) : std::next(place);
          }
          std::erase_if(model, [&](const auto& element) { return (element.first + value) % 2 != 0; });
        }
        break;
      case 18:
        if (below(8) == 0) {
          const auto gone = [&](const auto& element) { return element.second < value; };
          ASSERT_EQ(erase_if(map, gone), std::erase_if(model, gone));
        }
        break;
      case 19:
        if (below(16) == 0) {
          map.clear();
          model.clear();
        }
        break;
      case 20:
        if (below(4) == 0) map.reserve(static_cast<std::size_t>(number));
        break;
      case 21:
        if (below(4) == 0) {
          map.shrink_to_fit();
          ASSERT_EQ(map.is_inline(), map.size() <= map.inline_capacity());
        }
        break;
      case 22: {
        Other moved(std::move(map));
        ASSERT_TRUE(map.empty());  // NOLINT(bugprone-use-after-move): it says so
        map = std::move(moved);
        break;
      }
      default:
        if constexpr (std::is_copy_constructible_v<K>) {
          const Other copy(map);
          ASSERT_TRUE(copy == map);
          map.clear();
          map = copy;
        } else {
          Other other;
          other.try_emplace(Key::make(-1), 1);
          map.swap(other);
          other.swap(map);
          ASSERT_EQ(other.size(), 1u);
        }
    }
    if (step % 16 == 0) expect_same(map, model);
  }
  expect_same(map, model);
}

template <class K, class Hash>
void run_maps(int steps, int numbers) {
  sluice::inline_map<K, int, 0, Hash, std::equal_to<K>> on_heap;
  run_map(on_heap, 1, steps, numbers);
  sluice::inline_map<K, int, 1, Hash, std::equal_to<K>> of_one;
  run_map(of_one, 2, steps, numbers);
  sluice::inline_map<K, int, 8, Hash, std::equal_to<K>> of_8;
  run_map(of_8, 3, steps, numbers);
  sluice::inline_map<K, int, 16, Hash, std::equal_to<K>> of_16;
  run_map(of_16, 4, steps, numbers);
  sluice::inline_map<K, int, 40, Hash, std::equal_to<K>> of_40;
  run_map(of_40, 5, steps, numbers);
}

// The set's own operations; those it has in common with the map have been compared there.
template <class K, std::size_t N, class Hash>
void run_set(unsigned seed, int steps, int numbers) {
  using Set = sluice::inline_set<K, N, Hash, std::equal_to<K>>;
  using Key = KeyOf<K>;
  SCOPED_TRACE(testing::Message() << "seed " << seed << ", N " << N);
  std::mt19937 random(seed);
  Set set;
  std::unordered_map<int, int> model;
  for (int step = 0; step < steps; ++step) {
    const int number = static_cast<int>(random() % static_cast<unsigned>(numbers));
    const unsigned what = random() % 5;
    if (what == 0) {
      ASSERT_EQ(set.insert(Key::make(number)).second, model.emplace(number, 0).second);
    } else if (what == 1) {
      ASSERT_EQ(set.emplace(Key::make(number)).second, model.emplace(number, 0).second);
    } else if (what == 2) {
      ASSERT_EQ(set.erase(Key::make(number)), model.erase(number));
    } else if (what == 3) {
      if (const auto place = set.find(Key::make(number)); place != set.end()) {
        set.erase(place);
        ASSERT_EQ(model.erase(number), 1u);
      }
    } else if (step % 64 == 0) {
      Set other(std::move(set));
      set = Set();
      set.insert(Key::make(number));
      set.merge(other);
      model.emplace(number, 0);
    }
    ASSERT_NO_FATAL_FAILURE(expect_whole(set));
    ASSERT_EQ(set.size(), model.size());
    ASSERT_EQ(static_cast<std::size_t>(std::distance(set.begin(), set.end())), model.size());
  }
  for (const auto& element : model)
    ASSERT_TRUE(set.contains(Key::make(element.first)));
}

}  // namespace library_test
