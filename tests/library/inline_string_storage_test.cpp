// Where an inline_string keeps its characters: inside up to N, on the heap beyond, and what becomes of its block and
// its resource when it is copied, moved, swapped, or when memory runs out.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <memory_resource>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "counting_resource.hpp"
#include "sluice/inline_string.hpp"

namespace {

using library_test::CountingResource;
using sluice::inline_string;

static_assert(sizeof(inline_string<15>) == 40 + 16);
static_assert(sizeof(inline_string<23>) == 40 + 24);
static_assert(std::is_nothrow_default_constructible_v<inline_string<23>>);
static_assert(std::is_nothrow_move_constructible_v<inline_string<23>>);
static_assert(!std::is_copy_constructible_v<sluice::string_base>, "would lose the characters inside");

const std::string long_text(300, 'l');

TEST(InlineStringStorage, TakesNoMemoryUpToItsN) {
  CountingResource resource;
  inline_string<23> text(&resource);
  for (int i = 0; i < 23; ++i)
    text.push_back('x');
  text.assign("twenty-three characters");
  text.replace(0, 6, "TWENTY");
  text.insert(0, "").erase(1, 3);
  inline_string<23> copy(text, &resource);
  copy.swap(text);
  text = std::move(copy);
  copy.reserve(23);  // NOLINT: moved from, which is what is tested
  copy.append({'a', 'b'}).append(text.rbegin(), text.rend());
  EXPECT_EQ(resource.allocations(), 0u);
  EXPECT_TRUE(text.is_inline());
  EXPECT_EQ(copy.size(), 22u);
  copy.push_back('x');
  EXPECT_EQ(resource.allocations(), 0u);
  copy.push_back('y');
  EXPECT_EQ(resource.allocations(), 1u);
  EXPECT_FALSE(copy.is_inline());
}

TEST(InlineStringStorage, StaticStringsUseTheirRoomInside) {
  static inline_string<15> text("static");
  static inline_string<15> empty;
  EXPECT_TRUE(text.is_inline());
  empty = text;
  empty += empty;
  EXPECT_EQ(empty, "staticstatic");
  EXPECT_TRUE(empty.is_inline());
  EXPECT_EQ(empty.data(), reinterpret_cast<char*>(&empty) + 40);
}

TEST(InlineStringStorage, StealsFromTheHeapAndCopiesFromInside) {
  CountingResource resource;
  inline_string<8> text(long_text, &resource);
  const char* const characters = text.data();
  inline_string<8> moved(std::move(text));
  EXPECT_EQ(moved.data(), characters);
  EXPECT_EQ(moved.resource(), &resource);
  EXPECT_TRUE(text.empty());      // NOLINT: moved from, which is what is tested
  EXPECT_TRUE(text.is_inline());  // NOLINT: moved from, which is what is tested
  EXPECT_STREQ(text.c_str(), "");

  inline_string<20> larger(&resource);
  larger = std::move(moved);
  EXPECT_EQ(larger.data(), characters);
  EXPECT_STREQ(moved.c_str(), "");  // NOLINT: moved from, which is what is tested
  inline_string<3> smaller(std::move(larger));
  EXPECT_EQ(smaller.data(), characters);
  EXPECT_EQ(resource.allocations(), 1u);

  inline_string<3> inside("abc", &resource);
  const inline_string<3> third(std::move(inside));
  EXPECT_EQ(third, "abc");
  EXPECT_TRUE(third.is_inline());
  EXPECT_TRUE(inside.empty());  // NOLINT: moved from, which is what is tested
  EXPECT_EQ(resource.allocations(), 1u);
}

TEST(InlineStringStorage, IsMovedAndNotCopiedWithAnEqualResource) {
  CountingResource resource;
  inline_string<8> text(long_text, &resource);
  inline_string<8> moved(std::move(text), &resource);
  EXPECT_EQ(resource.allocations(), 1u);
  EXPECT_TRUE(text.empty());  // NOLINT(bugprone-use-after-move): which is what is tested
  std::pmr::vector<inline_string<8>> strings(&resource);
  strings.reserve(1);
  strings.push_back(std::move(moved));
  EXPECT_EQ(resource.allocations(), 2u);
  strings.reserve(2);
  EXPECT_EQ(resource.allocations(), 3u);
  EXPECT_EQ(strings[0], long_text);
}

TEST(InlineStringStorage, DoesNotStealABlockThatIsSmallerThanItsRoomInside) {
  CountingResource resource;
  inline_string<3> small("more than three", &resource);
  inline_string<100> large(&resource);
  large = std::move(small);
  EXPECT_TRUE(large.is_inline());
  EXPECT_EQ(large, "more than three");
  EXPECT_EQ(large.capacity(), 100u);
}

TEST(InlineStringStorage, SelfMoveAndSelfAssignmentChangeNothing) {
  inline_string<8> inside("abc"), outside(long_text);
  inline_string<8>&same_inside = inside, &same_outside = outside;
  inside = std::move(same_inside);
  outside = std::move(same_outside);
  EXPECT_EQ(inside, "abc");
  EXPECT_EQ(outside, long_text);
  inside = same_inside;    // NOLINT(bugprone-use-after-move): it is the same
  outside = same_outside;  // NOLINT(bugprone-use-after-move)
  swap(inside, same_inside);
  swap(outside, same_outside);
  EXPECT_EQ(inside, "abc");
  EXPECT_EQ(outside, long_text);
}

TEST(InlineStringStorage, PropagatesResourcesLikePmrString) {
  CountingResource first, second;
  inline_string<4> text(long_text, &first);
  EXPECT_EQ(inline_string<4>(text).resource(), std::pmr::get_default_resource());
  EXPECT_EQ(inline_string<4>(text, &second).resource(), &second);
  EXPECT_EQ((text + "x").resource(), std::pmr::get_default_resource());
  inline_string<4> other(&second);
  other = text;
  EXPECT_EQ(other.resource(), &second);
  other.clear();
  other = std::move(text);  // unequal resources: by characters
  EXPECT_EQ(other.resource(), &second);
  EXPECT_EQ(other, long_text);
  EXPECT_TRUE(text.empty());  // NOLINT(bugprone-use-after-move): which is what is tested
  const inline_string<4> moved(std::move(other), &first);
  EXPECT_EQ(moved, long_text);
  EXPECT_EQ(moved.get_allocator().resource(), &first);

  std::pmr::vector<inline_string<4>> texts(&first);
  texts.emplace_back(long_text);
  texts.emplace_back("abc");
  texts.resize(3);
  for (const inline_string<4>& one : texts)
    EXPECT_EQ(one.resource(), &first);
}

TEST(InlineStringStorage, SwapsStringsWhereverTheyAre) {
  const std::string texts[] = {"", "abc", "more than four", long_text};
  for (const std::string& left : texts) {
    for (const std::string& right : texts) {
      for (const bool equal : {true, false}) {
        SCOPED_TRACE(::testing::Message() << left << " and " << right);
        CountingResource first, second;
        inline_string<4> a(left, &first);
        inline_string<16> b(right, equal ? &first : &second);
        sluice::string_base& base = b;
        base.swap(a);
        EXPECT_EQ(a, right);
        EXPECT_EQ(b, left);
        EXPECT_EQ(a.c_str()[right.size()], '\0');
        EXPECT_EQ(b.c_str()[left.size()], '\0');
        EXPECT_EQ(a.resource(), &first);
        EXPECT_EQ(b.resource(), equal ? &first : &second);
      }
    }
  }
  CountingResource resource;
  inline_string<4> inside("in", &resource), outside(long_text, &resource);
  swap(inside, outside);
  EXPECT_EQ(resource.allocations(), 1u);
  EXPECT_TRUE(outside.is_inline());
}

TEST(InlineStringStorage, SwapsAFullInsideWithABlockWithoutTakingMemory) {
  CountingResource resource;
  inline_string<8> inside("12345678", &resource), outside(long_text, &resource);
  const char* const block = outside.data();
  resource.fail_after(0);
  inside.swap(outside);
  EXPECT_EQ(inside.data(), block);
  EXPECT_EQ(inside, long_text);
  EXPECT_STREQ(outside.c_str(), "12345678");
  EXPECT_TRUE(outside.is_inline());
}

TEST(InlineStringStorage, ShrinksBackInside) {
  CountingResource resource;
  inline_string<8> text(long_text, &resource);
  text.resize(100);
  text.shrink_to_fit();
  EXPECT_EQ(text.capacity(), 100u);
  resource.fail_after(0);
  text.resize(50);
  text.shrink_to_fit();  // no memory: the larger block does
  EXPECT_EQ(text.capacity(), 100u);
  text.resize(8);
  text.shrink_to_fit();
  EXPECT_TRUE(text.is_inline());
  EXPECT_EQ(text, "llllllll");
  EXPECT_EQ(resource.live_blocks(), 0u);
}

TEST(InlineStringStorage, IsUnchangedWhenMemoryRunsOut) {
  using Text = inline_string<8>;
  const std::function<void(Text&)> operations[] = {
      [](Text& text) { text = long_text; },
      [](Text& text) { text.assign(300, 'x'); },
      [](Text& text) { text.assign(long_text.rbegin(), long_text.rend()); },
      [](Text& text) { text += long_text; },
      [](Text& text) { text.append(300, 'x'); },
      [](Text& text) { text.append_range(std::array<int, 300>{}); },
      [](Text& text) { text.insert(1, long_text); },
      [](Text& text) { text.insert(1, 300, 'x'); },
      [](Text& text) { text.insert(text.begin(), long_text.rbegin(), long_text.rend()); },
      [](Text& text) { text.replace(1, 2, long_text); },
      [](Text& text) { text.replace(1, 2, 300, 'x'); },
      [](Text& text) { text.resize(300); },
      [](Text& text) { text.resize_for_overwrite(300); },
      [](Text& text) { text.resize_and_overwrite(300, [](char*, std::size_t size) { return size; }); },
      [](Text& text) { text.reserve(300); },
      [](Text& text) {
        for (int i = 0; i < 300; ++i)
          text.append(text);
      },
      [](Text& text) {
        CountingResource other;
        inline_string<8> another(long_text, &other);
        text = std::move(another);
      },
      [](Text& text) {
        CountingResource other;
        inline_string<8> another(long_text, &other);
        text.swap(another);
      },
  };
  for (const std::string& before : {std::string("abcdefgh"), std::string(20, 'h')}) {
    for (std::size_t i = 0; i < std::size(operations); ++i) {
      SCOPED_TRACE("operation " + std::to_string(i) + " on " + before);
      CountingResource resource;
      Text text(before, &resource);
      text.shrink_to_fit();
      const char* const characters = text.data();
      resource.fail_after(0);
      const bool grows_while_it_goes = i == 15;
      EXPECT_THROW(operations[i](text), std::bad_alloc);
      EXPECT_EQ(text.data(), characters);
      EXPECT_EQ(text, before);
      EXPECT_EQ(text.c_str()[text.size()], '\0');
      if (grows_while_it_goes) {
        resource.fail_after(2);
        EXPECT_THROW(operations[i](text), std::bad_alloc);
        EXPECT_EQ(text.c_str()[text.size()], '\0');
      }
    }
  }
}

TEST(InlineStringStorage, PushBackFailsAtEachGrowthWithoutALoss) {
  for (std::size_t successes = 0; successes < 5; ++successes) {
    CountingResource resource;
    resource.fail_after(successes);
    inline_string<1> text(&resource);
    std::string model;
    try {
      for (;;) {
        text.push_back(static_cast<char>('a' + model.size() % 26));
        model.push_back(static_cast<char>('a' + model.size() % 26));
      }
    } catch (const std::bad_alloc&) {
      EXPECT_EQ(text, model);
      EXPECT_EQ(resource.allocations(), successes);
    }
  }
}

TEST(InlineStringStorage, TooLongIsALengthError) {
  inline_string<8> text("abc");
  const volatile std::size_t most = text.max_size();  // hidden from the compiler's warnings about objects of that size
  EXPECT_THROW(text.reserve(most + 1), std::length_error);
  EXPECT_THROW(text.resize(most + 1), std::length_error);
  EXPECT_THROW(text.append(most, 'x'), std::length_error);
  EXPECT_THROW(text.insert(0, most - 2, 'x'), std::length_error);
  sluice::inline_wstring<8> wide(L"abc");
  EXPECT_THROW(wide.append(wide.max_size(), L'x'), std::length_error);
  EXPECT_EQ(text, "abc");
  EXPECT_EQ(wide, L"abc");
}

// A string whose block stands right behind it, as they do in a heap without block headers.

// One piece of memory, block behind block.
class Neighbours final : public std::pmr::memory_resource {
 public:
  std::size_t given_back() const { return given_back_; }

