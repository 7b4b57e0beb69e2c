// What was allocated in a scope stays valid until it is freed: after the scope, on other threads, after its thread, and
// on both sides of a fork. Open it when a block of a scope changes or is lost after the scope.
#include <gtest/gtest.h>
#include <pthread.h>
#include <semaphore.h>

#include <array>
#include <atomic>
#include <csignal>
#include <mutex>
#include <vector>

#include "arena_subject.hpp"

namespace {

using namespace subject;

// Blocks of a scope with payloads by which they are known again.
class Blocks {
 public:
  void allocate(size_t count, uint64_t seed) {
    blocks_.reserve(blocks_.size() + count);
    for (size_t i = 0; i < count; ++i) {
      const size_t size = (i * 37 + seed) % 700 + 1;
      void* const block = malloc(size);
      fill(block, size, seed + i);
      blocks_.push_back({block, size, seed + i});
    }
  }
  bool intact() const {
    for (const Block& each : blocks_) {
      if (each.address != nullptr && !holds(each.address, each.size, each.seed)) return false;
    }
    return true;
  }
  bool all_in_arena() const {
    for (const Block& each : blocks_) {
      if (!is_in_arena(each.address)) return false;
    }
    return true;
  }
  // Frees each `step`-th block from `first` on.
  void free_some(size_t first = 0, size_t step = 1) {
    for (size_t i = first; i < blocks_.size(); i += step) {
      free(blocks_[i].address);
      blocks_[i].address = nullptr;
    }
  }

