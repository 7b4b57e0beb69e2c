// Scopes switch where this thread's allocations go, and nothing else: nesting, scopes that do not route, other threads,
// what is too large, and what a scope that is refused says.
#include "arena/scope.hpp"

#include <cerrno>
#include <memory>
#include <stdexcept>

#include <pthread.h>

#include "arena_calls.hpp"
#include "base/options.hpp"
#include "guarded/pool.hpp"
#include "heap/sampling.hpp"
#include "in_child.hpp"
#include "sluice/scope.hpp"

namespace {

using namespace sluice;
using test::in_chunk;
using test::routed;
using test::Scope;
using test::scoped_allocate;
using test::scoped_free;

TEST(ScopeRouting, allocations_go_to_the_arena_while_a_scope_is_open_and_not_otherwise) {
  EXPECT_FALSE(routed());
  {
    const Scope scope;
    EXPECT_EQ(scope.result(), 0);
    EXPECT_TRUE(routed());
  }
  EXPECT_FALSE(routed());
  test::expect_valid();
}

TEST(ScopeRouting, sizes_to_16_kib_are_placed_and_larger_ones_are_not) {
  const Scope scope;
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{8}, size_t{9}, size_t{1024}, size_t{1025}, arena::most_bytes}) {
    void* const block = scoped_allocate(size);
    EXPECT_TRUE(in_chunk(block)) << size;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % min_alignment, 0u);
    EXPECT_GE(arena::usable_size(block), size);
    scoped_free(block);
  }
  for (const size_t size : {arena::most_bytes + 1, max_small_size, max_small_size + 1, size_t{1} << 20}) {
    void* const block = scoped_allocate(size);
    ASSERT_NE(block, nullptr);
    EXPECT_FALSE(in_chunk(block)) << size;
    EXPECT_GE(arena::usable_size(block), size);
    scoped_free(block);
  }
  EXPECT_EQ(scoped_allocate(SIZE_MAX), nullptr);
  test::expect_valid();
}

TEST(ScopeRouting, while_allocations_are_sampled_all_but_guarded_blocks_are_placed) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              scoped_free(scoped_allocate(1));
              guarded::set_slots(64);
              sampling::start(20);
              const Scope scope;
              int guarded = 0;
              for (int i = 0; i < 10'000; ++i) {
                void* const blocks[] = {scoped_allocate(i % 5 == 0 ? 3000 : 40), scoped_allocate(24)};
                for (void* const block : blocks) {
                  std::memset(block, 0x5a, 24);
                  guarded += guarded::covers(block) ? 1 : 0;
                  if (in_chunk(block) == guarded::covers(block)) return "neither placed nor guarded";
                }
                scoped_free(blocks[1]);
                scoped_free(blocks[0]);
              }
              const char* const wrong = heap::validate().what;
              if (wrong != nullptr) return wrong;
              return guarded > 850 && guarded < 1150 ? "" : std::to_string(guarded);
            }),
            "");
}

TEST(ScopeRouting, sampling_begins_also_in_a_scope_that_is_open) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              const Scope scope;
              scoped_free(scoped_allocate(40));
              guarded::set_slots(64);
              sampling::start(1);
              void* const block = scoped_allocate(40);
              const bool is_guarded = guarded::covers(block);
              scoped_free(block);
              return is_guarded ? "" : "it does not";
            }),
            "");
}

TEST(ScopeRouting, alignments_to_4_kib_are_placed_and_larger_ones_are_not) {
  const Scope scope;
  for (size_t alignment = 1; alignment <= 4 * unit_size; alignment *= 2) {
    for (const size_t size : {size_t{0}, size_t{1}, size_t{100}, arena::most_bytes, arena::most_bytes + 1}) {
      auto* const block = static_cast<unsigned char*>(arena::allocate_aligned(alignment, size));
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % std::max(alignment, min_alignment), 0u);
      EXPECT_EQ(in_chunk(block), alignment <= arena::most_alignment && size <= arena::most_bytes)
          << alignment << ' ' << size;
      EXPECT_GE(arena::usable_size(block), size);
      std::memset(block, 0x5a, size);
      scoped_free(block);
    }
  }
  test::expect_valid();
}

