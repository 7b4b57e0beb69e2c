// Fibers: the stack changes within a thread, and a fiber goes on on another thread than it began on. Blocks, scopes and
// frames are then as in any program. Open it when a program with coroutines of its own loses memory or its scopes.
#include <gtest/gtest.h>
#include <malloc.h>
#include <sluice/sluice.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "subject.hpp"

namespace {

using namespace subject;

constexpr size_t stack_bytes = 64 * KiB;

// One fiber. yield() goes back to whichever thread resumed it.
class Fiber {
 public:
  using Body = void (*)(Fiber& self);

  explicit Fiber(Body body, uint64_t seed) : random(seed), body_(body) {
    stack_ = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    getcontext(&own_);
    own_.uc_stack.ss_sp = stack_;
    own_.uc_stack.ss_size = stack_bytes;
    own_.uc_link = nullptr;
    const auto self = reinterpret_cast<uintptr_t>(this);
    makecontext(&own_, reinterpret_cast<void (*)()>(enter), 2, static_cast<unsigned>(self),
                static_cast<unsigned>(self >> 32));
  }
  ~Fiber() { munmap(stack_, stack_bytes); }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs it until it yields; false once it has ended.
  bool resume() {
    ucontext_t here;
    resumer_ = &here;
    swapcontext(&here, &own_);
    return !ended_;
  }
  [[gnu::noinline]] void yield() { swapcontext(&own_, resumer_); }

  Sequence random;
  std::vector<void*> blocks;
  std::vector<size_t> sizes;
  long damage = 0;

 private:
  static void enter(unsigned low, unsigned high) {
    auto* const self = reinterpret_cast<Fiber*>(uintptr_t{high} << 32 | low);
    self->body_(*self);
    self->ended_ = true;
    self->yield();
  }

  Body body_;
  void* stack_;
  ucontext_t own_{};
  ucontext_t* resumer_ = nullptr;
  bool ended_ = false;
};

void allocate_some(Fiber& self) {
  for (int i = 0; i < 20; ++i) {
    const size_t size = 1 + self.random.below(self.random.below(40) == 0 ? 200000 : 900);
    self.sizes.push_back(size);
    self.blocks.push_back(malloc(size));
    fill(self.blocks.back(), size, size);
  }
}

void free_half(Fiber& self) {
  for (size_t i = self.blocks.size() / 2; i < self.blocks.size(); ++i) {
    if (!holds(self.blocks[i], self.sizes[i], self.sizes[i])) ++self.damage;
    free(self.blocks[i]);
  }
  self.sizes.resize(self.blocks.size() / 2);
  self.blocks.resize(self.blocks.size() / 2);
}

void churn(Fiber& self) {
  for (int round = 0; round < 60; ++round) {
    allocate_some(self);
    self.yield();
    free_half(self);
  }
  for (void* const block : self.blocks)
    free(block);
  self.blocks.clear();
}

// As churn, within scopes that are open while other fibers run, or this one on another thread.
void churn_in_scopes(Fiber& self) {
  for (int round = 0; round < 60; ++round) {
    sluice_scope scope;
    if (sluice_scope_enter != nullptr) (void)sluice_scope_enter(&scope, SLUICE_ROUTE);
    allocate_some(self);
    self.yield();
    free_half(self);
    if (sluice_scope_leave != nullptr) sluice_scope_leave(&scope);
    self.yield();
  }
  for (void* const block : self.blocks)
    free(block);
  self.blocks.clear();
}

// Resumes the fibers in turn on `threads` threads, each time on whichever comes first. Returns: damaged blocks.
long run_on_threads(Fiber::Body body, size_t threads, size_t fibers) {
  std::vector<std::unique_ptr<Fiber>> all;
  std::deque<Fiber*> ready;
  for (size_t i = 0; i < fibers; ++i) {
    all.push_back(std::make_unique<Fiber>(body, i + 1));
    ready.push_back(all.back().get());
  }
  std::mutex lock;
  std::vector<std::thread> workers;
  for (size_t i = 0; i < threads; ++i) {
    workers.emplace_back([&] {
      for (;;) {
        Fiber* next = nullptr;
        {
          const std::lock_guard guard(lock);
          if (ready.empty()) return;  // those that run now are resumed by who runs them
          next = ready.front();
          ready.pop_front();
        }
        if (!next->resume()) continue;
        const std::lock_guard guard(lock);
        ready.push_back(next);
      }
    });
  }
  for (std::thread& worker : workers)
    worker.join();
  long damage = 0;
  for (const auto& fiber : all)
    damage += fiber->damage + static_cast<long>(fiber->blocks.size());
  return damage;
}

TEST(Fibers, OfOneThreadShareItsHeap) {
  EXPECT_EQ(run_on_threads(churn, 1, 40), 0);
}

TEST(Fibers, MayGoOnOnOtherThreads) {
  EXPECT_EQ(run_on_threads(churn, 4, 40), 0);
}

TEST(Fibers, OfOneThreadMayNestTheirScopesInEachOther) {
  EXPECT_EQ(run_on_threads(churn_in_scopes, 1, 40), 0);
}

TEST(Fibers, MayLeaveAScopeOnAnotherThread) {
  EXPECT_EQ(run_on_threads(churn_in_scopes, 4, 40), 0);
}

// A fiber that is never resumed keeps what it holds, and its scope does not stay with those who come after.
TEST(Fibers, MayBeDroppedWithinAScope) {
  std::vector<void*> left;
  for (uint64_t i = 0; i < 200; ++i) {
    Fiber fiber(churn_in_scopes, i + 1);
    std::thread([&fiber] { EXPECT_TRUE(fiber.resume()); }).join();
    left.insert(left.end(), fiber.blocks.begin(), fiber.blocks.end());
  }
  for (void* const block : left)
    free(block);
  EXPECT_EQ(run_on_threads(churn_in_scopes, 2, 20), 0);
}

}  // namespace
