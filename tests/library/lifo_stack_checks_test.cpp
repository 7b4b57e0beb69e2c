// Mistakes with a checked lifo_stack or lifo_resource: each is found, told, and leaves the stack as it was.
#include <gtest/gtest.h>

#include <cstring>
#include <memory_resource>

#include "counting_resource.hpp"
#include "sluice/lifo_resource.hpp"
#include "sluice/lifo_stack.hpp"
#include "violations.hpp"

namespace {

using library_test::CountingResource;
using library_test::Violations;
using sluice::checked;
using sluice::violation_kind;

class CheckedLifoStack : public testing::Test {
 protected:
  Violations violations_;
  alignas(64) unsigned char memory_[1024] = {};
  sluice::lifo_stack<checked> stack_{memory_, sizeof memory_, "decoder"};
};

TEST_F(CheckedLifoStack, FindsABlockThatIsNotTheLast) {
  void* const a = stack_.try_allocate(10);
  void* const b = stack_.try_allocate(10);
  const std::size_t used = stack_.used();
  stack_.pop(a);
  const sluice::violation found = Violations::take();
  EXPECT_EQ(found.kind, violation_kind::release_order);
  EXPECT_EQ(found.address, a);
  EXPECT_EQ(found.object, &stack_);
  EXPECT_STREQ(found.component, "lifo_stack");
  EXPECT_STREQ(found.name, "decoder");
  EXPECT_EQ(stack_.used(), used);
  EXPECT_EQ(stack_.top(), b);
  stack_.pop(b);
  stack_.pop(a);
}

TEST_F(CheckedLifoStack, FindsABlockThatIsPoppedTwice) {
  void* const a = stack_.try_allocate(10);
  void* const b = stack_.try_allocate(10);
  stack_.pop(b);
  stack_.pop(b);
  Violations::expect(violation_kind::double_release);
  EXPECT_EQ(stack_.top(), a);
  stack_.pop(a);
  stack_.pop(a);
  Violations::expect(violation_kind::double_release);
  EXPECT_TRUE(stack_.empty());
}

TEST_F(CheckedLifoStack, FindsAPopOfNothing) {
  stack_.pop(stack_.top());
  Violations::expect(violation_kind::foreign);
  stack_.pop(memory_);
  Violations::expect(violation_kind::foreign);
  EXPECT_TRUE(stack_.empty());
}

TEST_F(CheckedLifoStack, FindsPointersThatAreNotFromHere) {
  auto* const block = static_cast<unsigned char*>(stack_.try_allocate(10));
  int local = 0;
  void* const volatile outside = &local;  // the compiler would warn of what is read in front of it, which is never done
  for (void* const wrong :
       {static_cast<void*>(outside), static_cast<void*>(block + 1), static_cast<void*>(memory_),
        static_cast<void*>(memory_ + 900), static_cast<void*>(memory_ + sizeof memory_), static_cast<void*>(nullptr)}) {
    stack_.pop(wrong);
    Violations::expect(violation_kind::foreign);
  }
  stack_.pop(block);
}

TEST_F(CheckedLifoStack, FindsWritesBehindABlock) {
  for (std::size_t behind = 0; behind < 8; ++behind) {
    auto* const block = static_cast<unsigned char*>(stack_.try_allocate(10));
    block[10 + behind] ^= 1;
    stack_.pop(block);
    Violations::expect(violation_kind::write_past_end);
    EXPECT_TRUE(stack_.empty());
  }
  auto* const block = static_cast<unsigned char*>(stack_.try_allocate(10));
  EXPECT_TRUE(stack_.try_resize_top(block, 30));
  block[30] = 0;
  EXPECT_TRUE(stack_.try_resize_top(block, 20));
  Violations::expect(violation_kind::write_past_end);
  block[20] = 0;
  stack_.clear();
  Violations::expect(violation_kind::write_past_end);
}

TEST_F(CheckedLifoStack, FindsAHeaderThatIsOverwrittenAndDoesNotFollowIt) {
  void* const below = stack_.try_allocate(16, 16);
  auto* const block = static_cast<unsigned char*>(stack_.try_allocate(16, 16));
  unsigned char header[24];
  std::memcpy(header, block - 24, 24);
  std::memset(block - 24, 0x41, 24);
  stack_.pop(block);
  Violations::expect(violation_kind::write_past_end);
  EXPECT_EQ(stack_.top(), block);
  stack_.pop(below);
  Violations::expect(violation_kind::foreign);  // cannot be reached
  std::memcpy(block - 24, header, 24);
  stack_.pop(block);
  stack_.pop(below);
}

TEST_F(CheckedLifoStack, FindsWritesToAPoppedBlockWhenItsMemoryIsGivenAgain) {
  for (int place = 0; place < 40; ++place) {
    auto* const block = static_cast<unsigned char*>(stack_.try_allocate(40));
    stack_.pop(block);
    block[place] ^= 1;
    void* const again = stack_.try_allocate(100);
    Violations::expect(violation_kind::write_after_release);
    stack_.pop(again);
  }
}

TEST_F(CheckedLifoStack, FindsWritesToWhatAShrunkBlockGaveBack) {
  auto* const block = static_cast<unsigned char*>(stack_.try_allocate(100));
  EXPECT_TRUE(stack_.try_resize_top(block, 50));
  block[70] = 0;
  EXPECT_TRUE(stack_.try_resize_top(block, 90));
  Violations::expect(violation_kind::write_after_release);
  stack_.pop(block);
}

TEST(CheckedLifoStackEnd, CountsBlocksThatAreLeft) {
  Violations violations;
  alignas(16) unsigned char memory[256];
  {
    sluice::lifo_stack<checked> stack(memory, sizeof memory);
    EXPECT_NE(stack.try_allocate(10), nullptr);
    EXPECT_NE(stack.try_allocate(10), nullptr);
  }
  const sluice::violation found = Violations::take();
  EXPECT_EQ(found.kind, violation_kind::leak);
  EXPECT_EQ(found.value, 2u);
  {
    sluice::lifo_stack<checked> stack(memory, sizeof memory);
    EXPECT_NE(stack.try_allocate(10), nullptr);
    stack.clear();
  }
  EXPECT_TRUE(Violations::none());
}

TEST(CheckedLifoStackEnd, FindsWritesToPoppedBlocks) {
  Violations violations;
  alignas(16) unsigned char memory[256];
  {
    sluice::lifo_stack<checked> stack(memory, sizeof memory);
    auto* const block = static_cast<unsigned char*>(stack.try_allocate(10));
    stack.pop(block);
    block[3] = 0;
  }
  Violations::expect(violation_kind::write_after_release);
}

TEST(CheckedLifoStackEnd, SaysWhatHappenedAndStops) {
  alignas(16) unsigned char memory[256];
  EXPECT_DEATH(
      {
        sluice::lifo_stack<checked> stack(memory, sizeof memory, "decoder");
        void* const a = stack.try_allocate(10);
        void* const b = stack.try_allocate(10);
        stack.pop(a);
        stack.pop(b);
      },
      "lifo_stack \"decoder\" .*released before what was allocated after it");
}

TEST(CheckedLifoResource, FindsDoubleAndForeignDeallocationsInAnyOrder) {
  Violations violations;
  CountingResource memory;
  sluice::lifo_resource<checked> stack(1024, &memory, "scratch");
  auto* const a = static_cast<unsigned char*>(stack.allocate(10));
  void* const b = stack.allocate(10);
  stack.deallocate(a, 10);
  EXPECT_TRUE(Violations::none());
  stack.deallocate(a, 10);
  const sluice::violation found = Violations::take();
  EXPECT_EQ(found.kind, violation_kind::double_release);
  EXPECT_STREQ(found.component, "lifo_resource");
  EXPECT_STREQ(found.name, "scratch");
  EXPECT_EQ(found.object, &stack);
  stack.deallocate(a + 1, 10);
  Violations::expect(violation_kind::foreign);
  int local = 0;
  void* const volatile outside = &local;
  stack.deallocate(outside, 4);
  Violations::expect(violation_kind::foreign);
  stack.deallocate(b, 10);
  EXPECT_EQ(stack.used(), 0u);
  stack.deallocate(b, 10);
  Violations::expect(violation_kind::double_release);
}

// The size that it is told does not decide what is poisoned.
TEST(CheckedLifoResource, ADeallocationWithAWrongSizeHarmsNoOtherBlock) {
  Violations violations;
  sluice::lifo_resource<checked> stack(1024);
  void* const a = stack.allocate(10);
  auto* const b = static_cast<unsigned char*>(stack.allocate(10));
  std::memset(b, 1, 10);
  stack.deallocate(a, 100);
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(b[i], 1);
  stack.deallocate(b, 5);
  EXPECT_TRUE(Violations::none());
  EXPECT_EQ(stack.used(), 0u);
}

TEST(CheckedLifoResource, FindsWritesToABlockThatWaitsForThoseAboveIt) {
  Violations violations;
  sluice::lifo_resource<checked> stack(1024);
  auto* const a = static_cast<unsigned char*>(stack.allocate(10));
  void* const b = stack.allocate(10);
  stack.deallocate(a, 10);
  a[4] = 0;
  stack.deallocate(b, 10);
  Violations::expect(violation_kind::write_after_release);
}

TEST(CheckedLifoResource, CountsWhatIsLeftOnceOnItsStackAndUpstream) {
  Violations violations;
  CountingResource memory;
  void* large = nullptr;
  {
    sluice::lifo_resource<checked> stack(1024, &memory);
    EXPECT_NE(stack.allocate(10), nullptr);
    EXPECT_NE(stack.allocate(10), nullptr);
  }
  EXPECT_EQ(Violations::take().value, 2u);
  {
    sluice::lifo_resource<checked> stack(1024, &memory);
    large = stack.allocate(2000, 16);
  }
  EXPECT_EQ(Violations::take().value, 1u);
  memory.deallocate(large, 2000, 16);
  {
    sluice::lifo_resource<checked> stack(1024, &memory);
    EXPECT_NE(stack.allocate(10), nullptr);
    stack.release();
  }
}

}  // namespace
