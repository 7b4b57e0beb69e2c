// Objects outlive their scope: they are freed and resized later, on other threads, after the end of the thread that
// placed them, and in the children of a fork. Chunks of ended threads serve the next thread or go back.
#include "arena/arena.hpp"

#include <atomic>

#include "arena_calls.hpp"
#include "base/options.hpp"
#include "in_child.hpp"

namespace {

using namespace sluice;
using test::all_bytes;
using test::chunks_in_use;
using test::filled;
using test::Scope;
using test::scoped_free;

std::vector<unsigned char*> fill_many(size_t count, size_t size) {
  std::vector<unsigned char*> objects;
  for (size_t i = 0; i < count; ++i)
    objects.push_back(filled(size, static_cast<unsigned char>(i)));
  return objects;
}
bool all_whole(const std::vector<unsigned char*>& objects, size_t size) {
  for (size_t i = 0; i < objects.size(); ++i)
    if (!all_bytes(objects[i], size, static_cast<unsigned char>(i))) return false;
  return true;
}
void free_all(const std::vector<unsigned char*>& objects) {
  for (unsigned char* const object : objects)
    scoped_free(object);
}

class ArenaEscape : public testing::Test {
 protected:
  void TearDown() override {
    test::expect_valid();
    cache::flush_idle();
    test::expect_valid();
  }
};

TEST_F(ArenaEscape, objects_reached_through_globals_live_on_after_the_scope) {
  static std::vector<unsigned char*> global;
  {
    const Scope scope;
    global = fill_many(3000, 100);
  }
  for (int i = 0; i < 3; ++i) {
    const Scope scope;
    free_all(fill_many(5000, 64));
  }
  EXPECT_TRUE(all_whole(global, 100));
  free_all(global);
}

TEST_F(ArenaEscape, objects_are_freed_by_another_thread_while_their_scope_is_open) {
  const Scope scope;
  for (int round = 0; round < 20; ++round) {
    const std::vector<unsigned char*> objects = fill_many(2000, 100);
    test::on_another_thread([&objects] {
      EXPECT_TRUE(all_whole(objects, 100));
      free_all(objects);
    });
  }
  EXPECT_LE(chunks_in_use(), 20u) << "chunks that other threads emptied are not used again";
}

TEST_F(ArenaEscape, objects_freed_by_another_thread_are_joined_with_those_freed_here) {
  const auto pinned = std::exchange(options.arena_pinned, 0);  // holes are used before fresh chunks
  test::on_another_thread([] {
    const Scope scope;
    const std::vector<unsigned char*> objects = fill_many(10'000, 100);
    test::on_another_thread([&objects] {
      for (size_t i = 0; i < objects.size(); i += 2)
        scoped_free(objects[i]);
    });
    for (size_t i = 1; i < objects.size(); i += 2)
      scoped_free(objects[i]);
    const size_t before = chunks_in_use();
    const std::vector<unsigned char*> large = fill_many(60, 15'000);
    EXPECT_LE(chunks_in_use(), before + 1);
    EXPECT_TRUE(all_whole(large, 15'000));
    free_all(large);
  });
  options.arena_pinned = pinned;
}

TEST_F(ArenaEscape, objects_live_on_after_their_thread) {
  std::vector<unsigned char*> objects;
  test::on_another_thread([&objects] {
    const Scope scope;
    objects = fill_many(3000, 100);
  });
  for (int i = 0; i < 3; ++i) {
    test::on_another_thread([] {
      const Scope scope;
      free_all(fill_many(3000, 200));
    });
  }
  EXPECT_TRUE(all_whole(objects, 100));
  for (size_t i = 0; i < objects.size(); i += 10) {
    objects[i] = static_cast<unsigned char*>(arena::reallocate(objects[i], 150));
    EXPECT_TRUE(all_bytes(objects[i], 100, static_cast<unsigned char>(i)));
  }
  free_all(objects);
}

TEST_F(ArenaEscape, the_last_free_gives_a_chunk_of_an_ended_thread_back) {
  const size_t before = chunks_in_use();
  std::vector<unsigned char*> objects;
  test::on_another_thread([&objects] {
    const Scope scope;
    objects = fill_many(3000, 100);
  });
  EXPECT_GE(chunks_in_use(), before + 4);
  free_all(objects);
  EXPECT_EQ(chunks_in_use(), before);
}

TEST_F(ArenaEscape, the_last_free_gives_a_chunk_back_whoever_freed_the_others_and_when) {
  const size_t before = chunks_in_use();
  std::vector<unsigned char*> objects;
  test::on_another_thread([&objects] {
    const Scope scope;
    objects = fill_many(3000, 100);
    test::on_another_thread([&objects] {  // while the thread lives
      for (size_t i = 0; i < objects.size(); i += 3)
        scoped_free(objects[i]);
    });
    for (size_t i = 1; i < objects.size(); i += 3)
      scoped_free(objects[i]);
  });
  for (size_t i = 2; i < objects.size(); i += 3)
    scoped_free(objects[i]);
  cache::flush_idle();
  EXPECT_EQ(chunks_in_use(), before);
}

TEST_F(ArenaEscape, a_thread_that_ends_keeps_no_chunk_without_objects) {
  const size_t before = chunks_in_use();
  test::on_another_thread([] {
    const Scope scope;
    free_all(fill_many(3000, 100));
  });
  EXPECT_EQ(chunks_in_use(), before);
}

TEST_F(ArenaEscape, a_thread_that_ends_in_the_middle_of_a_scope_keeps_none_either) {
  const size_t before = chunks_in_use();
  test::on_another_thread([] {
    sluice_scope never_left;
    (void)arena::enter(&never_left, SLUICE_ROUTE);
    free_all(fill_many(3000, 100));
  });
  EXPECT_EQ(chunks_in_use(), before);
}

// Half of each chunk is free; the threads that follow place their objects there.
TEST_F(ArenaEscape, the_next_thread_adopts_the_chunks_of_one_that_has_ended) {
  std::vector<unsigned char*> survivors;
  test::on_another_thread([&survivors] {
    const Scope scope;
    const std::vector<unsigned char*> objects = fill_many(12'000, 100);
    for (size_t i = 0; i < objects.size(); ++i) {
      if (i % 64 == 0)
        survivors.push_back(objects[i]);
      else
        scoped_free(objects[i]);
    }
  });
  const size_t pinned = chunks_in_use();
  size_t most = 0;
  for (int i = 0; i < 10; ++i) {
    test::on_another_thread([&most] {
      const Scope scope;
      const std::vector<unsigned char*> objects = fill_many(6000, 100);
      most = std::max(most, chunks_in_use());
      EXPECT_TRUE(all_whole(objects, 100));
      free_all(objects);
    });
  }
  EXPECT_LE(most, pinned + 12) << "chunks pile up";
  EXPECT_LE(chunks_in_use(), pinned);
  free_all(survivors);
  cache::flush_idle();
  EXPECT_LE(chunks_in_use(), 1u);
}

TEST_F(ArenaEscape, a_chain_of_threads_each_with_a_survivor_keeps_as_many_chunks_as_it_needs) {
  std::vector<unsigned char*> survivors;
  for (unsigned i = 0; i < 300; ++i) {
    test::on_another_thread([&survivors, i] {
      const Scope scope;
      free_all(fill_many(100, 64));
      survivors.push_back(filled(40, static_cast<unsigned char>(i)));
      free_all(fill_many(100, 64));
    });
  }
  EXPECT_TRUE(all_whole(survivors, 40));
  EXPECT_LE(chunks_in_use(), 24u) << "each thread opens a chunk of its own beside those it adopts";
  free_all(survivors);
}

TEST_F(ArenaEscape, a_thread_without_a_cache_frees_objects_of_living_and_ended_threads) {
  const Scope scope;
  std::vector<unsigned char*> ended;
  test::on_another_thread([&ended] {
    const Scope own;
    ended = fill_many(500, 100);
  });
  const std::vector<unsigned char*> living = fill_many(500, 100);
  ASSERT_TRUE(std::all_of(living.begin(), living.end(), test::in_chunk));
  ASSERT_TRUE(std::all_of(ended.begin(), ended.end(), test::in_chunk));
  test::on_another_thread([&] {
    free_all(ended);
    free_all(living);
    EXPECT_FALSE(thread_cache->attached) << "a free alone needs no cache";
  });
}

TEST_F(ArenaEscape, an_object_is_freed_by_a_thread_that_is_past_its_end) {
  struct Late {
    unsigned char* object;
    ~Late() { scoped_free(object); }
  };
  test::on_another_thread([] {
    static thread_local Late late{nullptr};
    const Scope scope;
    late.object = filled(100, 1);
    EXPECT_TRUE(test::in_chunk(late.object));
  });
}

TEST_F(ArenaEscape, a_child_of_a_fork_frees_and_resizes_what_its_parent_placed) {
  std::vector<unsigned char*> objects;
  {
    const Scope scope;
    objects = fill_many(3000, 100);
  }
  const Scope still_open;
  const std::string wrong = test::in_child([&objects]() -> std::string {
    if (!test::routed()) return "the scope is not open in the child";
    for (size_t i = 0; i < objects.size(); i += 3) {
      objects[i] = static_cast<unsigned char*>(arena::reallocate(objects[i], 400));
      if (!all_bytes(objects[i], 100, static_cast<unsigned char>(i))) return "contents lost";
    }
    free_all(objects);
    free_all(fill_many(3000, 300));
    const char* const invalid = heap::validate().what;
    return invalid != nullptr ? invalid : "";
  });
  EXPECT_EQ(wrong, "");
  EXPECT_TRUE(all_whole(objects, 100)) << "the child's frees show in the parent";
  free_all(objects);
}

TEST_F(ArenaEscape, a_child_of_a_fork_frees_and_resizes_what_a_thread_placed_that_stayed_behind) {
  std::vector<unsigned char*> objects;
  std::atomic<bool> ready{false}, done{false};
  std::thread behind([&] {
    const Scope scope;
    objects = fill_many(3000, 100);
    void* const above = filled(50, 0xee);
    ready = true;
    while (!done)
      std::this_thread::yield();
    scoped_free(above);
  });
  while (!ready)
    std::this_thread::yield();
  const std::string wrong = test::in_child([&objects]() -> std::string {
    for (size_t i = 0; i < objects.size(); i += 3) {
      objects[i] = static_cast<unsigned char*>(arena::reallocate(objects[i], i % 2 == 0 ? 400 : 10));
      if (!all_bytes(objects[i], i % 2 == 0 ? 100 : 10, static_cast<unsigned char>(i))) return "contents lost";
    }
    free_all(objects);
    const char* const invalid = heap::validate().what;
    if (invalid != nullptr) return invalid;
    cache::flush_idle();
    return chunks_in_use() <= 2 ? "" : "the chunks of the thread that stayed behind stay, too";
  });
  EXPECT_EQ(wrong, "");
  done = true;
  behind.join();
  EXPECT_TRUE(all_whole(objects, 100));
  free_all(objects);
}

}  // namespace
