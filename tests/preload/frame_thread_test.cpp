// The frame memory of many threads: that it goes back when they end, whatever they leave open. Open it when memory
// grows with the number of threads that have ended, or a thread cannot use frames.
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <sluice/frame.hpp>
#include <string>
#include <vector>

#include "arena_subject.hpp"

namespace {

using namespace subject;

void use_frames(size_t bytes) {
  for (size_t used = 0; used < bytes; used += 1000) {
    void* const block = sluice_frame_alloc(1000, 16);
    ASSERT_NE(block, nullptr);
    memset(block, 1, 1000);
  }
}

TEST(FrameThread, EachHasItsOwn) {
  constexpr size_t threads = 8;
  std::vector<std::thread> running;
  std::atomic<size_t> damaged{0};
  for (size_t t = 0; t < threads; ++t)
    running.emplace_back([t, &damaged] {
      for (size_t round = 0; round < 200; ++round) {
        const sluice::frame frame;
        std::vector<void*> blocks;
        for (size_t i = 0; i < 300; ++i) {
          blocks.push_back(sluice_frame_alloc(i, 8));
          fill(blocks.back(), i, t * 1000 + i);
        }
        for (size_t i = 0; i < blocks.size(); ++i)
          damaged += holds(blocks[i], i, t * 1000 + i) ? 0 : 1;
      }
    });
  for (std::thread& thread : running)
    thread.join();
  EXPECT_EQ(damaged, 0u);
}

TEST(FrameThread, MemoryGoesBackWithTheThreadAlsoWithoutARewind) {
  const auto run_threads = [](int count) {
    for (int i = 0; i < count; ++i)
      on_another_thread([i] {
        (void)sluice_frame_mark();
        use_frames(i % 4 == 0 ? 200000 : 5000);
        if (i % 8 == 0) memset(sluice_frame_alloc(300000, 16), 1, 300000);
      });
  };
  run_threads(50);
  const size_t before = resident_bytes();
  run_threads(2000);
  EXPECT_LT(resident_bytes(), before + 16 * MiB);  // 2,000 threads together filled 200 MB
}

TEST(FrameThread, ManyAtATimeGiveTheirsBack) {
  const auto run_threads = [] {
    std::vector<std::thread> running;
    for (int i = 0; i < 100; ++i)
      running.emplace_back([] {
        use_frames(100000);
        const sluice::frame open_to_the_end;
        use_frames(100000);
      });
    for (std::thread& thread : running)
      thread.join();
  };
  run_threads();
  const size_t before = resident_bytes();
  for (int round = 0; round < 20; ++round)
    run_threads();
  EXPECT_LT(resident_bytes(), before + 32 * MiB);
}

TEST(FrameThread, BlocksMayBeReadAndWrittenByOthers) {
  const sluice::frame frame;
  void* const block = sluice_frame_alloc(100000, 64);
  on_another_thread([block] { fill(block, 100000, 7); });
  EXPECT_TRUE(holds(block, 100000, 7));
}

struct UsesFramesAtItsEnd {
  int value = 0;
  ~UsesFramesAtItsEnd() {
    const sluice::frame frame;
    use_frames(100000);
  }
};
thread_local UsesFramesAtItsEnd at_the_end;

TEST(FrameThread, ThreadLocalDestructorsMayUseFrames) {
  for (int i = 0; i < 100; ++i)
    on_another_thread([] {
      at_the_end.value = 1;
      use_frames(1000);
    });
}

// Destructors of keys run while and after the thread's memory is put away. Those of the first round have all of it;
// later ones get memory or a plain refusal.
struct LateUse {
  pthread_key_t key;
  int rounds;
  int refused_first;
};
void use_frames_late(void* value) {
  auto* const use = static_cast<LateUse*>(value);
  const sluice_mark mark = sluice_frame_mark();
  errno = 0;
  void* const block = sluice_frame_alloc(100, 16);
  if (block != nullptr) {
    memset(block, 1, 100);
  } else {
    EXPECT_EQ(errno, ENOMEM);
    use->refused_first += use->rounds == PTHREAD_DESTRUCTOR_ITERATIONS;
  }
  sluice_frame_rewind(mark);
  if (--use->rounds > 0) pthread_setspecific(use->key, use);
}

TEST(FrameThread, DestructorsOfKeysMayUseFrames) {
  LateUse use{};
  ASSERT_EQ(pthread_key_create(&use.key, use_frames_late), 0);
  for (int i = 0; i < 100; ++i) {
    use.rounds = PTHREAD_DESTRUCTOR_ITERATIONS;
    on_another_thread([&use] {
      use_frames(100000);
      pthread_setspecific(use.key, &use);
    });
    ASSERT_EQ(use.rounds, 0);
  }
  EXPECT_EQ(use.refused_first, 0);
  pthread_key_delete(use.key);
}

}  // namespace
