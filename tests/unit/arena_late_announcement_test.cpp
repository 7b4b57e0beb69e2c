// A slab's last blocks may be freed, its unit given back and made a chunk of a stack arena before the thread that freed
// the first of them gets to announce it. The announcement then names a chunk, and does no harm.
#include "arena/arena.hpp"

#include "arena_calls.hpp"
#include "heap/announce.hpp"
#include "heap/slab.hpp"

namespace {

using namespace sluice;
using test::Scope;
using test::scoped_free;

TEST(ArenaLateAnnouncement, of_a_slab_whose_unit_is_a_chunk_now_is_harmless) {
  const Scope scope;
  unsigned char* const below = test::filled(100, 1);
  unsigned char* const object = test::filled(100, 2);
  unsigned char* const above = test::filled(100, 3);
  slab::announce(region::unit_at(unit_index_of(object)), 1);
  test::on_another_thread([object] { scoped_free(object); });
  {
    const MutexLock<OwnerMutex> guard(thread_cache->lock);
    slab::collect_pending(*thread_cache);
  }
  test::expect_valid();
  EXPECT_TRUE(test::all_bytes(below, 100, 1));
  EXPECT_TRUE(test::all_bytes(above, 100, 3));
  scoped_free(above);
  scoped_free(below);
  test::expect_valid();
}

// Slabs that were announced before it are still found.
TEST(ArenaLateAnnouncement, does_not_lose_the_slabs_that_wait_with_it) {
  void* const block = test::scoped_allocate(900);
  Unit* const waiting = slab::of(block);
  const uint32_t used = slab::used_of(waiting);
  const Scope scope;
  unsigned char* const object = test::filled(100, 2);
  unsigned char* const above = test::filled(100, 3);
  Unit* const chunk = region::unit_at(unit_index_of(object));
  test::on_another_thread([=] {
    *static_cast<void**>(block) = nullptr;
    (void)slab::put_remote(waiting, block);
    slab::announce(waiting, 1);
    slab::announce(chunk, 1);
    scoped_free(object);
  });
  {
    const MutexLock<OwnerMutex> guard(thread_cache->lock);
    slab::collect_pending(*thread_cache);
  }
  EXPECT_EQ(slab::used_of(waiting), used - 1);
  scoped_free(above);
  test::expect_valid();
}

}  // namespace
