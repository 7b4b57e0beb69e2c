// Where the elements of a vector with inline storage lie, and what lies beside it: its own heap block, members in its
// tail padding, alignment. Open it when the sign of being inline, or the layout, changes.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <memory_resource>
#include <new>
#include <string>
#include <utility>

#include "counting_resource.hpp"
#include "inline_vector_elements.hpp"
#include "sluice/inline_vector.hpp"

namespace {

using sluice::inline_vector;
using sluice::vector_base;

// Hands out the bytes that it is told to, once at a time, as a malloc without block headers may: right behind an
// object.
class Behind final : public std::pmr::memory_resource {
 public:
  explicit Behind(void* start) : start_(start) {}
  int live() const { return live_; }

 private:
  void* do_allocate(std::size_t, std::size_t) override {
    if (live_ != 0) throw std::bad_alloc();
    ++live_;
    return start_;
  }
  void do_deallocate(void* block, std::size_t, std::size_t) override {
    EXPECT_EQ(block, start_);
    --live_;
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }

  void* start_;
  int live_ = 0;
};

// Takes its elements to be inline when they stand right behind the base.
class TextbookVersion {
 public:
  explicit TextbookVersion(std::pmr::memory_resource* resource) : resource_(resource) {}
  ~TextbookVersion() {
    if (data_ != nullptr && !is_inline()) resource_->deallocate(data_, capacity_ * sizeof(int), alignof(int));
  }
  TextbookVersion(const TextbookVersion&) = delete;
  TextbookVersion& operator=(const TextbookVersion&) = delete;

  bool is_inline() const { return static_cast<const void*>(data_) == this + 1; }
  void reserve(std::size_t capacity) {
    data_ = static_cast<int*>(resource_->allocate(capacity * sizeof(int), alignof(int)));
    capacity_ = capacity;
  }