 private:
  struct Block {
    void* address;
    size_t size;
    uint64_t seed;
  };
  std::vector<Block> blocks_;
};

void churn_in_scope(size_t rounds) {
  const sluice::scope scope;
  for (size_t round = 0; round < rounds; ++round) {
    Blocks temporary;
    temporary.allocate(500, round);
    temporary.free_some(round % 3, 2);
    temporary.free_some(0, 1);
  }
}

Blocks global;

TEST(ScopeEscape, ThroughAGlobalAfterTheScope) {
  {
    const sluice::scope scope;
    global.allocate(5000, 1);
    EXPECT_TRUE(global.all_in_arena());
  }
  churn_in_scope(20);
  EXPECT_TRUE(global.intact());
  global.free_some(0, 2);
  churn_in_scope(20);
  EXPECT_TRUE(global.intact());
  global.free_some();
}

TEST(ScopeEscape, FreedOnAnotherThreadWhileTheScopeIsOpen) {
  const sluice::scope scope;
  for (uint64_t round = 0; round < 20; ++round) {
    Blocks blocks;
    blocks.allocate(1000, round);
    on_another_thread([&blocks] {
      EXPECT_TRUE(blocks.intact());
      blocks.free_some(0, 3);
    });
    EXPECT_TRUE(blocks.intact());
    blocks.free_some(1, 3);
    on_another_thread([&blocks] { blocks.free_some(2, 3); });
  }
}

TEST(ScopeEscape, AfterTheEndOfItsThread) {
  std::vector<Blocks> all(20);
  for (size_t i = 0; i < all.size(); ++i)
    on_another_thread([&mine = all[i], i] {
      const sluice::scope scope;
      mine.allocate(1500, i * 7);
    });
  for (Blocks& each : all)
    EXPECT_TRUE(each.intact());
  for (Blocks& each : all)
    each.free_some(0, 2);
  on_another_thread([] { churn_in_scope(50); });
  for (Blocks& each : all)
    EXPECT_TRUE(each.intact());
  for (Blocks& each : all)
    on_another_thread([&each] { each.free_some(1, 2); });
}

TEST(ScopeEscape, ReallocatedAndMeasuredOnAnotherThread) {
  for (const size_t size : {size_t{20}, size_t{500}, size_t{9000}}) {
    void* block = nullptr;
    {
      const sluice::scope scope;
      block = malloc(size);
      fill(block, size, size);
    }
    on_another_thread([&block, size] {
      EXPECT_GE(malloc_usable_size(block), size);
      block = realloc(block, size * 3);
      ASSERT_TRUE(holds(block, size, size));
      block = realloc(block, size / 4);
      EXPECT_TRUE(holds(block, size / 4, size));
    });
    EXPECT_TRUE(holds(block, size / 4, size));
    free(block);
  }
}

TEST(ScopeEscape, OfAThreadThatEndsWithTheScopeOpen) {
  Blocks blocks;
  on_another_thread([&blocks] {
    sluice_scope scope;
    sluice_scope_enter(&scope, SLUICE_ROUTE);
    blocks.allocate(3000, 5);
  });
  // The next thread takes over what the last one had, but not its scope.
  on_another_thread([&blocks] {
    void* const block = malloc(40);
    EXPECT_FALSE(is_in_arena(block));
    free(block);
    EXPECT_TRUE(blocks.intact());
    blocks.free_some(0, 2);
  });
  EXPECT_TRUE(blocks.intact());
  blocks.free_some();
}

// pthread keys have destructors, which run while and after the thread's memory is put away.
pthread_key_t late_key;
void* late_block = nullptr;
void allocate_late(void* value) {
  auto* const rounds = static_cast<int*>(value);
  sluice_scope scope;
  (void)sluice_scope_enter(&scope, SLUICE_ROUTE);
  void* const block = malloc(100);
  fill(block, 100, 9);
  free(late_block);
  late_block = block;
  sluice_scope_leave(&scope);
  if (--*rounds > 0) pthread_setspecific(late_key, rounds);
}

TEST(ScopeEscape, FromDestructorsAtTheEndOfAThread) {
  ASSERT_EQ(pthread_key_create(&late_key, allocate_late), 0);
  int rounds = PTHREAD_DESTRUCTOR_ITERATIONS;
  on_another_thread([&rounds] {
    const sluice::scope scope;
    free(malloc(100));
    pthread_setspecific(late_key, &rounds);
  });
  EXPECT_EQ(rounds, 0);
  EXPECT_TRUE(holds(late_block, 100, 9));
  free(late_block);
  pthread_key_delete(late_key);
}

struct AllocatesAtItsEnd {
  Blocks blocks;
  ~AllocatesAtItsEnd() {
    const sluice::scope scope;
    blocks.allocate(100, 3);
    EXPECT_TRUE(blocks.intact());
    blocks.free_some();
  }
};
thread_local AllocatesAtItsEnd at_the_end;

TEST(ScopeEscape, FromThreadLocalDestructors) {
  for (int i = 0; i < 50; ++i)
    on_another_thread([] {
      const sluice::scope scope;
      at_the_end.blocks.allocate(200, 1);
    });
}

TEST(ScopeEscape, ToTheChildOfAForkWithinTheScope) {
  const sluice::scope scope;
  Blocks blocks;
  blocks.allocate(4000, 2);
  EXPECT_EQ(exit_status_of_child([&blocks] {
              if (!blocks.intact()) return 1;
              void* const block = malloc(40);
              if (!is_in_arena(block)) return 2;  // the scope is open in the child too
              free(block);
              blocks.free_some(0, 2);
              churn_in_scope(20);
              if (!blocks.intact()) return 3;
              blocks.free_some();
              int status = 0;
              on_another_thread([&status] {
                Blocks others;
                const sluice::scope of_thread;
                others.allocate(2000, 3);
                status = others.intact() && others.all_in_arena() ? 0 : 4;
                others.free_some();
              });
              return status;
            }),
            0);
  EXPECT_TRUE(blocks.intact());
  blocks.free_some();
}

TEST(ScopeEscape, ToTheChildOfAForkWhileOtherThreadsHaveScopes) {
  constexpr size_t threads = 4;
  std::array<Blocks, threads> theirs;
  std::atomic<size_t> ready{0};
  std::atomic<bool> stop{false};
  std::vector<std::thread> running;
  for (size_t t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      const sluice::scope scope;
      theirs[t].allocate(2000, t);
      ++ready;
      while (!stop)
        churn_in_scope(1);
    });
  while (ready != threads)
    sched_yield();
  for (int fork_number = 0; fork_number < 20; ++fork_number) {
    ASSERT_EQ(exit_status_of_child([&theirs] {
                for (Blocks& each : theirs) {
                  if (!each.intact()) return 1;
                }
                churn_in_scope(5);
                for (Blocks& each : theirs)
                  each.free_some(0, 2);
                on_another_thread([&theirs] {
                  churn_in_scope(5);
                  for (Blocks& each : theirs)
                    each.free_some();
                });
                churn_in_scope(5);
                return 0;
              }),
              0);
  }
  stop = true;
  for (std::thread& thread : running)
    thread.join();
  for (Blocks& each : theirs) {
    EXPECT_TRUE(each.intact());
    each.free_some();
  }
}

