// Threads with the smallest stacks that the system allows, and how much stack each call takes: the depth is read from a
// painted stack. Open it when a program with many threads or coroutines dies on a guard page within malloc.
#include <gtest/gtest.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sluice/sluice.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <algorithm>
#include <climits>
#include <thread>
#include <vector>

#include "subject.hpp"

namespace {

using namespace subject;

// What the calls of the heap may take. A handler's frame alone is 1 to 3 KiB, and a thread starts with most of 16 KiB.
constexpr size_t most_stack = 4 * KiB;
constexpr unsigned char paint = 0xa7;

// A thread whose stack is painted before it starts.
class PaintedThread {
 public:
  explicit PaintedThread(size_t size) : size_(size) {
    stack_ = static_cast<unsigned char*>(
        mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0));
    memset(stack_, paint, size);
  }
  ~PaintedThread() { munmap(stack_, size_); }
  PaintedThread(const PaintedThread&) = delete;
  PaintedThread& operator=(const PaintedThread&) = delete;

  void run(void* (*body)(void*), void* argument) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    ASSERT_EQ(pthread_attr_setstack(&attributes, stack_, size_), 0);
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, &attributes, body, argument), 0);
    ASSERT_EQ(pthread_join(thread, nullptr), 0);
    pthread_attr_destroy(&attributes);
  }
  // The lowest address that was written.
  uintptr_t lowest() const {
    size_t at = 0;
    while (at < size_ && stack_[at] == paint)
      ++at;
    return reinterpret_cast<uintptr_t>(stack_ + at);
  }

 private:
  size_t size_;
  unsigned char* stack_;
};

struct Measured {
  void (*body)();
  uintptr_t base;
};

void* run_measured(void* argument) {
  auto* const measured = static_cast<Measured*>(argument);
  measured->base = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  measured->body();
  return nullptr;
}

// Returns: the bytes of stack that the body took on a thread that has made no call before. The end of the thread, which
// gives its cache back, counts too.
size_t depth_of(void (*body)()) {
  PaintedThread thread(256 * KiB);
  Measured measured = {body, 0};
  thread.run(run_measured, &measured);
  const uintptr_t lowest = thread.lowest();
  return measured.base > lowest ? measured.base - lowest : 0;
}

std::vector<void*> blocks_of_others;

void allocate_blocks_of_others() {
  blocks_of_others.assign(20000, nullptr);
  std::thread([] {
    for (size_t i = 0; i < blocks_of_others.size(); ++i)
      blocks_of_others[i] = malloc(16 + i * 7 % 900);
  }).join();
}

// Fills and empties bins until they have been flushed, in order and scattered.
void churn() {
  constexpr size_t count = 3000;
  static void* blocks[count];
  for (const size_t size : {16u, 200u, 3000u}) {
    for (void*& block : blocks)
      block = malloc(size);
    for (size_t i = 0; i < count; ++i)
      free(blocks[i * 1009 % count]);
  }
}

void grow_a_large_block() {
  void* block = malloc(100000);
  for (size_t size = 200000; size < 40000000; size *= 2) {
    block = realloc(block, size);
    memset(block, 1, size < 100000 ? size : 100000);
  }
  free(realloc(block, 70000));
}

struct Row {
  const char* name;
  void (*body)();
};

const Row rows[] = {
    {"first malloc", [] { free(hide(malloc(10))); }},
    {"first free, of another thread's block", [] { free(blocks_of_others[0]); }},
    {"first large malloc", [] { free(hide(malloc(1000000))); }},
    {"refills and flushes", churn},
    {"flushes of another thread's blocks",
     [] {
       for (size_t i = 1; i < blocks_of_others.size(); ++i)
         free(blocks_of_others[i * 7001 % blocks_of_others.size()]);
     }},
    {"calloc", [] { free(hide(calloc(1000, 1000))); }},
    {"memalign", [] { free(hide(memalign(8192, 100000))); }},
    {"realloc of a large block", grow_a_large_block},
    {"malloc_trim", [] { malloc_trim(0); }},
    {"free of what is not ours", [] { free(hide(reinterpret_cast<void*>(uintptr_t{0x1000}))); }},
    {"scope",
     [] {
       sluice_scope scope;
       if (sluice_scope_enter != nullptr) (void)sluice_scope_enter(&scope, SLUICE_ROUTE);
       churn();
       free(hide(realloc(hide(malloc(100)), 9000)));
       if (sluice_scope_leave != nullptr) sluice_scope_leave(&scope);
     }},
};

