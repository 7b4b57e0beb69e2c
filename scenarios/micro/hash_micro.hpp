// What the microbenchmarks of inline_set and inline_map do with a set or map of any kind. Open it to add a case.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "elements.hpp"
#include "micro.hpp"

namespace micro {

/// How a kind of container is asked; others than the standard's specialise it.
template <class Container>
struct Access {
  using Key = typename Container::key_type;
  static constexpr bool is_map = requires { typename Container::mapped_type; };

  static void insert(Container& container, const Key& key) {
    if constexpr (is_map)
      container.try_emplace(key, 1);
    else
      container.insert(key);
  }
  /// What an element weighs, or 0 when there is none.
  static std::uint64_t find(const Container& container, const Key& key) {
    const auto place = container.find(key);
    if (place == container.end()) return 0;
    if constexpr (is_map)
      return place->second;
    else
      return 1;
  }
  static void erase(Container& container, const Key& key) { container.erase(key); }
  static std::uint64_t sum(const Container& container) {
    std::uint64_t total = 0;
    for (const auto& element : container) {
      if constexpr (is_map)
        total += weight(element.first) + element.second;
      else
        total += weight(element);
    }
    return total;
  }
};

/// Keys that are in a container of `count`, keys that are not, and the order in which they are asked for. Made once and
/// kept: a key that is asked for is another object than the one inside.
template <class Key>
struct Keys {
  explicit Keys(std::size_t count)
      : present(distinct_values<Key>(count, 0)),
        others(distinct_values<Key>(count, 1)),
        order(random_numbers(std::max<std::size_t>(8192, count), static_cast<std::uint32_t>(count))) {
    for (const std::uint32_t place : order)
      hits.push_back(present[place]);
    for (std::size_t i = 0; i < order.size(); ++i)
      misses.push_back(others[i % others.size()]);
  }
  static const Keys& of(std::size_t count) {
    static std::vector<std::pair<std::size_t, std::unique_ptr<Keys>>> made;
    for (const auto& [size, keys] : made)
      if (size == count) return *keys;
    made.emplace_back(count, std::make_unique<Keys>(count));
    return *made.back().second;
  }

  std::vector<Key> present, others;
  std::vector<std::uint32_t> order;
  std::vector<Key> hits, misses;
};

template <class Container>
void fill(Container& container, const Keys<typename Access<Container>::Key>& keys) {
  for (const auto& key : keys.present)
    Access<Container>::insert(container, key);
}

/// Keys that are there, or are not, are looked for in an order that was drawn.
template <class Container, bool Hit>
void find(benchmark::State& state, std::size_t count) {
  const auto& keys = Keys<typename Access<Container>::Key>::of(count);
  const auto container = std::make_unique<Container>();
  fill(*container, keys);
  const auto& asked = Hit ? keys.hits : keys.misses;
  measure(state, asked.size(), [&] {
    std::uint64_t sum = 0;
    for (const auto& key : asked)
      sum += Access<Container>::find(*container, key);
    consume(sum);
  });
}

/// A container is made, `count` keys are inserted without a reserve(), and it ends; nanoseconds for a key.
template <class Container>
void build(benchmark::State& state, std::size_t count) {
  const auto& keys = Keys<typename Access<Container>::Key>::of(count);
  measure(state, count, [&] {
    Container container;
    fill(container, keys);
    consume(container);
  });
}

/// One key, drawn at random, is erased and one that was not there is inserted; nanoseconds for both.
template <class Container>
void churn(benchmark::State& state, std::size_t count) {
  const auto& keys = Keys<typename Access<Container>::Key>::of(count);
  const auto container = std::make_unique<Container>();
  fill(*container, keys);
  std::vector<bool> swapped(count);  // whether the other key of that number is the one inside
  std::vector<bool> before = swapped;
  std::vector<std::pair<const typename Access<Container>::Key*, const typename Access<Container>::Key*>> turns;
  // There and back, so that each time begins with the same keys.
  for (const std::uint32_t place : keys.order) {
    const auto& from = swapped[place] ? keys.others[place] : keys.present[place];
    const auto& to = swapped[place] ? keys.present[place] : keys.others[place];
    swapped[place] = !swapped[place];
    turns.emplace_back(&from, &to);
  }
  for (std::size_t i = turns.size(); i-- > 0;)
    turns.emplace_back(turns[i].second, turns[i].first);
  measure(state, turns.size(), [&] {
    for (const auto& [from, to] : turns) {
      Access<Container>::erase(*container, *from);
      Access<Container>::insert(*container, *to);
    }
    consume(*container);
  });
}

/// All elements read; nanoseconds for an element.
template <class Container>
void iterate(benchmark::State& state, std::size_t count) {
  const auto container = std::make_unique<Container>();
  fill(*container, Keys<typename Access<Container>::Key>::of(count));
  measure(state, count, [&] { consume(Access<Container>::sum(*container)); });
}

/// Adds all cases for a container of `count` keys.
template <class Container>
void add_cases(const std::string& component, const std::string& who, std::size_t count) {
  const std::string end = std::string("_") + name_of<typename Access<Container>::Key> + "_" + std::to_string(count);
  add(component, "hit" + end, who, [=](benchmark::State& state) { find<Container, true>(state, count); });
  add(component, "miss" + end, who, [=](benchmark::State& state) { find<Container, false>(state, count); });
  add(component, "build" + end, who, [=](benchmark::State& state) { build<Container>(state, count); });
  add(component, "churn" + end, who, [=](benchmark::State& state) { churn<Container>(state, count); });
  add(component, "iterate" + end, who, [=](benchmark::State& state) { iterate<Container>(state, count); });
}

/// How many keys containers that are not inline are tried with; the inline ones have room for eight or sixteen.
inline constexpr std::size_t small_counts[] = {4, 8, 16};
inline constexpr std::size_t large_counts[] = {100, 1000, 100'000};

/// Adds all cases for a container for which it does not matter how many keys there are.
template <class Container>
void add_any_count(const std::string& component, const std::string& who) {
  for (const std::size_t count : small_counts)
    add_cases<Container>(component, who, count);
  for (const std::size_t count : large_counts)
    add_cases<Container>(component, who, count);
}

}  // namespace micro
