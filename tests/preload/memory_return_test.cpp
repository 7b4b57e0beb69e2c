// Memory goes back to the system, and patterns that move it between threads stay bounded. ctest runs this
// with SLUICE_PURGE_DELAY=0, so that nothing here waits. Open it when a program's resident set stays high
// after its peak.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "subject.hpp"

namespace {

using namespace subject;

// The table of blocks lies outside the heap, so that it neither grows nor shrinks with it.
class Table {
 public:
  explicit Table(size_t limit)
      : bytes_(limit * sizeof(void*)),
        blocks_(static_cast<void**>(
            mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {}
  ~Table() {
    release();
    munmap(static_cast<void*>(blocks_), bytes_);
  }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;
  void add(size_t size) {
    void* const block = malloc(size);
    memset(hide(block), 1, size);
    blocks_[count_++] = block;
  }
  void shuffle(Sequence& random) {
    for (size_t i = count_; i > 1; --i)
      std::swap(blocks_[i - 1], blocks_[random.below(i)]);
  }
  void release() {
    for (size_t i = 0; i < count_; ++i)
      free(blocks_[i]);
    count_ = 0;
  }

 private:
  size_t bytes_;
  void** blocks_;
  size_t count_ = 0;
};

// A few more calls of each kind: whatever the heap has put off comes due.
void use_the_heap_a_little() {
  for (int i = 0; i < 2000; ++i) {
    free(hide(malloc(40)));
    free(hide(malloc(3000)));
    free(hide(malloc(100000)));
  }
}

size_t growth(size_t before) {
  const size_t now = resident_bytes();
  return now > before ? now - before : 0;
}

TEST(MemoryReturns, AfterSmallAndLargeBlocksAreFreed) {
  Table table(6 << 20);
  use_the_heap_a_little();
  const size_t before = resident_bytes();
  const struct {
    size_t size, total;
  } parts[] = {{48, 96 * MiB}, {500, 96 * MiB}, {6000, 96 * MiB}, {100000, 112 * MiB}, {4 * MiB, 112 * MiB}};
  for (int round = 0; round < 6; ++round) {
    for (const auto& part : parts) {
      for (size_t done = 0; done < part.total; done += part.size)
        table.add(part.size);
    }
    ASSERT_GE(growth(before), 400 * MiB);
    table.release();
    use_the_heap_a_little();
    EXPECT_LT(growth(before), 48 * MiB) << "round " << round;
  }
}

// One block of each 64 KiB goes first, so that what a cache keeps of the first or of the last ones keeps much with it.
TEST(MemoryReturns, WhenWhatWasFreedFirstLiesFarApart) {
  Table first(1 << 20);
  Table rest(6 << 20);
  use_the_heap_a_little();
  const size_t before = resident_bytes();
  for (const size_t size : {30, 60, 90, 120, 180, 240, 360, 500, 1000})
    for (size_t i = 0; i < 260 * 65536 / size; ++i)
      (i % (65536 / size) == 0 ? first : rest).add(size);
  first.release();
  rest.release();
  for (int i = 0; i < 1000; ++i)
    use_the_heap_a_little();
  EXPECT_LT(growth(before), 40 * MiB);
}

TEST(MemoryReturns, AfterAThreadThatHeldMuchEnded) {
  use_the_heap_a_little();
  const size_t before = resident_bytes();
  std::thread([] {
    Table table(2 << 20);
    for (size_t done = 0; done < 200 * MiB; done += 200)
      table.add(200);
    table.release();
  }).join();
  use_the_heap_a_little();
  EXPECT_LT(growth(before), 48 * MiB);
}

// Each fills 2 MiB with blocks of mixed sizes, frees all of them in random order, and makes no other call.
TEST(MemoryReturns, FromThreadsThatSleep) {
  if (is_secure_build()) GTEST_SKIP() << "there the blocks freed last wait, and nobody sees that they are the last";
  constexpr size_t thread_count = 64;
  std::atomic<size_t> arrived{0};
  std::atomic<bool> over{false};
  use_the_heap_a_little();
  const size_t before = resident_bytes();
  std::vector<std::thread> threads;
  for (size_t t = 0; t < thread_count; ++t) {
    threads.emplace_back([&, t] {
      {
        Table table(1 << 18);
        Sequence random(t + 1);
        for (size_t done = 0; done < 2 * MiB;) {
          const size_t size = 16 + random.below(random.below(2) == 0 ? 500 : 4000);
          table.add(size);
          done += size;
        }
        table.shuffle(random);
      }
      ++arrived;
      over.wait(false);
    });
  }
  while (arrived != thread_count)
    sched_yield();
  // Stacks and what is used last of a few classes; larger pages of them are more.
  EXPECT_LT(growth(before) / thread_count, 300 * KiB + 2 * (static_cast<size_t>(sysconf(_SC_PAGESIZE)) - 4 * KiB));
  over = true;
  over.notify_all();
  for (std::thread& thread : threads)
    thread.join();
}

TEST(MemoryReturns, WhenAnotherThreadFrees) {
  use_the_heap_a_little();
  const size_t before = resident_bytes();
  Table table(2 << 20);
  for (size_t done = 0; done < 200 * MiB; done += 300)
    table.add(300);
  ASSERT_GE(growth(before), 120 * MiB);
  std::thread([&table] { table.release(); }).join();
  use_the_heap_a_little();
  for (size_t i = 0; i < 300; ++i)
    free(hide(malloc(300)));
  EXPECT_LT(growth(before), 48 * MiB);
}

// Blocks of 512 bytes to 2 KiB of which one in 20 stays, so that hardly any slab is empty, and most pages are.
class Thinned {
 public:
  static constexpr size_t blocks = 60000;

  Thinned() : blocks_(blocks) {
    for (size_t i = 0; i < blocks; ++i) {
      blocks_[i] = static_cast<unsigned char*>(malloc(size(i)));
      memset(hide(blocks_[i]), static_cast<int>(i % 251), size(i));
    }
  }
  void free_most() {
    for (size_t round = 0; round < stride; ++round)
      for (size_t i = round; i < blocks; i += stride)
        if (i % one_stays_of != 0) free(std::exchange(blocks_[i], nullptr));
  }
  bool is_intact() const {
    for (size_t i = 0; i < blocks; ++i)
      if (blocks_[i] != nullptr && (blocks_[i][0] != i % 251 || memcmp(blocks_[i], blocks_[i] + 1, size(i) - 1) != 0))
        return false;
    return true;
  }
  ~Thinned() {
    for (unsigned char* block : blocks_)
      free(block);
  }
  Thinned(const Thinned&) = delete;
  Thinned& operator=(const Thinned&) = delete;

 private:
  static constexpr size_t one_stays_of = 20;
  static constexpr size_t stride = 7;
  static size_t size(size_t i) { return i < blocks / 2 ? 512 : i < blocks / 6 * 5 ? 1024 : 2048; }
  std::vector<unsigned char*> blocks_;
};
// Of 56 MiB. 2.8 MiB are alive, on 12 MiB of pages. 4 MiB are not worth another walk (heap/sparse.hpp), and the
// kernel's thread may fill up huge pages until an eighth of 64 MiB has gone from them.
constexpr size_t most_of_thinned = 26 * MiB;

// The secure build keeps such pages, since freed blocks are checked there.
class BetweenBlocksThatStay : public testing::Test {
 protected:
  void SetUp() override {
    if (is_secure_build() || sysconf(_SC_PAGESIZE) > 4096) GTEST_SKIP();
    use_the_heap_a_little();
    malloc_trim(0);
  }
};

TEST_F(BetweenBlocksThatStay, PagesGoWithoutAnotherCall) {
  const size_t before = resident_bytes();
  Thinned thinned;
  ASSERT_GE(growth(before), 48 * MiB);
  thinned.free_most();
  EXPECT_LT(growth(before), most_of_thinned);
  EXPECT_TRUE(thinned.is_intact());
}

TEST_F(BetweenBlocksThatStay, PagesOfAThreadThatEndedGo) {
  const size_t before = resident_bytes();
  std::unique_ptr<Thinned> thinned;
  std::thread([&thinned] {
    thinned = std::make_unique<Thinned>();
    thinned->free_most();
  }).join();
  malloc_trim(0);
  EXPECT_LT(growth(before), most_of_thinned);
  EXPECT_TRUE(thinned->is_intact());
}

TEST_F(BetweenBlocksThatStay, PagesOfAThreadThatEndedGoWhenAnotherFreesThem) {
  const size_t before = resident_bytes();
  std::unique_ptr<Thinned> thinned;
  std::thread([&thinned] { thinned = std::make_unique<Thinned>(); }).join();
  thinned->free_most();
  malloc_trim(0);
  EXPECT_LT(growth(before), most_of_thinned);
  EXPECT_TRUE(thinned->is_intact());
}

TEST_F(BetweenBlocksThatStay, PagesOfAThreadThatSleepsGoAtATrim) {
  const size_t before = resident_bytes();
  std::unique_ptr<Thinned> thinned;
  std::atomic<int> step{0};
  std::thread sleeper([&] {
    thinned = std::make_unique<Thinned>();
    step = 1;
    step.notify_one();
    step.wait(1);
  });
  step.wait(0);
  thinned->free_most();
  malloc_trim(0);
  EXPECT_LT(growth(before), most_of_thinned);
  EXPECT_TRUE(thinned->is_intact());
  step = 2;
  step.notify_one();
  sleeper.join();
}

// Forks while threads free, trim and take again: the children find all blocks as they were, and go on.
TEST_F(BetweenBlocksThatStay, ForksFindThemWhole) {
  std::atomic<bool> is_over{false};
  std::thread other([&is_over] {
    while (!is_over) {
      Thinned thinned;
      thinned.free_most();
      EXPECT_TRUE(thinned.is_intact());
    }
  });
  std::thread trimmer([&is_over] {
    while (!is_over) {
      malloc_trim(0);
      usleep(500);
    }
  });
  Thinned kept;
  kept.free_most();
  for (long i = 0; i < scaled(30); ++i) {
    const pid_t child = fork();
    if (child == 0) {
      bool right = kept.is_intact();
      if (i % 5 == 0) {
        Thinned more;
        more.free_most();
        right = right && more.is_intact();
      }
      malloc_trim(0);
      _exit(right && kept.is_intact() ? 0 : 1);
    }
    ASSERT_GT(child, 0);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  is_over = true;
  other.join();
  trimmer.join();
  EXPECT_TRUE(kept.is_intact());
}

TEST(ProducerAndConsumer, HoldNoMoreThanWhatIsBetweenThem) {
  constexpr size_t capacity = 4096;
  static std::atomic<void*> ring[capacity];
  use_the_heap_a_little();
  const size_t before = resident_bytes();
  const long messages = scaled(1500000);
  std::atomic<size_t> highest{0};
  std::thread consumer([messages] {
    for (long i = 0; i < messages; ++i) {
      std::atomic<void*>& slot = ring[static_cast<size_t>(i) % capacity];
      void* message = nullptr;
      while ((message = slot.exchange(nullptr)) == nullptr)
        sched_yield();
      free(message);
    }
  });
  Sequence random(1);
  for (long i = 0; i < messages; ++i) {
    const size_t size = 32 + random.below(700);
    void* const message = malloc(size);
    static_cast<char*>(message)[0] = 1;
    static_cast<char*>(message)[size - 1] = 1;
    std::atomic<void*>& slot = ring[static_cast<size_t>(i) % capacity];
    while (slot.load() != nullptr)
      sched_yield();
    slot = message;
    if (i % 50000 == 0) highest = std::max(highest.load(), growth(before));
  }
  consumer.join();
  EXPECT_LT(highest, 32 * MiB);
}

TEST(Realloc, OfOneGrowingBlockLeavesNoTrail) {
  use_the_heap_a_little();
  const size_t before = resident_bytes();
  char* block = nullptr;
  for (size_t size = 64 * KiB; size < 64 * MiB; size += 128 * KiB) {
    block = static_cast<char*>(realloc(block, size));
    ASSERT_NE(block, nullptr);
    memset(block + size - 64 * KiB, 1, 64 * KiB);
  }
  EXPECT_LT(growth(before), 160 * MiB);
  free(block);
  use_the_heap_a_little();
  EXPECT_LT(growth(before), 48 * MiB);
}

// glibc gives such blocks their own mappings: what a program asks the system to do with their pages ends with them.
class WhatWasAskedOfPages : public testing::Test {
 protected:
  static constexpr size_t count = 12, size = 8 * MiB, page = 4096 * 16;

  void take_and_write() {
    for (char*& block : blocks_) {
      block = static_cast<char*>(malloc(size));
      ASSERT_NE(block, nullptr);
      memset(hide(block), 1, size);
    }
  }
  int advise(int what) {
    int result = 0;
    for (char* const block : blocks_)
      result |= madvise(block + (page - reinterpret_cast<uintptr_t>(block) % page), size - page, what);
    return result;
  }
  void release_and_trim() {
    for (char* const block : blocks_)
      free(block);
    use_the_heap_a_little();
    malloc_trim(0);
  }

  char* blocks_[count];
};

// Numpy asks so for all arrays of 4 MiB and more.
TEST_F(WhatWasAskedOfPages, HugePagesAreForItsBlockAlone) {
  take_and_write();
  if (advise(MADV_HUGEPAGE) != 0) GTEST_SKIP() << "this system has no huge pages";
  release_and_trim();
  const size_t before = resident_bytes();
  take_and_write();
  release_and_trim();
  void* sparse[count];
  for (void*& block : sparse) {
    block = malloc(size);
    for (size_t at = 0; at < size; at += MiB)
      static_cast<char*>(hide(block))[at] = 1;
  }
  EXPECT_LT(growth(before), count * size / 8);
  for (void* block : sparse)
    free(block);
}

TEST_F(WhatWasAskedOfPages, ChildrenHaveThemAgain) {
  take_and_write();
  ASSERT_EQ(advise(MADV_DONTFORK), 0);
  release_and_trim();
  take_and_write();
  const pid_t child = fork();
  if (child == 0) {
    for (const char* block : blocks_)
      for (size_t at = 0; at < size; at += 4096)
        if (block[at] != 1) _exit(1);
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  release_and_trim();
}

// New mappings are in memory at once there, and what is locked would stay.
TEST_F(WhatWasAskedOfPages, WhereNewMemoryIsLockedAllGoesBackAsBefore) {
  const pid_t child = fork();
  if (child == 0) {
    take_and_write();
    release_and_trim();
    const size_t before = resident_bytes();
    if (mlockall(MCL_FUTURE) != 0) _exit(2);
    for (int round = 0; round < 3; ++round) {
      take_and_write();
      release_and_trim();
    }
    _exit(growth(before) < count * size / 8 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "no memory may be locked here";
  EXPECT_EQ(status, 0);
}

}  // namespace
