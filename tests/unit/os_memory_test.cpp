// What the system says of memory, asked of the real one.
#include "os/memory.hpp"

#include <sys/mman.h>
#if defined(__linux__)
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

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

// Each run of pages in memory is told once, and no other page.
TEST(ResidentBytes, say_where_they_are) {
  constexpr size_t length = 40 * mib;
  void* const place = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(place, MAP_FAILED);
  char* const start = static_cast<char*>(place);
  const size_t page = os::page_size();
  std::vector<bool> in_memory(length / page);
  for (size_t i = 0; i < in_memory.size(); ++i) {
    if (i % 7 != 0 && (i < 4000 || i > 5000) && i != in_memory.size() - 1)
      continue;  // alone, and more than are asked at once
    start[i * page] = 'x';
    in_memory[i] = true;
  }
  ASSERT_EQ(munmap(start + 20 * mib, piece), 0);
  for (size_t i = 20 * mib / page; i < (20 * mib + piece) / page; ++i)
    in_memory[i] = false;
  struct Found {
    std::vector<bool> pages;
    bool twice = false;
  } found{std::vector<bool>(length / page)};
  const auto note = [](void* context, size_t offset, size_t bytes) noexcept {
    Found& to = *static_cast<Found*>(context);
    for (size_t i = offset / os::page_size(); i < (offset + bytes) / os::page_size(); ++i) {
      to.twice = to.twice || to.pages[i];
      to.pages[i] = true;
    }
  };
  const size_t resident = os::resident_bytes(start, length, piece, note, &found);
  EXPECT_EQ(found.pages, in_memory);
  EXPECT_FALSE(found.twice);
  EXPECT_EQ(resident, static_cast<size_t>(std::count(in_memory.begin(), in_memory.end(), true)) * page);
  munmap(place, length);
}

TEST(ResidentBytes, are_told_here) {
  EXPECT_TRUE(os::tells_resident());
}

TEST(Clock, begins_so_late_that_0_is_long_ago) {
  EXPECT_GE(os::clock_ms(), os::clock_begins_ms);
}

#if defined(__linux__) && defined(__x86_64__)
TEST(MemoryNode, is_what_the_system_call_says) {
  if (getauxval(AT_SYSINFO_EHDR) == 0) GTEST_SKIP() << "there is no vDSO";
  errno = EXDEV;
  for (unsigned tries = 0; tries < 100; ++tries) {  // the thread may be moved to another processor in between
    const uint32_t told = os::memory_node();
    unsigned processor = 0;
    unsigned node = 0;
    ASSERT_EQ(syscall(SYS_getcpu, &processor, &node, nullptr), 0);
    if (told != node) continue;
    EXPECT_EQ(errno, EXDEV);
    return;
  }
  FAIL() << "it never is";
}
#endif

}  // namespace
