// How objects end on their own thread: last in, first out pops them; any other order leaves holes that are joined and
// used again; and an empty chunk begins anew.
#include "arena/arena.hpp"

#include "arena_calls.hpp"
#include "base/options.hpp"
#include "random_blocks.hpp"

namespace {

using namespace sluice;
using test::filled;
using test::Scope;
using test::scoped_allocate;
using test::scoped_free;
using test::settle;

class ArenaFree : public testing::Test {
 protected:
  void TearDown() override { test::expect_valid(); }
};

std::vector<unsigned char*> fill_many(size_t count, size_t size) {
  std::vector<unsigned char*> objects;
  for (size_t i = 0; i < count; ++i)
    objects.push_back(filled(size, static_cast<unsigned char>(i)));
  return objects;
}

TEST_F(ArenaFree, the_last_object_is_popped_and_its_place_is_used_next) {
  const Scope scope;
  void* const below = scoped_allocate(100);
  for (int i = 0; i < 100'000; ++i) {
    void* const object = scoped_allocate(100);
    ASSERT_EQ(static_cast<char*>(object) - static_cast<char*>(below), 112);
    scoped_free(object);
  }
  scoped_free(below);
}

TEST_F(ArenaFree, objects_lie_side_by_side_in_the_order_of_their_allocation) {
  const Scope scope;
  unsigned char* previous = filled(24, 1);
  for (const size_t size : {8u, 24u, 25u, 40u, 100u, 1000u, 3000u}) {
    unsigned char* const object = filled(size, 2);
    EXPECT_EQ(object, previous + arena::usable_size(previous) + arena::header_size);
    previous = object;
  }
}

TEST_F(ArenaFree, a_stack_of_objects_freed_in_reverse_order_is_popped_to_its_beginning) {
  const Scope scope;
  for (int round = 0; round < 20; ++round) {
    std::vector<unsigned char*> objects = fill_many(300, 64);
    unsigned char* const first = objects.front();
    while (!objects.empty()) {
      scoped_free(objects.back());
      objects.pop_back();
    }
    void* const next = scoped_allocate(64);
    EXPECT_EQ(next, first);
    scoped_free(next);
  }
}

TEST_F(ArenaFree, the_window_comes_back_over_objects_freed_before) {
  const Scope scope;
  void* const kept = scoped_allocate(32);
  void* const first = scoped_allocate(64);
  void* const second = scoped_allocate(128);
  void* const third = scoped_allocate(256);
  scoped_free(second);
  scoped_free(first);
  void* const above = scoped_allocate(16);
  EXPECT_GT(above, third);
  scoped_free(above);
  scoped_free(third);
  void* const next = scoped_allocate(300);
  EXPECT_EQ(next, first);
  scoped_free(next);
  scoped_free(kept);
}

TEST_F(ArenaFree, every_order_of_frees_brings_the_window_back_to_the_beginning) {
  const Scope scope;
  unsigned order[5] = {0, 1, 2, 3, 4};
  void* const base = scoped_allocate(48);
  scoped_free(base);
  do {
    std::vector<unsigned char*> objects = fill_many(5, 100);
    ASSERT_EQ(objects.front(), base);
    for (const unsigned i : order)
      scoped_free(objects[i]);
    settle();
    ASSERT_EQ(heap::validate().what, nullptr);
  } while (std::next_permutation(order, order + 5));
}

// The first and the last of many stay; what was freed between them is one hole, and serves the next objects.
TEST_F(ArenaFree, holes_between_survivors_are_joined_and_used_again) {
  const auto pinned = std::exchange(options.arena_pinned, 0);  // holes are used before fresh chunks
  const Scope scope;
  std::vector<unsigned char*> objects = fill_many(20'000, 64);  // many chunks
  for (size_t i = 0; i < objects.size(); ++i)
    if (i % 400 != 0) scoped_free(objects[i]);
  settle();
  test::expect_valid();
  const size_t chunks = test::chunks_in_use();
  std::vector<unsigned char*> fresh = fill_many(18'000, 60);
  EXPECT_LE(test::chunks_in_use(), chunks + 3);
  for (unsigned char* const object : fresh)
    scoped_free(object);
  // Larger ones than any that was freed: only joined holes hold them.
  std::vector<unsigned char*> larger = fill_many(100, 8000);
  EXPECT_LE(test::chunks_in_use(), chunks + 5);
  for (unsigned char* const object : larger)
    scoped_free(object);
  for (size_t i = 0; i < objects.size(); i += 400) {
    ASSERT_TRUE(test::all_bytes(objects[i], 64, static_cast<unsigned char>(i)));
    scoped_free(objects[i]);
  }
  options.arena_pinned = pinned;
}

TEST_F(ArenaFree, a_hole_may_be_filled_to_its_last_byte) {
  const auto pinned = std::exchange(options.arena_pinned, 0);
  test::on_another_thread([] {
    const Scope scope;
    constexpr size_t size = 1000;
    constexpr size_t per_chunk = arena::chunk_capacity / arena::total_for(size);
    std::vector<unsigned char*> objects = fill_many(2 * per_chunk, size);
    for (size_t i = 10; i < 40; ++i)
      scoped_free(objects[i]);
    for (size_t i = 10; i < 40; ++i) {
      objects[i] = filled(size, static_cast<unsigned char>(i));
      EXPECT_EQ(test::chunk_of(objects[i]), test::chunk_of(objects[0]));
      test::expect_valid();
    }
    for (size_t i = 0; i < objects.size(); ++i) {
      EXPECT_TRUE(test::all_bytes(objects[i], size, static_cast<unsigned char>(i)));
      scoped_free(objects[i]);
    }
  });
  options.arena_pinned = pinned;
}

// Holes of which none holds the next object alone, in the chunk of the window.
TEST_F(ArenaFree, freed_neighbours_of_the_current_chunk_are_one_hole) {
  const Scope scope;
  std::vector<unsigned char*> objects = fill_many(600, 80);  // within one chunk
  for (size_t i = 100; i < 500; ++i)
    scoped_free(objects[i]);
  settle();
  const uint64_t opened = test::arena_figures().chunks_opened;
  std::vector<unsigned char*> large = fill_many(4, 10'000);
  // What is left of this chunk cannot hold the four. Whether the holes serve now or later, no memory is lost.
  EXPECT_LE(test::arena_figures().chunks_opened, opened + 1);
  for (unsigned char* const object : large)
    scoped_free(object);
  for (size_t i = 0; i < 600; ++i) {
    if (i >= 100 && i < 500) continue;
    ASSERT_TRUE(test::all_bytes(objects[i], 80, static_cast<unsigned char>(i)));
    scoped_free(objects[i]);
  }
}

// A queue runs forward through memory; its chunks come around.
TEST_F(ArenaFree, first_in_first_out_uses_no_more_chunks_than_the_objects_need) {
  const Scope scope;
  constexpr size_t length = 5000;
  std::vector<unsigned char*> ring = fill_many(length, 100);
  const size_t before = test::chunks_in_use();
  size_t most = 0;
  for (size_t i = 0; i < 40 * length; ++i) {
    unsigned char*& slot = ring[i % length];
    ASSERT_TRUE(test::all_bytes(slot, 100, slot[0]));
    scoped_free(slot);
    slot = filled(100, static_cast<unsigned char>(i * 7));
    if (i % 1000 == 0) most = std::max(most, test::chunks_in_use());
  }
  EXPECT_LE(most, before + before / 2 + 8);
  for (unsigned char* const object : ring)
    scoped_free(object);
}

TEST_F(ArenaFree, reverse_order_over_many_chunks_uses_them_again_in_reverse) {
  const Scope scope;
  std::vector<unsigned char*> objects = fill_many(10'000, 100);
  const size_t chunks = test::chunks_in_use();
  const uint64_t opened = test::arena_figures().chunks_opened;
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 5000; ++i) {
      scoped_free(objects.back());
      objects.pop_back();
    }
    for (int i = 0; i < 5000; ++i)
      objects.push_back(filled(100, static_cast<unsigned char>(objects.size())));
  }
  EXPECT_LE(test::chunks_in_use(), chunks + 4);
  EXPECT_LE(test::arena_figures().chunks_opened - opened, 10 * chunks);
  for (size_t i = 0; i < objects.size(); ++i)
    ASSERT_TRUE(test::all_bytes(objects[i], 100, static_cast<unsigned char>(i)));
  while (!objects.empty()) {
    scoped_free(objects.back());
    objects.pop_back();
  }
}

// A recursion that goes down and up by a chunk's length: the stack is popped where its objects were pushed.
TEST_F(ArenaFree, a_stack_that_crosses_the_end_of_a_chunk_finds_its_places_again) {
  const Scope scope;
  std::vector<unsigned char*> base = fill_many(1000, 100);
  std::vector<unsigned char*> first = fill_many(1000, 100);
  const std::vector<unsigned char*> places = first;
  for (int round = 0; round < 3; ++round) {
    while (!first.empty()) {
      scoped_free(first.back());
      first.pop_back();
    }
    first = fill_many(1000, 100);
  }
  size_t same = 0;
  for (size_t i = 0; i < places.size(); ++i)
    same += first[i] == places[i] ? 1 : 0;
  EXPECT_GE(same, places.size() / 2) << "the window does not go back to the chunk before";
  for (unsigned char* const object : first)
    scoped_free(object);
  for (unsigned char* const object : base)
    scoped_free(object);
}

TEST_F(ArenaFree, random_frees_in_any_pattern_keep_every_object_whole) {
  test::Random random(11);
  const Scope scope;
  std::vector<test::Block> live;
  for (int i = 0; i < 200'000; ++i) {
    if (live.empty() || random.chance(live.size() > 4000 ? 40 : 55)) {
      const size_t size = random.chance(3) ? random.below(arena::most_bytes + 1) : random.below(300);
      test::Block block{static_cast<unsigned char*>(scoped_allocate(size)), size,
                        static_cast<unsigned char>(random.next())};
      test::fill(block);
      live.push_back(block);
      continue;
    }
    const size_t at = random.chance(50) ? live.size() - 1 : random.below(live.size());
    ASSERT_TRUE(test::intact(live[at]));
    scoped_free(live[at].data);
    live[at] = live.back();
    live.pop_back();
    if (i % 20'000 == 0) {
      const char* const wrong = heap::validate().what;
      ASSERT_EQ(wrong, nullptr) << wrong;
    }
  }
  for (const test::Block& block : live) {
    ASSERT_TRUE(test::intact(block));
    scoped_free(block.data);
  }
}

TEST_F(ArenaFree, null_is_allowed) {
  const Scope scope;
  scoped_free(nullptr);
}

}  // namespace
