// A heap in whose place another allocator must serve: it never starts, takes nothing from the system, and passes every
// call on. Open it when programs built with a sanitizer behave otherwise under the preload than without it.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdlib>
#include <cstring>
#include <thread>

#include "arena/arena.hpp"
#include "arena/scope.hpp"
#include "heap/heap.hpp"
#include "os/memory.hpp"
#include "sluice/sluice.h"

namespace {

using namespace sluice;

constexpr size_t most = size_t{1} << 40;  // a sanitizer stops the process that asks for more
int allocated = 0;
int freed = 0;

const heap::ForeignHooks system_malloc = {[](void* block) noexcept {
                                            ++freed;
                                            std::free(block);
                                            return true;
                                          },
                                          [](const void* block, size_t* size) noexcept {
                                            *size = malloc_usable_size(const_cast<void*>(block));
                                            return true;
                                          },
                                          [](size_t alignment, size_t size) noexcept {
                                            if (size > most) return static_cast<void*>(nullptr);
                                            ++allocated;
                                            void* block = nullptr;
                                            return posix_memalign(&block, alignment, size) == 0 ? block : nullptr;
                                          }};

class StandAside : public testing::Test {
 protected:
  void SetUp() override { allocated = freed = 0; }
  void TearDown() override {
    EXPECT_EQ(allocated, freed);
    EXPECT_EQ(region_base, nullptr) << "the heap has started";
    EXPECT_EQ(os::call_counts.mmap_calls.load(), 0u);
  }
};

TEST_F(StandAside, requests_of_every_size_and_alignment_are_passed_on) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{1000}, size_t{70000}, size_t{5000000}}) {
    void* const plain = arena::allocate_slow(size, thread_cache);
    ASSERT_NE(plain, nullptr);
    heap::free(plain);
    for (const size_t alignment : {size_t{16}, size_t{64}, size_t{4096}, size_t{1} << 20}) {
      void* const block = arena::allocate_aligned(alignment, size);
      ASSERT_NE(block, nullptr);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % alignment, 0u);
      EXPECT_GE(arena::usable_size(block), size);
      heap::free(block);
    }
  }
  EXPECT_EQ(allocated, 25);
}

TEST_F(StandAside, zeroed_blocks_are_zero) {
  for (const size_t size : {size_t{100}, size_t{300000}}) {
    void* const dirty = heap::allocate(size);
    std::memset(dirty, 0xff, size);
    heap::free(dirty);
    auto* const block = static_cast<unsigned char*>(arena::allocate_zeroed(size, 1));
    ASSERT_NE(block, nullptr);
    for (size_t i = 0; i < size; ++i)
      ASSERT_EQ(block[i], 0) << i;
    heap::free(block);
  }
}

TEST_F(StandAside, blocks_keep_their_contents_when_they_are_resized) {
  char* block = static_cast<char*>(arena::reallocate(nullptr, 5));
  std::memcpy(block, "kept", 5);
  for (const size_t size : {size_t{500}, size_t{100000}, size_t{3000000}, size_t{20}}) {
    block = static_cast<char*>(arena::reallocate(block, size));
    ASSERT_NE(block, nullptr);
    EXPECT_STREQ(block, "kept");
  }
  heap::free(block);
}

TEST_F(StandAside, what_the_other_refuses_is_refused) {
  EXPECT_EQ(heap::allocate_slow(SIZE_MAX / 2, thread_cache), nullptr);
  EXPECT_EQ(arena::allocate_zeroed(SIZE_MAX, 2), nullptr);
}

TEST_F(StandAside, scopes_are_refused_and_threads_served) {
  std::thread([] {
    sluice_scope scope;
    EXPECT_NE(arena::enter(&scope, SLUICE_ROUTE), 0);
    heap::free(heap::allocate(100));
    arena::leave(&scope);
  }).join();
}

TEST_F(StandAside, trim_has_nothing_to_give) {
  EXPECT_FALSE(heap::trim(0));
}

}  // namespace

const heap::ForeignHooks* sluice::heap::required_allocator() noexcept {
  return &system_malloc;
}
