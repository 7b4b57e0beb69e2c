// The child of a fork that was made while another thread was in the middle of changing the heap: that thread had taken
// over a lock that was held for the fork. The mock stops it inside a call to the system, under its locks.
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "arena/arena.hpp"
#include "arena/chunk.hpp"
#include "arena/scope.hpp"
#include "bare_fork.hpp"
#include "base/options.hpp"
#include "guarded/pool.hpp"
#include "heap/heap.hpp"
#include "heap_calls.hpp"
#include "in_child.hpp"
#include "mock_os.hpp"
#include "os/memory.hpp"
#include "sluice/sluice.h"
#include "stats/snapshot.hpp"

namespace {

using namespace sluice;
using mock_os::Call;

class ForkFault : public testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__)
    // It cannot know that in the child nobody else writes any more, nor does it leave the heap a place of its own.
    GTEST_SKIP() << "ThreadSanitizer takes the child's repairs for races with threads that are no more";
#endif
  }
};

std::atomic<bool> stopped{false}, go_on{false};

void stop_here() {
  stopped = true;
  while (!go_on)
    std::this_thread::yield();
}

std::string validated() {
  const char* const wrong = heap::validate().what;
  return wrong != nullptr ? wrong : "";
}

// Fills blocks of all kinds, and finds them as they were filled. libc's malloc, which the rest of the test uses, may be
// locked in the child.
std::string use_memory() {
  struct Block {
    unsigned char* first;
    size_t size;
  };
  static Block blocks[3000];
  for (int round = 0; round < 3; ++round) {
    size_t count = 0;
    for (const size_t size : {16u, 64u, 100u, 1000u, 5000u, 20'000u, 60'000u, 100'000u, 3'000'000u}) {
      for (int i = 0; i < (size > 50'000 ? 8 : 300); ++i) {
        auto* const block = static_cast<unsigned char*>(test::allocate(size));
        if (block == nullptr) return "no memory for " + std::to_string(size);
        __builtin_memset(block, static_cast<int>(count % 251), size);
        blocks[count++] = {block, size};
      }
    }
    for (size_t i = 0; i < count; ++i)
      for (size_t at = 0; at < blocks[i].size; at += 97)
        if (blocks[i].first[at] != i % 251) return "two owners of one block";
    for (size_t i = 0; i < count; ++i)
      test::calls::free(blocks[i].first);
  }
  return "";
}

struct Situation {
  Call stops_in;       // Count: `changing` says it itself
  void (*before)();    // on the other thread, before the fork takes its locks
  void (*changing)();  // on the other thread, which is stopped in the middle of it
};

// Blocks that the other thread has got before; the child frees them.
std::vector<void*> left;

// What a child of a fork says that was made in the situation, and its parent after it.
std::string forked_in(const Situation& situation, std::string (*child)()) {
  return test::in_child([&]() -> std::string {
    test::calls::free(test::allocate(100));
    std::atomic<bool> ready{false}, locked{false};
    std::thread other([&] {
      situation.before();
      ready = true;
      while (!locked)
        std::this_thread::yield();
      mock_os::call_at_next(situation.stops_in, stop_here);
      situation.changing();
    });
    while (!ready)
      std::this_thread::yield();
    cache::lock_for_fork();
    locked = true;
    while (!stopped)  // it has waited, and has taken over what it needs
      std::this_thread::yield();
    // Without handlers: they would wait for the thread, which is stopped for ever as it were.
    std::string wrong = test::said_by_bare_fork([child] {
      go_on = true;
      return child();
    });
    cache::unlock_after_fork();
    go_on = true;
    other.join();
    if (wrong.empty()) wrong = use_memory();
    return wrong.empty() ? validated() : wrong;
  });
}

std::string live_on() {
  for (void* const block : left)
    test::calls::free(block);
  for (int i = 0; i < 2; ++i) {
    if (std::string wrong = use_memory(); !wrong.empty()) return wrong;
    if (std::string wrong = validated(); !wrong.empty()) return wrong;
    cache::flush_idle();
  }
  return validated();
}

void take_blocks() {
  for (const size_t size : {16u, 64u, 1000u, 5000u, 100'000u})
    for (int i = 0; i < 100; ++i)
      left.push_back(test::allocate(size));
}

bool region_was_broken() {
  return region::first_span() != region::first_index();
}

TEST_F(ForkFault, a_child_goes_on_behind_a_region_that_was_half_changed) {
  const Situation large = {Call::Commit, take_blocks, [] { test::calls::free(test::allocate(size_t{200} << 20)); }};
  EXPECT_EQ(forked_in(large,
                      []() -> std::string {
                        if (!region_was_broken()) return "the thread was not in the middle of anything";
                        return live_on();
                      }),
            "");
}

// Blocks of one class until the heap grows for a slab: under the locks of the cache and of the region.
void need_a_slab() {
  while (!stopped)
    if (void* const block = test::allocate(60'000); !stopped) left.push_back(block);
}

TEST_F(ForkFault, a_child_gives_up_the_lists_of_a_cache_that_was_half_changed) {
  EXPECT_EQ(forked_in({Call::Commit, take_blocks, need_a_slab},
                      []() -> std::string {
                        size_t lost = 0;
                        for (void* const block : left) {
                          const Unit* const unit = region::unit_at(unit_index_of(block));
                          if (unit->use() == UnitState::Slab &&
                              cache::is_lost(unit[-ptrdiff_t{unit->slab.back}].owner.load(std::memory_order_relaxed)))
                            ++lost;
                        }
                        if (lost == 0) return "no slab was given up";
                        return live_on();
                      }),
            "");
}

// A chunk of an arena on its way back to the region, for whose lock the thread waits: nobody owns it.
TEST_F(ForkFault, a_child_counts_what_nobody_owns) {
  if (secure) return;  // scopes place nothing there
  EXPECT_EQ(test::in_child([]() -> std::string {
              test::calls::free(test::allocate(100));
              std::atomic<const Unit*> chunk{nullptr};
              std::atomic<bool> locked{false};
              std::thread other([&] {
                sluice_scope scope;
                if (arena::enter(&scope, SLUICE_ROUTE) != 0) std::abort();
                void* const block = heap::allocate<arena::allocate_slow>(200);
                arena::leave(&scope);
                heap::free<arena::free_slow>(block);
                chunk = thread_cache->arena->current;
                while (!locked)
                  std::this_thread::yield();
              });  // at its end the chunk goes
              while (chunk == nullptr)
                std::this_thread::yield();
              cache::lock_for_fork();
              locked = true;
              // The lock is given up to a thread that waits long: then the chunk is gone already.
              while (chunk.load()->use() == UnitState::Arena &&
                     chunk.load()->chunk.owner.load(std::memory_order_relaxed) != nullptr)
                std::this_thread::yield();
              const pid_t pid = mock_os::fork_without_handlers();
              if (pid == 0) {
                cache::unlock_in_child();
                static stats::Snapshot snapshot;
                stats::take_snapshot(&snapshot);
                _exit(0);
              }
              int status = 0;
              waitpid(pid, &status, 0);
              cache::unlock_after_fork();
              other.join();
              return status == 0 ? validated() : "the child ended with wait status " + std::to_string(status);
            }),
            "");
}

TEST_F(ForkFault, a_look_keeps_its_locks_when_a_signal_handler_forks) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              test::calls::free(test::allocate(100));
              cache::lock_all();
              cache::lock_for_fork();
              cache::unlock_after_fork();
              bool lost = false;
              std::thread([&lost] {
                lost = region::mutex().try_lock();
                if (lost) region::mutex().unlock();
              }).join();
              cache::unlock_all();
              if (!region::mutex().try_lock()) return "the look's end has left a lock taken";
              region::mutex().unlock();
              return lost ? "the look has lost its locks" : validated();
            }),
            "");
}

TEST_F(ForkFault, a_fork_keeps_its_locks_when_a_handler_looks) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              test::calls::free(test::allocate(100));
              cache::lock_for_fork();
              cache::lock_all();
              cache::unlock_all();
              bool lost = false;
              std::thread([&lost] {
                lost = region::mutex().try_lock();
                if (lost) region::mutex().unlock();
                region::mutex().lock();  // and it may be taken over again
                region::mutex().unlock();
              }).join();
              cache::unlock_after_fork();
              return lost ? "the fork has lost its locks" : validated();
            }),
            "");
}

