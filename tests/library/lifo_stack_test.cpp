// Blocks on a stack: aligned, within the caller's block to the last byte, and gone in reverse order.
#include "sluice/lifo_stack.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "guarded_memory.hpp"

namespace {

using library_test::address_of;
using library_test::Guarded;
using sluice::checked;
using sluice::unchecked;

static_assert(sizeof(sluice::lifo_stack<unchecked>) == 4 * sizeof(void*));
static_assert(sluice::lifo_stack<unchecked>::overhead == 8);
static_assert(!std::is_copy_constructible_v<sluice::lifo_stack<>> &&
              !std::is_move_constructible_v<sluice::lifo_stack<>>);

constexpr std::size_t largest_size = std::numeric_limits<std::size_t>::max();

// The textbook stack, on offsets into a block: where a block would start, and whether it is refused.
class TextStack {
 public:
  explicit TextStack(std::size_t bytes) : bytes_(bytes) {}
  // Returns: the offset where the user's bytes begin; SIZE_MAX when refused.
  std::size_t allocate(std::size_t size, std::size_t align) {
    if (offset_ + header + size > bytes_) return largest_size;       // before aligning
    const std::size_t start = (offset_ + align - 1) & ~(align - 1);  // for the header, not for what follows it
    last_ = start;                                                   // 0: the first block, or none?
    offset_ = start + header + size;
    return start + header;
  }
  std::size_t used() const { return offset_; }
  std::size_t last() const { return last_; }

