// realloc of objects: the last one grows and shrinks in place, others give back what they no longer need or move, and
// what becomes larger than 16 KiB moves to the heap. The contents stay.
#include "arena/arena.hpp"

#include "arena_calls.hpp"
#include "random_blocks.hpp"

namespace {

using namespace sluice;
using test::all_bytes;
using test::filled;
using test::in_chunk;
using test::Scope;
using test::scoped_allocate;
using test::scoped_free;

unsigned char* resize(void* block, size_t size) {
  return static_cast<unsigned char*>(arena::reallocate(block, size));
}

class ArenaResize : public testing::Test {
 protected:
  void TearDown() override { test::expect_valid(); }
};

TEST_F(ArenaResize, the_last_object_grows_and_shrinks_where_it_is) {
  const Scope scope;
  unsigned char* const block = filled(10, 7);
  for (size_t size = 11; size < 12'000; size += 97) {
    ASSERT_EQ(resize(block, size), block);
    ASSERT_GE(arena::usable_size(block), size);
    ASSERT_TRUE(all_bytes(block, 10, 7));
    std::memset(block, 7, size);
  }
  std::memset(block, 7, arena::usable_size(block));
  for (size_t size = 11'900; size > 10; size = size * 2 / 3) {
    ASSERT_EQ(resize(block, size), block);
    ASSERT_TRUE(all_bytes(block, size, 7));
    ASSERT_LT(arena::usable_size(block), size + 16);
  }
  unsigned char* const behind = filled(24, 8);
  EXPECT_EQ(behind, block + arena::usable_size(block) + arena::header_size) << "what it no longer needs is lost";
  scoped_free(behind);
  scoped_free(block);
}

TEST_F(ArenaResize, after_a_pop_the_object_below_is_the_last_one) {
  const Scope scope;
  unsigned char* const block = filled(100, 1);
  unsigned char* const above = filled(100, 2);
  scoped_free(above);
  EXPECT_EQ(resize(block, 5000), block);
  EXPECT_TRUE(all_bytes(block, 100, 1));
  scoped_free(block);
}

TEST_F(ArenaResize, an_object_in_the_middle_moves_when_it_grows) {
  const Scope scope;
  unsigned char* const block = filled(100, 1);
  unsigned char* const above = filled(100, 2);
  unsigned char* const moved = resize(block, 3000);
  EXPECT_NE(moved, block);
  EXPECT_TRUE(in_chunk(moved));
  EXPECT_TRUE(all_bytes(moved, 100, 1));
  EXPECT_TRUE(all_bytes(above, 100, 2));
  EXPECT_GE(arena::usable_size(moved), 3000u);
  scoped_free(above);
  scoped_free(moved);
}

TEST_F(ArenaResize, an_object_in_the_middle_gives_back_what_it_no_longer_needs) {
  const Scope scope;
  void* const below = filled(16, 0);
  unsigned char* const block = filled(10'000, 1);
  unsigned char* const above = filled(100, 2);
  EXPECT_EQ(resize(block, 100), block);
  EXPECT_LT(arena::usable_size(block), 200u);
  EXPECT_TRUE(all_bytes(block, 100, 1));
  test::expect_valid();
  scoped_free(above);
  unsigned char* const next = filled(9000, 3);
  EXPECT_EQ(next, block + arena::usable_size(block) + arena::header_size);
  EXPECT_TRUE(all_bytes(block, 100, 1));
  scoped_free(next);
  scoped_free(block);
  scoped_free(below);
}

TEST_F(ArenaResize, objects_shrink_in_any_place_of_a_chunk_and_in_any_chunk) {
  const Scope scope;
  std::vector<unsigned char*> objects;
  for (int i = 0; i < 500; ++i)
    objects.push_back(filled(900, static_cast<unsigned char>(i)));
  for (size_t i = 0; i < objects.size(); i += 3)
    ASSERT_EQ(resize(objects[i], 20), objects[i]);
  test::expect_valid();
  for (size_t i = 0; i < objects.size(); ++i) {
    ASSERT_TRUE(all_bytes(objects[i], i % 3 == 0 ? 20 : 900, static_cast<unsigned char>(i)));
    scoped_free(objects[i]);
  }
}

// The last object of a chunk ends where the chunk does.
TEST_F(ArenaResize, the_object_at_the_very_end_of_a_chunk_shrinks_and_is_freed) {
  const Scope scope;
  std::vector<unsigned char*> objects;
  // Four of these fill a chunk to its last byte.
  static_assert(arena::chunk_capacity == 65'520);
  for (int i = 0; i < 16; ++i)
    objects.push_back(filled(16'380 - arena::header_size - 4, static_cast<unsigned char>(i)));
  for (unsigned char*& object : objects)
    ASSERT_EQ(resize(object, 100), object);
  test::expect_valid();
  for (size_t i = 0; i < objects.size(); ++i) {
    ASSERT_TRUE(all_bytes(objects[i], 100, static_cast<unsigned char>(i)));
    scoped_free(objects[i]);
  }
}

TEST_F(ArenaResize, growing_beyond_16_kib_moves_to_the_heap_and_keeps_the_contents) {
  const Scope scope;
  for (const size_t size : {arena::most_bytes + min_alignment, size_t{100'000}, size_t{5} << 20}) {
    unsigned char* block = filled(arena::most_bytes, 9);
    EXPECT_TRUE(in_chunk(block));
    block = resize(block, size);
    EXPECT_FALSE(in_chunk(block));
    EXPECT_TRUE(all_bytes(block, arena::most_bytes, 9));
    EXPECT_GE(arena::usable_size(block), size);
    block = resize(block, 1000);
    EXPECT_TRUE(all_bytes(block, 1000, 9));
    scoped_free(block);
  }
}

TEST_F(ArenaResize, a_string_built_by_realloc_grows_in_place_until_its_chunk_ends) {
  const Scope scope;
  int moves = 0;
  unsigned char* text = filled(1, 'a');
  for (size_t length = 2; length <= arena::most_bytes; ++length) {
    unsigned char* const grown = resize(text, length);
    if (grown != text) ++moves;
    text = grown;
    text[length - 1] = 'a';
  }
  EXPECT_LE(moves, 1);
  EXPECT_TRUE(all_bytes(text, arena::most_bytes, 'a'));
  scoped_free(text);
}

TEST_F(ArenaResize, an_object_that_does_not_fit_its_chunk_any_more_moves_to_the_next) {
  const Scope scope;
  std::vector<unsigned char*> fillers;
  for (int i = 0; i < 20; ++i) {
    fillers.push_back(filled(15'000, static_cast<unsigned char>(i)));
    unsigned char* block = filled(8, 0xab);
    block = resize(block, 14'000);
    EXPECT_TRUE(all_bytes(block, 8, 0xab));
    scoped_free(block);
  }
  for (size_t i = 0; i < fillers.size(); ++i) {
    EXPECT_TRUE(all_bytes(fillers[i], 15'000, static_cast<unsigned char>(i)));
    scoped_free(fillers[i]);
  }
}

TEST_F(ArenaResize, objects_are_resized_after_their_scope_and_by_other_threads) {
  unsigned char* first;
  unsigned char* second;
  {
    const Scope scope;
    first = filled(100, 1);
    second = filled(100, 2);
  }
  first = resize(first, 300);
  EXPECT_TRUE(all_bytes(first, 100, 1));
  test::on_another_thread([&] {
    second = resize(second, 90);
    EXPECT_TRUE(all_bytes(second, 90, 2));
    second = resize(second, 5000);
    EXPECT_TRUE(all_bytes(second, 90, 2));
    second = resize(second, 10);
    EXPECT_TRUE(all_bytes(second, 10, 2));
  });
  scoped_free(first);
  scoped_free(second);
}

TEST_F(ArenaResize, a_block_of_the_heap_is_resized_inside_a_scope) {
  auto* block = filled(100, 4);
  void* const small = filled(40, 5);
  {
    const Scope scope;
    for (const size_t size : {300u, 20u, 30'000u, 200'000u, 500u, 1u}) {
      block = resize(block, size);
      ASSERT_NE(block, nullptr);
      EXPECT_TRUE(all_bytes(block, std::min<size_t>(size, 1), 4));
    }
    EXPECT_EQ(resize(small, 45), small) << "what fits stays";
  }
  scoped_free(block);
  scoped_free(small);
}

TEST_F(ArenaResize, what_cannot_be_had_leaves_the_object_as_it_is) {
  const Scope scope;
  unsigned char* const block = filled(100, 3);
  errno = 0;
  EXPECT_EQ(resize(block, SIZE_MAX), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(resize(block, PTRDIFF_MAX), nullptr);
  EXPECT_TRUE(all_bytes(block, 100, 3));
  scoped_free(block);
}

TEST_F(ArenaResize, random_sizes_keep_the_contents) {
  test::Random random(5);
  const Scope scope;
  std::vector<test::Block> blocks(60);
  for (int i = 0; i < 100'000; ++i) {
    test::Block& block = blocks[random.below(blocks.size())];
    const size_t size = random.chance(4) ? 1 + random.below(40'000) : 1 + random.below(600);
    ASSERT_TRUE(test::intact(block));
    test::Block old = block;
    old.data = resize(block.data, size);
    ASSERT_TRUE(test::intact_after_resize(old, size));
    block = {old.data, size, static_cast<unsigned char>(random.next())};
    test::fill(block);
    if (i % 10'000 == 0) test::expect_valid();
  }
  for (const test::Block& block : blocks)
    scoped_free(block.data);
}

}  // namespace
