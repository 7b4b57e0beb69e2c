// The memory of a program that is several processes: all of them count, and what they share counts once.
#include "measure/memory_timeline.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstring>
#include <functional>

namespace bench {
namespace {

constexpr std::size_t block = 20 << 20;
constexpr double block_kib = 20 << 10;

// A launcher whose `count` children have each done something and hold it, for as long as this lives.
class Launcher {
 public:
  Launcher(int count, const std::function<void()>& work) {
    int ready[2];
    EXPECT_EQ(pipe(ready), 0);
    pid_ = fork();
    if (pid_ == 0) launch(count, work, ready[1]);
    setpgid(pid_, pid_);  // here, too: the end of this may come before the child has done so
    close(ready[1]);
    char byte;
    for (int i = 0; i < count; ++i)
      EXPECT_EQ(read(ready[0], &byte, 1), 1);
    close(ready[0]);
  }
  ~Launcher() {
    kill(-pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

  pid_t pid() const { return pid_; }

 private:
  [[noreturn]] static void launch(int count, const std::function<void()>& work, int ready) {
    setpgid(0, 0);
    for (int i = 0; i < count; ++i) {
      if (fork() != 0) continue;
      work();
      if (write(ready, "x", 1) != 1) _exit(1);
      for (;;)
        pause();
    }
    for (;;)
      pause();
  }

  pid_t pid_;
};

char* touched(int sharing) {
  void* const memory = mmap(nullptr, block, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS, -1, 0);
  return static_cast<char*>(std::memset(memory, 1, block));
}

double peak_of(const Launcher& launcher) {
  MemoryTimeline memory;
  memory.watch(launcher.pid(), false);
  memory.read_if_due();
  memory.end();
  return memory.peak_kib();
}

TEST(MemoryTimeline, TheProcessesOfAProgramAreAddedUp) {
  const Launcher launcher(6, [] { touched(MAP_PRIVATE); });
  EXPECT_GE(peak_of(launcher), 6 * block_kib);
  EXPECT_LT(peak_of(launcher), 7 * block_kib);
}

TEST(MemoryTimeline, WhatTheyShareCountsOnce) {
  char* const shared = touched(MAP_SHARED);
  {
    const Launcher launcher(6, [&] { std::memset(shared, 2, block); });
    // This process and the launcher have a part in it, too.
    EXPECT_GE(peak_of(launcher), block_kib / 2);
    EXPECT_LT(peak_of(launcher), 2 * block_kib);
  }
  munmap(shared, block);
}

// Who reads in a loop would take the processor from the launcher, which has yet to say that they have ended: for good
// where both have a real-time priority.
TEST(MemoryTimeline, WhereNothingIsHeldTheNextReadingIsLater) {
  const Launcher launcher(0, [] {});
  for (const bool has_curve : {true, false}) {
    MemoryTimeline memory;
    memory.watch(launcher.pid(), has_curve);
    bool waits = false;
    for (int i = 0; i < 10'000 && !waits; ++i) {  // between two steps of this others may run
      memory.read_if_due();
      waits = memory.until_due().count() > 0;
    }
    EXPECT_TRUE(waits) << (has_curve ? "with a curve" : "without one");
  }
}

// The system knows its peak, which no reading would catch.
TEST(MemoryTimeline, ASingleProcessIsNotRead) {
  const Launcher launcher(1, [] { touched(MAP_PRIVATE); });
  EXPECT_EQ(peak_of(launcher), 0);
}

TEST(MemoryTimeline, TheCurveIsThatOfAll) {
  const Launcher launcher(3, [] { touched(MAP_PRIVATE); });
  MemoryTimeline memory;
  memory.watch(launcher.pid(), true);
  memory.read_if_due();
  ASSERT_FALSE(memory.timeline().rss_kib.empty());
  EXPECT_GE(memory.timeline().rss_kib.front(), 3 * block_kib);
}

TEST(MemoryTimeline, TheTimeInWhichNobodyLookedIsKnown) {
  const Launcher launcher(2, [] {});
  MemoryTimeline memory;
  memory.watch(launcher.pid(), false);
  memory.read_if_due();
  usleep(30000);
  memory.end();
  EXPECT_GE(memory.longest_gap(), std::chrono::milliseconds(30));
}

}  // namespace
}  // namespace bench
