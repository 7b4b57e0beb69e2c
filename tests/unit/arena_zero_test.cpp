// calloc in a scope gives zeroes: in a fresh chunk, where it clears nothing, and wherever objects were before.
#include "arena/arena.hpp"

#include "arena_calls.hpp"

namespace {

using namespace sluice;
using test::all_bytes;
using test::filled;
using test::Scope;
using test::scoped_free;

unsigned char* zeroed(size_t size) {
  auto* const block = static_cast<unsigned char*>(arena::allocate_zeroed(1, size));
  EXPECT_TRUE(test::in_chunk(block));
  return block;
}

// The object is zero as far as it may be used; afterwards it is not.
void expect_zero(unsigned char* block, size_t size) {
  ASSERT_NE(block, nullptr);
  const size_t usable = arena::usable_size(block);
  EXPECT_GE(usable, size);
  EXPECT_TRUE(all_bytes(block, usable, 0)) << size;
  std::memset(block, 0xcc, usable);
}

TEST(ArenaZero, objects_of_fresh_chunks_are_zero) {
  const Scope scope;
  for (int i = 0; i < 2000; ++i)
    expect_zero(zeroed(300), 300);
}

TEST(ArenaZero, objects_where_others_were_popped_are_zero) {
  const Scope scope;
  void* const below = filled(16, 1);
  for (size_t size = 1; size <= arena::most_bytes; size = size * 3 / 2 + 1) {
    scoped_free(filled(size, 0xff));
    unsigned char* const block = zeroed(size);
    expect_zero(block, size);
    scoped_free(block);
  }
  scoped_free(below);
}

TEST(ArenaZero, an_object_that_reaches_beyond_what_was_used_is_zero) {
  const Scope scope;
  void* const below = filled(16, 1);
  scoped_free(filled(100, 0xff));
  unsigned char* const larger = zeroed(5000);
  expect_zero(larger, 5000);
  scoped_free(larger);
  unsigned char* const again = zeroed(5001);
  expect_zero(again, 5001);
  scoped_free(again);
  scoped_free(below);
}

TEST(ArenaZero, objects_where_several_were_freed_in_any_order_are_zero) {
  const Scope scope;
  for (int round = 0; round < 50; ++round) {
    void* const below = filled(16, 1);
    void* const first = filled(200, 0xff);
    void* const second = filled(300, 0xff);
    void* const third = filled(400, 0xff);
    if (round % 2 == 0) {
      scoped_free(first);
      scoped_free(second);
      scoped_free(third);
    } else {
      scoped_free(third);
      scoped_free(first);
      scoped_free(second);
    }
    unsigned char* const block = zeroed(1000);
    expect_zero(block, 1000);
    scoped_free(block);
    scoped_free(below);
  }
}

TEST(ArenaZero, an_object_over_one_that_grew_and_shrank_in_place_is_zero) {
  const Scope scope;
  void* const below = filled(16, 1);
  auto* block = filled(64, 0xff);
  block = static_cast<unsigned char*>(arena::reallocate(block, 8000));
  std::memset(block, 0xff, 8000);
  block = static_cast<unsigned char*>(arena::reallocate(block, 32));
  unsigned char* const behind = zeroed(7000);
  expect_zero(behind, 7000);
  scoped_free(behind);
  scoped_free(block);
  unsigned char* const again = zeroed(16'000);
  expect_zero(again, 16'000);
  scoped_free(again);
  scoped_free(below);
}

TEST(ArenaZero, objects_behind_a_gap_of_alignment_are_zero) {
  const Scope scope;
  for (int round = 0; round < 20; ++round) {
    void* const aligned = arena::allocate_aligned(4096, 100);
    std::memset(aligned, 0xff, 100);
    unsigned char* const block = zeroed(500);
    expect_zero(block, 500);
    scoped_free(aligned);
    scoped_free(block);
  }
}

TEST(ArenaZero, objects_in_holes_between_survivors_are_zero) {
  const Scope scope;
  std::vector<void*> objects;
  for (int i = 0; i < 20'000; ++i)
    objects.push_back(filled(64, 0xff));
  for (size_t i = 0; i < objects.size(); ++i)
    if (i % 50 != 0) scoped_free(objects[i]);
  const Scope another;  // the first has taken too many chunks to take holes
  std::vector<unsigned char*> blocks;
  for (int i = 0; i < 3000; ++i) {
    blocks.push_back(zeroed(200));
    expect_zero(blocks.back(), 200);
  }
  for (unsigned char* const block : blocks)
    scoped_free(block);
  for (size_t i = 0; i < objects.size(); i += 50)
    scoped_free(objects[i]);
}

TEST(ArenaZero, objects_of_chunks_used_before_are_zero) {
  for (int round = 0; round < 5; ++round) {
    const Scope scope;
    std::vector<void*> objects;
    for (int i = 0; i < 5000; ++i)
      objects.push_back(filled(100, 0xff));
    for (void* const object : objects)
      scoped_free(object);
    objects.clear();
    const Scope another;  // the first has taken too many chunks for one in which most are empty again
    for (int i = 0; i < 5000; ++i) {
      unsigned char* const block = zeroed(100);
      expect_zero(block, 100);
      objects.push_back(block);
    }
    while (!objects.empty()) {
      scoped_free(objects.back());
      objects.pop_back();
    }
  }
}

// The next thread gets the chunks of one that has ended.
TEST(ArenaZero, objects_of_a_later_thread_are_zero) {
  for (int round = 0; round < 5; ++round) {
    test::on_another_thread([] {
      const Scope scope;
      for (int i = 0; i < 1000; ++i)
        scoped_free(filled(1000, 0xff));
      for (int i = 0; i < 200; ++i) {
        unsigned char* const block = zeroed(1000);
        expect_zero(block, 1000);
        if (i % 2 == 0) scoped_free(block);
      }
    });
  }
}

TEST(ArenaZero, an_overflow_of_count_times_size_gives_null) {
  const Scope scope;
  EXPECT_EQ(arena::allocate_zeroed(SIZE_MAX, 2), nullptr);
  EXPECT_EQ(arena::allocate_zeroed(size_t{1} << 33, size_t{1} << 33), nullptr);
  void* const none = arena::allocate_zeroed(0, 100);
  EXPECT_NE(none, nullptr);
  scoped_free(none);
}

}  // namespace
