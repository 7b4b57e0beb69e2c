// Size classes: every size that slabs serve, and what rounding costs.
#include "base/size_class.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>

#include <gtest/gtest.h>

#include "heap/slab.hpp"

namespace {

using namespace sluice;

TEST(SizeClass, every_size_gets_the_smallest_class_that_holds_it) {
  for (size_t size = 0; size <= max_small_size; ++size) {
    const size_t needed = std::max<size_t>(size, 1);
    const unsigned k = size_class_of(size);
    ASSERT_GE(k, 1u) << size;
    ASSERT_LT(k, size_class_count) << size;
    ASSERT_GE(class_sizes[k], needed) << size;
    ASSERT_LT(class_sizes[k - 1], needed) << size;
  }
}

TEST(SizeClass, sizes_rise_from_class_to_class_up_to_the_largest_small_size) {
  EXPECT_EQ(class_sizes[0], 0u);
  EXPECT_EQ(class_sizes[1], min_alignment);
  for (unsigned k = 1; k < size_class_count; ++k)
    EXPECT_LT(class_sizes[k - 1], class_sizes[k]) << k;
  EXPECT_EQ(class_sizes[size_class_count - 1], max_small_size);
}

TEST(SizeClass, every_block_size_is_a_multiple_of_the_least_alignment) {
  for (unsigned k = 1; k < size_class_count; ++k)
    EXPECT_EQ(class_sizes[k] % min_alignment, 0u) << k;
}

TEST(SizeClass, every_power_of_two_is_a_class) {
  for (size_t size = min_alignment; size <= max_small_size; size *= 2)
    EXPECT_EQ(class_sizes[size_class_of(size)], size);
}

TEST(SizeClass, rounding_adds_an_eighth_at_most) {
  for (size_t size = 1; size <= max_small_size; ++size) {
    const size_t added = class_sizes[size_class_of(size)] - size;
    ASSERT_LE(added, std::max(min_alignment - 1, size / 8)) << size;
  }
}

// heap.hpp takes aligned blocks from these without a search.
TEST(SizeClass, the_class_of_a_multiple_of_an_alignment_or_the_next_one_is_aligned) {
  for (size_t alignment = min_alignment; alignment <= max_small_size; alignment *= 2) {
    for (size_t size = alignment; size <= max_small_size; size += alignment) {
      unsigned k = size_class_of(size);
      if (class_sizes[k] % alignment != 0) ++k;
      ASSERT_LT(k, size_class_count) << size;
      ASSERT_EQ(class_sizes[k] % alignment, 0u) << size << " at multiples of " << alignment;
    }
  }
}

TEST(SizeClass, between_each_power_of_two_and_the_step_after_it_lies_a_class_for_headers) {
  for (size_t power = linear_class_limit; power < max_small_size; power *= 2) {
    const unsigned k = size_class_of(power);
    EXPECT_EQ(class_sizes[k + 1], header_class_sizes[static_cast<size_t>(std::bit_width(power)) - 1]);
    EXPECT_EQ(class_sizes[k + 2], power + power / steps_per_doubling);
  }
}

// sqlite's pages and chunks, what python3 reads at a time, and jq's objects: the sizes that these classes are there
// for.
TEST(SizeClass, a_power_of_two_and_the_headers_of_well_known_programs_lose_hardly_anything) {
  for (const size_t size : {272, 1'032, 1'040, 4'368, 8'224})
    EXPECT_LE(class_sizes[size_class_of(size)] - size, size / 128) << size;
  EXPECT_EQ(slab::blocks_per_slab(size_class_of(4'368)), 15u);  // one more than with the next multiple of 16
}

TEST(SizeClass, a_slab_has_eight_blocks_or_more_and_wastes_less_than_an_eighth_at_its_end) {
  std::printf("class   bytes  lost to rounding  units  blocks  lost at the end\n");
  for (unsigned k = 1; k < size_class_count; ++k) {
    const size_t size = class_sizes[k];
    const size_t slab_bytes = slab::units_per_slab(k) * unit_size;
    const size_t rest = slab_bytes - slab::blocks_per_slab(k) * size;
    const size_t worst = size - class_sizes[k - 1] - 1;
    std::printf("%5u %7zu %16.1f%% %6zu %7zu %15.1f%%\n", k, size, 100.0 * double(worst) / double(size),
                slab::units_per_slab(k), slab::blocks_per_slab(k), 100.0 * double(rest) / double(slab_bytes));
    EXPECT_GE(slab::blocks_per_slab(k), slab_min_blocks) << k;
    EXPECT_LT(rest * 8, slab_bytes) << k;
  }
}

}  // namespace
