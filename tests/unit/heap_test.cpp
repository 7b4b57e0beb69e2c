// The heap as malloc's callers see it: every size and every alignment, realloc, calloc, errors, and pointers of others.
#include "heap/heap.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/options.hpp"
#include "heap/counters.hpp"
#include "heap_calls.hpp"
#include "random_blocks.hpp"
#include "without_stand_ins.hpp"

namespace {

using namespace sluice;
using test::Block;

constexpr size_t mib = size_t{1} << 20;

uintptr_t number_of(const void* address) {
  return reinterpret_cast<uintptr_t>(address);
}

class HeapTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    options.retain = 256 * mib;
    heap::free(test::allocate(1));
  }
  void TearDown() override { expect_valid(); }
  static void expect_valid() {
    const char* wrong = heap::validate().what;
    ASSERT_EQ(wrong, nullptr) << wrong;
  }
};

// Both ends of a block, and the last byte that it may use: enough to see blocks that overlap.
void mark(const Block& block, size_t usable) {
  block.data[0] = block.data[block.size / 2] = block.data[usable - 1] = block.seed;
}

bool is_marked(const Block& block, size_t usable) {
  return block.data[0] == block.seed && block.data[block.size / 2] == block.seed &&
         block.data[usable - 1] == block.seed;
}

// Live blocks lie side by side in address order: none may reach into the next.
void expect_no_overlap(std::vector<Block> batch) {
  std::sort(batch.begin(), batch.end(), [](const Block& a, const Block& b) { return a.data < b.data; });
  for (size_t i = 1; i < batch.size(); ++i) {
    const Block& before = batch[i - 1];
    ASSERT_LE(before.data + heap::usable_size(before.data), batch[i].data) << before.size << " " << batch[i].size;
  }
}

TEST_F(HeapTest, an_aligned_block_that_was_freed_serves_the_next_such_request) {
  for (size_t alignment = 32; alignment <= unit_size; alignment *= 2) {
    std::vector<size_t> sizes = {0, 1, alignment - 1, alignment, alignment + 1, 3 * alignment, 5 * alignment + 1};
    for (const size_t of_headers : header_class_sizes)  // their blocks lie at multiples of 16 or little more
      if (of_headers != 0) sizes.insert(sizes.end(), {of_headers - 8, of_headers});
    for (const size_t size : sizes) {
      void* const block = heap::allocate_aligned(alignment, size);  // from a slab, if the bin is empty
      ASSERT_NE(block, nullptr);
      const size_t usable = heap::usable_size(block);
      heap::free(block);
      void* const again = heap::allocate_aligned(alignment, size);
      EXPECT_EQ(again, block) << size << " at " << alignment;
      EXPECT_EQ(reinterpret_cast<uintptr_t>(again) % alignment, 0u);
      EXPECT_GE(usable, size);
      EXPECT_EQ(heap::usable_size(again), usable);
      heap::free(again);
    }
  }
}

// Such a block may be at hand where the class that serves the size without an alignment is that one, whose blocks lie
// at multiples of 16 or little more.
TEST_F(HeapTest, no_aligned_request_gets_a_block_of_a_class_for_headers_that_is_not_aligned) {
  for (const size_t of_headers : header_class_sizes) {
    if (of_headers == 0) continue;
    for (size_t alignment = 2 * min_alignment; alignment <= std::bit_floor(of_headers); alignment *= 2) {
      std::vector<void*> plain, aligned;
      for (int i = 0; i < 3; ++i)
        plain.push_back(test::allocate(of_headers));
      for (void* const block : plain)
        heap::free(block);
      for (int i = 0; i < 3; ++i) {
        aligned.push_back(heap::allocate_aligned(alignment, std::bit_floor(of_headers) + 1));
        EXPECT_EQ(reinterpret_cast<uintptr_t>(aligned.back()) % alignment, 0u) << of_headers << " at " << alignment;
      }
      for (void* const block : aligned)
        heap::free(block);
    }
  }
}

TEST_F(HeapTest, every_size_up_to_1_MiB_is_aligned_usable_and_apart_from_its_neighbours) {
  constexpr size_t batch_size = 64;
  std::vector<Block> batch;
  for (size_t size = 0; size <= mib; ++size) {
    Block block{static_cast<unsigned char*>(test::allocate(size)), size, static_cast<unsigned char>(size * 31 + 1)};
    ASSERT_NE(block.data, nullptr) << size;
    ASSERT_EQ(number_of(block.data) % min_alignment, 0u) << size;
    const size_t usable = heap::usable_size(block.data);
    ASSERT_GE(usable, std::max<size_t>(size, 1)) << size;
    mark(block, usable);
    batch.push_back(block);
    if (batch.size() < batch_size && size != mib) continue;
    expect_no_overlap(batch);
    for (const Block& held : batch) {
      ASSERT_TRUE(is_marked(held, heap::usable_size(held.data))) << held.size;
      heap::free(held.data);
    }
    batch.clear();
    if (size % 65536 == 65535) expect_valid();
    if (HasFatalFailure()) return;
  }
}

