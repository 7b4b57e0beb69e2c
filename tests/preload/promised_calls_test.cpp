// A sandbox that allows the heap six system calls and ends the process at any other: mmap, munmap, mremap, madvise,
// mprotect and futex, beside what the program itself needs. Open it when a program that is sandboxed by a list of
// allowed calls dies in malloc.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <sluice/sluice.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cstddef>
#include <thread>
#include <vector>

#include "subject.hpp"

namespace {

using namespace subject;

const std::vector<long> promised = {SYS_mmap, SYS_munmap, SYS_mremap, SYS_madvise, SYS_mprotect, SYS_futex};

#if defined(SYS_alarm)
constexpr long alarm_call = SYS_alarm;
#else
constexpr long alarm_call = SYS_setitimer;
#endif

// What the C library needs to start threads, to fork, to write and to end.
const std::vector<long> of_program = {SYS_read,         SYS_write,           SYS_close,  SYS_exit,
                                      SYS_exit_group,   SYS_clone,           SYS_clone3, SYS_rt_sigprocmask,
                                      SYS_rt_sigaction, SYS_set_robust_list, SYS_wait4,  SYS_restart_syscall,
                                      SYS_gettid,       SYS_getpid,          SYS_rseq,   alarm_call};

// What a report takes beside them: where it goes, and which pages are in memory.
const std::vector<long> of_report = {SYS_openat, SYS_newfstatat, SYS_fstat,        SYS_fcntl,
                                     SYS_getpid, SYS_mincore,    SYS_rt_sigpending};

// Allows these system calls; any other ends the process or fails, as `otherwise` says.
bool allow(const std::vector<std::vector<long>>& lists, uint32_t otherwise) {
  std::vector<sock_filter> filter;
  filter.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  for (const std::vector<long>& list : lists) {
    for (const long call : list) {
      filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1));
      filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    }
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, otherwise));
  const sock_fprog program = {static_cast<unsigned short>(filter.size()), filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

bool use_the_heap() {
  std::vector<void*> blocks;
  for (size_t i = 0; i < 6000; ++i) {
    const size_t size = i % 100 == 0 ? i * 100 + 1 : i % 3000;
    void* block = i % 3 == 0 ? calloc(1, size) : malloc(size);
    if (i % 7 == 0) block = realloc(block, size * 3 + 1);
    if (i % 11 == 0) {
      free(block);
      block = memalign(size_t{64} << i % 12, size);
    }
    if (block == nullptr) return false;
    memset(block, 1, size);
    blocks.push_back(block);
  }
  for (size_t i = 0; i < blocks.size(); ++i)
    free(blocks[i * 7919 % blocks.size()]);
  char* grown = nullptr;
  for (size_t size = 1; size < 32 * MiB; size *= 2) {
    grown = static_cast<char*>(realloc(grown, size));
    if (grown == nullptr || !holds(grown, size / 2, 3)) return false;
    fill(grown, size, 3);
  }
  free(grown);
  malloc_trim(0);
  return true;
}

bool use_the_heap_on_threads() {
  std::vector<std::thread> threads;
  std::vector<char> good(4, 0);
  std::vector<std::vector<void*>> handed(4);
  for (size_t i = 0; i < 4; ++i) {
    threads.emplace_back([&good, &handed, i] {
      good[i] = use_the_heap() ? 1 : 0;
      for (size_t k = 0; k < 5000; ++k)
        handed[i].push_back(malloc(k));
    });
  }
  bool all = true;
  for (size_t i = 0; i < 4; ++i) {
    threads[i].join();
    all = all && good[i] != 0;
    for (void* const block : handed[i])
      free(block);
  }
  return all;
}

template <class Body>
int status_of_child(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(100);
    _exit(body());
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

bool fork_and_use_the_heap() {
  return status_of_child([] { return use_the_heap() ? 0 : 1; }) == 0 && use_the_heap();
}

// Every test runs with a filter that kills, and with one that refuses.
void expect_good(const std::vector<std::vector<long>>& lists, bool (*body)()) {
  for (const uint32_t otherwise : {uint32_t{SECCOMP_RET_KILL_PROCESS}, uint32_t{SECCOMP_RET_ERRNO | EPERM}}) {
    EXPECT_EQ(status_of_child([&lists, body, otherwise] { return !allow(lists, otherwise) ? 2
                                                                 : body()                 ? 0
                                                                                          : 1; }), 0)
        << (otherwise == SECCOMP_RET_KILL_PROCESS ? "killed" : "refused");
  }
}

TEST(PromisedCalls, FilterIsInForce) {
  const int status = status_of_child([] {
    if (!allow({promised, of_program}, SECCOMP_RET_KILL_PROCESS)) return 2;
    return static_cast<int>(syscall(SYS_getppid)) == 0 ? 3 : 4;
  });
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS) << status;
}

TEST(PromisedCalls, AreEnoughForBlocksOfEverySize) {
  expect_good({promised, of_program}, use_the_heap);
}

// What the system would refuse, and what is larger than any memory.
bool ask_for_too_much() {
  for (const size_t size : {2 * GiB, GiB << 10, GiB << 20, SIZE_MAX / 2}) {
    void* volatile block = malloc(size);
    void* volatile zeroed = calloc(1, size);
    void* volatile grown = realloc(malloc(100), size);
    if (size >= GiB << 10 && (block != nullptr || zeroed != nullptr || grown != nullptr)) return false;
    free(block);
    free(zeroed);
    free(grown);
  }
  return use_the_heap();
}

TEST(PromisedCalls, AreEnoughForRequestsThatAreRefused) {
  expect_good({promised, of_program}, ask_for_too_much);
}

// Takes all that there is, frees every second block, and asks for more than any of the gaps has.
bool use_up_address_space() {
  std::vector<void*> blocks(100'000, nullptr);
  for (const size_t size : {4 * MiB, MiB, 100'000ul, 3'000ul}) {
    size_t count = 0;
    while (count < blocks.size() && (blocks[count] = malloc(size)) != nullptr)
      ++count;
    if (count == 0 || count == blocks.size()) return false;
    for (size_t i = 0; i < count; i += 2)
      free(blocks[i]);
    void* volatile large = malloc(size * count / 3);
    free(large);
    for (size_t i = 1; i < count; i += 2)
      free(blocks[i]);
  }
  return true;
}

TEST(PromisedCalls, AreEnoughWhereAddressSpaceIsUsedUp) {
  for (const uint32_t otherwise : {uint32_t{SECCOMP_RET_KILL_PROCESS}, uint32_t{SECCOMP_RET_ERRNO | EPERM}}) {
    EXPECT_EQ(status_of_child([otherwise] {
                const rlimit limit{256 * MiB, 256 * MiB};
                if (setrlimit(RLIMIT_AS, &limit) != 0 || !allow({promised, of_program}, otherwise)) return 2;
                return use_up_address_space() ? 0 : 1;
              }),
              0);
  }
}

TEST(PromisedCalls, AreEnoughForThreads) {
  expect_good({promised, of_program}, use_the_heap_on_threads);
}

TEST(PromisedCalls, AreEnoughForAFork) {
  expect_good({promised, of_program}, fork_and_use_the_heap);
}

int nowhere = -1;

TEST(PromisedCalls, AndThoseOfAReportAreEnoughForStatistics) {
  nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  expect_good({promised, of_program, of_report}, [] {
    const bool good = use_the_heap() && mallinfo2().uordblks > 0;
    return good && sluice_stats_print != nullptr && sluice_stats_print(nowhere, 1) == 0;
  });
}

}  // namespace