TEST(ScopeRouting, every_entry_point_is_routed) {
  void* const pooled = scoped_allocate(100);
  const Scope scope;
  void* const blocks[] = {scoped_allocate(10), arena::allocate_zeroed(3, 10), arena::allocate_aligned(64, 10),
                          arena::reallocate(nullptr, 10), arena::reallocate(pooled, 300)};
  for (void* const block : blocks) {
    EXPECT_TRUE(in_chunk(block));
    scoped_free(block);
  }
  test::expect_valid();
}

TEST(ScopeRouting, a_scope_of_another_thread_changes_nothing_here) {
  const Scope scope;
  test::on_another_thread([] {
    EXPECT_FALSE(routed());
    const Scope own;
    EXPECT_TRUE(routed());
  });
  EXPECT_TRUE(routed());
}

TEST(ScopeRouting, scopes_nest_and_each_leave_restores_what_was_before) {
  const Scope outer;
  {
    const Scope off(SLUICE_NOROUTE);
    EXPECT_EQ(off.result(), 0);
    EXPECT_FALSE(routed());
    {
      const Scope on;
      EXPECT_TRUE(routed());
      {
        const Scope off_again(SLUICE_NOROUTE);
        EXPECT_FALSE(routed());
      }
      EXPECT_TRUE(routed());
    }
    EXPECT_FALSE(routed());
  }
  EXPECT_TRUE(routed());
}

TEST(ScopeRouting, a_scope_that_does_not_route_alone_changes_nothing) {
  {
    const Scope off(SLUICE_NOROUTE);
    EXPECT_EQ(off.result(), 0);
    EXPECT_FALSE(routed());
  }
  EXPECT_FALSE(routed());
}

TEST(ScopeRouting, objects_are_freed_and_resized_under_any_routing) {
  unsigned char* kept;
  {
    const Scope scope;
    kept = test::filled(100, 7);
    const Scope off(SLUICE_NOROUTE);
    void* const second = test::filled(50, 9);
    EXPECT_FALSE(in_chunk(second));
    scoped_free(second);
    kept = static_cast<unsigned char*>(arena::reallocate(kept, 120));
    EXPECT_TRUE(test::all_bytes(kept, 100, 7));
  }
  kept = static_cast<unsigned char*>(arena::reallocate(kept, 5000));
  EXPECT_TRUE(test::all_bytes(kept, 100, 7));
  scoped_free(kept);
  test::expect_valid();
}

TEST(ScopeRouting, leaving_a_scope_keeps_its_objects) {
  std::vector<unsigned char*> objects;
  {
    const Scope scope;
    for (unsigned i = 0; i < 3000; ++i)
      objects.push_back(test::filled(40, static_cast<unsigned char>(i)));
  }
  {
    const Scope scope;
    for (unsigned i = 0; i < 3000; ++i)
      scoped_free(test::filled(200, 0xee));
  }
  for (unsigned i = 0; i < objects.size(); ++i) {
    ASSERT_TRUE(test::all_bytes(objects[i], 40, static_cast<unsigned char>(i)));
    scoped_free(objects[i]);
  }
  test::expect_valid();
}

TEST(ScopeRouting, the_65th_scope_is_refused_and_its_leave_is_due_and_harmless) {
  const arena::Figures before = test::arena_figures();
  std::vector<std::unique_ptr<Scope>> scopes;
  for (unsigned i = 0; i < arena::most_scopes; ++i) {
    scopes.push_back(std::make_unique<Scope>());
    ASSERT_EQ(scopes.back()->result(), 0);
  }
  for (int i = 0; i < 3; ++i) {
    const Scope one_too_many;
    EXPECT_EQ(one_too_many.result(), -1);
  }
  EXPECT_TRUE(routed()) << "the leave of a refused scope ended another one";
  scopes.pop_back();
  {
    const Scope fits_again(SLUICE_NOROUTE);
    EXPECT_EQ(fits_again.result(), 0);
    EXPECT_FALSE(routed());
  }
  while (!scopes.empty())
    scopes.pop_back();
  EXPECT_FALSE(routed());
  const arena::Figures after = test::arena_figures();
  EXPECT_EQ(after.depth_overflows - before.depth_overflows, 3u);
  EXPECT_EQ(after.scopes - before.scopes, arena::most_scopes + 1);
  EXPECT_EQ(after.stale_leaves, before.stale_leaves);
  EXPECT_EQ(after.abandoned_scopes, before.abandoned_scopes);
}

