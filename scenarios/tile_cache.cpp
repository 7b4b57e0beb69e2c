// A cache of tiles for a map too large to keep: tiles in view live in texture pages of 64 × 64, those that leave the
// view give their place to others. Open it for what a stack of values gains over free lists of nodes.
#include <forward_list>
#include <memory_resource>
#include <stack>
#include <vector>

#include "common.hpp"
#include "memory.hpp"
#include "sluice/handle_stack.hpp"

namespace {

constexpr std::uint32_t page_width = 64;  // tiles, and as many in the other direction
constexpr std::uint32_t page_count = 4;
constexpr std::uint32_t tile_count = page_count * page_width * page_width;
constexpr std::uint32_t map_width = 500;  // tiles, and as many in the other direction; what leaves it enters opposite
constexpr std::uint32_t view_width = 120;
constexpr std::uint32_t view_height = 120;
static_assert(view_width * view_height <= tile_count);
constexpr std::uint32_t most_steps = 6;       // tiles that the view moves in a picture
constexpr std::uint32_t changed_tiles = 256;  // in view, drawn anew in a picture, each in another place
constexpr std::uint64_t checked_every = 16;   // pictures

/// Where in the pages a tile lies.
struct Tile {
  std::uint8_t x;
  std::uint8_t y;
  std::uint16_t page;
};
static_assert(sizeof(Tile) == 4);

/// A list of free tiles, whose nodes are allocated and freed as tiles are given back and taken.
struct Plain : scenario::AlwaysInEffect<Plain> {
  static constexpr const char* name = "plain";
  Tile take() {
    const Tile tile = tiles.front();
    tiles.pop_front();
    return tile;
  }
  void give_back(Tile tile) {
    tiles.push_front(tile);
    scenario::escape(&tiles.front());
  }

  std::forward_list<Tile> tiles;
};

struct HandleStack : scenario::AlwaysInEffect<HandleStack> {
  static constexpr const char* name = "handle_stack";
  Tile take() {
    Tile tile;
    tiles.pop(tile);
    return tile;
  }
  void give_back(Tile tile) { tiles.push(tile); }

  static inline sluice::handle_stack<Tile, tile_count> tiles{"tiles"};
};

struct Std : scenario::AlwaysInEffect<Std> {
  static constexpr const char* name = "std";
  Tile take() {
    const Tile tile = tiles.top();
    tiles.pop();
    return tile;
  }
  void give_back(Tile tile) { tiles.push(tile); }

  std::stack<Tile, std::vector<Tile>> tiles;
};

/// The list again, with nodes from a pool.
struct Pmr : scenario::AlwaysInEffect<Pmr> {
  static constexpr const char* name = "pmr";
  Tile take() {
    const Tile tile = tiles.front();
    tiles.pop_front();
    return tile;
  }
  void give_back(Tile tile) {
    tiles.push_front(tile);
    scenario::escape(&tiles.front());
  }

  std::pmr::unsynchronized_pool_resource resource;
  std::pmr::forward_list<Tile> tiles{&resource};
};

template <class Memory>
class Cache {
 public:
  Cache(Memory& free_tiles, std::uint64_t seed)
      : free_tiles_(free_tiles), random_(seed), places_(map_width * map_width), contents_(tile_count) {
    for (std::uint32_t i = tile_count; i > 0; --i)
      free_tiles_.give_back(tile_at(i - 1));
    for (std::uint32_t row = 0; row < view_height; ++row)
      for (std::uint32_t column = 0; column < view_width; ++column)
        fill(column, row);
  }