 private:
  void* do_allocate(std::size_t size, std::size_t) override {
    unsigned char* const block = memory_.data() + used_;
    used_ += (size + 15) / 16 * 16;
    return block;
  }
  void do_deallocate(void*, std::size_t, std::size_t) override { ++given_back_; }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }

  alignas(64) std::array<unsigned char, 1024> memory_ = {};
  std::size_t used_ = 0, given_back_ = 0;
};

// What holds its characters behind itself, or on the heap, and finds out by their address.
struct textbook_version {
  explicit textbook_version(std::pmr::memory_resource& memory, std::size_t size)
      : resource(memory), characters(static_cast<char*>(memory.allocate(size, 1))) {}
  ~textbook_version() {
    if (!is_inline()) resource.deallocate(characters, 0, 1);
  }
  bool is_inline() const { return static_cast<const void*>(characters) == this + 1; }

  std::pmr::memory_resource& resource;
  char* characters;
};

TEST(InlineStringStorage, GivesABlockBackThatStandsRightBehindTheString) {
  Neighbours by_address;
  auto* const wrong = ::new (by_address.allocate(sizeof(textbook_version))) textbook_version(by_address, 32);
  EXPECT_TRUE(wrong->is_inline());
  wrong->~textbook_version();
  EXPECT_EQ(by_address.given_back(), 0u) << "the model of the mistake does not make it";

  Neighbours resource;
  using Text = inline_string<7>;
  auto* const text = ::new (resource.allocate(sizeof(Text), alignof(Text))) Text(&resource);
  static_assert(sizeof(Text) % 16 == 0);
  text->append(long_text, 0, 20);
  EXPECT_EQ(static_cast<void*>(text->data()), text + 1);
  EXPECT_FALSE(text->is_inline());
  text->~Text();
  EXPECT_EQ(resource.given_back(), 1u);
}

TEST(InlineStringStorage, KnowsWhereItIsAmongNeighboursOfTheSameSize) {
  using Text = inline_string<23>;  // 64 bytes, as its block will have
  CountingResource resource;
  std::vector<std::unique_ptr<Text>> texts;
  for (int i = 0; i < 2000; ++i) {
    texts.push_back(std::make_unique<Text>(&resource));
    texts.back()->reserve(63);
    texts.back()->assign("characters");
  }
  for (const std::unique_ptr<Text>& text : texts)
    EXPECT_FALSE(text->is_inline());
  EXPECT_EQ(resource.live_blocks(), 2000u);
  texts.clear();
  EXPECT_EQ(resource.live_blocks(), 0u);
}

}  // namespace
