// What the system says of memory, asked of the real one.
#include "os/memory.hpp"

#include <sys/mman.h>

#include <cstring>

#include <gtest/gtest.h>

namespace {

using namespace sluice;

constexpr size_t mib = size_t{1} << 20;
constexpr size_t piece = size_t{64} << 10;

// Pages that others have given back lie in a heap whose address space is limited.
TEST(ResidentBytes, see_around_gaps) {
  constexpr size_t length = 40 * mib;
  void* const place = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(place, MAP_FAILED);
  char* const start = static_cast<char*>(place);
  std::memset(start, 'x', length);
  EXPECT_EQ(os::resident_bytes(start, length, piece), length);
  size_t expected = length;
  for (const size_t gap : {size_t{0}, 5 * piece, 6 * piece, 17 * mib, length - piece}) {
    ASSERT_EQ(munmap(start + gap, piece), 0);
    expected -= piece;
    EXPECT_EQ(os::resident_bytes(start, length, piece), expected);
  }
  ASSERT_EQ(madvise(start + mib, mib, MADV_DONTNEED), 0);
  EXPECT_EQ(os::resident_bytes(start, length, piece), expected - mib);
  // In long pieces, as where gaps are few and wide, none that has a gap counts.
  EXPECT_LT(os::resident_bytes(start, length, 16 * mib), expected - mib);
  munmap(place, length);
}

}  // namespace
