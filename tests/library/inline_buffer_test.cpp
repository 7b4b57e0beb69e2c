// inline_buffer against std::string: the same operations, random ones too, must give the same bytes, wherever they
// stand.
#include "sluice/inline_buffer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <new>
#include <ranges>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "counting_resource.hpp"

#if __has_include(<fmt/format.h>)
#define FMT_HEADER_ONLY
#include <fmt/format.h>
#endif

namespace {

using library_test::CountingResource;
using sluice::buffer_base;
using sluice::inline_buffer;

static_assert(std::ranges::contiguous_range<buffer_base> && std::ranges::sized_range<buffer_base>);
static_assert(std::ranges::contiguous_range<const inline_buffer<4>> && std::ranges::common_range<buffer_base>);
static_assert(!std::is_copy_constructible_v<buffer_base> && !std::is_default_constructible_v<buffer_base>);
static_assert(std::is_nothrow_move_constructible_v<inline_buffer<4>>);
static_assert(std::uses_allocator_v<inline_buffer<4>, std::pmr::polymorphic_allocator<inline_buffer<4>>>);
static_assert(std::is_constructible_v<inline_buffer<4>, inline_buffer<8>> &&
              std::is_assignable_v<inline_buffer<4>&, inline_buffer<8>>);
static_assert(sizeof(inline_buffer<0>) == 40 && sizeof(inline_buffer<24>) == 64);

std::string letters(std::size_t count) {
  std::string text(count, '\0');
  for (std::size_t i = 0; i < count; ++i)
    text[i] = static_cast<char>('a' + i % 26);
  return text;
}

bool is_inside(const void* place, const void* object, std::size_t size) {
  const auto* const start = static_cast<const char*>(object);
  return std::greater_equal<>()(place, start) && std::less<>()(place, start + size);
}

TEST(InlineBuffer, TakesNoMemoryUpToN) {
  CountingResource resource;
  inline_buffer<64> buffer(&resource);
  for (int round = 0; round < 3; ++round) {
    buffer.append(letters(60)).append("abc", 3).push_back('!');
    EXPECT_EQ(buffer.size(), 64u);
    EXPECT_TRUE(buffer.is_inline());
    EXPECT_TRUE(is_inside(buffer.data(), &buffer, sizeof buffer));
    inline_buffer<64> copy(buffer, &resource);
    inline_buffer<64> moved(std::move(copy));
    EXPECT_EQ(moved, buffer);
    buffer.clear();
    buffer.reserve(64);
    buffer.resize(64);
    buffer.resize(0);
  }
  EXPECT_EQ(resource.allocations(), 0u);
  buffer.append(65, 'x');
  EXPECT_EQ(resource.allocations(), 1u);
  EXPECT_FALSE(buffer.is_inline());
}

TEST(InlineBuffer, GivesBackItsBlockWhenTheContentsFitInsideAgain) {
  CountingResource resource;
  inline_buffer<8> buffer(letters(100), &resource);
  buffer.resize(50);
  buffer.shrink_to_fit();
  EXPECT_EQ(buffer.capacity(), 50u);
  EXPECT_EQ(buffer, letters(50));
  EXPECT_EQ(resource.live_bytes(), 50u);
  buffer.resize(8);
  buffer.shrink_to_fit();
  EXPECT_TRUE(buffer.is_inline());
  EXPECT_EQ(buffer, letters(8));
  EXPECT_EQ(resource.live_blocks(), 0u);
  buffer.append("i");
  EXPECT_EQ(buffer, letters(9));
}

TEST(InlineBuffer, ComesBackInsideFromABlockThatIsFullAndNoLarger) {
  inline_buffer<2> small("abcd");
  ASSERT_EQ(small.capacity(), 4u);
  inline_buffer<4> buffer;
  buffer = std::move(small);
  ASSERT_FALSE(buffer.is_inline());
  buffer.shrink_to_fit();
  EXPECT_TRUE(buffer.is_inline());
  EXPECT_EQ(buffer, "abcd");
}

TEST(InlineBuffer, AppendsAnyPieceOfItself) {
  for (const std::size_t length : {1u, 7u, 8u, 9u, 16u, 100u}) {
    for (std::size_t from = 0; from < length; ++from) {
      inline_buffer<8> buffer(letters(length));
      std::string model = letters(length);
      for (int i = 0; i < 4; ++i) {
        buffer.append(buffer.view().substr(from));
        model.append(model.substr(from));
        ASSERT_EQ(buffer.view(), model) << length << ' ' << from;
      }
      buffer.push_back(buffer[from]);
      EXPECT_EQ(buffer.back(), model[from]);
      buffer.assign(buffer.view().substr(from, length - from));
      EXPECT_EQ(buffer, letters(length).substr(from));
      buffer.insert(1, buffer.view());
      EXPECT_EQ(buffer, letters(length).substr(from).insert(1, letters(length).substr(from)));
    }
  }
}

TEST(InlineBuffer, PushesABackReferenceWhileItGrows) {
  inline_buffer<1> buffer("x");
  for (int i = 0; i < 1000; ++i)
    buffer.push_back(buffer.front());
  EXPECT_EQ(buffer, std::string(1001, 'x'));
}

TEST(InlineBuffer, StaysAsItWasWhenThereIsNoMemory) {
  CountingResource resource, other_resource;
  for (const std::size_t length : {0u, 5u, 8u, 64u}) {
    inline_buffer<8> buffer(&resource);
    resource.never_fail();
    buffer.assign(letters(length));
    buffer.shrink_to_fit();
    const std::string before = letters(length);
    const char* const data = buffer.data();
    resource.fail_after(0);
    inline_buffer<200> source(letters(100), &other_resource);
    inline_buffer<8> heap_source(letters(100), &other_resource);
    const std::size_t room = buffer.capacity();
    EXPECT_THROW(buffer.append(room - length + 1, 'x'), std::bad_alloc);
    EXPECT_THROW(buffer.append(letters(100)), std::bad_alloc);
    EXPECT_THROW(buffer.append_for_overwrite(room + 1), std::bad_alloc);
    EXPECT_THROW(buffer.insert(0, letters(100)), std::bad_alloc);
    EXPECT_THROW(buffer.assign(letters(100)), std::bad_alloc);
    EXPECT_THROW(buffer.resize(room + 1), std::bad_alloc);
    EXPECT_THROW(buffer.resize_for_overwrite(room + 1), std::bad_alloc);
    EXPECT_THROW(buffer.reserve(room + 1), std::bad_alloc);
    EXPECT_THROW(buffer = source, std::bad_alloc);
    EXPECT_THROW(buffer = std::move(source), std::bad_alloc);
    EXPECT_EQ(source.view(), letters(100));  // NOLINT: nothing has been moved
    EXPECT_THROW(buffer = std::move(heap_source), std::bad_alloc);
    EXPECT_EQ(heap_source.view(), letters(100));  // NOLINT
    EXPECT_THROW(buffer.swap(source), std::bad_alloc);
    EXPECT_THROW(source.swap(buffer), std::bad_alloc);
    EXPECT_EQ(source, letters(100));
    if (length == room) {
      EXPECT_THROW(buffer.push_back('x'), std::bad_alloc);
    }
    if (length == 64) {
      buffer.pop_back();
      EXPECT_THROW(buffer.shrink_to_fit(), std::bad_alloc);
      buffer.push_back(before.back());
    }
    EXPECT_EQ(buffer, before);
    EXPECT_EQ(buffer.data(), data);
    EXPECT_EQ(buffer.capacity(), room);
  }
}

TEST(InlineBuffer, RefusesSizesThatNoMemoryHas) {
  constexpr std::size_t most = buffer_base::max_size();
  for (const std::size_t length : {1u, 30u}) {
    inline_buffer<8> buffer(letters(length));
    for (const std::size_t more : {most, most + 1, SIZE_MAX - length, SIZE_MAX - length + 1, SIZE_MAX}) {
      EXPECT_THROW(buffer.append(more, 'x'), std::length_error);
      EXPECT_THROW(buffer.append_for_overwrite(more), std::length_error);
      EXPECT_THROW(buffer.append(static_cast<const void*>("x"), more), std::length_error);
    }
    for (const std::size_t size : {most + 1, SIZE_MAX - 1, SIZE_MAX}) {
      EXPECT_THROW(buffer.resize(size), std::length_error);
      EXPECT_THROW(buffer.resize_for_overwrite(size), std::length_error);
      EXPECT_THROW(buffer.reserve(size), std::length_error);
      EXPECT_THROW(buffer.assign(static_cast<const void*>("x"), size), std::length_error);
    }
    EXPECT_EQ(buffer, letters(length));
  }
  CountingResource resource;
  resource.fail_after(0);
  inline_buffer<8> buffer(&resource);
  EXPECT_THROW(buffer.resize(most), std::bad_alloc);  // asks for it, and not for less
  EXPECT_EQ(buffer.size(), 0u);
}

TEST(InlineBuffer, IsStolenFromTheHeapAndCopiedFromInside) {
  CountingResource resource;
  inline_buffer<8> heap(letters(100), &resource);
  const char* const block = heap.data();
  inline_buffer<16> thief(&resource);
  thief = std::move(heap);
  EXPECT_EQ(thief.data(), block);
  EXPECT_TRUE(heap.empty() && heap.is_inline());  // NOLINT: what a moved-from buffer is like
  EXPECT_EQ(resource.allocations(), 1u);
  inline_buffer<0> second(static_cast<buffer_base&&>(thief));
  EXPECT_EQ(second.data(), block);
  EXPECT_EQ(second.resource(), &resource);
  inline_buffer<0> third(std::move(second));
  EXPECT_EQ(third.data(), block);
  heap = std::move(third);
  EXPECT_EQ(heap.data(), block);
  EXPECT_EQ(resource.allocations(), 1u);

  inline_buffer<16> inside(letters(16), &resource);
  inline_buffer<16> copy(std::move(inside));
  EXPECT_TRUE(copy.is_inline() && is_inside(copy.data(), &copy, sizeof copy));
  EXPECT_TRUE(inside.empty());  // NOLINT
  EXPECT_EQ(copy, letters(16));
  heap = std::move(copy);
  EXPECT_EQ(heap, letters(16));
  inside.append("usable");  // NOLINT
  EXPECT_EQ(inside, "usable");
}

TEST(InlineBuffer, CopiesBetweenDifferentResources) {
  CountingResource one, two;
  inline_buffer<8> a(letters(100), &one), b(letters(50), &two);
  const char* const block = a.data();
  b = std::move(a);
  EXPECT_EQ(b, letters(100));
  EXPECT_NE(b.data(), block);
  EXPECT_EQ(b.resource(), &two);
  inline_buffer<8> c(std::move(b), &one);
  EXPECT_EQ(c, letters(100));
  EXPECT_EQ(c.resource(), &one);
  const char* const own = c.data();
  inline_buffer<8> stolen(std::move(c), std::pmr::polymorphic_allocator<>(&one));
  EXPECT_EQ(stolen.data(), own);
  inline_buffer<8> d(stolen);
  EXPECT_EQ(d.resource(), std::pmr::get_default_resource());
}

TEST(InlineBuffer, SurvivesAssignmentFromItself) {
  for (const std::size_t length : {0u, 8u, 100u}) {
    inline_buffer<8> buffer(letters(length));
    buffer_base& same = buffer;
    same = static_cast<const buffer_base&>(buffer);
    EXPECT_EQ(buffer, letters(length));
    same = std::move(buffer);
    EXPECT_EQ(same, letters(length));  // NOLINT: the same object
    buffer.swap(same);                 // NOLINT
    EXPECT_EQ(buffer, letters(length));
  }
}

template <std::size_t N, std::size_t M>
void swap_all_lengths(std::pmr::memory_resource* one, std::pmr::memory_resource* two) {
  for (const std::size_t i : {0u, 1u, 4u, 15u, 16u, 17u, 90u})
    for (const std::size_t j : {0u, 1u, 5u, 15u, 16u, 17u, 110u})
      for (const bool i_on_heap : {false, true})
        for (const bool j_on_heap : {false, true}) {
          inline_buffer<N> a(one);
          inline_buffer<M> b(two);
          if (i_on_heap) a.reserve(200);
          if (j_on_heap) b.reserve(120);
          a.append(letters(i));
          b.append(j, 'b');
          swap(a, b);
          ASSERT_EQ(a, std::string(j, 'b')) << i << ' ' << j << i_on_heap << j_on_heap;
          ASSERT_EQ(b, letters(i)) << i << ' ' << j << i_on_heap << j_on_heap;
          ASSERT_EQ(a.resource(), one);
          a.append("more");
          b.append("less");
          ASSERT_EQ(a.size() + b.size(), i + j + 8);
        }
}

TEST(InlineBuffer, SwapsAcrossNAndResources) {
  CountingResource one, two;
  swap_all_lengths<16, 16>(&one, &one);
  swap_all_lengths<16, 16>(&one, &two);
  swap_all_lengths<0, 16>(&one, &one);
  swap_all_lengths<4, 100>(&one, &one);
  swap_all_lengths<100, 4>(&one, &one);
  swap_all_lengths<100, 4>(&one, &two);
  const std::size_t before = one.allocations();
  inline_buffer<4> a(letters(50), &one), b(letters(60), &one);
  const char* const block = a.data();
  a.swap(b);
  EXPECT_EQ(b.data(), block);
  EXPECT_EQ(one.allocations(), before + 2);
}

TEST(InlineBuffer, SwapsAFullInsideWithABlockWithoutTakingMemory) {
  CountingResource resource;
  inline_buffer<8> inside("12345678", &resource), outside("a block of its own", &resource);
  const char* const block = outside.data();
  resource.fail_after(0);
  inside.swap(outside);
  EXPECT_TRUE(inside == "a block of its own" && inside.data() == block);
  EXPECT_TRUE(outside == "12345678" && outside.is_inline());
  outside.swap(inside);
  EXPECT_TRUE(inside == "12345678" && inside.is_inline());
}

// The block that it hands out starts where it is told to: right behind an object.
class NeighbourResource final : public std::pmr::memory_resource {
 public:
  explicit NeighbourResource(void* place) : place_(place) {}
  bool is_out() const { return is_out_; }