 private:
  static constexpr std::size_t header = 8;
  std::size_t bytes_, offset_ = 0, last_ = 0;
};

TEST(LifoStack, TheTextbookApproachOverrunsMisalignsAndConfusesFirstWithEmpty) {
  TextStack overrun(64);
  ASSERT_NE(overrun.allocate(1, 1), largest_size);
  ASSERT_NE(overrun.allocate(47, 16), largest_size);
  EXPECT_GT(overrun.used(), 64u) << "there was room before the padding, not after";
  TextStack misaligned(64);
  EXPECT_NE(misaligned.allocate(16, 16) % 16, 0u) << "the header stands where the block should";
  TextStack ambiguous(64);
  const std::size_t none = ambiguous.last();
  ambiguous.allocate(8, 8);
  EXPECT_EQ(ambiguous.last(), none) << "the first block looks like none";
}

template <class Checks>
class LifoStack : public testing::Test {};
using Policies = testing::Types<checked, unchecked>;
TYPED_TEST_SUITE(LifoStack, Policies);

// Whatever the start of the memory, sizes and alignments are: the block is aligned, within the memory, its bytes can be
// written without harm to what is around, and it is refused exactly when it would not fit.
TYPED_TEST(LifoStack, EveryOffsetSizeAndAlignmentFitsOrIsRefused) {
  using Stack = sluice::lifo_stack<TypeParam>;
  constexpr std::size_t header = TypeParam::enabled ? 24 : 8;
  constexpr std::size_t fence = Stack::overhead - header;
  for (std::size_t offset = 0; offset < 17; ++offset) {
    for (std::size_t bytes = 0; bytes < 90; bytes += bytes < 40 ? 1 : 7) {
      Guarded memory(offset, bytes);
      for (std::size_t first = 0; first < 4; ++first) {
        for (std::size_t align = 1; align <= 128; align *= 2) {
          for (std::size_t size = 0; size < 48; ++size) {
            Stack stack(memory.start(), bytes);
            void* const below = first == 0 ? nullptr : stack.try_allocate(first, 1);
            const std::size_t used = stack.used();
            const std::uintptr_t begin = address_of(memory.start());
            const std::uintptr_t expected = (begin + used + header + align - 1) & ~(align - 1);
            const std::size_t taken = (size == 0 ? 1 : size) + fence;
            void* const block = stack.try_allocate(size, align);
            ASSERT_EQ(block != nullptr, expected + taken <= begin + bytes)
                << offset << ' ' << bytes << ' ' << align << ' ' << size;
            if (block != nullptr) {
              ASSERT_EQ(address_of(block), expected);
              ASSERT_EQ(address_of(block) % align, 0u);
              ASSERT_EQ(stack.top(), block);
              ASSERT_EQ(stack.used(), expected + taken - begin);
              std::memset(block, 0x11, size);
              stack.pop(block);
            }
            ASSERT_EQ(stack.used(), used);
            ASSERT_EQ(stack.top(), below);
            if (below != nullptr) stack.pop(below);
            ASSERT_TRUE(stack.empty());
          }
        }
      }
      ASSERT_TRUE(memory.guards_intact()) << offset << ' ' << bytes;
    }
  }
}

TYPED_TEST(LifoStack, ABlockThatFitsExactlyIsGivenAndNotAByteMore) {
  for (std::size_t offset = 0; offset < 16; ++offset) {
    Guarded memory(offset, 256);
    sluice::lifo_stack<TypeParam> stack(memory.start(), 256);
    std::size_t most = 256;
    while (stack.try_allocate(most, 64) == nullptr)
      --most;
    EXPECT_EQ(stack.try_allocate(1, 1), nullptr);
    EXPECT_EQ(stack.used(), 256u);
    stack.pop(stack.top());
    EXPECT_EQ(stack.try_allocate(most + 1, 64), nullptr);
    EXPECT_EQ(stack.used(), 0u);
    EXPECT_TRUE(memory.guards_intact());
  }
}

TYPED_TEST(LifoStack, SizesAndAlignmentsOfAnyMagnitudeAreRefusedWithoutOverflow) {
  Guarded memory(3, 200);
  sluice::lifo_stack<TypeParam> stack(memory.start(), 200);
  void* const below = stack.try_allocate(10, 8);
  const std::size_t used = stack.used();
  for (std::size_t less = 0; less < 300; ++less) {
    for (std::size_t align = 1; align != 0; align *= 2) {
      EXPECT_EQ(stack.try_allocate(largest_size - less, align), nullptr);
      EXPECT_EQ(stack.try_allocate(largest_size / 2 - less, align), nullptr);
      if ((-address_of(memory.start()) & (align - 1)) > 200) {
        EXPECT_EQ(stack.try_allocate(less % 8, align), nullptr);
      }
    }
    EXPECT_FALSE(stack.try_resize_top(below, largest_size - less));
  }
  EXPECT_EQ(stack.used(), used);
  stack.pop(below);
}

TYPED_TEST(LifoStack, WithoutMemoryItRefusesAndIsEmpty) {
  sluice::lifo_stack<TypeParam> stack(nullptr, 0);
  EXPECT_EQ(stack.try_allocate(0, 1), nullptr);
  EXPECT_EQ(stack.try_allocate(1), nullptr);
  EXPECT_TRUE(stack.empty());
  EXPECT_EQ(stack.top(), nullptr);
  EXPECT_EQ(stack.capacity(), 0u);
  EXPECT_FALSE(stack.contains(nullptr));
  stack.clear();
}

TEST(LifoStack, AnEmptyStackIsPoppedWithoutHarm) {
  Guarded memory(0, 64);
  sluice::lifo_stack<unchecked> stack(memory.start(), 64);
  stack.pop(stack.top());
  stack.pop(nullptr);
  EXPECT_TRUE(stack.empty());
  EXPECT_EQ(stack.used(), 0u);
  void* const block = stack.try_allocate(8, 8);
  stack.pop(block);
  stack.pop(block);
  EXPECT_TRUE(stack.empty());
  EXPECT_TRUE(memory.guards_intact());
}

// The first block is at the start of the memory, as near as its header lets it be; popped, the stack is empty.
TYPED_TEST(LifoStack, TheFirstBlockIsToldFromNone) {
  alignas(16) std::byte memory[128];
  sluice::lifo_stack<TypeParam> stack(memory, sizeof memory);
  EXPECT_TRUE(stack.empty());
  EXPECT_EQ(stack.top(), nullptr);
  void* const first = stack.try_allocate(1, 1);
  EXPECT_FALSE(stack.empty());
  EXPECT_EQ(stack.top(), first);
  stack.pop(first);
  EXPECT_TRUE(stack.empty());
  EXPECT_EQ(stack.top(), nullptr);
}

TYPED_TEST(LifoStack, EmptyBlocksHaveAddressesOfTheirOwn) {
  alignas(16) std::byte memory[256];
  sluice::lifo_stack<TypeParam> stack(memory, sizeof memory);
  void* const a = stack.try_allocate(0, 1);
  void* const b = stack.try_allocate(0, 1);
  EXPECT_NE(a, b);
  EXPECT_TRUE(stack.contains(a));
  EXPECT_TRUE(stack.contains(b));
  stack.pop(b);
  stack.pop(a);
}

TYPED_TEST(LifoStack, TheLastBlockIsResizedInPlaceAndNoOther) {
  Guarded memory(0, 512);
  sluice::lifo_stack<TypeParam> stack(memory.start(), 512);
  auto* const a = static_cast<unsigned char*>(stack.try_allocate(20, 4));
  auto* const b = static_cast<unsigned char*>(stack.try_allocate(20, 4));
  const std::size_t used = stack.used();
  std::memset(b, 7, 20);
  EXPECT_FALSE(stack.try_resize_top(a, 10));
  EXPECT_FALSE(stack.try_resize_top(nullptr, 10));
  EXPECT_TRUE(stack.try_resize_top(b, 100));
  EXPECT_EQ(stack.used(), used + 80);
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(b[i], 7);
  std::memset(b, 8, 100);
  EXPECT_FALSE(stack.try_resize_top(b, 512));
  std::size_t most = 512;
  while (!stack.try_resize_top(b, most))
    --most;
  EXPECT_EQ(stack.used(), 512u);
  std::memset(b, 9, most);
  EXPECT_TRUE(stack.try_resize_top(b, 5));
  EXPECT_EQ(stack.used(), used - 15);
  EXPECT_TRUE(stack.try_resize_top(b, 0));
  void* const c = stack.try_allocate(30, 4);
  EXPECT_NE(c, b);
  stack.pop(c);
  stack.pop(b);
  EXPECT_TRUE(stack.try_resize_top(a, 300));
  std::memset(a, 1, 300);
  stack.pop(a);
  EXPECT_TRUE(stack.empty());
  EXPECT_FALSE(stack.try_resize_top(stack.top(), 1));
  EXPECT_TRUE(memory.guards_intact());
}

TYPED_TEST(LifoStack, ClearFreesAll) {
  Guarded memory(5, 1000);
  sluice::lifo_stack<TypeParam> stack(memory.start(), 1000);
  for (int round = 0; round < 3; ++round) {
    int blocks = 0;
    while (void* const block = stack.try_allocate(13, 2)) {
      std::memset(block, round, 13);
      ++blocks;
    }
    EXPECT_GT(blocks, 20);
    stack.clear();
    EXPECT_EQ(stack.used(), 0u);
    EXPECT_TRUE(stack.empty());
  }
  EXPECT_TRUE(memory.guards_intact());
}

// An alignment whose padding does not fit the header's field is still given back, with the block below at the latest.
TYPED_TEST(LifoStack, PaddingLargerThanItsRecordIsNotLost) {
  std::vector<unsigned char> memory(1 << 20);
  sluice::lifo_stack<TypeParam> stack(memory.data(), memory.size());
  void* const below = stack.try_allocate(1, 1);
  for (int i = 0; i < 100; ++i) {
    void* const block = stack.try_allocate(10, 1 << 18);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(address_of(block) % (1 << 18), 0u);
    stack.pop(block);
    ASSERT_EQ(stack.top(), below);
  }
  stack.pop(below);
  EXPECT_EQ(stack.used(), 0u);
}

TYPED_TEST(LifoStack, TheFirstBlocksPaddingIsGivenBackHoweverLarge) {
  std::vector<unsigned char> memory(1 << 20);
  sluice::lifo_stack<TypeParam> stack(memory.data(), memory.size());
  void* const block = stack.try_allocate(10, 1 << 18);
  stack.pop(block);
  EXPECT_TRUE(stack.empty());
  EXPECT_EQ(stack.used(), 0u);
}

TYPED_TEST(LifoStack, BlocksKeepWhatWasWrittenUntilTheyArePopped) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const std::size_t bytes = random() % 4000;
    Guarded memory(random() % 64, bytes);
    sluice::lifo_stack<TypeParam> stack(memory.start(), bytes);
    struct Given {
      unsigned char* start;
      std::size_t size, used_before;
      unsigned char value;
    };
    std::vector<Given> live;
    for (int step = 0; step < 3000; ++step) {
      ASSERT_EQ(stack.empty(), live.empty());
      ASSERT_EQ(stack.top(), live.empty() ? nullptr : live.back().start);
      ASSERT_LE(stack.used(), bytes);
      const unsigned choice = random() % 16;
      if (choice < (step / 100 % 2 == 0 ? 9u : 5u)) {
        const std::size_t size = random() % (random() % 4 == 0 ? 300 : 20);
        const std::size_t align = std::size_t{1} << random() % 8;
        const std::size_t used = stack.used();
        auto* const start = static_cast<unsigned char*>(stack.try_allocate(size, align));
        if (start == nullptr) {
          ASSERT_GT(used + size + align + sluice::lifo_stack<TypeParam>::overhead, bytes);
          continue;
        }
        ASSERT_EQ(address_of(start) % align, 0u);
        ASSERT_GE(start, live.empty() ? memory.start() : live.back().start + live.back().size);
        ASSERT_LE(start + size, memory.start() + bytes);
        live.push_back({start, size, used, static_cast<unsigned char>(random())});
        std::memset(start, live.back().value, size);
      } else if (!live.empty() && choice < 13) {
        const Given given = live.back();
        for (std::size_t i = 0; i < given.size; ++i)
          ASSERT_EQ(given.start[i], given.value);
        stack.pop(given.start);
        live.pop_back();
        ASSERT_EQ(stack.used(), given.used_before);
      } else if (!live.empty() && choice < 15) {
        Given& given = live.back();
        const std::size_t size = random() % 200;
        if (!stack.try_resize_top(given.start, size)) continue;
        for (std::size_t i = 0; i < given.size && i < size; ++i)
          ASSERT_EQ(given.start[i], given.value);
        given.size = size;
        std::memset(given.start, given.value, size);
      } else if (random() % 40 == 0) {
        stack.clear();
        live.clear();
      }
    }
    stack.clear();
    ASSERT_TRUE(memory.guards_intact());
  }
}

}  // namespace
