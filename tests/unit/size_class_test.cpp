// Size classes: every size that slabs serve, and what rounding costs.
#include "base/size_class.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <set>

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
    ASSERT_FALSE(is_for_alignment_alone(class_sizes[k])) << size;
    const unsigned before = is_for_alignment_alone(class_sizes[k - 1]) ? k - 2 : k - 1;
    ASSERT_LT(class_sizes[before], needed) << size;
    ASSERT_EQ(first_class_of(needed), class_sizes[k - 1] >= needed ? k - 1 : k) << size;
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
    EXPECT_EQ(class_sizes[first_class_of(size)], size);
}

// Rows of a table, of one size: their distance tells which lines of the caches they take.
TEST(SizeClass, blocks_of_two_kib_and_more_lie_at_uneven_distances) {
  constexpr size_t page = 4096;
  for (size_t size = 1'921; size < max_small_size; ++size) {
    const size_t distance = class_sizes[size_class_of(size)];
    if (detail::is_quarter(distance) && size > distance - size_of_line) continue;
    if (size > page - size_of_line && size <= page) continue;
    if (size > max_small_size / 2 - size_of_line && size <= max_small_size / 2) continue;
    if (distance == max_small_size) continue;
    std::set<size_t> lines;  // of their page, that the first bytes of 64 blocks lie in
    for (size_t i = 0; i < 64; ++i)
      lines.insert(i * distance % page / size_of_line);
    ASSERT_GE(lines.size(), 28u) << size;
  }
}

TEST(SizeClass, uneven_ones_take_no_longer_slabs) {
  for (unsigned k = 1; k < size_class_count; ++k) {
    const size_t size = class_sizes[k];
    for (const size_t round : {size - size_of_line, size + size_of_line}) {
      if (size <= uneven_from || round % (std::bit_floor(round) / steps_per_doubling) != 0) continue;
      if (std::has_single_bit(round) && size > round) continue;  // one for a header
      EXPECT_EQ(slab::units_per_slab(k), (round * slab_min_blocks + unit_size - 1) / unit_size) << size;
    }
  }
}

TEST(SizeClass, rounding_adds_an_eighth_at_most) {
  for (size_t size = 1; size <= max_small_size; ++size) {
    const size_t added = class_sizes[size_class_of(size)] - size;
    ASSERT_LE(added, std::max(min_alignment - 1, size / 8)) << size;
  }
}

// heap.hpp takes aligned blocks from these without a search.
TEST(SizeClass, each_multiple_of_an_alignment_has_an_aligned_class) {
  for (size_t alignment = min_alignment; alignment <= max_small_size; alignment *= 2) {
    for (size_t size = alignment; size <= max_small_size; size += alignment) {
      const unsigned k = aligned_class_for(size, alignment);
      ASSERT_LT(k, size_class_count) << size;
      ASSERT_GE(class_sizes[k], size) << " at multiples of " << alignment;
      ASSERT_EQ(class_sizes[k] % alignment, 0u) << size << " at multiples of " << alignment;
      ASSERT_LE(class_sizes[k], std::bit_ceil(size)) << size << " at multiples of " << alignment;
      if (size <= linear_class_limit) continue;
      if (alignment > size_of_line && alignment > std::bit_floor(size - 1) / 4) continue;
      ASSERT_LE(class_sizes[k], size + size / 4) << size << " at multiples of " << alignment;
    }
  }
}

TEST(SizeClass, the_least_multiple_of_an_alignment_holds_the_size) {
  EXPECT_EQ(multiple_of(64, 0), 64u);
  EXPECT_EQ(multiple_of(64, 1), 64u);
  EXPECT_EQ(multiple_of(64, 64), 64u);
  EXPECT_EQ(multiple_of(64, 65), 128u);
}

TEST(SizeClass, between_each_power_of_two_and_the_step_after_it_lies_a_class_for_headers) {
  for (size_t power = linear_class_limit; power < max_small_size; power *= 2) {
    const unsigned k = first_class_of(power);
    const size_t header = header_class_sizes[static_cast<size_t>(std::bit_width(power)) - 1];
    EXPECT_EQ(class_sizes[k], power);
    EXPECT_EQ(class_sizes[k + 1], header);
    EXPECT_GT(class_sizes[k + 2], header);
    EXPECT_EQ(class_sizes[size_class_of(power)], is_for_alignment_alone(power) ? header : power);
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