// Around every power of two, every eighth between and every class.
std::vector<size_t> interesting_sizes(size_t most) {
  std::vector<size_t> sizes = {0, 1, 2, 3, 7, 8, 15};
  for (const size_t size : header_class_sizes)
    if (size != 0) sizes.insert(sizes.end(), {size - 1, size, size + 1});
  for (size_t power = 16; power <= most; power *= 2)
    for (size_t eighth = 8; eighth < 16; ++eighth)
      for (const size_t size : {power / 8 * eighth - 1, power / 8 * eighth, power / 8 * eighth + 1})
        if (size <= most) sizes.push_back(size);
  return sizes;
}

TEST_F(HeapTest, every_alignment_up_to_1_MiB_holds_for_every_kind_of_size) {
  const std::vector<size_t> sizes = interesting_sizes(mib);
  for (size_t alignment = 1; alignment <= mib; alignment *= 2) {
    std::vector<Block> batch;
    for (const size_t size : sizes) {
      Block block{static_cast<unsigned char*>(heap::allocate_aligned(alignment, size)), size,
                  static_cast<unsigned char>(size * 31 + 1)};
      ASSERT_NE(block.data, nullptr) << alignment << " " << size;
      ASSERT_EQ(number_of(block.data) % std::max(alignment, min_alignment), 0u) << alignment << " " << size;
      const size_t usable = heap::usable_size(block.data);
      ASSERT_GE(usable, size);
      mark(block, usable);
      batch.push_back(block);
    }
    expect_no_overlap(batch);
    for (const Block& held : batch) {
      ASSERT_TRUE(is_marked(held, heap::usable_size(held.data))) << alignment << " " << held.size;
      heap::free(held.data);
    }
    expect_valid();
    if (HasFatalFailure()) return;
  }
}

TEST_F(HeapTest, realloc_keeps_the_contents_for_every_pair_of_sizes) {
  std::vector<size_t> sizes = interesting_sizes(mib / 2);
  sizes.erase(sizes.begin());
  for (size_t i = 0; i < sizes.size(); ++i) {
    for (size_t j = i % 5; j < sizes.size(); j += 5) {
      Block block{static_cast<unsigned char*>(test::allocate(sizes[i])), sizes[i],
                  static_cast<unsigned char>(i + j + 1)};
      test::fill(block);
      block.data = static_cast<unsigned char*>(heap::reallocate(block.data, sizes[j]));
      ASSERT_NE(block.data, nullptr);
      ASSERT_GE(heap::usable_size(block.data), sizes[j]);
      ASSERT_TRUE(test::intact_after_resize(block, sizes[j])) << sizes[i] << " to " << sizes[j];
      heap::free(block.data);
    }
  }
}

TEST_F(HeapTest, realloc_to_a_size_that_fits_keeps_the_place) {
  void* block = test::allocate(1000);
  EXPECT_EQ(heap::reallocate(block, heap::usable_size(block)), block);
  EXPECT_EQ(heap::reallocate(block, 900), block);
  heap::free(block);
}

TEST_F(HeapTest, realloc_to_less_than_half_gives_memory_back) {
  void* block = heap::reallocate(test::allocate(1000), 100);
  EXPECT_LT(heap::usable_size(block), 500u);
  heap::free(block);
}

TEST_F(HeapTest, realloc_of_null_allocates) {
  void* block = heap::reallocate(nullptr, 100);
  ASSERT_NE(block, nullptr);
  EXPECT_GE(heap::usable_size(block), 100u);
  heap::free(block);
}

TEST_F(HeapTest, calloc_is_zero_after_dirty_reuse) {
  for (const size_t size : interesting_sizes(2 * mib)) {
    void* dirty = test::allocate(size);
    std::memset(dirty, 0xff, size);
    heap::free(dirty);
    auto* block = static_cast<char*>(heap::allocate_zeroed(1, size));
    ASSERT_NE(block, nullptr);
    ASSERT_TRUE(size == 0 || (block[0] == 0 && std::memcmp(block, block + 1, size - 1) == 0)) << size;
    heap::free(block);
  }
}

TEST_F(HeapTest, calloc_multiplies_and_says_when_the_product_overflows) {
  void* block = heap::allocate_zeroed(1000, 1000);
  EXPECT_GE(heap::usable_size(block), 1'000'000u);
  heap::free(block);
  const std::pair<size_t, size_t> pairs[] = {{SIZE_MAX, 2}, {size_t{1} << 32, size_t{1} << 32}, {3, SIZE_MAX / 2}};
  for (const auto& [count, size] : pairs) {
    errno = 0;
    EXPECT_EQ(heap::allocate_zeroed(count, size), nullptr);
    EXPECT_EQ(errno, ENOMEM);
  }
}

