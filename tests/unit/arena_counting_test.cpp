// What is counted of objects agrees with what was done with them: every free once and of its kind, resizes, frees by
// other threads and by threads without a cache. Counting is on before the first call.
#include "arena/arena.hpp"

#include <cstdlib>

#include <pthread.h>

#include "arena_calls.hpp"
#include "arena_program.hpp"
#include "stats/snapshot.hpp"

namespace {

using namespace sluice;
using test::ArenaCounts;
using test::filled;
using test::Scope;
using test::scoped_allocate;
using test::scoped_free;

const bool counting_from_the_start = setenv("SLUICE_STATS", "1", 1) == 0;

class Counted {
 public:
  Counted() : before_(test::arena_counts()) {}
  ArenaCounts since() const {
    const ArenaCounts now = test::arena_counts();
    return {now.objects - before_.objects,
            now.requested_bytes - before_.requested_bytes,
            now.allocated_bytes - before_.allocated_bytes,
            now.freed_bytes - before_.freed_bytes,
            now.lifo - before_.lifo,
            now.out_of_order - before_.out_of_order,
            now.remote - before_.remote,
            now.grown - before_.grown};
  }

 private:
  const ArenaCounts before_;
};

stats::Snapshot snapshot() {
  stats::Snapshot s;
  stats::take_snapshot(&s);
  return s;
}

TEST(ArenaCounting, each_object_and_each_free_is_counted_with_its_usable_size) {
  const Counted counted;
  const Scope scope;
  void* const first = scoped_allocate(10);   // 24 bytes usable
  void* const second = scoped_allocate(40);  // 40
  void* const third = scoped_allocate(41);   // 56
  EXPECT_EQ(counted.since().objects, 3u);
  EXPECT_EQ(counted.since().requested_bytes, 91u);
  EXPECT_EQ(counted.since().allocated_bytes, 120u);
  EXPECT_EQ(counted.since().freed_bytes, 0u);
  scoped_free(third);
  EXPECT_EQ(counted.since().lifo, 1u);
  EXPECT_EQ(counted.since().freed_bytes, 56u);
  scoped_free(first);
  EXPECT_EQ(counted.since().out_of_order, 1u);
  EXPECT_EQ(counted.since().freed_bytes, 80u);
  test::on_another_thread([second] { scoped_free(second); });
  EXPECT_EQ(counted.since().remote, 1u);
  EXPECT_EQ(counted.since().freed_bytes, counted.since().allocated_bytes);
  EXPECT_EQ(counted.since().objects, counted.since().frees());
}

TEST(ArenaCounting, what_goes_to_the_heap_is_no_object) {
  const Counted counted;
  const Scope scope;
  void* const large = scoped_allocate(arena::most_bytes + 1);
  void* const aligned = arena::allocate_aligned(8192, 10);
  scoped_free(large);
  scoped_free(aligned);
  EXPECT_EQ(counted.since().objects, 0u);
  EXPECT_EQ(counted.since().frees(), 0u);
}

TEST(ArenaCounting, resizing_keeps_the_bytes_true) {
  const Counted counted;
  const Scope scope;
  void* block = scoped_allocate(24);
  for (const size_t size : {100u, 1000u, 990u, 200u, 24u, 5000u}) {
    block = arena::reallocate(block, size);
    EXPECT_EQ(counted.since().live_bytes(), arena::usable_size(block)) << size;
  }
  EXPECT_EQ(counted.since().objects, 1u);
  EXPECT_EQ(counted.since().grown, 3u);
  void* const above = scoped_allocate(24);
  block = arena::reallocate(block, 100);  // gives back what it no longer needs
  EXPECT_EQ(counted.since().live_bytes(), arena::usable_size(block) + 24);
  block = arena::reallocate(block, 9000);  // moves
  EXPECT_EQ(counted.since().live_bytes(), arena::usable_size(block) + 24);
  block = arena::reallocate(block, 90'000);  // moves to the heap
  EXPECT_EQ(counted.since().live_bytes(), 24u);
  scoped_free(block);
  scoped_free(above);
  EXPECT_EQ(counted.since().live_bytes(), 0u);
  EXPECT_EQ(counted.since().objects, counted.since().frees());
}

pthread_key_t late_key;
void* late_object;
void free_late(void* value) {
  if (thread_cache != &cache_torn_down) {
    pthread_setspecific(late_key, value);  // once more, later
    return;
  }
  scoped_free(late_object);
}

TEST(ArenaCounting, frees_by_threads_without_a_cache_are_counted) {
  const Counted counted;
  const Scope scope;
  void* const object = filled(100, 1);
  late_object = filled(100, 2);
  void* const above = filled(100, 3);
  test::on_another_thread([object] { scoped_free(object); });
  EXPECT_EQ(counted.since().remote, 1u);
  ASSERT_EQ(pthread_key_create(&late_key, free_late), 0);
  test::on_another_thread([] {
    scoped_free(heap::allocate_zeroed(1, 10));
    pthread_setspecific(late_key, &late_key);
  });
  pthread_key_delete(late_key);
  EXPECT_EQ(counted.since().remote, 2u);
  scoped_free(above);
  EXPECT_EQ(counted.since().live_bytes(), 0u);
  EXPECT_EQ(counted.since().objects, counted.since().frees());
}

TEST(ArenaCounting, figures_of_scopes_and_chunks_are_counted) {
  const arena::Figures before = test::arena_figures();
  std::vector<void*> objects;
  {
    const Scope scope;
    for (int i = 0; i < 2000; ++i)
      objects.push_back(filled(100, 1));
  }
  const arena::Figures after = test::arena_figures();
  EXPECT_EQ(after.scopes - before.scopes, 1u);
  EXPECT_GE(after.chunks_opened + after.chunks_recycled, before.chunks_opened + before.chunks_recycled + 2);
  for (void* const object : objects)
    scoped_free(object);
}

TEST(ArenaCounting, everything_adds_up_in_a_threaded_program) {
  const Counted counted;
  constexpr size_t threads = 4;
  std::vector<std::vector<test::Block>> left(threads);
  for (uint64_t round = 0; round < 4; ++round) {
    std::vector<std::thread> running;
    for (size_t t = 0; t < threads; ++t) {
      running.emplace_back([&, t] {
        test::ArenaProgram program(200, round * threads + t);
        program.enter(SLUICE_ROUTE);
        for (const test::Block& block : left[t])
          program.discard(block);
        left[t].clear();
        for (int i = 0; i < 4000; ++i)
          program.step();
        for (size_t slot = 0; slot < program.slots(); slot += 2)
          left[t].push_back(program.take(slot));
        program.leave_all();
        program.release_all();
        EXPECT_EQ(program.wrong(), "");
      });
    }
    for (std::thread& thread : running)
      thread.join();
    std::rotate(left.begin(), left.begin() + 1, left.end());
    // What lives in chunks is what was placed there and not freed.
    uint64_t live = 0, objects = 0;
    for (const std::vector<test::Block>& blocks : left) {
      for (const test::Block& block : blocks) {
        if (!test::in_chunk(block.data)) continue;
        live += arena::usable_size(block.data);
        ++objects;
      }
    }
    EXPECT_EQ(counted.since().live_bytes(), live);
    EXPECT_EQ(counted.since().objects - counted.since().frees(), objects);
    const stats::Snapshot s = snapshot();
    EXPECT_EQ(s.allocated_bytes - s.freed_bytes, s.live_bytes);
    EXPECT_GE(s.peak_live_bytes, s.live_bytes);
  }
  test::ArenaProgram rest(1, 0);
  for (const std::vector<test::Block>& blocks : left)
    for (const test::Block& block : blocks)
      rest.discard(block);
  EXPECT_EQ(counted.since().live_bytes(), 0u);
  EXPECT_EQ(counted.since().objects, counted.since().frees());
  test::expect_valid();
}

TEST(ArenaCounting, the_totals_of_the_process_include_objects) {
  const stats::Snapshot before = snapshot();
  {
    const Scope scope;
    void* const object = filled(1000, 1);
    const stats::Snapshot between = snapshot();
    EXPECT_EQ(between.mallocs - before.mallocs, 1u);
    EXPECT_EQ(between.live_bytes - before.live_bytes, arena::usable_size(object));
    scoped_free(object);
  }
  const stats::Snapshot after = snapshot();
  EXPECT_EQ(after.frees - before.frees, 1u);
  EXPECT_EQ(after.live_bytes, before.live_bytes);
}

}  // namespace
