// The sprites of a game with rooms: each thing of the world that is in view has one of 256 sprites, and the table of
// things says which. Open it for what a name of one byte gains over a pointer, in time and in the memory of the tables
// that hold it.
#include <array>
#include <memory>
#include <memory_resource>
#include <stack>
#include <utility>
#include <vector>

#include "common.hpp"
#include "memory.hpp"
#include "sluice/index_pool.hpp"

namespace {

constexpr std::uint32_t sprite_count = 256;
constexpr std::uint32_t room_count = 1'024;
constexpr std::uint32_t room_things = 480;  // half of them are in view at a time
constexpr std::uint32_t room_pictures = 30;
constexpr std::uint32_t replaced = 64;  // things that leave the view in a picture, and as many others that enter it

struct Sprite {
  Sprite(std::uint32_t thing, std::uint32_t picture) : thing_number(thing), born(picture), check(~thing) {}

  std::uint32_t thing_number;
  std::uint32_t born;
  std::int32_t x = 0;
  std::int32_t y = 0;
  std::uint32_t shown = 0;  // pictures
  std::uint16_t image = 0;
  std::uint16_t palette = 0;
  std::uint32_t flags = 0;
  std::uint32_t check;
};
static_assert(sizeof(Sprite) == 32);

/// A thing of the world. Whether it has a sprite stands beside the name, so that every byte can be a name.
template <class Handle>
struct Thing {
  std::uint16_t x;
  std::uint16_t y;
  std::uint8_t kind;
  bool in_view;
  Handle sprite;
};

struct Plain : scenario::AlwaysInEffect<Plain> {
  static constexpr const char* name = "plain";
  using Handle = Sprite*;
  Handle create(std::uint32_t thing, std::uint32_t picture) { return new Sprite(thing, picture); }
  void destroy(Handle sprite) { delete sprite; }
  Sprite& at(Handle sprite) { return *sprite; }
};

struct IndexPool : scenario::AlwaysInEffect<IndexPool> {
  static constexpr const char* name = "index_pool";
  using Handle = std::uint8_t;
  Handle create(std::uint32_t thing, std::uint32_t picture) { return *pool.create(thing, picture); }
  void destroy(Handle sprite) { pool.destroy(sprite); }
  Sprite& at(Handle sprite) { return pool[sprite]; }

  static inline sluice::index_pool<Sprite, sprite_count> pool{"sprites"};
};
static_assert(sizeof(Thing<IndexPool::Handle>) == 8 && sizeof(Thing<Plain::Handle>) == 16);

/// What the standard library has for it: an array, and a stack of the free places in it.
class Std : public scenario::AlwaysInEffect<Std> {
 public:
  static constexpr const char* name = "std";
  using Handle = std::uint32_t;

  Std() {
    for (std::uint32_t i = sprite_count; i > 0; --i)
      free_.push(i - 1);
  }
  Handle create(std::uint32_t thing, std::uint32_t picture) {
    const Handle sprite = free_.top();
    free_.pop();
    std::construct_at(&at(sprite), thing, picture);
    return sprite;
  }
  void destroy(Handle sprite) {
    std::destroy_at(&at(sprite));
    free_.push(sprite);
  }
  Sprite& at(Handle sprite) { return *reinterpret_cast<Sprite*>(&places_[sprite]); }

 private:
  struct Place {
    alignas(Sprite) std::byte bytes[sizeof(Sprite)];
  };
  static inline std::array<Place, sprite_count> places_;
  std::stack<Handle, std::vector<Handle>> free_;
};

struct Pmr : scenario::AlwaysInEffect<Pmr> {
  static constexpr const char* name = "pmr";
  using Handle = Sprite*;
  Handle create(std::uint32_t thing, std::uint32_t picture) { return allocator.new_object<Sprite>(thing, picture); }
  void destroy(Handle sprite) { allocator.delete_object(sprite); }
  Sprite& at(Handle sprite) { return *sprite; }

  std::pmr::unsynchronized_pool_resource resource;
  std::pmr::polymorphic_allocator<> allocator{&resource};
};

template <class Memory>
class World {
 public:
  World(Memory& memory, std::uint64_t seed) : memory_(memory), random_(seed), things_(room_count * room_things) {
    for (std::uint32_t i = 0; i < things_.length(); ++i) {
      const std::uint64_t drawn = random_.next();
      things_[i] = {static_cast<std::uint16_t>(drawn),
                    static_cast<std::uint16_t>(drawn >> 16),
                    static_cast<std::uint8_t>(drawn >> 32),
                    false,
                    {}};
    }
  }