 private:
  std::pmr::memory_resource* resource_;
  int* data_ = nullptr;
  std::size_t capacity_ = 0;
};

// The object first, and its heap block right behind it.
template <class Vector>
struct Neighbours {
  alignas(Vector) std::array<std::byte, sizeof(Vector) + 4096> bytes;
  Behind resource{bytes.data() + sizeof(Vector)};
  Vector* const vector = ::new (bytes.data()) Vector(&resource);
};

TEST(InlineVectorLayout, TheTextsSignTakesANeighbouringBlockForRoomInside) {
  Neighbours<TextbookVersion> neighbours;
  neighbours.vector->reserve(10);
  EXPECT_TRUE(neighbours.vector->is_inline());  // wrong
  std::destroy_at(neighbours.vector);
  EXPECT_EQ(neighbours.resource.live(), 1);  // leaked
}

template <std::size_t N>
void expect_neighbour_is_known() {
  Neighbours<inline_vector<int, N>> neighbours;
  vector_base<int>& vector = *neighbours.vector;
  vector.reserve(64);
  ASSERT_EQ(static_cast<void*>(vector.data()), neighbours.vector + 1);
  EXPECT_FALSE(vector.is_inline());
  vector.append(30, 7);
  inline_vector<int, N> moved(std::move(*neighbours.vector));  // steals, since it is a block
  EXPECT_EQ(static_cast<void*>(moved.data()), neighbours.vector + 1);
  EXPECT_EQ(moved.size(), 30u);
  EXPECT_TRUE(vector.is_inline() && vector.empty());
  vector = std::move(moved);
  vector.clear();
  vector.shrink_to_fit();
  EXPECT_EQ(neighbours.resource.live(), 0);
  vector.reserve(40);
  EXPECT_EQ(neighbours.resource.live(), 1);
  std::destroy_at(neighbours.vector);
  EXPECT_EQ(neighbours.resource.live(), 0);
}
TEST(InlineVectorLayout, ANeighbouringBlockIsGivenBack) {
  expect_neighbour_is_known<0>();
  expect_neighbour_is_known<4>();
  expect_neighbour_is_known<32>();
}

// A malloc without headers may put an object and a block of its own side by side at any time.
TEST(InlineVectorLayout, ObjectsOnTheHeapWithBlocksOfTheirOwnSizeLeakNothing) {
  library_test::CountingResource resource;
  using Vector = inline_vector<std::uint64_t, 0>;
  std::array<std::unique_ptr<Vector>, 500> vectors;
  for (int round = 0; round < 4; ++round)
    for (auto& vector : vectors) {
      vector = std::make_unique<Vector>(round % 2 == 0 ? std::pmr::get_default_resource() : &resource);
      vector->reserve(sizeof(Vector) / sizeof(std::uint64_t));
      vector->append(3, 7);
      Vector moved(std::move(*vector));
      ASSERT_EQ(moved.size(), 3u);
      *vector = std::move(moved);
    }
}

// Members of a derived class, or those behind a [[no_unique_address]] one, may lie in the tail padding.
using Small = inline_vector<char, 3>;
struct Derived : Small {
  using Small::Small;
  char tail = 'T';
};
struct Holder {
  [[no_unique_address]] Small vector;
  char tail = 'T';
};
static_assert(sizeof(Small) == 48 && sizeof(Derived) == 48 && sizeof(Holder) == 48);  // it does
static_assert(sizeof(vector_base<char>) == 40);

TEST(InlineVectorLayout, MembersInTheTailPaddingAreLeftAlone) {
  Derived one, two;
  Holder held, other;
  one.assign({'a', 'b', 'c'});
  two.assign({'d', 'e', 'f'});
  held.vector = one;
  other.vector = std::move(static_cast<Small&>(two));
  held.vector.swap(other.vector);
  one.tail = held.tail = 'U';
  static_cast<Small&>(one) = held.vector;
  static_cast<Small&>(one) = std::move(held.vector);
  held.vector.assign(3, 'x');
  held.vector.append({'y'});
  held.vector.pop_back();
  held.vector.shrink_to_fit();
  EXPECT_TRUE(held.vector.is_inline());
  EXPECT_EQ(one.tail, 'U');
  EXPECT_EQ(held.tail, 'U');
  EXPECT_EQ(other.tail, 'T');
  EXPECT_EQ(two.tail, 'T');
  std::destroy_at(&held.vector);
  ::new (static_cast<void*>(&held.vector)) Small(one);
  EXPECT_EQ(held.tail, 'U');
  EXPECT_EQ(held.vector, (Small{'d', 'e', 'f'}));
}

template <class T, std::size_t N>
void expect_inside() {
  struct Odd {
    char first;
    inline_vector<T, N> vector;
  } odd;
  const auto start = reinterpret_cast<std::uintptr_t>(&odd.vector);
  const auto elements = reinterpret_cast<std::uintptr_t>(odd.vector.data());
  EXPECT_EQ(elements % alignof(T), 0u);
  EXPECT_GE(elements, start + sizeof(vector_base<T>));
  EXPECT_LE(elements + N * sizeof(T), start + sizeof(odd.vector));
  // What is computed for objects that the compiler initializes is where it is.
  static constinit inline_vector<T, N> by_the_compiler;
  by_the_compiler.reserve(1);
  EXPECT_EQ(
      reinterpret_cast<std::uintptr_t>(by_the_compiler.data()) - reinterpret_cast<std::uintptr_t>(&by_the_compiler),
      elements - start);
}
TEST(InlineVectorLayout, ElementsInsideLieInsideAndAligned) {
  expect_inside<char, 1>();
  expect_inside<char, 5>();
  expect_inside<short, 3>();
  expect_inside<std::uint64_t, 2>();
  expect_inside<long double, 2>();
  expect_inside<std::string, 3>();
  expect_inside<library_test::OverAligned, 2>();
  expect_inside<library_test::ThreeBytes, 7>();
}

TEST(InlineVectorLayout, OverAlignedElementsAreAlignedOnTheHeapAsWell) {
  library_test::CountingResource resource;
  for (std::pmr::memory_resource* const from :
       {static_cast<std::pmr::memory_resource*>(&resource), std::pmr::get_default_resource()}) {
    inline_vector<library_test::OverAligned, 2> vector(from);
    for (int i = 0; i < 40; ++i)
      vector.insert(vector.begin(), library_test::OverAligned{i});
    for (int i = 0; i < 40; ++i)
      EXPECT_EQ(library_test::number_of(vector[static_cast<std::size_t>(i)]), 39 - i);  // which looks at the address
  }
}

}  // namespace