TEST(StackDepth, OfEveryCallIsFourKiBAtMost) {
  allocate_blocks_of_others();
  const size_t idle = depth_of([] {});
  for (const Row& row : rows) {
    const size_t depth = depth_of(row.body);
    std::printf("%6zu bytes of stack: %s\n", depth, row.name);
    EXPECT_LE(depth, most_stack) << row.name;
    EXPECT_GE(depth, idle) << row.name;
  }
  blocks_of_others = {};
}

// A report holds names of files and which pages are in memory on its stack; only a signal that asks for statistics
// brings it to a thread that did not ask itself.
TEST(StackDepth, OfAReportIsEightKiBAtMost) {
  const size_t depth = depth_of([] {
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (sluice_stats_print != nullptr) (void)sluice_stats_print(nowhere, 1);
    close(nowhere);
  });
  std::printf("%6zu bytes of stack: report\n", depth);
  EXPECT_LE(depth, 8 * KiB);
}

TEST(StackDepth, IsMeasured) {
  const size_t depth = depth_of([] {
    char room[3000];
    memset(hide(&room[0]), 1, sizeof room);
  });
  EXPECT_GE(depth, 3000u);
  EXPECT_LE(depth, 3000u + 1 * KiB);
}

void* do_everything(void* result) {
  for (const Row& row : rows) {
    if (row.body != rows[1].body && row.body != rows[4].body) row.body();
  }
  delete hide(new int(5));
  *static_cast<bool*>(result) = true;
  return nullptr;
}

TEST(SmallestStack, IsEnoughForEveryCall) {
  const auto smallest = static_cast<size_t>(PTHREAD_STACK_MIN);
  for (const size_t size : {smallest, std::max(smallest, 64 * KiB)}) {  // on aarch64 both are 128 KiB
    for (int i = 0; i < 20; ++i) {
      bool done = false;
      PaintedThread thread(size);
      thread.run(do_everything, &done);
      EXPECT_TRUE(done);
    }
  }
}

void* fork_and_allocate(void* result) {
  const pid_t child = fork();
  if (child == 0) {
    free(malloc(100));
    free(malloc(100000));
    _exit(7);
  }
  int status = 0;
  waitpid(child, &status, 0);
  *static_cast<bool*>(result) = WIFEXITED(status) && WEXITSTATUS(status) == 7;
  free(malloc(100));
  return nullptr;
}

TEST(SmallestStack, IsEnoughForAFork) {
  bool done = false;
  PaintedThread thread(static_cast<size_t>(PTHREAD_STACK_MIN));
  thread.run(fork_and_allocate, &done);
  EXPECT_TRUE(done);
}

volatile sig_atomic_t handled = 0;

void allocate_in_handler(int) {
  free(hide(malloc(50)));
  free(hide(malloc(500000)));
  free(hide(memalign(4096, 100)));
  handled = handled + 1;
}

void* raise_on_an_alternate_stack(void* memory) {
  stack_t stack = {};
  stack.ss_sp = memory;
  stack.ss_size = static_cast<size_t>(sysconf(_SC_MINSIGSTKSZ)) + most_stack;
  if (sigaltstack(&stack, nullptr) != 0) return nullptr;
  pthread_kill(pthread_self(), SIGUSR1);
  stack.ss_flags = SS_DISABLE;
  sigaltstack(&stack, nullptr);
  return nullptr;
}

TEST(SmallestStack, OfAHandlerIsEnoughForTheFirstCallOfItsThread) {
  struct sigaction action = {};
  action.sa_handler = allocate_in_handler;
  action.sa_flags = SA_ONSTACK;
  ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
  // The page below the stack cannot be written: what goes deeper ends the process.
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  auto* const guard =
      static_cast<char*>(mmap(nullptr, 32 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(guard, MAP_FAILED);
  ASSERT_EQ(mprotect(guard, page, PROT_NONE), 0);
  for (int i = 0; i < 20; ++i) {
    PaintedThread thread(std::max(static_cast<size_t>(PTHREAD_STACK_MIN), 64 * KiB));
    thread.run(raise_on_an_alternate_stack, guard + page);
  }
  EXPECT_EQ(handled, 20);
  munmap(guard, 32 * page);
}

}  // namespace