TEST(ScopeRouting, bad_flags_are_refused_with_einval) {
  const arena::Figures before = test::arena_figures();
  for (const unsigned flags : {0u, 3u, 4u, ~0u}) {
    errno = 0;
    const Scope scope(flags);
    EXPECT_EQ(scope.result(), -1) << flags;
    EXPECT_EQ(errno, EINVAL);
    EXPECT_FALSE(routed());
  }
  errno = 0;
  EXPECT_EQ(arena::enter(nullptr, SLUICE_ROUTE), -1);
  EXPECT_EQ(errno, EINVAL);
  arena::leave(nullptr);
  EXPECT_EQ(test::arena_figures().stale_leaves, before.stale_leaves);
}

TEST(ScopeRouting, scopes_that_are_switched_off_change_nothing) {
  options.arena = false;
  {
    const Scope scope;
    EXPECT_EQ(scope.result(), -1);
    EXPECT_FALSE(routed());
  }
  options.arena = true;
  const Scope scope;
  EXPECT_TRUE(routed());
}

TEST(ScopeRouting, errno_is_kept) {
  errno = 77;
  {
    const Scope scope;
    std::vector<void*> objects;
    for (int i = 0; i < 5000; ++i)
      objects.push_back(scoped_allocate(100));
    for (size_t i = 0; i < objects.size(); i += 2)
      scoped_free(objects[i]);
    for (size_t i = 1; i < objects.size(); i += 2)
      scoped_free(objects[i]);
  }
  EXPECT_EQ(errno, 77);
}

TEST(ScopeRouting, an_exception_ends_the_scopes_that_it_passes) {
  const arena::Figures before = test::arena_figures();
  const auto fail_inside = [] {
    const Scope outer;
    const Scope inner(SLUICE_NOROUTE);
    throw std::runtime_error("out");
  };
  EXPECT_THROW(fail_inside(), std::runtime_error);
  EXPECT_FALSE(routed());
  const arena::Figures after = test::arena_figures();
  EXPECT_EQ(after.stale_leaves, before.stale_leaves);
  EXPECT_EQ(after.abandoned_scopes, before.abandoned_scopes);
}

TEST(ScopeRouting, a_thread_that_ends_inside_a_scope_does_not_leave_it_to_the_next) {
  const size_t caches = [] {
    cache::lock_all();
    const size_t count = cache::thread_counts().caches;
    cache::unlock_all();
    return count;
  }();
  for (int i = 0; i < 5; ++i) {
    test::on_another_thread([] {
      EXPECT_FALSE(routed());
      sluice_scope never_left{};
      EXPECT_EQ(arena::enter(&never_left, SLUICE_ROUTE), 0);
      EXPECT_TRUE(routed());
    });
  }
  cache::lock_all();
  EXPECT_LE(cache::thread_counts().caches, caches + 1);
  cache::unlock_all();
  test::expect_valid();
}

// A destructor of thread-specific data asks for another round until the thread's cache has gone.
pthread_key_t late_key;
int late_result;
bool late_routed;

void enter_late(void* value) {
  if (thread_cache != &cache_torn_down) {
    pthread_setspecific(late_key, value);
    return;
  }
  const Scope scope;
  late_result = scope.result();
  late_routed = routed();
}

TEST(ScopeRouting, a_thread_past_its_end_opens_no_scope) {
  late_result = 0;
  late_routed = true;
  ASSERT_EQ(pthread_key_create(&late_key, enter_late), 0);
  test::on_another_thread([] {
    const Scope scope;
    scoped_free(scoped_allocate(10));
    pthread_setspecific(late_key, &late_key);
  });
  pthread_key_delete(late_key);
  EXPECT_EQ(late_result, -1);
  EXPECT_FALSE(late_routed);
  test::expect_valid();
}

}  // namespace
