// A process that a sandbox has cut off from madvise, openat and getrandom goes on allocating, freeing, and
// starting threads. Open it when a program hangs or dies as soon as its seccomp filter is in place.
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cstddef>
#include <thread>
#include <vector>

#include "subject.hpp"

namespace {

using namespace subject;

// Makes these system calls fail with EPERM, in this process and its children.
bool forbid(const std::vector<long>& calls) {
  std::vector<sock_filter> filter;
  filter.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)));
  for (const long call : calls) {
    filter.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(call), 0, 1));
    filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM));
  }
  filter.push_back(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  const sock_fprog program = {static_cast<unsigned short>(filter.size()), filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

bool heap_works() {
  std::vector<void*> blocks;
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < 3000; ++i) {
      const size_t size = i % 50 == 0 ? i * 300 + 1 : i;
      void* const block = i % 3 == 0 ? calloc(1, size) : malloc(size);
      if (block == nullptr) return false;
      fill(block, size, i);
      blocks.push_back(block);
    }
    for (size_t i = 0; i < blocks.size(); ++i) {
      const size_t size = i % 50 == 0 ? i * 300 + 1 : i;
      if (!holds(blocks[i], size, i)) return false;
      free(blocks[i]);
    }
    blocks.clear();
    void* const dirty = malloc(8 * MiB);
    memset(hide(dirty), 0xff, 8 * MiB);
    free(dirty);
    void* const clean = calloc(8, MiB);
    if (clean == nullptr || !is_filled_with(clean, 8 * MiB, 0)) return false;
    free(clean);
  }
  malloc_trim(0);
  return true;
}

// Runs the body in a child, where the filter can do no harm to the other tests.
int status_behind(const std::vector<long>& forbidden, bool (*body)()) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(300);
    _exit(!forbid(forbidden) ? 2 : body() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

const std::vector<long> usual = {SYS_madvise, SYS_openat, SYS_getrandom};

TEST(Sandbox, FilterIsInForce) {
  EXPECT_EQ(status_behind(usual, [] { return open("/dev/null", O_RDONLY) < 0 && errno == EPERM; }), 0);
  EXPECT_EQ(status_behind(usual, [] { return madvise(nullptr, 0, MADV_DONTNEED) < 0 && errno == EPERM; }), 0);
}

TEST(Sandbox, HeapWorksWithoutMadviseOpenatAndGetrandom) {
  EXPECT_EQ(status_behind(usual, heap_works), 0);
}

TEST(Sandbox, ThreadsWorkWithoutMadviseOpenatAndGetrandom) {
  EXPECT_EQ(status_behind(usual,
                          [] {
                            bool good = true;
                            for (int i = 0; i < 20; ++i)
                              std::thread([&good] { good = good && heap_works(); }).join();
                            return good;
                          }),
            0);
}

TEST(Sandbox, HeapWorksWhenMappingsCannotGrowInPlace) {
  EXPECT_EQ(status_behind({SYS_mremap, SYS_madvise},
                          [] {
                            char* block = nullptr;
                            for (size_t size = 1; size < 32 * MiB; size *= 2) {
                              block = static_cast<char*>(realloc(block, size));
                              if (block == nullptr || !holds(block, size / 2, 5)) return false;
                              fill(block, size, 5);
                            }
                            free(block);
                            return heap_works();
                          }),
            0);
}

TEST(Sandbox, FailingMunmapIsSurvived) {
  EXPECT_EQ(status_behind({SYS_munmap}, heap_works), 0);
}

TEST(Sandbox, MallocReturnsNullWhenTheSystemGivesNothing) {
  EXPECT_EQ(status_behind({SYS_mmap, SYS_mprotect, SYS_mremap, SYS_brk},
                          [] {
                            errno = 0;
                            for (int i = 0; i < 1000; ++i) {
                              void* const block = malloc(hide(size_t{1} << 40));
                              if (block != nullptr || errno != ENOMEM) return false;
                            }
                            for (size_t size = 1; size < 300000; size *= 2)
                              free(hide(malloc(size)));
                            return true;
                          }),
            0);
}

TEST(Sandbox, StartsWithoutMadviseAndGetrandom) {
  const int status = status_behind({SYS_madvise, SYS_getrandom}, [] {
    execl("/proc/self/exe", "sandbox_test", "--gtest_filter=Sandbox.IsEnteredBeforeTheStart",
          static_cast<char*>(nullptr));
    return false;
  });
  EXPECT_EQ(status, 0);
}

TEST(Sandbox, IsEnteredBeforeTheStart) {
  EXPECT_TRUE(heap_works());
}

}  // namespace
