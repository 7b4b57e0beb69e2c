// Stacks of free indices and of small values, against a stack of 32-bit numbers. Open it to add a width or an order.
//
// Time is one side here and memory the other: what an entry takes, sizes.cpp says.
#include <array>
#include <memory>
#include <optional>
#include <stack>

#include "micro.hpp"
#include "sluice/handle_stack.hpp"
#include "sluice/index_stack.hpp"
#include "sluice/split_index_stack.hpp"

#if MICRO_BOOST
#include <boost/container/static_vector.hpp>
#endif

namespace micro {
namespace {

// Stacks that start with the numbers 0..N-1 in them and answer pop() with nothing when they are empty.

/// Whether a push looks for room is what makes the difference between the two.
template <std::size_t N, bool Checked>
struct PlainArray {
  PlainArray() {
    for (std::size_t i = 0; i < N; ++i)
      items[i] = static_cast<std::uint32_t>(N - 1 - i);
  }
  std::optional<std::uint32_t> pop() {
    if (count == 0) return std::nullopt;
    return items[--count];
  }
  bool push(std::uint32_t value) {
    if (Checked && count == N) return false;
    items[count++] = value;
    return true;
  }
  std::uint32_t items[N];
  std::size_t count = N;
};
template <std::size_t N>
struct StdStack {
  StdStack() {
    for (std::size_t i = 0; i < N; ++i)
      items.push(static_cast<std::uint32_t>(N - 1 - i));
  }
  std::optional<std::uint32_t> pop() {
    if (items.empty()) return std::nullopt;
    const std::uint32_t value = items.top();
    items.pop();
    return value;
  }
  void push(std::uint32_t value) { items.push(value); }
  std::stack<std::uint32_t, std::vector<std::uint32_t>> items;
};
#if MICRO_BOOST
template <std::size_t N>
struct StaticVector {
  StaticVector() {
    for (std::size_t i = 0; i < N; ++i)
      items.push_back(static_cast<std::uint32_t>(N - 1 - i));
  }
  std::optional<std::uint32_t> pop() {
    if (items.empty()) return std::nullopt;
    const std::uint32_t value = items.back();
    items.pop_back();
    return value;
  }
  void push(std::uint32_t value) { items.push_back(value); }
  boost::container::static_vector<std::uint32_t, N> items;
};
#endif
template <unsigned Bits, std::size_t N>
struct Split {
  Split() {
    for (std::size_t i = 0; i < N; ++i)
      items.push(static_cast<std::uint32_t>(N - 1 - i));
  }
  std::optional<std::uint32_t> pop() { return items.pop(); }
  bool push(std::uint32_t value) { return items.push(value); }
  sluice::split_index_stack<Bits, N> items;
};

/// One number popped and pushed back at once.
template <class Stack>
void pair(benchmark::State& state) {
  const auto stack = std::make_unique<Stack>();
  measure(state, 16, [&] {
    for (int i = 0; i < 16; ++i) {
      auto index = *stack->pop();
      blur(index);
      stack->push(index);
    }
  });
}

/// All numbers popped, and pushed back in the order in which they came.
template <class Stack, std::size_t N>
void drain(benchmark::State& state) {
  const auto stack = std::make_unique<Stack>();
  std::vector<decltype(stack->pop())> out(N);
  measure(state, N, [&] {
    for (auto& index : out)
      index = stack->pop();
    for (const auto& index : out)
      stack->push(*index);
  });
}

/// Half of the numbers are out; one of those, drawn at random, goes back and another comes.
template <class Stack, std::size_t N>
void churn(benchmark::State& state) {
  const auto stack = std::make_unique<Stack>();
  const std::vector<std::uint32_t> places = random_numbers(4096, N / 2);
  std::vector<decltype(stack->pop())> out(N / 2);
  for (auto& index : out)
    index = stack->pop();
  measure(state, places.size(), [&] {
    for (const std::uint32_t place : places) {
      stack->push(*out[place]);
      consume(stack.get());  // elsewhere in the program: what goes back is not known to be what comes next
      out[place] = stack->pop();
    }
  });
}

template <class Stack, std::size_t N>
void add_orders(const std::string& size, const std::string& who) {
  add("stacks", "pair_" + size, who, pair<Stack>);
  add("stacks", "drain_" + size, who, drain<Stack, N>);
  add("stacks", "churn_" + size, who, churn<Stack, N>);
}

template <std::size_t N>
void add_peers(const std::string& size) {
  add_orders<PlainArray<N, false>, N>(size, "uint32_t[]");
  add_orders<PlainArray<N, true>, N>(size, "uint32_t[], checked push");
  add_orders<StdStack<N>, N>(size, "std::vector");
#if MICRO_BOOST
  add_orders<StaticVector<N>, N>(size, "boost::static_vector");
#endif
}

struct Tile {
  std::uint8_t x, y;
  std::uint16_t page;
  bool operator==(const Tile&) const = default;
};
struct TileVector {
  bool push(Tile tile) {
    if (tiles.size() == tiles.capacity()) return false;
    tiles.push_back(tile);
    return true;
  }
  std::optional<Tile> pop() {
    if (tiles.empty()) return std::nullopt;
    const Tile tile = tiles.back();
    tiles.pop_back();
    return tile;
  }
  TileVector() { tiles.reserve(4096); }
  std::vector<Tile> tiles;
};
struct TileArray {
  bool push(Tile tile) {
    if (count == tiles.size()) return false;
    tiles[count++] = tile;
    return true;
  }
  std::optional<Tile> pop() {
    if (count == 0) return std::nullopt;
    return tiles[--count];
  }
  std::array<Tile, 4096> tiles;
  std::size_t count = 0;
};

/// The 4,096 tiles of a page pushed, and popped again.
template <class Stack>
void tiles(benchmark::State& state) {
  const auto stack = std::make_unique<Stack>();
  measure(state, 4096, [&] {
    unsigned pushed = 0;
    for (unsigned i = 0; i < 4096; ++i)
      pushed += stack->push(Tile{static_cast<std::uint8_t>(i % 64), static_cast<std::uint8_t>(i / 64), 3});
    consume(pushed);
    unsigned sum = 0;
    while (const auto tile = stack->pop())
      sum += tile->x + tile->page;
    consume(sum);
  });
}

}  // namespace

void add_all() {
  add_orders<sluice::index_stack<256>, 256>("256", "sluice::index_stack");
  add_peers<256>("256");
  add_orders<sluice::index_stack<65536>, 65536>("65536", "sluice::index_stack");
  add_orders<Split<16, 65536>, 65536>("65536", "sluice::split_index_stack<16>");
  add_peers<65536>("65536");
  add_orders<sluice::index_stack<262144>, 262144>("262144", "sluice::index_stack");
  add_orders<Split<18, 262144>, 262144>("262144", "sluice::split_index_stack<18>");
  add_orders<Split<24, 262144>, 262144>("262144", "sluice::split_index_stack<24>");
  add_orders<Split<21, 262144>, 262144>("262144", "sluice::split_index_stack<21>");
  add_peers<262144>("262144");
  add("stacks", "tiles_4096", "sluice::handle_stack", tiles<sluice::handle_stack<Tile, 4096>>);
  add("stacks", "tiles_4096", "Tile[]", tiles<TileArray>);
  add("stacks", "tiles_4096", "std::vector", tiles<TileVector>);
}

}  // namespace micro