TEST_F(HeapTest, sizes_beyond_any_memory_fail_with_ENOMEM_and_keep_the_block) {
  auto* block = static_cast<char*>(test::allocate(100));
  block[99] = 'x';
  for (const size_t size : {size_t{PTRDIFF_MAX} + 1, SIZE_MAX, SIZE_MAX - 15, SIZE_MAX - unit_size, size_t{1} << 47}) {
    const auto expect_enomem = [size](void* result) {
      EXPECT_EQ(result, nullptr) << size;
      EXPECT_EQ(errno, ENOMEM) << size;
      errno = 0;
    };
    errno = 0;
    expect_enomem(test::allocate(size));
    expect_enomem(heap::allocate_zeroed(1, size));
    expect_enomem(heap::allocate_aligned(64, size));
    expect_enomem(heap::allocate_aligned(2 * mib, size));
    expect_enomem(heap::reallocate(block, size));
    EXPECT_EQ(block[99], 'x');
  }
  errno = 0;
  EXPECT_EQ(heap::allocate_aligned(size_t{1} << 63, 1), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  heap::free(block);
}

TEST_F(HeapTest, success_leaves_errno_alone) {
  errno = EDOM;
  for (const size_t size : {size_t{1}, size_t{100}, size_t{5000}, size_t{70000}, 8 * mib}) {
    std::vector<void*> blocks;
    for (int i = 0; i < 200; ++i)
      blocks.push_back(test::allocate(size));
    for (void*& block : blocks)
      block = heap::reallocate(block, size + size / 2);
    for (void* block : blocks)
      heap::free(block);
    heap::free(heap::allocate_aligned(4096, size));
    heap::free(heap::allocate_zeroed(3, size));
    (void)heap::trim(0);
    EXPECT_EQ(errno, EDOM) << size;
  }
  heap::free(nullptr);
  EXPECT_EQ(errno, EDOM);
}

TEST_F(HeapTest, nothing_is_known_about_null) {
  heap::free(nullptr);
  EXPECT_EQ(heap::usable_size(nullptr), 0u);
}

TEST_F(HeapTest, pointers_of_others_are_counted_and_never_touched) {
  static unsigned char other[2 * unit_size];
  std::memset(other, 0x5a, sizeof other);
  const uint64_t frees = counters::totals.foreign.frees.load();
  const uint64_t reallocs = counters::totals.foreign.reallocs.load();
  void* const strangers[] = {other,
                             other + 1,
                             other + unit_size,
                             reinterpret_cast<void*>(8),
                             reinterpret_cast<void*>(UINTPTR_MAX),
                             reinterpret_cast<void*>(uintptr_t{1} << 62)};
  for (void* stranger : strangers) {
    heap::free(stranger);
    EXPECT_EQ(heap::usable_size(stranger), 0u);
    EXPECT_EQ(heap::reallocate(stranger, 100), nullptr);
  }
  EXPECT_EQ(counters::totals.foreign.frees.load() - frees, std::size(strangers));
  EXPECT_EQ(counters::totals.foreign.reallocs.load() - reallocs, std::size(strangers));
  EXPECT_TRUE(std::all_of(std::begin(other), std::end(other), [](unsigned char c) { return c == 0x5a; }));
}

TEST_F(HeapTest, addresses_in_the_window_that_are_no_blocks_count_as_foreign) {
  char* const window_end = region_base + region_range_units * unit_size;
  auto* large = static_cast<char*>(test::allocate(3 * unit_size));
  const uint64_t frees = counters::totals.foreign.frees.load();
  char* const strangers[] = {region_base, region_base + 100, window_end - 1, window_end, large + 16, large + unit_size};
  for (char* stranger : strangers) {
    heap::free(stranger);
    EXPECT_EQ(heap::usable_size(stranger), 0u);
  }
  EXPECT_EQ(counters::totals.foreign.frees.load() - frees, std::size(strangers));
  EXPECT_GE(heap::usable_size(large), 3 * unit_size);
  heap::free(large);
}

TEST_F(HeapTest, foreign_hooks_deal_with_pointers_they_know) {
  static char known[64] = "contents of another allocator";
  static int freed;
  freed = 0;
  heap::foreign_hooks = {[](void* block) noexcept { return block == known && ++freed != 0; },
                         [](const void* block, size_t* size) noexcept {
                           *size = sizeof known;
                           return block == known;
                         },
                         nullptr};
  EXPECT_EQ(heap::usable_size(known), sizeof known);
  auto* moved = static_cast<char*>(heap::reallocate(known, 500));
  ASSERT_NE(moved, nullptr);
  EXPECT_EQ(std::memcmp(moved, known, sizeof known), 0);
  EXPECT_EQ(freed, 1);
  heap::free(known);
  EXPECT_EQ(freed, 2);
  heap::foreign_hooks = {};
  heap::free(moved);
}

TEST_F(HeapTest, trim_returns_free_memory_and_says_whether_it_did) {
  std::vector<void*> blocks;
  for (int i = 0; i < 64; ++i) {
    blocks.push_back(test::allocate(mib));
    std::memset(blocks.back(), 1, mib);
  }
  for (size_t i = 0; i < blocks.size() / 2; ++i)  // at the end of a phase little would be left to return
    heap::free(blocks[i]);
  EXPECT_TRUE(heap::trim(0));
  EXPECT_FALSE(heap::trim(0));
  {
    const MutexLock held(region::mutex());
    EXPECT_EQ(region::figures().free_dirty_bytes, 0u);
  }
  for (size_t i = blocks.size() / 2; i < blocks.size(); ++i)
    heap::free(blocks[i]);
}

TEST_F(HeapTest, idle_returns_free_memory_and_what_the_callers_cache_holds) {
  std::vector<void*> blocks;
  for (int i = 0; i < 64; ++i)
    for (const size_t size : {size_t{40}, size_t{3000}, mib})
      blocks.push_back(std::memset(test::allocate(size), 1, size));
  for (void* block : blocks)
    heap::free(block);
  errno = EDOM;
  heap::idle();
  heap::idle();
  EXPECT_EQ(errno, EDOM);
  for (unsigned k = 1; k < size_class_count; ++k)
    EXPECT_EQ(cache::held_blocks(*thread_cache, k), 0u) << k;
  const MutexLock held(region::mutex());
  EXPECT_EQ(region::figures().free_dirty_bytes, 0u);
}

// A handler that interrupts the region finds its lock taken.
TEST_F(HeapTest, a_signal_handler_that_interrupts_the_region_has_a_reserve) {
  for (unsigned round = 0; round < 3; ++round) {
    heap::free(test::allocate(mib + round * 4 * mib));  // under the lock the reserve is made anew
    std::vector<char*> blocks;
    blocks.reserve(10'000);
    region::mutex().lock();
    const size_t before = region::figures().metadata_bytes;
    size_t size = 8000;
    while (auto* const block = static_cast<char*>(heap::allocate_zeroed(1, size))) {
      blocks.push_back(block);
      EXPECT_TRUE(std::all_of(block, block + size, [](char c) { return c == 0; }));
      std::memset(block, 1, size);
    }
    EXPECT_LE(region::figures().metadata_bytes, before - unit_size);
    EXPECT_EQ(errno, ENOMEM);
    for (char* block : blocks)
      heap::free(block);
    region::mutex().unlock();
    (void)heap::trim(0);  // the next to take the lock frees what the handler has left
    expect_valid();
  }
}

// What a handler has left of it is too short for the next one, and goes back.
TEST_F(HeapTest, the_reserve_is_whole_again_after_a_handler_took_a_part) {
  for (unsigned round = 0; round < 3; ++round) {
    heap::free(test::allocate((5 + round) * mib));
    region::mutex().lock();
    void* const part = test::allocate(unit_size / slab_min_blocks - 1000 * round);
    region::mutex().unlock();
    ASSERT_NE(part, nullptr);
    heap::free(test::allocate((1 + round) * mib));
    region::mutex().lock();
    void* const all = test::allocate(2 * unit_size - 4096);
    region::mutex().unlock();
    EXPECT_NE(all, nullptr) << round;
    heap::free(all);
    heap::free(part);
    expect_valid();
  }
}

// A look at the heap holds all caches, and waits for the region.
TEST_F(HeapTest, a_signal_handler_that_interrupts_the_region_waits_for_no_cache) {
  ThreadCache& own = *thread_cache;
  std::atomic<bool> holds{false};
  std::atomic<bool> done{false};
  std::vector<void*> blocks;
  blocks.reserve(1000);
  std::thread looker([&] {
    own.lock.lock_to_look();
    holds = true;
    while (!done)
      std::this_thread::yield();
    own.lock.unlock_after_look();
  });
  while (!holds)
    std::this_thread::yield();
  heap::free(test::allocate(9 * mib));
  region::mutex().lock();
  for (const size_t size : {size_t{16}, size_t{500}, size_t{3000}, size_t{8000}})
    for (int i = 0; i < 200; ++i)
      if (void* const block = test::allocate(size)) blocks.push_back(block);
  EXPECT_GE(blocks.size(), 200u);
  for (void* block : blocks)
    heap::free(block);
  region::mutex().unlock();
  done = true;
  looker.join();
  (void)heap::trim(0);
}

}  // namespace
