// Vectors whose elements take memory themselves, and resources that differ: which one each element has after elements
// and blocks have changed hands.
#include <gtest/gtest.h>

#include <cstddef>
#include <memory_resource>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "counting_resource.hpp"
#include "sluice/inline_string.hpp"
#include "sluice/inline_vector.hpp"

namespace {

using library_test::CountingResource;
using sluice::inline_string;
using sluice::inline_vector;

// Equal to all of its kind, so that blocks may be given back to any of them.
class EqualResource final : public std::pmr::memory_resource {
 public:
  explicit EqualResource(std::ptrdiff_t& live) noexcept : live_(live) {}

 private:
  void* do_allocate(std::size_t size, std::size_t align) override {
    live_ += static_cast<std::ptrdiff_t>(size);
    return std::pmr::new_delete_resource()->allocate(size, align);
  }
  void do_deallocate(void* block, std::size_t size, std::size_t align) override {
    live_ -= static_cast<std::ptrdiff_t>(size);
    std::pmr::new_delete_resource()->deallocate(block, size, align);
  }
  bool do_is_equal(const std::pmr::memory_resource& other) const noexcept override {
    return dynamic_cast<const EqualResource*>(&other) != nullptr;
  }

  std::ptrdiff_t& live_;
};

template <class String>
void fill(sluice::vector_base<String>& vector, std::size_t count, char first) {
  for (std::size_t i = 0; i != count; ++i)
    vector.emplace_back(String(100, static_cast<char>(first + i)));
}

template <class Vector>
void expect_elements(const Vector& vector, std::size_t count, char first, std::pmr::memory_resource* resource) {
  ASSERT_EQ(vector.size(), count);
  for (std::size_t i = 0; i != count; ++i) {
    EXPECT_EQ(std::string_view(vector[i]), std::string(100, static_cast<char>(first + i)));
    EXPECT_EQ(vector[i].get_allocator().resource(), resource);
  }
}

template <class String, std::size_t N>
void swap_between_resources(std::size_t many, std::size_t few) {
  CountingResource here, there;  // says when a block comes back to the wrong one
  inline_vector<String, N> first(&here), second(&there);
  fill(first, many, 'a');
  fill(second, few, 'p');
  first.swap(second);
  expect_elements(first, few, 'p', &here);
  expect_elements(second, many, 'a', &there);
}

TEST(InlineVectorResource, ElementsKeepToTheirVectorsResourceInASwap) {
  swap_between_resources<std::pmr::string, 4>(3, 2);
  swap_between_resources<std::pmr::string, 4>(2, 3);
  swap_between_resources<std::pmr::string, 4>(9, 2);
  swap_between_resources<std::pmr::string, 0>(9, 7);
  swap_between_resources<inline_string<8>, 4>(3, 2);
  swap_between_resources<inline_string<8>, 4>(9, 7);
}

TEST(InlineVectorResource, IsTheSameForAllElementsThoughTheDefaultChanges) {
  CountingResource before, after;
  std::pmr::memory_resource* const old = std::pmr::set_default_resource(&before);
  {
    inline_vector<std::pmr::string, 4> vector, other;
    fill(vector, 1, 'a');
    std::pmr::set_default_resource(&after);
    vector.emplace_back(std::pmr::string(100, 'b', old));
    fill(other, 3, 'p');
    expect_elements(vector, 2, 'a', &before);
    vector.swap(other);
    expect_elements(vector, 3, 'p', &before);
    expect_elements(other, 2, 'a', &after);
    vector = std::move(other);
    expect_elements(vector, 2, 'a', &before);
  }
  std::pmr::set_default_resource(old);
}

TEST(InlineVectorResource, GoesFromOuterToInnerContainers) {
  CountingResource resource;
  std::pmr::vector<inline_vector<inline_string<8>, 2>> outer(&resource);
  for (int i = 0; i != 3; ++i)
    outer.emplace_back();
  fill(outer[1], 5, 'a');
  expect_elements(outer[1], 5, 'a', &resource);
  outer.insert(outer.begin(), outer[1]);
  expect_elements(outer[0], 5, 'a', &resource);
}

// Copied as bytes by whoever does not know that a copy is told its resource.
struct Told {
  using allocator_type = std::pmr::polymorphic_allocator<>;

  explicit Told(int number, const allocator_type& allocator = {}) : resource(allocator.resource()), value(number) {}
  Told(const Told&) = default;
  Told& operator=(const Told&) = default;
  Told(const Told& other, const allocator_type& allocator) : resource(allocator.resource()), value(other.value) {}

  std::pmr::memory_resource* resource;
  int value;
};
static_assert(std::is_trivially_copyable_v<Told>);

TEST(InlineVectorResource, IsToldToElementsThatCouldBeCopiedAsBytes) {
  CountingResource resource;
  const std::vector<Told> source(2, Told(5));
  inline_vector<Told, 4> vector(source.begin(), source.end(), &resource);
  vector.emplace_back(6);
  vector.push_back(source[0]);
  vector.insert(vector.begin(), source[1]);
  vector.insert(vector.begin(), 2, source[1]);
  vector.append(source);
  vector.push_back(vector[3]);
  const inline_vector<Told, 4> copy(vector, &resource);
  ASSERT_EQ(copy.size(), 10u);
  for (const Told& each : vector)
    EXPECT_EQ(each.resource, &resource);
  for (const Told& each : copy)
    EXPECT_EQ(each.resource, &resource);
}

TEST(InlineVectorResource, EqualResourcesExchangeBlocks) {
  std::ptrdiff_t live = 0;
  EqualResource one(live), other(live);
  {
    inline_vector<std::string, 2> first(&one), second(&other);
    fill(first, 5, 'a');
    fill(second, 1, 'p');
    const std::string* const block = first.data();
    first.swap(second);
    EXPECT_EQ(second.data(), block);
    EXPECT_EQ(second.resource(), &other);
    first = std::move(second);
    EXPECT_EQ(first.data(), block);
    EXPECT_EQ(first.size(), 5u);
  }
  EXPECT_EQ(live, 0);
}

}  // namespace
