// What unusual but correct programs do to a malloc, and what faulty ones get told. Each test here stands for a fault
// that was found by trying to break the heap. Open it when a program forks from a handler, limits itself, or maps
// memory of its own where the heap wants to grow.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "golden/stepped_instructions.hpp"
#include "subject.hpp"

namespace {

volatile sig_atomic_t handled = 0;

// One interruption at a time: a timer that repeats would leave a slow machine in its handlers for ever.
void interrupt_soon() {
  const itimerval once{{0, 0}, {0, 300}};
  setitimer(ITIMER_REAL, &once, nullptr);
}

void allocate_large(int) {
  handled = handled + 1;
  free(malloc(200000));
  interrupt_soon();
}

void fork_a_child(int) {
  handled = handled + 1;
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  interrupt_soon();
}

// Allocates and frees large and small blocks while a timer interrupts, until the handler has run `count` times.
void work_under_timer(void (*handler)(int), int count) {
  handled = 0;
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  interrupt_soon();
  for (unsigned round = 0; handled < count; ++round) {
    void* first = malloc(100000 + round % 7 * 70000);
    void* second = malloc(300000);
    free(first);
    free(second);
  }
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  action.sa_handler = SIG_IGN;  // gVisor may bring one that is on its way a little later
  sigaction(SIGALRM, &action, nullptr);
}

// The body of a test that changes the process for good.
template <typename Body>
int exit_status_of_child(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

size_t resident_kib() {
  long pages = 0;
  if (FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return static_cast<size_t>(pages) * static_cast<size_t>(sysconf(_SC_PAGESIZE)) / 1024;
}

TEST(Hostile, a_handler_that_allocates_large_blocks_does_not_deadlock) {
  work_under_timer(allocate_large, 1000);
}

TEST(Hostile, a_fork_in_a_handler_does_not_deadlock) {
  work_under_timer(fork_a_child, 300);
}

int failed_allocations = 0;
void allocate_in_fork() {
  for (size_t i = 0; i < 500; ++i) {
    void* block = malloc(100 + i);
    if (block == nullptr) ++failed_allocations;
    free(block);
  }
  void* large = malloc(300000);
  if (large == nullptr) ++failed_allocations;
  free(large);
}
void register_before_the_heap_starts() {
  pthread_atfork(allocate_in_fork, allocate_in_fork, allocate_in_fork);
}
__attribute__((section(".preinit_array"), used)) void (*first_of_all)() = register_before_the_heap_starts;

TEST(Hostile, fork_handlers_that_were_registered_first_may_allocate) {
  failed_allocations = 0;
  EXPECT_EQ(exit_status_of_child([] { return failed_allocations; }), 0);
  EXPECT_EQ(failed_allocations, 0);
}

TEST(Hostile, a_program_that_limits_its_own_address_space_goes_on) {
  EXPECT_EQ(exit_status_of_child([] {
              const rlimit limit{size_t{2} << 30, size_t{2} << 30};
              if (setrlimit(RLIMIT_AS, &limit) != 0) return 1;
              void* block = malloc(size_t{100} << 20);
              if (block == nullptr) return 2;
              bool ran = false;
              std::thread([&ran] { ran = true; }).join();
              return ran && mmap(nullptr, 1 << 20, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED ? 0 : 3;
            }),
            0);
}

// Where the mapping that holds an address ends, with those that follow it without a gap.
uintptr_t end_of_mappings(const void* address) {
  uintptr_t end = 0;
  FILE* maps = std::fopen("/proc/self/maps", "r");
  if (maps == nullptr) return 0;
  char line[512];
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    unsigned long low = 0;
    unsigned long high = 0;
    if (std::sscanf(line, "%lx-%lx", &low, &high) != 2) continue;
    const auto at = reinterpret_cast<uintptr_t>(address);
    if ((low <= at && at < high) || low == end) end = high;
  }
  std::fclose(maps);
  return end;
}

TEST(Hostile, the_heap_grows_past_memory_that_others_map_behind_it) {
  EXPECT_EQ(exit_status_of_child([] {
              void* block = malloc(100);
              void* wall = mmap(reinterpret_cast<void*>(end_of_mappings(block)), 4096, PROT_READ,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
              if (wall == MAP_FAILED) return 1;
              for (int i = 0; i < 1000; ++i) {
                auto* large = static_cast<char*>(malloc(1000000));
                if (large == nullptr) return 2;
                large[0] = large[999999] = 1;
              }
              return *static_cast<char*>(wall) == 0 ? 0 : 3;
            }),
            0);
}

// Threads wait while the child of a fork takes over what is theirs.
TEST(Hostile, the_heap_grows_past_huge_mappings_and_forks_go_on) {
  EXPECT_EQ(exit_status_of_child([] {
              constexpr size_t bytes = size_t{100} << 30;
              void* const block = malloc(100);
              void* const wall = mmap(reinterpret_cast<void*>(end_of_mappings(block)), bytes, PROT_NONE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
              if (wall == MAP_FAILED) return 1;
              auto* const large = static_cast<char*>(malloc(size_t{1} << 30));
              if (large == nullptr) return 2;
              large[0] = large[(size_t{1} << 30) - 1] = 1;
              std::atomic<bool> stop{false};
              std::thread other([&stop] {
                while (!stop)
                  free(malloc(300000));
              });
              int status = 0;
              for (int i = 0; i < 20 && status == 0; ++i)
                status = exit_status_of_child([] {
                  for (int block_index = 0; block_index < 300; ++block_index) {
                    auto* const more = static_cast<char*>(malloc(1000000));
                    if (more == nullptr) return 3;
                    more[0] = more[999999] = 1;
                  }
                  return 0;
                });
              stop = true;
              other.join();
              free(large);
              return status;
            }),
            0);
}

TEST(Hostile, under_a_limit_the_heap_grows_past_huge_mappings) {
  EXPECT_EQ(exit_status_of_child([] {
              constexpr size_t bytes = size_t{100} << 30;
              void* const block = malloc(100);
              void* const wall = mmap(reinterpret_cast<void*>(end_of_mappings(block)), bytes, PROT_NONE,
                                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
              if (wall == MAP_FAILED) return 1;
              unsigned long pages = 0;
              FILE* const statm = std::fopen("/proc/self/statm", "r");
              if (statm == nullptr || std::fscanf(statm, "%lu", &pages) != 1) return 2;
              std::fclose(statm);
              const size_t used = pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
              const rlimit limit{used + (size_t{1700} << 20), used + (size_t{1700} << 20)};
              if (setrlimit(RLIMIT_AS, &limit) != 0) return 3;
              auto* const large = static_cast<char*>(malloc(size_t{1} << 30));
              if (large == nullptr) return 4;
              large[0] = large[(size_t{1} << 30) - 1] = 1;
              return 0;
            }),
            0);
}

TEST(Hostile, memory_of_threads_that_have_ended_goes_back) {
  // All live at once, so that each has a cache and slabs of its own.
  constexpr size_t threads = 200;
  std::vector<std::vector<void*>> blocks(threads);
  std::vector<std::thread> running;
  std::atomic<size_t> done{0};
  const size_t before = resident_kib();
  for (size_t t = 0; t < threads; ++t)
    running.emplace_back([&mine = blocks[t], &done] {
      for (const size_t size : {5000, 6000, 7000, 8000})
        for (int i = 0; i < 8; ++i) {
          mine.push_back(malloc(size));
          subject::fill(mine.back(), size, 1);
        }
      ++done;
      while (done < threads)
        sched_yield();
    });
  for (std::thread& thread : running)
    thread.join();
  EXPECT_GT(resident_kib(), before + 35000);
  for (const auto& mine : blocks)
    for (void* block : mine)
      free(block);
  EXPECT_LT(resident_kib(), before + 25000);  // what is retained for reuse, and some
}

// No page goes back, since a free may walk over a part of the slabs when pages are old.
TEST(Hostile, a_free_of_a_thread_s_that_has_ended_takes_as_much_work_however_many_there_are) {
  if (!stepped::prepare()) GTEST_SKIP() << "instructions are counted on x86-64 only";
  EXPECT_EQ(exit_status_of_child([] {
              if (mallopt(M_TRIM_THRESHOLD, -1) != 1) return 3;
              std::vector<void*> blocks(600000);
              std::thread([&blocks] {
                for (void*& block : blocks)
                  block = malloc(64);
              }).join();
              // Some frees in a row out of every so many are counted, from the first to the last.
              constexpr size_t row = 64;
              constexpr size_t every = 250000;
              size_t worst = 0;
              for (size_t i = 0; i < blocks.size(); ++i) {
                void* const block = blocks[i * 7919 % blocks.size()];
                if (i % every >= row) {
                  free(block);
                  continue;
                }
                static size_t taken;
                taken = (i % every == 0 ? 0 : taken) + stepped::instructions_of([block] { free(block); });
                worst = std::max(worst, taken);
              }
              if (worst <= row) return 1;
              // Some hundred for each; one that looked at all of the thread's slabs, about 600, would take some
              // thousand.
              return worst < row * 1500 ? 0 : 2;
            }),
            0);
}

#if defined(__x86_64__)

constexpr size_t list_bytes = 4096;  // of blocks whose class's lists are full with four of them, and change places

void go_round() {
  void* blocks[8];
  for (void*& block : blocks)
    block = malloc(list_bytes);
  for (void* const block : blocks)
    free(block);
}

void* to_free;      // by the handler…
size_t until_free;  // …at this instruction of the library, counted down
bool was_freed;

void free_in_turn(int, siginfo_t*, void* context) {
  auto* const interrupted = static_cast<ucontext_t*>(context);
  const auto at = static_cast<uintptr_t>(interrupted->uc_mcontext.gregs[REG_RIP]);
  if (was_freed || !stepped::library.contains(at) || --until_free != 0) return;
  interrupted->uc_mcontext.gregs[REG_EFL] &= ~greg_t{0x100};
  was_freed = true;
  free(to_free);
}

// Returns: 0 where no more is lost than the handler's own block, 1 where more is, 2 where the round has no such
// instruction.
int go_round_and_free_at(size_t instruction) {
  malloc_trim(0);  // what other classes keep leaves less to this one
  to_free = malloc(list_bytes);
  for (int i = 0; i < 4; ++i)
    go_round();
  struct sigaction action {};
  action.sa_sigaction = free_in_turn;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGTRAP, &action, nullptr);
  until_free = instruction;
  const size_t before = mallinfo2().uordblks;
  stepped::set_trap_flag();
  go_round();
  stepped::clear_trap_flag();
  if (!was_freed) return 2;
  return mallinfo2().uordblks <= before ? 0 : 1;
}

TEST(Hostile, a_handler_that_frees_a_block_at_any_instruction_loses_no_others) {
  if (subject::is_secure_build()) GTEST_SKIP() << "freed blocks wait there, and no lists change places";
  if (!stepped::prepare()) GTEST_SKIP() << "instructions are counted on x86-64 only";
  size_t instruction = 1;
  for (int status = 0; status != 2; ++instruction) {
    status = exit_status_of_child([instruction] { return go_round_and_free_at(instruction); });
    ASSERT_NE(status, 1) << "at instruction " << instruction;
    ASSERT_TRUE(status == 0 || status == 2) << status << " at instruction " << instruction;
  }
  EXPECT_GT(instruction, 100u);  // there were some
}

#endif

TEST(Hostile, a_large_block_grows_again_and_again_and_keeps_its_contents) {
  size_t size = 300000;
  auto* block = static_cast<unsigned char*>(malloc(size));
  for (size_t i = 0; i < size; i += 512)
    block[i] = static_cast<unsigned char>(i >> 9);
  const size_t written = size;
  for (; size < (size_t{200} << 20); size = size * 3 / 2) {
    block = static_cast<unsigned char*>(realloc(block, size));
    ASSERT_NE(block, nullptr);
    block[size - 1] = 1;
    for (size_t i = 0; i < written; i += 512)
      ASSERT_EQ(block[i], static_cast<unsigned char>(i >> 9));
  }
  free(block);
}

// Frees one block of many a second time, and then enough others for its bin to be flushed.
int free_twice() {
  std::vector<void*> blocks(5000);
  for (void*& block : blocks)
    block = malloc(40);
  blocks[77] = blocks[78];
  for (void* block : blocks)
    free(block);
  return 0;
}

TEST(Hostile, a_double_free_is_named_and_stops_the_process) {
  EXPECT_EXIT(_exit(free_twice()), testing::KilledBySignal(SIGABRT), "sluice: double free");
}

}  // namespace
