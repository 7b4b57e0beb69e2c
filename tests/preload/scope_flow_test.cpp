// Scopes that are left otherwise than they were entered: by exceptions, longjmp, fibers and signals, twice, in another
// order, on another thread, or not at all. Open it when a thread goes on placing after its scope, or stops within it.
#include <gtest/gtest.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <ucontext.h>

#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "arena_subject.hpp"

namespace {

using namespace subject;

bool places() {
  void* const block = malloc(40);
  const bool result = is_in_arena(block);
  free(block);
  return result;
}

void throw_from(int depth) {
  const sluice::scope scope;
  const std::string text(static_cast<size_t>(depth) * 10, 'x');
  if (depth == 0) throw std::runtime_error(std::string(200, 'y'));
  throw_from(depth - 1);
}

TEST(ScopeFlow, ExceptionsLeaveScopes) {
  for (int i = 0; i < 200; ++i) {
    try {
      throw_from(20);
      FAIL();
    } catch (const std::runtime_error& error) {
      EXPECT_FALSE(places());
      EXPECT_EQ(error.what(), std::string(200, 'y'));  // the text was made within the scope
    }
  }
  std::exception_ptr kept;
  on_another_thread([&kept] {
    try {
      throw_from(3);
    } catch (...) {
      kept = std::current_exception();
    }
  });
  EXPECT_THROW(std::rethrow_exception(kept), std::runtime_error);
}

sigjmp_buf target;

// Runs body, out of which it is jumped.
template <typename Body>
[[gnu::noinline]] void land_from(Body body) {
  if (sigsetjmp(target, 1) == 0) body();
}

[[gnu::noinline]] void enter_and_jump(int depth) {
  sluice_scope scope;
  (void)sluice_scope_enter(&scope, SLUICE_ROUTE);
  free(malloc(40));
  if (hide(depth) == 0) siglongjmp(target, 1);
  if (depth > 0) enter_and_jump(depth - 1);
  sluice_scope_leave(&scope);
}

TEST(ScopeFlow, AnOuterScopeEndsThoseThatALongjmpSkipped) {
  sluice_scope outer;
  for (int i = 0; i < 1000; ++i) {
    ASSERT_EQ(sluice_scope_enter(&outer, SLUICE_ROUTE), 0);
    land_from([] { enter_and_jump(10); });
    EXPECT_TRUE(places());
    sluice_scope_leave(&outer);
    ASSERT_FALSE(places());
  }
}

TEST(ScopeFlow, AScopeAtTheSamePlaceEndsTheOneThatWasSkipped) {
  sluice_scope scope;
  for (int i = 0; i < 1000; ++i)
    land_from([&scope] {
      ASSERT_EQ(sluice_scope_enter(&scope, SLUICE_ROUTE), 0);
      free(malloc(40));
      siglongjmp(target, 1);
    });
  sluice_scope_leave(&scope);
  EXPECT_FALSE(places());
}

TEST(ScopeFlow, SkippedScopesWhoseStorageIsGoneAreNeverRead) {
  sluice_scope outer;
  (void)sluice_scope_enter(&outer, SLUICE_ROUTE);
  for (int i = 0; i < 30; ++i) {
    auto scope = std::make_unique<sluice_scope>();
    (void)sluice_scope_enter(scope.get(), SLUICE_ROUTE);
    memset(scope.get(), i, sizeof *scope);
  }
  sluice_scope_leave(&outer);
  EXPECT_FALSE(places());
}

TEST(ScopeFlow, MoreThan64AreRefusedAndMayBeLeft) {
  std::vector<sluice_scope> scopes(200);
  size_t opened = 0;
  for (sluice_scope& each : scopes)
    opened += sluice_scope_enter(&each, SLUICE_ROUTE) == 0;
  EXPECT_EQ(opened, 64u);
  EXPECT_TRUE(places());
  for (size_t i = scopes.size(); i-- > 1;)
    sluice_scope_leave(&scopes[i]);
  EXPECT_TRUE(places());
  sluice_scope_leave(&scopes[0]);
  EXPECT_FALSE(places());
  sluice_scope again;
  EXPECT_EQ(sluice_scope_enter(&again, SLUICE_ROUTE), 0);
  EXPECT_TRUE(places());
  sluice_scope_leave(&again);
}

TEST(ScopeFlow, LeavesThatDoNotMatchChangeNothing) {
  sluice_scope never{};
  sluice_scope_leave(&never);
  memset(&never, 0x5a, sizeof never);
  sluice_scope_leave(&never);
  sluice_scope_leave(nullptr);
  sluice_scope open;
  ASSERT_EQ(sluice_scope_enter(&open, SLUICE_ROUTE), 0);
  sluice_scope_leave(&never);
  EXPECT_TRUE(places());
  const sluice_scope copy = open;
  sluice_scope_leave(const_cast<sluice_scope*>(&copy));  // a copy is not the scope
  EXPECT_TRUE(places());
  sluice_scope_leave(&open);
  EXPECT_FALSE(places());
  sluice_scope_leave(&open);
  EXPECT_FALSE(places());
}

TEST(ScopeFlow, AnOuterScopeLeftFirstEndsTheInnerOnes) {
  sluice_scope outer;
  sluice_scope inner;
  (void)sluice_scope_enter(&outer, SLUICE_ROUTE);
  (void)sluice_scope_enter(&inner, SLUICE_ROUTE);
  sluice_scope_leave(&outer);
  EXPECT_FALSE(places());
  sluice_scope_leave(&inner);
  EXPECT_FALSE(places());
}

TEST(ScopeFlow, BadFlagsAreRefused) {
  for (const unsigned flags : {0u, 3u, 4u, ~0u}) {
    sluice_scope scope;
    errno = 0;
    EXPECT_EQ(sluice_scope_enter(&scope, flags), -1);
    EXPECT_EQ(errno, EINVAL);
    EXPECT_FALSE(places());
    sluice_scope_leave(&scope);
  }
  EXPECT_EQ(sluice_scope_enter(nullptr, SLUICE_ROUTE), -1);
}

TEST(ScopeFlow, LeavingOnAnotherThreadDoesNothing) {
  sluice_scope mine;
  ASSERT_EQ(sluice_scope_enter(&mine, SLUICE_ROUTE), 0);
  on_another_thread([&mine] {
    sluice_scope_leave(&mine);  // before anything else on that thread
    EXPECT_FALSE(places());
    sluice_scope theirs;
    ASSERT_EQ(sluice_scope_enter(&theirs, SLUICE_ROUTE), 0);
    sluice_scope_leave(&mine);
    EXPECT_TRUE(places());
    sluice_scope_leave(&theirs);
  });
  EXPECT_TRUE(places());
  sluice_scope_leave(&mine);
  EXPECT_FALSE(places());
}

// Two fibers that hand control to each other between the enter and the leave of their scopes.
ucontext_t main_context;
ucontext_t fibers[2];
std::atomic<size_t> fiber_damage{0};

void run_fiber(int self) {
  for (int round = 0; round < 500; ++round) {
    std::vector<std::string> texts;
    {
      const sluice::scope scope;
      for (int i = 0; i < 20; ++i) {
        texts.emplace_back(static_cast<size_t>(100 + i * 10), static_cast<char>('a' + self));
        if (i % 7 == self) swapcontext(&fibers[self], &fibers[1 - self]);
      }
    }
    swapcontext(&fibers[self], &fibers[1 - self]);
    for (size_t i = 0; i < texts.size(); ++i)
      fiber_damage += texts[i] != std::string(100 + i * 10, static_cast<char>('a' + self));
  }
  swapcontext(&fibers[self], &main_context);
}

void prepare_fiber(int self, std::vector<char>& stack) {
  ASSERT_EQ(getcontext(&fibers[self]), 0);
  fibers[self].uc_stack.ss_sp = stack.data();
  fibers[self].uc_stack.ss_size = stack.size();
  fibers[self].uc_link = &main_context;
  makecontext(&fibers[self], reinterpret_cast<void (*)()>(run_fiber), 1, self);
}

TEST(ScopeFlow, FibersMaySwitchWithinScopes) {
  std::vector<char> first_stack(256 * KiB);
  std::vector<char> second_stack(256 * KiB);
  prepare_fiber(0, first_stack);
  prepare_fiber(1, second_stack);
  const sluice::scope outer(sluice::routing::off);
  ASSERT_EQ(swapcontext(&main_context, &fibers[0]), 0);
  EXPECT_EQ(fiber_damage, 0u);
}

volatile sig_atomic_t handled = 0;
void open_a_scope(int) {
  sluice_scope scope;
  (void)sluice_scope_enter(&scope, SLUICE_ROUTE);
  sluice_scope_leave(&scope);
  handled = handled + 1;
}

TEST(ScopeFlow, AHandlerThatOpensAScopeInABusyLoopLeavesNoTrace) {
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = open_a_scope;
  action.sa_flags = SA_RESTART;
  ASSERT_EQ(sigaction(SIGALRM, &action, &before), 0);
  const itimerval often{{0, 500}, {0, 500}};
  const itimerval never{};
  free(malloc(1));
  setitimer(ITIMER_REAL, &often, nullptr);
  uint64_t sum = 0;
  while (handled < 300) {
    const sluice::scope scope;
    std::string text(100, 'x');
    for (int i = 0; i < 200; ++i)
      sum += static_cast<uint64_t>(text[static_cast<size_t>(i) % 100]);
  }
  setitimer(ITIMER_REAL, &never, nullptr);
  sigaction(SIGALRM, &before, nullptr);
  EXPECT_GT(sum, 0u);
  EXPECT_FALSE(places());
}

void jump_out(int) {
  siglongjmp(target, 1);
}

TEST(ScopeFlow, AHandlerMayJumpOutOfScopes) {
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = jump_out;
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  sluice_scope outer;
  for (int i = 0; i < 100; ++i) {
    (void)sluice_scope_enter(&outer, SLUICE_ROUTE);
    land_from([] {
      sluice_scope inner;
      (void)sluice_scope_enter(&inner, SLUICE_NOROUTE);
      raise(SIGUSR1);
    });
    sluice_scope_leave(&outer);
    ASSERT_FALSE(places());
  }
  sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
