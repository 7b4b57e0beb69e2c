// What a program does wrong with objects of scopes stops it with one line: double frees in every order, frees inside an
// object, and, in checked builds, bytes written before an object.
#include "arena/arena.hpp"

#include "arena_calls.hpp"

namespace {

using namespace sluice;
using test::filled;
using test::Scope;
using test::scoped_free;

// A mistake is found when the next object is placed, if not before.
void free_and_go_on(void* block) {
  scoped_free(block);
  (void)test::scoped_allocate(8);
}
void free_elsewhere(void* block) {
  test::on_another_thread([block] { free_and_go_on(block); });
}
// Frees, and what was freed before it, are done with.
void free_now(void* block) {
  scoped_free(block);
  test::settle();
}

constexpr const char* twice = "sluice: object of a scope: freed twice at 0x[0-9a-f]+; the heap is damaged";
constexpr const char* nowhere = "sluice: object of a scope: freed at an address where none begins at 0x";

TEST(ArenaMisuseDeathTest, an_object_that_was_popped_is_not_freed_again) {
  const Scope scope;
  void* const below = filled(100, 1);
  void* const object = filled(100, 2);
  scoped_free(object);
  EXPECT_DEATH(free_and_go_on(object), twice);
  scoped_free(below);
  EXPECT_DEATH(free_and_go_on(below), twice);
  EXPECT_DEATH(free_and_go_on(object), twice);
}

TEST(ArenaMisuseDeathTest, an_object_freed_out_of_order_is_not_freed_again) {
  const Scope scope;
  void* const object = filled(100, 1);
  void* const above = filled(100, 2);
  scoped_free(object);
  EXPECT_DEATH(free_and_go_on(object), twice);
  scoped_free(above);
  EXPECT_DEATH(free_and_go_on(object), twice);
}

TEST(ArenaMisuseDeathTest, an_object_that_another_thread_freed_is_not_freed_again) {
  const Scope scope;
  void* const object = filled(100, 1);
  void* const above = filled(100, 2);
  test::on_another_thread([object] { scoped_free(object); });
  EXPECT_DEATH(free_and_go_on(object), twice);
  EXPECT_DEATH(free_elsewhere(object), twice);
  scoped_free(above);
}

TEST(ArenaMisuseDeathTest, an_object_that_its_thread_freed_is_not_freed_by_another) {
  const Scope scope;
  void* const object = filled(100, 1);
  void* const above = filled(100, 2);
  scoped_free(object);
  EXPECT_DEATH((free_elsewhere(object), free_and_go_on(above)), twice);
  free_now(above);
  EXPECT_DEATH(free_elsewhere(object), twice);
}

TEST(ArenaMisuseDeathTest, objects_of_a_chunk_that_began_anew_are_not_freed_again) {
  const Scope scope;
  std::vector<void*> objects;
  for (int i = 0; i < 20; ++i)
    objects.push_back(filled(200, 3));
  for (void* const object : objects)
    scoped_free(object);
  EXPECT_DEATH(free_and_go_on(objects[0]), twice);
  EXPECT_DEATH(free_and_go_on(objects[10]), twice);
  EXPECT_DEATH(free_and_go_on(objects.back()), twice);
}

TEST(ArenaMisuseDeathTest, objects_of_a_chunk_that_is_not_current_are_not_freed_again) {
  const Scope scope;
  std::vector<void*> objects;
  for (int i = 0; i < 1000; ++i)
    objects.push_back(filled(200, 3));
  scoped_free(objects[5]);
  scoped_free(objects[7]);
  EXPECT_DEATH(free_and_go_on(objects[5]), twice);
  EXPECT_DEATH(free_and_go_on(objects[7]), twice);
}

TEST(ArenaMisuseDeathTest, objects_of_a_thread_that_has_ended_are_not_freed_again) {
  void* object = nullptr;
  void* kept = nullptr;
  test::on_another_thread([&] {
    const Scope scope;
    object = filled(100, 1);
    kept = filled(100, 2);
  });
  scoped_free(object);
  EXPECT_DEATH(free_and_go_on(object), twice);
  scoped_free(kept);
}

TEST(ArenaMisuseDeathTest, an_object_that_was_freed_is_not_resized) {
  const Scope scope;
  void* const object = filled(100, 1);
  void* const above = filled(100, 2);
  scoped_free(object);
  EXPECT_DEATH((void)arena::reallocate(object, 50), twice);
  scoped_free(above);
  EXPECT_DEATH((void)arena::reallocate(above, 200), twice);
}

TEST(ArenaMisuseDeathTest, a_free_inside_an_object_is_found) {
  const Scope scope;
  unsigned char* const object = filled(200, 0);
  unsigned char* const above = filled(200, 0);
  EXPECT_DEATH(free_and_go_on(object + 16), nowhere);
  EXPECT_DEATH(free_and_go_on(object + 1), nowhere);
  EXPECT_DEATH(free_and_go_on(object + 8), nowhere);
  EXPECT_DEATH(free_and_go_on(above + 64), nowhere);
  EXPECT_DEATH((void)arena::reallocate(object + 16, 300), nowhere);
  EXPECT_EQ(arena::usable_size(object + 16), 0u);
}

TEST(ArenaMisuseDeathTest, a_free_of_a_place_in_the_chunk_that_no_object_has_reached_is_found) {
  const Scope scope;
  unsigned char* const object = filled(200, 0);
  EXPECT_DEATH(free_and_go_on(object + 4096), "object of a scope: freed");
}

TEST(ArenaMisuseDeathTest, bytes_written_before_an_object_are_found_in_checked_builds) {
  if (!checked) GTEST_SKIP() << "not a checked build";
  const Scope scope;
  unsigned char* const object = filled(24, 0);
  unsigned char* const next = filled(100, 0);
  unsigned char* const last = filled(100, 0);
  next[-1] = static_cast<unsigned char>(next[-1] ^ 1);
  EXPECT_DEATH(free_and_go_on(next), "sluice: object of a scope: the bytes before it were overwritten at 0x");
  EXPECT_DEATH((void)arena::reallocate(next, 10), "sluice: object of a scope: the bytes before it were overwritten");
  EXPECT_DEATH(free_elsewhere(next), "sluice: object of a scope: the bytes before it were overwritten");
  next[-1] = static_cast<unsigned char>(next[-1] ^ 1);
  last[-4] = static_cast<unsigned char>(last[-4] ^ 0x80);
  EXPECT_DEATH(free_and_go_on(last), "sluice: object of a scope: the bytes before it were overwritten");
  scoped_free(object);
}

// A string that runs over writes its zero, and more, into the header behind it.
TEST(ArenaMisuseDeathTest, an_object_that_runs_over_is_found_when_the_next_one_is_freed) {
  const Scope scope;
  unsigned char* const object = filled(24, 0);
  unsigned char* const next = filled(100, 0);
  void* const last = filled(100, 0);
  std::memset(object + arena::usable_size(object), 0, 8);
  EXPECT_DEATH(free_and_go_on(next), "sluice: object of a scope: ");
  (void)last;
}

TEST(ArenaMisuse, usable_size_of_what_is_no_live_object_is_0) {
  const Scope scope;
  void* const object = filled(100, 1);
  void* const above = filled(100, 2);
  EXPECT_EQ(arena::usable_size(object), 104u);
  free_now(object);
  EXPECT_EQ(arena::usable_size(object), 0u);
  free_now(above);
  EXPECT_EQ(arena::usable_size(above), 0u);
}

// Class bytes, descriptors and bitmaps lie in the window too.
TEST(ArenaMisuse, a_free_of_an_address_in_the_heaps_own_tables_is_taken_for_foreign) {
  { const Scope scope; }
  const uint64_t before = counters::totals.foreign.frees.load();
  scoped_free(region_base + 64);
  test::on_another_thread([] { scoped_free(region_base + 64); });
  EXPECT_EQ(counters::totals.foreign.frees.load(), before + 2);
}

}  // namespace
