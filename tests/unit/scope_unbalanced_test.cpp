// Leaves that do not match: each is defined, harmless and counted. What longjmp skips is ended by the next enter at its
// storage, or by the leave of a scope around it.
#include "arena/scope.hpp"

#include <cerrno>
#include <csetjmp>

#include "arena_calls.hpp"

namespace {

using namespace sluice;
using arena::enter;
using arena::leave;
using test::routed;

class ScopeUnbalanced : public testing::Test {
 protected:
  void SetUp() override {
    const test::Scope scope;  // the arena exists
    before_ = test::arena_figures();
  }
  void TearDown() override { test::expect_valid(); }
  uint64_t stale() const { return test::arena_figures().stale_leaves - before_.stale_leaves; }
  uint64_t abandoned() const { return test::arena_figures().abandoned_scopes - before_.abandoned_scopes; }
  arena::Figures before_{};
};

TEST_F(ScopeUnbalanced, a_second_leave_is_counted_and_does_nothing) {
  sluice_scope outer, inner;
  enter(&outer, SLUICE_ROUTE);
  enter(&inner, SLUICE_ROUTE);
  leave(&inner);
  errno = 77;
  leave(&inner);
  EXPECT_EQ(errno, 77);
  EXPECT_TRUE(routed());
  EXPECT_EQ(stale(), 1u);
  leave(&outer);
  EXPECT_FALSE(routed());
  leave(&outer);
  EXPECT_FALSE(routed());
  EXPECT_EQ(stale(), 2u);
  EXPECT_EQ(abandoned(), 0u);
}

TEST_F(ScopeUnbalanced, storage_that_was_never_entered_is_a_stale_leave) {
  const test::Scope open;
  for (const int fill : {0, 1, 0x55, 0xdd}) {
    sluice_scope storage;
    std::memset(&storage, fill, sizeof storage);
    leave(&storage);
    EXPECT_TRUE(routed());
  }
  EXPECT_EQ(stale(), 4u);
}

TEST_F(ScopeUnbalanced, storage_need_not_be_initialised_and_is_not_read_by_enter) {
  for (const int fill : {0, 1, 0x55, 0xff}) {
    sluice_scope storage;
    std::memset(&storage, fill, sizeof storage);
    EXPECT_EQ(enter(&storage, SLUICE_ROUTE), 0);
    EXPECT_TRUE(routed());
    leave(&storage);
    EXPECT_FALSE(routed());
  }
  EXPECT_EQ(stale(), 0u);
}

TEST_F(ScopeUnbalanced, leaving_an_outer_scope_ends_those_inside_it) {
  sluice_scope scopes[4];
  for (sluice_scope& scope : scopes)
    enter(&scope, SLUICE_ROUTE);
  leave(&scopes[1]);
  EXPECT_EQ(abandoned(), 2u);
  EXPECT_TRUE(routed());
  leave(&scopes[3]);
  leave(&scopes[2]);
  EXPECT_TRUE(routed());
  EXPECT_EQ(stale(), 2u);
  leave(&scopes[0]);
  EXPECT_FALSE(routed());
}

TEST_F(ScopeUnbalanced, a_leave_on_a_thread_without_scopes_is_counted_and_does_nothing) {
  sluice_scope scope;
  enter(&scope, SLUICE_ROUTE);
  test::on_another_thread([&scope] {
    leave(&scope);
    EXPECT_FALSE(routed());
    leave(&scope);
  });
  EXPECT_EQ(stale(), 2u);
  EXPECT_TRUE(routed());
  leave(&scope);
  EXPECT_FALSE(routed());
  EXPECT_EQ(stale(), 2u);
}

TEST_F(ScopeUnbalanced, a_leave_on_a_thread_with_scopes_of_its_own_ends_none_of_them) {
  sluice_scope scope;
  enter(&scope, SLUICE_ROUTE);
  test::on_another_thread([&scope] {
    const test::Scope own;
    leave(&scope);
    EXPECT_TRUE(routed());
  });
  EXPECT_EQ(stale(), 1u);
  EXPECT_TRUE(routed());
  leave(&scope);
}

TEST_F(ScopeUnbalanced, entering_at_the_storage_of_an_open_scope_ends_it_and_those_inside) {
  sluice_scope outer, first, second;
  enter(&outer, SLUICE_NOROUTE);
  enter(&first, SLUICE_ROUTE);
  enter(&second, SLUICE_ROUTE);
  enter(&first, SLUICE_ROUTE);
  EXPECT_EQ(abandoned(), 2u);
  EXPECT_TRUE(routed());
  leave(&second);
  EXPECT_EQ(stale(), 1u);
  EXPECT_TRUE(routed());
  leave(&first);
  EXPECT_FALSE(routed());
  leave(&outer);
  EXPECT_EQ(stale(), 1u);
}

// The storage is the caller's at the same address each time, as in a loop around setjmp.
__attribute__((noinline)) void enter_and_jump(std::jmp_buf& target, sluice_scope* storage) {
  enter(storage, SLUICE_ROUTE);
  std::longjmp(target, 1);
}

TEST_F(ScopeUnbalanced, scopes_that_longjmp_skips_do_not_pile_up) {
  static sluice_scope storage;
  static std::jmp_buf target;
  static volatile int jumps;
  jumps = 0;
  if (setjmp(target) != 0) jumps = jumps + 1;
  if (jumps < 1000) enter_and_jump(target, &storage);
  EXPECT_EQ(abandoned(), 999u);
  EXPECT_EQ(test::arena_figures().depth_overflows, before_.depth_overflows);
  leave(&storage);
  EXPECT_FALSE(routed());
}

TEST_F(ScopeUnbalanced, the_leave_of_a_scope_around_setjmp_ends_what_longjmp_skipped) {
  static sluice_scope inner;
  static std::jmp_buf target;
  {
    const test::Scope outer(SLUICE_NOROUTE);
    if (setjmp(target) == 0) enter_and_jump(target, &inner);
    EXPECT_TRUE(routed());
    std::memset(&inner, 0xa5, sizeof inner);  // its storage is something else by now
  }
  EXPECT_FALSE(routed());
  EXPECT_EQ(abandoned(), 1u);
  EXPECT_EQ(stale(), 0u);
}

TEST_F(ScopeUnbalanced, skipped_scopes_fill_the_depth_until_a_scope_around_them_is_left) {
  static sluice_scope skipped[arena::most_scopes];
  {
    const test::Scope outer;
    for (sluice_scope& scope : skipped)
      (void)enter(&scope, SLUICE_ROUTE);
    sluice_scope one_more;
    EXPECT_EQ(enter(&one_more, SLUICE_ROUTE), -1);
    leave(&one_more);
  }
  EXPECT_EQ(abandoned(), arena::most_scopes - 1);
  EXPECT_FALSE(routed());
  const test::Scope again;
  EXPECT_EQ(again.result(), 0);
}

}  // namespace