  void play(std::uint64_t rooms, scenario::Report& report) {
    for (std::uint64_t i = 0; i < rooms; ++i)
      visit(random_.below(room_count));
    report.require(damage_ == 0);
    report.add("sprites_turnover", shown_, turnover_watch_.nanoseconds());
    report.add("sprites_draw", drawn_, draw_watch_.nanoseconds());
  }

 private:
  /// A part of the things is in view at first: positions below `count_` of the order, which is shuffled as things leave
  /// and enter the view.
  void visit(std::uint32_t room) {
    first_ = room * room_things;
    for (std::uint32_t i = 0; i < room_things; ++i)
      order_[i] = static_cast<std::uint16_t>(i);
    for (std::uint32_t i = room_things; i > 1; --i)
      std::swap(order_[i - 1], order_[random_.below(i)]);
    turnover_watch_.start();
    for (std::uint32_t i = 0; i < visible; ++i)
      show(order_[i]);
    turnover_watch_.stop();
    for (std::uint32_t i = 0; i < room_pictures; ++i)
      show_picture();
    turnover_watch_.start();
    for (std::uint32_t i = 0; i < visible; ++i)
      hide(order_[i]);
    turnover_watch_.stop();
  }

  void show_picture() {
    for (std::uint32_t i = 0; i < replaced; ++i) {
      places_[i] = {static_cast<std::uint16_t>(random_.below(visible)),
                    static_cast<std::uint16_t>(random_.between(visible, room_things - 1))};
    }
    turnover_watch_.start();
    for (std::uint32_t i = 0; i < replaced; ++i) {
      std::uint16_t& leaves = order_[places_[i].leaves];
      std::uint16_t& enters = order_[places_[i].enters];
      hide(leaves);
      show(enters);
      std::swap(leaves, enters);
    }
    turnover_watch_.stop();
    draw_watch_.start();
    for (std::uint32_t i = 0; i < visible; ++i)
      draw(things_[first_ + order_[i]]);
    draw_watch_.stop();
    drawn_ += visible;
    ++picture_;
  }

  void show(std::uint32_t number) {
    auto& thing = things_[first_ + number];
    thing.sprite = memory_.create(first_ + number, picture_);
    thing.in_view = true;
    scenario::escape(&memory_.at(thing.sprite));
    ++shown_;
  }

  void draw(const Thing<typename Memory::Handle>& thing) {
    Sprite& sprite = memory_.at(thing.sprite);
    sprite.x = thing.x - camera_x;
    sprite.y = thing.y - camera_y;
    sprite.image = static_cast<std::uint16_t>(thing.kind << 3 | (sprite.shown >> 2 & 7));
    sprite.flags |= thing.x < camera_x;
    ++sprite.shown;
  }

  void hide(std::uint32_t number) {
    auto& thing = things_[first_ + number];
    const Sprite& sprite = memory_.at(thing.sprite);
    damage_ |= (sprite.thing_number ^ (first_ + number)) | (sprite.check ^ ~sprite.thing_number);
    damage_ |= sprite.born + sprite.shown - picture_;
    memory_.destroy(thing.sprite);
    thing.in_view = false;
  }

  static constexpr std::uint32_t visible = room_things / 2;
  static constexpr std::int32_t camera_x = 320;
  static constexpr std::int32_t camera_y = 200;
  struct Places {
    std::uint16_t leaves, enters;  // in order_
  };

  Memory& memory_;
  scenario::Random random_;
  scenario::Table<Thing<typename Memory::Handle>> things_;
  std::uint16_t order_[room_things] = {};
  Places places_[replaced] = {};
  std::uint32_t first_ = 0;  // thing of the room
  std::uint32_t picture_ = 0;
  std::uint64_t shown_ = 0;
  std::uint64_t drawn_ = 0;
  std::uint32_t damage_ = 0;
  scenario::Stopwatch turnover_watch_;
  scenario::Stopwatch draw_watch_;
};

}  // namespace

int main(int argc, char** argv) {
  scenario::Choice memory("--memory", "plain|index_pool|std|pmr");
  const auto arguments = scenario::parse_arguments(argc, argv, "rooms", 4'000, 1, {&memory});
  scenario::Report report("sprites");
  scenario::with_memory<Plain, IndexPool, Std, Pmr>(
      memory, report, [&](auto& kind) { World(kind, arguments.seed).play(arguments.ops, report); });
  return report.finish(arguments);
}
