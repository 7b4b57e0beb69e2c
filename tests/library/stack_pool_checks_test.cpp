// What a checked stack_pool finds. Open it when a mistake of a pool's user goes unseen or a message is wrong.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>

#include "sluice/stack_pool.hpp"
#include "tracked.hpp"
#include "violations.hpp"

namespace {

using library_test::Tracked;
using library_test::Tracking;
using library_test::Violations;
using sluice::checked;
using sluice::stack_pool;
using sluice::unchecked;
using sluice::violation;
using sluice::violation_kind;

// The textbook pool keeps pointers in one table, and sees that one was released twice when the table overflows.
TEST(StackPoolChecks, ADoubleReleaseIsFoundBeforeTheStackIsFull) {
  Violations violations;
  stack_pool<int, 8, checked> pool("particles");
  int* const a = pool.create(1);
  int* const b = pool.create(2);
  int* const c = pool.create(3);
  pool.release(b);
  ASSERT_TRUE(violations.none());
  pool.release(b);
  const violation found = violations.take();
  EXPECT_EQ(found.kind, violation_kind::double_release);
  EXPECT_STREQ(found.component, "stack_pool");
  EXPECT_STREQ(found.name, "particles");
  EXPECT_EQ(found.object, &pool);
  EXPECT_EQ(found.address, b);
  EXPECT_EQ(pool.size(), 2u) << "what is released twice stays free once";
  EXPECT_EQ(pool.create(4), b);
  int* const d = pool.create(5);
  EXPECT_NE(d, b);
  for (int* each : {a, b, c, d})
    pool.release(each);
}

TEST(StackPoolChecks, DestroyingTwiceRunsTheDestructorOnce) {
  Violations violations;
  Tracking tracking;
  stack_pool<Tracked, 8, checked> pool;
  Tracked* const a = pool.create(1);
  pool.destroy(a);
  pool.destroy(a);
  violations.expect(violation_kind::double_release);
}

struct ReleasesItself {
  explicit ReleasesItself(stack_pool<ReleasesItself, 4, checked>& owner) : pool(&owner) {}
  ~ReleasesItself() { pool->release(this); }
  stack_pool<ReleasesItself, 4, checked>* pool;
};
TEST(StackPoolChecks, ADestructorThatReleasesItsOwnStorageIsFound) {
  Violations violations;
  stack_pool<ReleasesItself, 4, checked> pool;
  ReleasesItself* const one = pool.create(pool);
  pool.destroy(one);
  violations.expect(violation_kind::double_release);
  EXPECT_EQ(pool.size(), 0u);
}

// What was made at compile time has neither fence nor poison, and is not taken for damaged.
struct MadeAtCompileTime {
  constexpr MadeAtCompileTime() : one(pool.create(1)), two(pool.create(2)) {}
  stack_pool<int, 4, checked> pool;
  int* one;
  int* two;
};
TEST(StackPoolChecks, ObjectsMadeAtCompileTimeAreGivenBackAtRunTime) {
  static constinit MadeAtCompileTime made;
  Violations violations;
  EXPECT_EQ(made.pool.size(), 2u);
  int* const three = made.pool.create(3);
  made.pool.destroy(made.one);
  made.pool.destroy(made.two);
  made.pool.destroy(three);
  EXPECT_TRUE(violations.none());
  *static_cast<volatile int*>(three) = 4;
  EXPECT_EQ(made.pool.create(5), three);
  violations.expect(violation_kind::write_after_release);
  made.pool.clear();
}

TEST(StackPoolChecks, ASlotThatWasNeverHandedOutIsNotTakenBack) {
  Violations violations;
  stack_pool<int, 8, checked> pool;
  int* const a = pool.create(1);
  int* const b = pool.create(2);
  const auto distance = reinterpret_cast<std::uintptr_t>(b) - reinterpret_cast<std::uintptr_t>(a);
  pool.release(reinterpret_cast<int*>(reinterpret_cast<std::uintptr_t>(b) + distance));
  violations.expect(violation_kind::double_release);
  pool.release(a);
  pool.release(b);
}

TEST(StackPoolChecks, PointersFromElsewhereAreForeign) {
  Violations violations;
  stack_pool<std::uint64_t, 4, checked> pool, other;
  std::uint64_t* const mine = pool.create(1u);
  std::uint64_t* const theirs = other.create(2u);
  std::uint64_t local = 3;
  for (std::uint64_t* wrong : {theirs, &local, static_cast<std::uint64_t*>(nullptr),
                               reinterpret_cast<std::uint64_t*>(reinterpret_cast<std::uintptr_t>(mine) + 4),
                               reinterpret_cast<std::uint64_t*>(reinterpret_cast<std::uintptr_t>(mine) + 8)}) {
    pool.release(wrong);
    const violation found = violations.take();
    EXPECT_EQ(found.kind, violation_kind::foreign);
    EXPECT_EQ(found.address, wrong);
    pool.destroy(wrong);
    violations.expect(violation_kind::foreign);
  }
  EXPECT_EQ(pool.size(), 1u);
  EXPECT_EQ(other.size(), 1u);
  pool.destroy(mine);
  other.destroy(theirs);
}

TEST(StackPoolChecks, WhatIsNotGivenBackIsALeak) {
  Violations violations;
  {
    stack_pool<int, 100, checked> pool("leaky");
    for (int i = 0; i < 70; ++i)
      pool.create(i);
  }
  const violation found = violations.take();
  EXPECT_EQ(found.kind, violation_kind::leak);
  EXPECT_STREQ(found.name, "leaky");
  EXPECT_EQ(found.value, 70u);
  {
    stack_pool<int, 100, checked> pool;
    pool.create(1);
    pool.clear();
  }
  {
    stack_pool<int, 100, unchecked> pool;
    pool.create(1);
  }
  EXPECT_TRUE(violations.none());
}

template <class T>
unsigned char* bytes_of(T* object) {
  return reinterpret_cast<unsigned char*>(object);
}

struct alignas(32) Wide {
  unsigned char bytes[32];
};
template <class T>
void finds_writes_past_the_end() {
  for (std::size_t offset = 0; offset < 8; ++offset) {
    SCOPED_TRACE(testing::Message() << sizeof(T) << " bytes, " << offset << " past the end");
    Violations violations;
    stack_pool<T, 4, checked> pool;
    T* const a = pool.create();
    T* const b = pool.create();
    volatile unsigned char* const past = bytes_of(a) + sizeof(T) + offset;
    *past = 1;
    pool.release(a);
    const violation found = violations.take();
    EXPECT_EQ(found.kind, violation_kind::write_past_end);
    EXPECT_EQ(found.address, a);
    EXPECT_EQ(pool.size(), 1u) << "the release is right, and is done";
    pool.release(b);
    EXPECT_EQ(pool.create(), b);
    EXPECT_EQ(pool.create(), a);
    pool.release(a);
    pool.release(b);
    EXPECT_TRUE(violations.none()) << "repaired";
  }
}
TEST(StackPoolChecks, AWritePastTheEndIsFoundAtTheRelease) {
  finds_writes_past_the_end<char>();
  finds_writes_past_the_end<std::uint64_t>();
  finds_writes_past_the_end<Wide>();
}

TEST(StackPoolChecks, AWriteAfterTheReleaseIsFoundAtTheNextAcquisition) {
  for (std::size_t offset = 0; offset < sizeof(std::uint64_t); ++offset) {
    Violations violations;
    stack_pool<std::uint64_t, 4, checked> pool;
    std::uint64_t* const a = pool.create(1u);
    pool.release(a);
    volatile unsigned char* const after = bytes_of(a) + offset;
    *after = 1;
    EXPECT_EQ(pool.create(2u), a) << "the acquisition is right, and is done";
    const violation found = violations.take();
    EXPECT_EQ(found.kind, violation_kind::write_after_release);
    EXPECT_EQ(found.address, a);
    pool.release(a);
  }
}

TEST(StackPoolChecks, DamageIsFoundAtTheEndAtTheLatest) {
  Violations violations;
  std::optional<stack_pool<std::uint64_t, 4, checked>> pool(std::in_place);
  std::uint64_t* const a = pool->create(1u);
  pool->release(a);
  *static_cast<volatile std::uint64_t*>(a) = 7;
  pool.reset();
  violations.expect(violation_kind::write_after_release);

  pool.emplace();
  std::uint64_t* const b = pool->create(1u);
  *static_cast<volatile unsigned char*>(bytes_of(b) + 8) = 7;
  pool->clear();
  violations.expect(violation_kind::write_past_end);
  pool.reset();
  EXPECT_TRUE(violations.none());
}

TEST(StackPoolChecks, AReleasedObjectIsPoison) {
  stack_pool<std::uint32_t, 4, checked> pool;
  std::uint32_t* const a = pool.create(1u);
  pool.destroy(a);
  EXPECT_EQ(*static_cast<volatile std::uint32_t*>(a), 0xddddddddu);
}

struct MayThrow {
  MayThrow() { throw 1; }
  std::uint64_t room[4];
};
TEST(StackPoolChecks, AConstructorThatThrowsLeavesNothingToReport) {
  Violations violations;
  {
    stack_pool<MayThrow, 4, checked> pool;
    EXPECT_THROW(pool.create(), int);
    EXPECT_THROW(pool.create(), int);
    EXPECT_TRUE(pool.empty());
  }
  EXPECT_TRUE(violations.none());
}

void release_twice() {
  stack_pool<int, 4, checked> pool("sparks");
  int* const a = pool.create(1);
  pool.release(a);
  pool.release(a);
}
TEST(StackPoolChecksDeathTest, WithoutAHandlerTheProgramStopsWithTheName) {
  EXPECT_DEATH(release_twice(), "sluice: stack_pool \"sparks\" .*: block .* released twice");
}

}  // namespace
