// Ordered trees: three small ones about the same names are built for each unit of work, walked and torn down, beside a
// large one that lasts, in which new entries take the place of the oldest meanwhile. Open it for what nodes of a few
// fixed sizes cost, and what nodes that last do to those that come and go.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

#include "common.hpp"
#include "hash.hpp"
#include "phases.hpp"

namespace {

constexpr std::uint64_t names_in_round = 64 * 1024;
constexpr std::uint64_t all_lasting_entries = 192 * 1024;
constexpr std::uint32_t names_for_a_lasting_entry = 4;

using Key = std::uint64_t;

struct Symbol {
  std::uint64_t number, uses;
  std::array<std::uint64_t, 4> places;
};
using Symbols = std::map<Key, Symbol>;

std::uint64_t weight(Key key, const Symbol& symbol) {
  std::uint64_t sum = scenario::mixed(key ^ symbol.number, symbol.uses);
  for (const std::uint64_t place : symbol.places)
    sum = sum * 3 + place;
  return sum;
}

std::uint64_t weight(const Symbols& symbols) {
  std::uint64_t sum = 0;
  for (const auto& [key, symbol] : symbols)
    sum += weight(key, symbol);
  return sum;
}

/// What belongs to the n-th name. The keys of different names differ, and are in no order.
class Names {
 public:
  explicit Names(std::uint64_t seed) : seed_(seed) {}

  Key key(std::uint64_t number) const { return scenario::Random(seed_ ^ number).next(); }
  static Symbol symbol(std::uint64_t number, Key key) { return {number, 1, {key, ~key, key >> 7, number ^ key}}; }

  /// The weight of these names, from their numbers alone.
  std::uint64_t expected_weight(std::uint64_t first, std::uint64_t count) const {
    std::uint64_t sum = 0;
    for (std::uint64_t number = first; number < first + count; ++number)
      sum += weight(key(number), symbol(number, key(number)));
    return sum;
  }

 private:
  std::uint64_t seed_;
};

/// The trees of a function that is compiled, or a query that is planned: the names in order, the place of each by its
/// number, and what is known of each.
class Unit {
 public:
  void add(std::uint64_t number, Key key) {
    keys_.insert(key);
    places_.emplace(static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(key));
    symbols_.emplace(key, Names::symbol(number, key));
  }

  /// Adds up the weights of the symbols that all three trees agree on.
  std::uint64_t walk() const {
    std::uint64_t sum = 0;
    auto symbol = symbols_.begin();
    for (const Key key : keys_) {
      if (symbol == symbols_.end()) break;
      const auto place = places_.find(static_cast<std::uint32_t>(symbol->second.number));
      const bool is_agreed =
          symbol->first == key && place != places_.end() && place->second == static_cast<std::uint32_t>(key);
      if (is_agreed) sum += weight(key, symbol->second);
      ++symbol;
    }
    return sum;
  }

 private:
  std::set<Key> keys_;
  std::map<std::uint32_t, std::uint32_t> places_;
  Symbols symbols_;
};

/// The tree that lasts: it keeps as many names as it began with, the newest.
class Lasting {
 public:
  Lasting(std::uint64_t seed, std::uint64_t size) : names_(seed), size_(size) {
    while (added_ < size_)
      add();
  }

  void replace_oldest() {
    symbols_.erase(names_.key(added_ - size_));
    add();
  }

  bool is_right() const {
    return symbols_.size() == size_ && weight(symbols_) == names_.expected_weight(added_ - size_, size_);
  }

 private:
  void add() {
    const Key key = names_.key(added_);
    symbols_.emplace(key, Names::symbol(added_, key));
    ++added_;
  }

  const Names names_;
  const std::uint64_t size_;
  std::uint64_t added_ = 0;
  Symbols symbols_;
};

enum Phase : std::size_t { preparation, building, walking, checking, teardown };

class Worker {
 public:
  Worker(const scenario::Arguments& arguments, std::uint64_t number)
      : rounds_(arguments, number, names_in_round),
        sizes_(scenario::seed_of(arguments, number)),
        names_(sizes_.next()),
        lasting_(sizes_.next(), scenario::share_of(all_lasting_entries, arguments.threads, number)) {}

  bool work(scenario::PhaseClock& clock) {
    bool is_right = true;
    clock.end(preparation);
    for (std::uint64_t round = 0; round < rounds_.count(); ++round) {
      const std::uint64_t first = added_;
      build(rounds_.operations(round));
      clock.end(building);
      std::uint64_t sum = 0;
      for (const Unit& unit : units_)
        sum += unit.walk();
      clock.end(walking);
      is_right = is_right && sum == names_.expected_weight(first, added_ - first);
      clock.end(checking);
      units_.clear();
      clock.end(teardown);
    }
    return is_right && lasting_.is_right();
  }

 private:
  void build(std::uint64_t names) {
    const std::uint64_t end = added_ + names;
    while (added_ < end) {
      const std::uint64_t unit_end = std::min<std::uint64_t>(end, added_ + sizes_.by_doubling(3, 10));
      Unit& unit = units_.emplace_back();
      for (; added_ < unit_end; ++added_) {
        unit.add(added_, names_.key(added_));
        if (added_ % names_for_a_lasting_entry == 0) lasting_.replace_oldest();
      }
    }
  }

  scenario::Rounds rounds_;
  scenario::Random sizes_;
  Names names_;
  Lasting lasting_;
  std::vector<Unit> units_;
  std::uint64_t added_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = scenario::parse_arguments(
      argc, argv, {.unit = "names, each of which is in three trees", .ops = 1'000'000, .threads = 1});
  scenario::PhaseClock clock(arguments.threads);
  scenario::Report report("trees");
  report.require(scenario::are_all_right(arguments.threads,
                                         [&](std::uint64_t worker) { return Worker(arguments, worker).work(clock); }));
  report.add("trees_build", arguments.ops, clock.nanoseconds(building));
  report.add("trees_walk", arguments.ops, clock.nanoseconds(walking));
  report.add("trees_teardown", arguments.ops, clock.nanoseconds(teardown));
  return report.finish(arguments);
}