 private:
  void* do_allocate(std::size_t, std::size_t) override {
    EXPECT_FALSE(is_out_);
    is_out_ = true;
    return place_;
  }
  void do_deallocate(void* block, std::size_t, std::size_t) override {
    EXPECT_TRUE(is_out_ && block == place_);
    is_out_ = false;
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override { return this == &other; }
  void* place_;
  bool is_out_ = false;
};

// The textbook buffer: what stands right behind the object is its inline storage.
struct TextbookVersion {
  void grow(std::pmr::memory_resource& resource) { data = static_cast<char*>(resource.allocate(64, 1)); }
  bool looks_inline() const { return data == reinterpret_cast<const char*>(this + 1); }
  void end(std::pmr::memory_resource& resource) const {
    if (!looks_inline()) resource.deallocate(data, 64, 1);
  }
  char* data = nullptr;
};

TEST(InlineBuffer, KnowsItsBlockFromItsInsideWhenTheyAreNeighbours) {
  alignas(64) static std::array<char, 1024> memory;
  {
    NeighbourResource resource(memory.data() + sizeof(TextbookVersion));
    auto* const faulty = ::new (memory.data()) TextbookVersion;
    faulty->grow(resource);
    faulty->end(resource);
    EXPECT_TRUE(resource.is_out()) << "the textbook approach is expected to lose the block";
  }
  const auto check = [&]<std::size_t N>(std::integral_constant<std::size_t, N>) {
    using buffer = inline_buffer<N>;
    NeighbourResource resource(memory.data() + sizeof(buffer));
    auto* const first = ::new (memory.data()) buffer(&resource);
    first->append(letters(64));
    EXPECT_EQ(first->data(), static_cast<void*>(first + 1));
    EXPECT_FALSE(first->is_inline());
    first->~buffer();
    EXPECT_FALSE(resource.is_out());

    auto* const again = ::new (memory.data()) buffer(&resource);
    again->append(letters(64));
    buffer thief(std::move(*again));
    EXPECT_EQ(thief.data(), static_cast<void*>(again + 1));
    EXPECT_TRUE(again->is_inline());
    thief.resize(N);
    thief.shrink_to_fit();
    EXPECT_FALSE(resource.is_out());
    EXPECT_EQ(thief, letters(N));
    again->~buffer();
  };
  check(std::integral_constant<std::size_t, 0>());
  check(std::integral_constant<std::size_t, 8>());
  check(std::integral_constant<std::size_t, 15>());
}

// Behind this one the compiler may put members into the padding of what comes before.
struct Oddly : inline_buffer<3> {
  using inline_buffer<3>::operator=;
  char tail = 't';
};
struct alignas(128) FarApart {
  char before = 'b';
  inline_buffer<5> buffer;
  char after = 'a';
};

TEST(InlineBuffer, FindsItsInsideWhereverItStands) {
  std::vector<FarApart> many(5);
  auto odd = std::make_unique<Oddly>();
  odd->append("odd");
  EXPECT_TRUE(odd->is_inline());
  *odd = inline_buffer<9>("odd");
  EXPECT_EQ(odd->tail, 't');
  EXPECT_EQ(*odd, "odd");
  for (FarApart& each : many) {
    each.buffer.append("12345");
    EXPECT_TRUE(each.buffer.is_inline());
    EXPECT_TRUE(is_inside(each.buffer.data(), &each.buffer, sizeof each.buffer));
    EXPECT_TRUE(is_inside(each.buffer.data() + 4, &each.buffer, sizeof each.buffer));
    each.buffer.append("67890");
    each.buffer.resize(2);
    each.buffer.shrink_to_fit();
    EXPECT_EQ(each.buffer, "12");
    EXPECT_EQ(each.before, 'b');
    EXPECT_EQ(each.after, 'a');
  }
}

constinit inline_buffer<24> at_start;  // initialized by the compiler, which knows no address

TEST(InlineBuffer, UsesItsInsideWhenTheCompilerInitializedIt) {
  EXPECT_TRUE(at_start.empty() && at_start.is_inline());
  EXPECT_EQ(at_start.capacity(), 24u);
  at_start.append(letters(24));
  EXPECT_TRUE(at_start.is_inline());
  EXPECT_TRUE(is_inside(at_start.data(), &at_start, sizeof at_start));
  EXPECT_TRUE(is_inside(at_start.data() + 23, &at_start, sizeof at_start));
  at_start.append("!");
  EXPECT_FALSE(at_start.is_inline());
  EXPECT_EQ(at_start, letters(24) + "!");
}

constexpr bool works_in_constant_expressions() {
  inline_buffer<4> a("hello");
  buffer_base& base = a;
  base.append(", ").append(base).append(2, '!').push_back('?');
  inline_buffer<16> b(a);
  b.erase(0, 1).insert(0, "J").resize(20, '.');
  inline_buffer<16> c(std::move(b));
  c.swap(a);
  c.shrink_to_fit();
  c.resize(7);
  *c.append_for_overwrite(1) = 'x';
  // NOLINTNEXTLINE: moved from, it is empty
  return a == "Jello, hello, !!?..." && c == "hello, x" && b.empty() && a.front() == 'J' && !(c < a);
}
static_assert(works_in_constant_expressions());

TEST(InlineBuffer, GivesItsResourceToElementsOfContainers) {
  CountingResource resource;
  std::pmr::vector<inline_buffer<4>> buffers(&resource);
  buffers.emplace_back(letters(50));
  buffers.emplace_back(buffers.front());
  buffers.resize(10);
  for (const auto& buffer : buffers)
    EXPECT_EQ(buffer.resource(), &resource);
  EXPECT_EQ(buffers[1], letters(50));
}

TEST(InlineBuffer, TakesBytesOfEveryKind) {
  inline_buffer<16> buffer;
  const std::array<std::byte, 2> bytes{std::byte{1}, std::byte{2}};
  const std::vector<unsigned char> more{3, 4};
  const std::string text = "text";
  buffer.append(bytes).append(std::span(bytes).first(1)).append(more.begin(), more.end());
  buffer.append(text.begin(), text.end()).append(text).append("", 0).append(nullptr, 0).append(std::string_view());
  EXPECT_EQ(buffer, std::string_view("\1\2\1\3\4texttext"));
  EXPECT_EQ(buffer.as_bytes()[4], std::byte{4});
  buffer.as_writable_bytes()[0] = std::byte{'A'};
  EXPECT_EQ(buffer.front(), 'A');
  std::ranges::copy(text, std::back_inserter(buffer));
  EXPECT_TRUE(buffer.view().ends_with("texttexttext"));
  EXPECT_TRUE(inline_buffer<1>("\xff") > inline_buffer<9>("\x01z") && buffer != inline_buffer<1>());
  EXPECT_TRUE(buffer > "A" && buffer < "B" && "B" != buffer);
}

#if defined(FMT_HEADER_ONLY)
TEST(InlineBuffer, IsFormattedInto) {
  CountingResource resource;
  inline_buffer<32> buffer(&resource);
  buffer_base& base = buffer;
  fmt::format_to(std::back_inserter(base), "{} is {:.2f}", "pi", 3.14159);
  EXPECT_EQ(buffer, "pi is 3.14");
  fmt::format_to(std::back_inserter(buffer), "{:>22}", 42);
  EXPECT_EQ(resource.allocations(), 0u);
  fmt::format_to(std::back_inserter(buffer), "{:>1000}", 42);
  EXPECT_EQ(buffer.size(), 1032u);
}
#endif

}  // namespace
