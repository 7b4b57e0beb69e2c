// Memory goes back to the system, and patterns that move it between threads stay bounded. ctest runs this
// with SLUICE_PURGE_DELAY=0, so that nothing here waits. Open it when a program's resident set stays high
// after its peak.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <thread>

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

}  // namespace
