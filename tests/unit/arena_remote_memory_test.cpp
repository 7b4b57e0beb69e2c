// What other threads free goes back while the owner lives: it looks for it in passing.
#include "arena/arena.hpp"

#include "arena_calls.hpp"
#include "base/options.hpp"

namespace {

using namespace sluice;
using test::chunks_in_use;
using test::filled;
using test::Scope;
using test::scoped_free;

constexpr int many = 60'000;  // objects of 100 bytes: a hundred chunks

// Runs the owner: places objects, lets another thread free those for which `freed` is true, then calls `goes_on`.
template <typename Freed, typename GoesOn>
void with_objects_freed_elsewhere(Freed freed, GoesOn goes_on) {
  test::on_another_thread([&] {
    std::vector<void*> objects, rest;
    {
      const Scope scope;
      for (int i = 0; i < many; ++i)
        objects.push_back(filled(100, 1));
    }
    test::on_another_thread([&] {
      for (size_t i = 0; i < objects.size(); ++i) {
        if (freed(i))
          scoped_free(objects[i]);
        else
          rest.push_back(objects[i]);
      }
    });
    goes_on();
    test::expect_valid();
    for (void* const object : rest) {
      EXPECT_TRUE(test::all_bytes(object, 100, 1));
      scoped_free(object);
    }
  });
}

size_t chunks_that_may_stay(size_t before) {
  return before + options.arena_hot / unit_size + 2;
}

void open_scopes(int count) {
  for (int i = 0; i < count; ++i)
    const Scope scope;
}

TEST(ArenaRemoteMemory, goes_back_while_scopes_are_opened) {
  const size_t before = chunks_in_use();
  with_objects_freed_elsewhere([](size_t) { return true; },
                               [before] {
                                 EXPECT_GT(chunks_in_use(), before + 80);
                                 open_scopes(200);
                                 EXPECT_LE(chunks_in_use(), chunks_that_may_stay(before));
                               });
}

TEST(ArenaRemoteMemory, goes_back_while_the_thread_allocates_without_scopes) {
  const size_t before = chunks_in_use();
  with_objects_freed_elsewhere([](size_t) { return true; },
                               [before] {
                                 std::vector<void*> blocks;
                                 for (int round = 0; round < 200; ++round) {
                                   for (int i = 0; i < 2000; ++i)
                                     blocks.push_back(test::scoped_allocate(300));
                                   for (void* const block : blocks)
                                     scoped_free(block);
                                   blocks.clear();
                                 }
                                 EXPECT_LE(chunks_in_use(), chunks_that_may_stay(before));
                               });
}

TEST(ArenaRemoteMemory, goes_back_when_the_owner_trims) {
  const size_t before = chunks_in_use();
  with_objects_freed_elsewhere([](size_t) { return true; },
                               [before] {
                                 (void)heap::trim(0);
                                 EXPECT_LE(chunks_in_use(), before + 2);
                               });
}

TEST(ArenaRemoteMemory, of_chunks_with_survivors_is_used_again) {
  const size_t before = chunks_in_use();
  with_objects_freed_elsewhere([](size_t i) { return i % 100 != 0; },
                               [before] {
                                 const size_t full = chunks_in_use();
                                 EXPECT_GT(full, before + 80);
                                 open_scopes(200);
                                 const uint64_t opened = test::arena_figures().chunks_opened;
                                 std::vector<void*> more;
                                 const Scope scope;
                                 for (int i = 0; i < many / 2; ++i)
                                   more.push_back(filled(100, 2));
                                 // Without holes it would be 51; part of the budget may stay unused.
                                 EXPECT_LE(test::arena_figures().chunks_opened, opened + 35);
                                 for (void* const object : more)
                                   scoped_free(object);
                               });
}

}  // namespace
