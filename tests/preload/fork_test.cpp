// fork while other threads allocate, vfork and posix_spawn. Open it when a child hangs in malloc, or when
// parent or child find their blocks changed.
#include <gtest/gtest.h>
#include <malloc.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/wait.h>

#include <atomic>
#include <thread>
#include <vector>

#include "subject.hpp"

extern char** environ;

namespace {

using namespace subject;

constexpr char true_path[] = "/bin/true";

// Blocks whose payload is known; the parent's are inherited by each child.
class Payload {
 public:
  explicit Payload(size_t count, uint64_t seed) : seed_(seed), blocks_(count) {
    for (size_t i = 0; i < count; ++i)
      allocate(i);
  }
  ~Payload() {
    for (void* const block : blocks_)
      free(block);
  }
  Payload(const Payload&) = delete;
  Payload& operator=(const Payload&) = delete;

  bool replace_every(size_t step) {
    for (size_t i = 0; i < blocks_.size(); i += step) {
      if (!holds(blocks_[i], size(i), seed_ + i)) return false;
      free(blocks_[i]);
      blocks_[i] = nullptr;
    }
    for (size_t i = 0; i < blocks_.size(); i += step)
      allocate(i);
    return intact();
  }
  bool intact() const {
    for (size_t i = 0; i < blocks_.size(); ++i) {
      if (!holds(blocks_[i], size(i), seed_ + i)) return false;
    }
    return true;
  }

 private:
  static size_t size(size_t i) { return i % 97 == 0 ? 80000 : (i * 53) % 1800 + 1; }
  void allocate(size_t i) {
    blocks_[i] = malloc(size(i));
    fill(blocks_[i], size(i), seed_ + i);
  }

  uint64_t seed_;
  std::vector<void*> blocks_;
};

// Threads that allocate, check and free until told to stop; they hand blocks to each other.
class Traffic {
 public:
  explicit Traffic(size_t threads) {
    for (size_t id = 1; id <= threads; ++id)
      threads_.emplace_back([this, id] { run(id); });
  }
  ~Traffic() { stop(); }
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  void stop() {
    stop_ = true;
    for (std::thread& thread : threads_)
      thread.join();
    threads_.clear();
    for (auto& slot : slots_)
      free(slot.exchange(nullptr));
  }
  int damaged() const { return damaged_; }

 private:
  void run(uint64_t id) {
    Sequence random(id);
    while (!stop_) {
      const size_t size = 16 + random.below(random.below(100) == 0 ? 200000 : 1200);
      auto* block = static_cast<size_t*>(malloc(size));
      if (random.below(8) == 0) block = static_cast<size_t*>(realloc(block, size));
      block[0] = size;
      fill(block + 1, size - sizeof(size_t), size);
      auto* const old = static_cast<size_t*>(slots_[random.below(512)].exchange(block));
      if (old == nullptr) continue;
      if (!holds(old + 1, old[0] - sizeof(size_t), old[0])) ++damaged_;
      free(old);
    }
  }