// The thread was stopped between reserving a piece of a table and noting it.
TEST_F(ForkFault, a_child_finds_room_beside_what_was_reserved_and_not_noted) {
  EXPECT_EQ(forked_in({Call::Commit, take_blocks, need_a_slab},
                      []() -> std::string {
                        if (!region_was_broken()) return "the thread was not in the middle of anything";
                        const size_t page = os::page_size();
                        auto at = reinterpret_cast<uintptr_t>(region::unit_at(region::limit())) / page * page;
                        while (os::is_mapped(reinterpret_cast<void*>(at), page))
                          at += page;
                        if (os::reserve(reinterpret_cast<void*>(at), page, true) == nullptr) return "no page there";
                        return test::allocate(size_t{100} << 20) != nullptr ? live_on() : "no memory for a large block";
                      }),
            "");
}

// Slabs go back to the region, which purges, in a thread with a stack arena.
TEST_F(ForkFault, a_child_frees_objects_of_an_arena_whose_cache_was_half_changed) {
  if (secure) return;  // scopes place nothing there
  const auto before = [] {
    options.retain = 0;
    sluice_scope scope;
    if (arena::enter(&scope, SLUICE_ROUTE) != 0) std::abort();
    for (int i = 0; i < 5000; ++i)
      left.push_back(test::allocate(200));
    arena::leave(&scope);
    take_blocks();
  };
  const auto flush = [] {
    std::vector<void*> blocks;
    for (int i = 0; i < 200; ++i)
      blocks.push_back(test::allocate(30'000));
    thread_cache->budget_kib = UINT32_MAX;  // slabs go back in flush_idle alone
    for (void* const block : blocks)
      test::calls::free(block);
    mock_os::call_at_next(Call::Purge, stop_here);
    cache::flush_idle();
  };
  EXPECT_EQ(forked_in({Call::Count, before, flush}, live_on), "");
}

// Threads get caches, under the registry's lock, until the heap grows for one. All of them live until then.
void attach_many() {
  std::vector<std::thread> threads;
  while (!stopped)
    threads.emplace_back([] {
      (void)cache::attach();
      while (!stopped)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));  // there are a thousand
    });
  for (std::thread& thread : threads)
    thread.join();
}