  void play(std::uint64_t pictures, scenario::Report& report) {
    taken_ = 0;
    for (std::uint64_t picture = 0; picture < pictures; ++picture) {
      const std::uint32_t steps = random_.between(1, most_steps);
      const bool across = random_.below(2) == 0;
      for (std::uint32_t& position : changed_)
        position = random_.below(view_width * view_height);
      watch_.start();
      if (across) {
        move_right(steps);
      } else {
        move_down(steps);
      }
      for (const std::uint32_t position : changed_)
        empty(left_ + position % view_width, top_ + position / view_width);
      for (const std::uint32_t position : changed_)
        fill(left_ + position % view_width, top_ + position / view_width);
      watch_.stop();
      if (picture % checked_every == 0) report.require(intact());
    }
    report.require(intact());
    report.add("tile_cache", taken_, watch_.nanoseconds());
  }

 private:
  static std::uint32_t number_of(Tile tile) { return (tile.page * page_width + tile.y) * page_width + tile.x; }
  static Tile tile_at(std::uint32_t number) {
    return {static_cast<std::uint8_t>(number % page_width), static_cast<std::uint8_t>(number / page_width % page_width),
            static_cast<std::uint16_t>(number / (page_width * page_width))};
  }
  static std::uint32_t map_index(std::uint32_t column, std::uint32_t row) {
    return row % map_width * map_width + column % map_width;
  }

  void move_right(std::uint32_t steps) {
    for (std::uint32_t i = 0; i < steps; ++i)
      for (std::uint32_t row = 0; row < view_height; ++row)
        empty(left_ + i, top_ + row);
    for (std::uint32_t i = 0; i < steps; ++i)
      for (std::uint32_t row = 0; row < view_height; ++row)
        fill(left_ + view_width + i, top_ + row);
    left_ = (left_ + steps) % map_width;
  }

  void move_down(std::uint32_t steps) {
    for (std::uint32_t i = 0; i < steps; ++i)
      for (std::uint32_t column = 0; column < view_width; ++column)
        empty(left_ + column, top_ + i);
    for (std::uint32_t i = 0; i < steps; ++i)
      for (std::uint32_t column = 0; column < view_width; ++column)
        fill(left_ + column, top_ + view_height + i);
    top_ = (top_ + steps) % map_width;
  }

  /// Takes a tile for a place of the map that has none, and draws it: one word stands for the picture.
  void fill(std::uint32_t column, std::uint32_t row) {
    const std::uint32_t index = map_index(column, row);
    Place& place = places_[index];
    if (place.in_cache) return;
    place.tile = free_tiles_.take();
    place.in_cache = true;
    contents_[number_of(place.tile)] = index;
    ++taken_;
  }

  void empty(std::uint32_t column, std::uint32_t row) {
    Place& place = places_[map_index(column, row)];
    if (!place.in_cache) return;
    place.in_cache = false;
    free_tiles_.give_back(place.tile);
  }

  /// Whether each place in view has a tile of its own, with the right picture.
  bool intact() const {
    for (std::uint32_t row = top_; row < top_ + view_height; ++row) {
      for (std::uint32_t column = left_; column < left_ + view_width; ++column) {
        const std::uint32_t index = map_index(column, row);
        const Place& place = places_[index];
        if (!place.in_cache || contents_[number_of(place.tile)] != index) return false;
      }
    }
    return true;
  }

  struct Place {
    Tile tile;
    bool in_cache;
  };

  Memory& free_tiles_;
  scenario::Random random_;
  scenario::Table<Place> places_;  // of the map
  scenario::Table<std::uint32_t>
      contents_;  // of the pages, by number_of(tile): the place of the map that is drawn there
  std::uint32_t changed_[changed_tiles] = {};
  std::uint32_t left_ = 0;
  std::uint32_t top_ = 0;
  std::uint64_t taken_ = 0;
  scenario::Stopwatch watch_;
};

}  // namespace

int main(int argc, char** argv) {
  scenario::Choice memory("--memory", "plain|handle_stack|std|pmr");
  const auto arguments = scenario::parse_arguments(argc, argv, "pictures", 20'000, 1, {&memory});
  scenario::Report report("tile_cache");
  scenario::with_memory<Plain, HandleStack, Std, Pmr>(
      memory, report, [&](auto& kind) { Cache(kind, arguments.seed).play(arguments.ops, report); });
  return report.finish(arguments);
}
