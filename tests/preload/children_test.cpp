// Children that share the parent's memory, and forks that the C library does not see: what is allocated in them leaves
// the heap whole. Open it when a program that starts others by vfork or clone hangs in malloc or finds its blocks
// changed.
#include <gtest/gtest.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <atomic>
#include <thread>
#include <vector>

#include "subject.hpp"

extern char** environ;

namespace {

using namespace subject;

constexpr int child_status = 7;

// Blocks that are there before the child is, and must be whole after it.
class Held {
 public:
  Held() {
    for (size_t i = 0; i < 2000; ++i) {
      blocks_.push_back(malloc(i));
      fill(blocks_.back(), i, i);
    }
  }
  ~Held() {
    for (void* const block : blocks_)
      free(block);
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  bool intact() const {
    for (size_t i = 0; i < blocks_.size(); ++i) {
      if (!holds(blocks_[i], i, i)) return false;
    }
    return true;
  }

 private:
  std::vector<void*> blocks_;
};

// What execvp and the like do in such a child, and more: blocks of every size, some of which are never freed.
bool allocate_in_child() {
  void* blocks[300];
  for (size_t i = 0; i < 300; ++i) {
    blocks[i] = malloc(i % 50 == 0 ? i * 3000 + 1 : i * 5);
    if (blocks[i] == nullptr) return false;
    fill(blocks[i], i, i);
  }
  for (size_t i = 0; i < 300; ++i) {
    if (!holds(blocks[i], i, i)) return false;
    if (i % 50 != 7) free(blocks[i]);
  }
  free(realloc(malloc(100), 300000));
  return true;
}

int exit_status_of(pid_t child) {
  int status = -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// A function of its own: what lives across vfork must not be in registers of its caller.
[[gnu::noinline]] pid_t vfork_and_allocate() {
  const pid_t child = vfork();
  if (child == 0) _exit(allocate_in_child() ? child_status : 1);
  return child;
}

TEST(Vfork, ItsChildMayAllocateAndFree) {
  const Held held;
  for (long i = 0; i < scaled(200); ++i) {
    const pid_t child = vfork_and_allocate();
    ASSERT_GT(child, 0);
    ASSERT_EQ(exit_status_of(child), child_status);
    ASSERT_TRUE(allocate_in_child());
  }
  EXPECT_TRUE(held.intact());
}

TEST(Vfork, ItsChildMayAllocateWhileOtherThreadsDo) {
  const Held held;
  std::atomic<bool> stop{false};
  std::vector<std::thread> others;
  for (int i = 0; i < 3; ++i) {
    others.emplace_back([&stop] {
      while (!stop)
        allocate_in_child();
    });
  }
  for (long i = 0; i < scaled(50); ++i)
    ASSERT_EQ(exit_status_of(vfork_and_allocate()), child_status);
  stop = true;
  for (std::thread& other : others)
    other.join();
  EXPECT_TRUE(held.intact());
}

// As posix_spawn does it: the child has the parent's memory and a stack of its own, and the parent waits for it.
TEST(Clone, WithTheParentsMemoryMayAllocate) {
  const Held held;
  constexpr size_t stack_bytes = 256 * KiB;
  auto* const stack = static_cast<char*>(
      mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0));
  ASSERT_NE(stack, MAP_FAILED);
  for (long i = 0; i < scaled(100); ++i) {
    const auto body = [](void*) { return allocate_in_child() ? child_status : 1; };
    const pid_t child = clone(body, stack + stack_bytes, CLONE_VM | CLONE_VFORK | SIGCHLD, nullptr);
    ASSERT_GT(child, 0);
    ASSERT_EQ(exit_status_of(child), child_status);
    ASSERT_TRUE(allocate_in_child());
  }
  munmap(stack, stack_bytes);
  EXPECT_TRUE(held.intact());
}

// The C library does not know of this one, so no fork handler runs. Nothing else allocates meanwhile.
TEST(Clone, OfACopyThatTheLibraryDoesNotSeeMayAllocate) {
  const Held held;
  for (long i = 0; i < scaled(50); ++i) {
    const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
    ASSERT_GE(child, 0);
    if (child == 0) _exit(allocate_in_child() && held.intact() ? child_status : 1);
    ASSERT_EQ(exit_status_of(child), child_status);
  }
  EXPECT_TRUE(held.intact());
}

TEST(PosixSpawn, MayBeGivenActionsAndAttributesThatWereAllocated) {
  const Held held;
  for (long i = 0; i < scaled(30); ++i) {
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    for (int k = 0; k < 40; ++k)
      posix_spawn_file_actions_addopen(&actions, 100 + k, "/dev/null", O_RDONLY, 0);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    char name[] = "sh";
    char option[] = "-c";
    char script[] = "exit 7";
    char* arguments[] = {name, option, script, nullptr};
    pid_t child = 0;
    ASSERT_EQ(posix_spawnp(&child, "sh", &actions, &attributes, arguments, environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    ASSERT_EQ(exit_status_of(child), child_status);
  }
  EXPECT_EQ(WEXITSTATUS(std::system("exit 7")), child_status);
  EXPECT_TRUE(held.intact());
}

// Handlers that keep what they allocate from one phase to the next, and free it there.
void* kept_over_fork[100];
std::atomic<int> lost_over_fork{0};

void allocate_before_fork() {
  for (size_t i = 0; i < 100; ++i) {
    kept_over_fork[i] = malloc(i * 80);
    if (kept_over_fork[i] == nullptr) {
      ++lost_over_fork;
    } else {
      fill(kept_over_fork[i], i * 80, i);
    }
  }
}
void free_after_fork() {
  for (size_t i = 0; i < 100; ++i) {
    if (kept_over_fork[i] != nullptr && !holds(kept_over_fork[i], i * 80, i)) ++lost_over_fork;
    free(kept_over_fork[i]);
  }
  if (!allocate_in_child()) ++lost_over_fork;
}

TEST(ForkHandlers, MayKeepBlocksFromOnePhaseToTheNext) {
  ASSERT_EQ(pthread_atfork(allocate_before_fork, free_after_fork, free_after_fork), 0);
  const Held held;
  for (long i = 0; i < scaled(50); ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(lost_over_fork == 0 && held.intact() && allocate_in_child() ? child_status : 1);
    ASSERT_EQ(exit_status_of(child), child_status);
  }
  EXPECT_EQ(lost_over_fork, 0);
  EXPECT_TRUE(held.intact());
}

}  // namespace