  std::atomic<bool> stop_{false};
  std::atomic<int> damaged_{0};
  std::atomic<void*> slots_[512]{};
  std::vector<std::thread> threads_;
};

// A child that hangs is ended by SIGALRM and shows as a failure of its own.
constexpr unsigned child_limit_seconds = 60;

template <class Body>
int status_of_child(Body body) {
  const pid_t child = fork();
  if (child < 0) return -1;
  if (child == 0) {
    alarm(child_limit_seconds);
    _exit(body() ? 0 : 1);
  }
  int status = -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

TEST(Fork, UnderAllocatingThreadsKeepsBothHeapsIntact) {
  Traffic traffic(8);
  Payload payload(800, 1);
  for (long i = 0; i < scaled(150); ++i) {
    const int status = status_of_child([&payload, i] {
      if (!payload.replace_every(static_cast<size_t>(i) % 5 + 1)) return false;
      for (size_t size = 1; size < 300000; size += size / 2 + 1)
        free(hide(malloc(size)));
      if (i % 10 == 0) execl(true_path, true_path, static_cast<char*>(nullptr));
      return true;
    });
    ASSERT_EQ(status, 0) << "child " << i;
    ASSERT_TRUE(payload.intact()) << "parent after child " << i;
    if (i % 7 == 0) {
      ASSERT_TRUE(payload.replace_every(3));
    }
  }
  traffic.stop();
  EXPECT_EQ(traffic.damaged(), 0);
}

TEST(Fork, ChildMayStartThreadsAndForkAgain) {
  Traffic traffic(2);
  for (long i = 0; i < scaled(20); ++i) {
    const int status = status_of_child([] {
      {
        Traffic inner(3);
        Payload payload(500, 9);
        for (int k = 0; k < 3; ++k) {
          if (status_of_child([&payload] { return payload.replace_every(2); }) != 0) return false;
        }
        inner.stop();
        if (inner.damaged() != 0) return false;
      }
      return Payload(500, 17).intact();
    });
    ASSERT_EQ(status, 0) << "child " << i;
  }
}

TEST(Fork, FromAThreadThatIsNotTheFirst) {
  Traffic traffic(3);
  std::atomic<int> bad{0};
  std::vector<std::thread> forking;
  for (uint64_t id = 0; id < 2; ++id) {
    forking.emplace_back([&bad, id] {
      Payload payload(300, id * 1000);
      for (long i = 0; i < scaled(50); ++i) {
        if (status_of_child([&payload] { return payload.replace_every(2); }) != 0) ++bad;
      }
    });
  }
  for (std::thread& thread : forking)
    thread.join();
  EXPECT_EQ(bad, 0);
}

std::atomic<long> handler_calls{0};
void allocate_in_handler() {
  ++handler_calls;
  void* blocks[50];
  for (size_t i = 0; i < 50; ++i)
    blocks[i] = malloc(i * 40);
  for (void* const block : blocks)
    free(block);
}

TEST(Fork, HandlersOfOthersMayAllocate) {
  ASSERT_EQ(pthread_atfork(allocate_in_handler, allocate_in_handler, allocate_in_handler), 0);
  Traffic traffic(3);
  for (long i = 0; i < scaled(50); ++i) {
    const int status = status_of_child([] { return Payload(100, 1).intact(); });
    ASSERT_EQ(status, 0);
  }
  EXPECT_EQ(handler_calls, 2 * scaled(50));
}

// A function of its own: what lives across vfork must not be in registers of its caller.
[[gnu::noinline]] pid_t vfork_and_exec() {
  const pid_t child = vfork();
  if (child == 0) {
    execl(true_path, true_path, static_cast<char*>(nullptr));
    _exit(1);
  }
  return child;
}

TEST(Vfork, IsHarmless) {
  Traffic traffic(3);
  Payload payload(300, 5);
  for (long i = 0; i < scaled(50); ++i) {
    const pid_t child = vfork_and_exec();
    ASSERT_GT(child, 0);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
    ASSERT_TRUE(payload.replace_every(2));
  }
}

TEST(PosixSpawn, IsHarmless) {
  Traffic traffic(3);
  Payload payload(300, 6);
  for (long i = 0; i < scaled(50); ++i) {
    char* arguments[] = {const_cast<char*>(true_path), nullptr};
    pid_t child = 0;
    ASSERT_EQ(posix_spawn(&child, true_path, nullptr, nullptr, arguments, environ), 0);
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0);
    ASSERT_TRUE(payload.replace_every(2));
  }
  std::FILE* const pipe = popen("echo heard", "r");
  ASSERT_NE(pipe, nullptr);
  char line[32] = "";
  EXPECT_NE(std::fgets(line, sizeof line, pipe), nullptr);
  EXPECT_STREQ(line, "heard\n");
  EXPECT_EQ(pclose(pipe), 0);
}

}  // namespace