TEST_F(ForkFault, a_child_finds_all_caches_though_the_list_of_orphans_was_half_changed) {
  EXPECT_EQ(forked_in({Call::Commit, take_blocks, attach_many},
                      []() -> std::string {
                        cache::lock_all();
                        const cache::ThreadCounts counts = cache::thread_counts();
                        cache::unlock_all();
                        if (counts.live != 1) return std::to_string(counts.live) + " threads in the child";
                        size_t orphans = 0;
                        for (const ThreadCache* c = cache::first(); c != nullptr; c = c->next_cache)
                          orphans += c->orphan.load() ? 1 : 0;
                        if (orphans + 1 != counts.caches) return "threads that stayed behind have caches";
                        return live_on();
                      }),
            "");
}

// More guarded blocks until the heap grows for one: under the lock of their pool.
void stop_under_the_lock() {
  if (guarded::mutex().held_by_this_thread())
    stop_here();
  else
    mock_os::call_at_next(Call::Commit, stop_under_the_lock);
}
void guard_many() {
  mock_os::call_at_next(Call::Commit, stop_under_the_lock);
  while (!stopped)
    if (void* const block = guarded::allocate(100'000, 16, false); block != nullptr && !stopped) left.push_back(block);
}

TEST_F(ForkFault, a_child_frees_guarded_blocks_though_their_pool_was_half_changed) {
  const auto guard_some = [] {
    guarded::set_slots(4000);
    for (int i = 0; i < 50; ++i)
      left.push_back(guarded::allocate(100, 16, false));
  };
  EXPECT_EQ(forked_in({Call::Count, guard_some, guard_many},
                      []() -> std::string {
                        if (guarded::allocate(100, 16, false) != nullptr) return "the pool was whole";
                        return live_on();
                      }),
            "");
}

}  // namespace