TEST(ScopeEscape, HandedFromThreadToThreadForLong) {
  constexpr size_t threads = 3;
  constexpr size_t slots = 512;
  struct Slot {
    std::mutex lock;
    void* block = nullptr;
    size_t size = 0;
    uint64_t seed = 0;
  };
  std::vector<Slot> table(slots);
  std::atomic<size_t> damaged{0};
  std::vector<std::thread> running;
  for (size_t t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      Sequence random(t);
      for (long round = 0; round < scaled(300); ++round) {
        const sluice::scope scope;
        for (int i = 0; i < 300; ++i) {
          void* fresh = malloc(16);  // a temporary below most of the others
          Slot& slot = table[random.below(slots)];
          const std::lock_guard<std::mutex> guard(slot.lock);
          if (slot.block != nullptr && !holds(slot.block, slot.size, slot.seed)) ++damaged;
          const size_t size = random.below(random.below(20) == 0 ? 20000 : 300);
          if (random.below(4) == 0) {
            slot.block = realloc(slot.block, size + 1);
          } else {
            free(slot.block);
            slot.block = malloc(size + 1);
          }
          slot.size = size + 1;
          slot.seed = random.next();
          fill(slot.block, slot.size, slot.seed);
          free(fresh);
        }
      }
    });
  for (std::thread& thread : running)
    thread.join();
  EXPECT_EQ(damaged, 0u);
  for (Slot& slot : table)
    free(slot.block);
}

TEST(ScopeEscape, AProcessEndsWithItsScopesOpen) {
  static Blocks until_the_end;
  EXPECT_EXIT(
      {
        std::thread([] {
          static sluice_scope scope;
          sluice_scope_enter(&scope, SLUICE_ROUTE);
          churn_in_scope(1);
          pause();
        }).detach();
        static sluice_scope scope;
        sluice_scope_enter(&scope, SLUICE_ROUTE);
        until_the_end.allocate(1000, 4);
        std::atexit([] { until_the_end.free_some(0, 2); });
        std::exit(until_the_end.intact() ? 7 : 8);
      },
      testing::ExitedWithCode(7), "");
}

TEST(ScopeEscape, OneSurvivorInAThousandHoldsLittleMemory) {
  constexpr size_t objects = 1000000;
  std::vector<void*> survivors;
  survivors.reserve(objects / 1000);
  const size_t before = resident_bytes();
  for (size_t i = 0; i < objects / 1000; ++i) {
    const sluice::scope scope;
    std::array<void*, 1000> blocks;
    for (size_t k = 0; k < blocks.size(); ++k) {
      blocks[k] = malloc(64);
      fill(blocks[k], 64, i);
    }
    survivors.push_back(blocks[i]);
    for (size_t k = 0; k < blocks.size(); ++k)
      if (k != i) free(blocks[k]);
  }
  for (size_t i = 0; i < survivors.size(); ++i)
    ASSERT_TRUE(holds(survivors[i], 64, i));
  EXPECT_LT(resident_bytes(), before + 4 * MiB);  // all objects of one kind together are 64 MB
  for (void* block : survivors)
    free(block);
}

}  // namespace
