// Memory from an arena: aligned, within the caller's block to the last byte, and free after a rewind.
#include "sluice/marker_arena.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "guarded_memory.hpp"

namespace {

using library_test::address_of;
using library_test::Guarded;
using sluice::checked;
using sluice::unchecked;

static_assert(sizeof(sluice::marker_arena<unchecked>) == 4 * sizeof(void*));
static_assert(sizeof(sluice::marker_arena<unchecked>::marker) == sizeof(void*));
static_assert(sizeof(sluice::marker_arena<unchecked>::frame) == 3 * sizeof(void*));
static_assert(sluice::marker_arena<unchecked>::overhead == 0);
static_assert(std::is_trivially_copyable_v<sluice::marker_arena<unchecked>::marker>);
static_assert(!std::is_copy_constructible_v<sluice::marker_arena<>>);

constexpr std::size_t largest_size = std::numeric_limits<std::size_t>::max();

template <class Checks>
class MarkerArena : public testing::Test {};
using Policies = testing::Types<checked, unchecked>;
TYPED_TEST_SUITE(MarkerArena, Policies);

TYPED_TEST(MarkerArena, EveryOffsetSizeAndAlignmentFitsOrIsRefused) {
  using Arena = sluice::marker_arena<TypeParam>;
  constexpr std::size_t fence = TypeParam::enabled ? 8 : 0;
  constexpr std::size_t header = Arena::overhead - fence;
  for (std::size_t offset = 0; offset < 17; ++offset) {
    for (std::size_t bytes = 0; bytes < 100; bytes += bytes < 45 ? 1 : 7) {
      Guarded memory(offset, bytes);
      const std::uintptr_t begin = address_of(memory.start());
      for (std::size_t first = 0; first < 4; ++first) {
        for (std::size_t align = 1; align <= 128; align *= 2) {
          for (std::size_t size = 0; size < 48; ++size) {
            Arena arena(memory.start(), bytes);
            if (first != 0) (void)arena.try_allocate(first, 1);
            const std::size_t used = arena.used();
            const auto before = arena.mark();
            const std::uintptr_t expected = (begin + used + header + align - 1) & ~(align - 1);
            const std::size_t taken = (size == 0 ? 1 : size) + fence;
            void* const block = arena.try_allocate(size, align);
            ASSERT_EQ(block != nullptr, expected + taken <= begin + bytes)
                << offset << ' ' << bytes << ' ' << align << ' ' << size;
            if (block != nullptr) {
              ASSERT_EQ(address_of(block), expected);
              ASSERT_EQ(arena.used(), expected + taken - begin);
              std::memset(block, 0x11, size);
              arena.rewind(before);
            }
            ASSERT_EQ(arena.used(), used);
            arena.clear();
            ASSERT_TRUE(arena.empty());
          }
        }
      }
      ASSERT_TRUE(memory.guards_intact()) << offset << ' ' << bytes;
    }
  }
}

TYPED_TEST(MarkerArena, SizesAndAlignmentsOfAnyMagnitudeAreRefusedWithoutOverflow) {
  Guarded memory(3, 200);
  sluice::marker_arena<TypeParam> arena(memory.start(), 200);
  void* const block = arena.try_allocate(10, 8);
  const std::size_t used = arena.used();
  for (std::size_t less = 0; less < 300; ++less) {
    for (std::size_t align = 1; align != 0; align *= 2) {
      EXPECT_EQ(arena.try_allocate(largest_size - less, align), nullptr);
      EXPECT_EQ(arena.try_allocate(largest_size / 2 - less, align), nullptr);
      if ((-address_of(memory.start()) & (align - 1)) > 200) {
        EXPECT_EQ(arena.try_allocate(less % 8, align), nullptr);
      }
    }
    EXPECT_EQ(arena.template create_array<std::uint64_t>(largest_size / 8 - 150 + less), nullptr);
    EXPECT_EQ(arena.template create_array<std::uint64_t>(largest_size - less), nullptr);
    EXPECT_FALSE(arena.try_resize_last(block, 10, largest_size - less));
    EXPECT_FALSE(arena.try_deallocate_last(block, largest_size - less));
  }
  EXPECT_EQ(arena.used(), used);
  arena.clear();
}

TYPED_TEST(MarkerArena, WithoutMemoryItRefuses) {
  sluice::marker_arena<TypeParam> arena(nullptr, 0);
  EXPECT_EQ(arena.try_allocate(0, 1), nullptr);
  EXPECT_EQ(arena.try_allocate(1), nullptr);
  EXPECT_TRUE(arena.empty());
  EXPECT_FALSE(arena.contains(nullptr));
  arena.rewind(arena.mark());
  arena.clear();
}

TYPED_TEST(MarkerArena, EmptyBlocksHaveAddressesOfTheirOwn) {
  alignas(16) std::byte memory[256];
  sluice::marker_arena<TypeParam> arena(memory, sizeof memory);
  void* const a = arena.try_allocate(0, 1);
  void* const b = arena.try_allocate(0, 1);
  EXPECT_NE(a, b);
  EXPECT_TRUE(arena.contains(a));
  EXPECT_TRUE(arena.contains(b));
  arena.clear();
}

struct Tile {
  int kind;
  float height;
};

TYPED_TEST(MarkerArena, MakesObjectsAndArrays) {
  alignas(64) std::byte memory[4096];
  std::memset(memory, 0xff, sizeof memory);
  sluice::marker_arena<TypeParam> arena(memory, sizeof memory);
  const Tile* const tile = arena.template create<Tile>(3, 1.5f);
  EXPECT_EQ(tile->kind, 3);
  EXPECT_EQ(tile->height, 1.5f);
  EXPECT_EQ(*arena.template create<int>(7), 7);
  const Tile* const tiles = arena.template create_array<Tile>(100);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(tiles[i].kind, 0);
  EXPECT_NE(arena.template create_array<int>(0), nullptr);
  EXPECT_EQ(arena.template create_array<Tile>(1000), nullptr);
  struct alignas(64) Line {
    int numbers[16];
  };
  EXPECT_EQ(address_of(arena.template create<Line>()) % 64, 0u);
  arena.clear();
}

TYPED_TEST(MarkerArena, RewindsToAMarkerAnyNumberOfTimes) {
  alignas(16) std::byte memory[4096];
  sluice::marker_arena<TypeParam> arena(memory, sizeof memory);
  const auto start = arena.mark();
  void* const level = arena.try_allocate(100);
  std::memset(level, 0x5a, 100);
  const auto loaded = arena.mark();
  const std::size_t used = arena.used();
  void* first = nullptr;
  for (int round = 0; round < 10; ++round) {
    void* const block = arena.try_allocate(200);
    if (round == 0) first = block;
    EXPECT_EQ(block, first);
    std::memset(block, round, 200);
    EXPECT_NE(arena.try_allocate(20), nullptr);
    arena.rewind(loaded);
    EXPECT_EQ(arena.used(), used);
  }
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(static_cast<unsigned char*>(level)[i], 0x5a);
  arena.rewind(start);
  EXPECT_TRUE(arena.empty());
}

TYPED_TEST(MarkerArena, FramesNestAndFreeAtTheirEnds) {
  using Arena = sluice::marker_arena<TypeParam>;
  alignas(16) std::byte memory[4096];
  Arena arena(memory, sizeof memory);
  EXPECT_NE(arena.try_allocate(10), nullptr);
  const std::size_t used = arena.used();
  {
    typename Arena::frame outer(arena);
    EXPECT_NE(arena.try_allocate(100), nullptr);
    const std::size_t used_in_outer = arena.used();
    {
      typename Arena::frame inner(arena);
      EXPECT_NE(arena.try_allocate(1000), nullptr);
      inner.rewind();
      EXPECT_EQ(arena.used(), used_in_outer);
      EXPECT_NE(arena.try_allocate(50), nullptr);
    }
    EXPECT_EQ(arena.used(), used_in_outer);
    { typename Arena::frame nothing(arena); }
    EXPECT_EQ(arena.used(), used_in_outer);
  }
  EXPECT_EQ(arena.used(), used);
  arena.clear();
}

TYPED_TEST(MarkerArena, TheLastBlockIsFreedAndResizedUnlessAMarkerStandsBehindIt) {
  using Arena = sluice::marker_arena<TypeParam>;
  alignas(16) std::byte memory[2048];
  Arena arena(memory, sizeof memory);
  void* const a = arena.try_allocate(16);
  void* const b = arena.try_allocate(16);
  EXPECT_FALSE(arena.try_deallocate_last(a, 16));
  EXPECT_FALSE(arena.try_resize_last(a, 16, 8));
  EXPECT_TRUE(arena.try_resize_last(b, 16, 500));
  std::memset(b, 1, 500);
  EXPECT_FALSE(arena.try_resize_last(b, 500, 2048));
  EXPECT_TRUE(arena.try_resize_last(b, 500, 0));
  EXPECT_TRUE(arena.try_resize_last(b, 0, 16));
  const auto marker = arena.mark();
  EXPECT_FALSE(arena.try_deallocate_last(b, 16)) << "the marker would hang in the air";
  EXPECT_FALSE(arena.try_resize_last(b, 16, 8));
  void* const c = arena.try_allocate(16);
  EXPECT_TRUE(arena.try_deallocate_last(c, 16));
  EXPECT_FALSE(arena.try_deallocate_last(b, 16));
  arena.rewind(marker);
  EXPECT_FALSE(arena.try_deallocate_last(b, 16));
  {
    typename Arena::frame frame(arena);
    EXPECT_TRUE(arena.try_deallocate_last(arena.try_allocate(16), 16));
  }
  EXPECT_FALSE(arena.try_deallocate_last(b, 16));
  arena.clear();
  void* const again = arena.try_allocate(16);
  EXPECT_EQ(again, a);
  {
    typename Arena::frame frame(arena);
    EXPECT_FALSE(arena.try_deallocate_last(again, 16));
  }
  EXPECT_TRUE(arena.try_deallocate_last(again, 16)) << "the frame's marker is gone";
  arena.clear();
}

TYPED_TEST(MarkerArena, BlocksKeepWhatWasWrittenUntilARewindBeforeThem) {
  using Arena = sluice::marker_arena<TypeParam>;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const std::size_t bytes = random() % 6000;
    Guarded memory(random() % 64, bytes);
    Arena arena(memory.start(), bytes);
    struct Given {
      unsigned char* start;
      std::size_t size;
      unsigned char value;
    };
    struct Marked {
      typename Arena::marker marker;
      std::size_t used, blocks;
    };
    std::vector<Given> live;
    std::vector<Marked> markers;
    const auto check = [&] {
      for (const Given& given : live)
        for (std::size_t i = 0; i < given.size; ++i)
          ASSERT_EQ(given.start[i], given.value);
    };
    for (int step = 0; step < 2000; ++step) {
      ASSERT_LE(arena.used(), bytes);
      const unsigned choice = random() % 16;
      if (choice < 9) {
        const std::size_t size = random() % (random() % 4 == 0 ? 300 : 20);
        const std::size_t align = std::size_t{1} << random() % 8;
        auto* const start = static_cast<unsigned char*>(arena.try_allocate(size, align));
        if (start == nullptr) {
          ASSERT_GT(arena.used() + size + align + Arena::overhead, bytes);
          continue;
        }
        ASSERT_EQ(address_of(start) % align, 0u);
        ASSERT_GE(start, live.empty() ? memory.start() : live.back().start + live.back().size);
        ASSERT_LE(start + size, memory.start() + bytes);
        live.push_back({start, size, static_cast<unsigned char>(random())});
        std::memset(start, live.back().value, size);
      } else if (choice < 12) {
        markers.push_back({arena.mark(), arena.used(), live.size()});
      } else if (choice == 12 && !live.empty()) {
        const bool may = markers.empty() || markers.back().blocks < live.size();
        const Given last = live.back();
        const bool done = arena.try_deallocate_last(last.start, last.size);
        if (!may) {
          ASSERT_FALSE(done);
        }
        if (done) live.pop_back();
      } else if (!markers.empty() && random() % 3 == 0) {
        check();
        const std::size_t place = random() % markers.size();
        arena.rewind(markers[place].marker);
        ASSERT_EQ(arena.used(), markers[place].used);
        live.resize(markers[place].blocks);
        markers.resize(place + 1);
      } else if (random() % 100 == 0) {
        arena.clear();
        live.clear();
        markers.clear();
      }
    }
    check();
    arena.clear();
    ASSERT_TRUE(memory.guards_intact());
  }
}

}  // namespace
