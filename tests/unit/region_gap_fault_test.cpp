// How the region goes on when somebody has mapped something right behind it, however large: past it, and with little
// lost. Open it when a heap ends early though its range has room.
#include <sys/mman.h>

#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/options.hpp"
#include "heap/heap.hpp"
#include "heap_calls.hpp"
#include "in_child.hpp"
#include "mock_os.hpp"
#include "pages/region.hpp"

namespace {

using namespace sluice;

// ThreadSanitizer has its own use for the addresses where the range is put.
#if !defined(SLUICE_THREAD_SANITIZER)

constexpr size_t mib = size_t{1} << 20;
constexpr size_t gib = size_t{1} << 30;

struct Obstacle {
  char* start;
  size_t bytes;
};

// Starts the heap and maps something right behind what it has reserved.
Obstacle obstruct(size_t bytes) {
  test::calls::free(test::allocate(100));
  const MutexLock held(region::mutex());
  char* const behind = region_base + region::first_index() * unit_size + region::figures().reserved_bytes;
  void* const mapped =
      mmap(behind, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  return {mapped == behind ? behind : nullptr, bytes};
}

// Blocks of all kinds, on both sides of what lies in between.
std::string use() {
  std::vector<void*> blocks;
  for (int i = 0; i < 20'000; ++i) {
    const size_t size = i % 100 == 0 ? mib : 100 + static_cast<size_t>(i) % 3000;
    blocks.push_back(test::allocate(size));
    if (blocks.back() == nullptr) return "no memory";
    std::memset(blocks.back(), 1, i % 100 == 0 ? 4096 : size);
  }
  for (void* const block : blocks)
    test::calls::free(block);
  (void)heap::trim(0);
  const char* const wrong = heap::validate().what;
  return wrong != nullptr ? wrong : "";
}

std::string grow_past(size_t bytes, size_t wanted) {
  const Obstacle obstacle = obstruct(bytes);
  if (obstacle.start == nullptr) return "no obstacle";
  auto* const block = static_cast<char*>(test::allocate(wanted));
  if (block == nullptr) return "no growth";
  block[0] = block[wanted - 1] = 1;
  if (block < obstacle.start + bytes) return "it lies in what is not the heap's";
  if (block > obstacle.start + bytes + mib) return "much is lost";
  std::string wrong = use();
  if (!wrong.empty()) return wrong;
  const size_t tables = region::figures().metadata_bytes;
  if (tables > bytes / 512 + wanted / 4 + 64 * mib) return "tables are laid out for what is not the heap's";
  test::calls::free(block);
  return use();
}

TEST(RegionGap, growth_steps_over_a_mapping_of_any_size_inside_the_window) {
  for (const size_t bytes : {size_t{4096}, 3 * mib + 4096, 8 * gib, 100 * gib, 700 * gib})
    EXPECT_EQ(test::in_child([&] { return grow_past(bytes, gib); }), "") << bytes / mib << " MiB";
}

TEST(RegionGap, what_is_left_at_the_end_of_the_window_is_found) {
  EXPECT_EQ(test::in_child([] {
              options.reserve = 64 * gib;
              return grow_past(60 * gib, gib);
            }),
            "");
}

TEST(RegionGap, what_does_not_fit_behind_it_is_refused) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              options.reserve = 64 * gib;
              if (obstruct(60 * gib).start == nullptr) return "no obstacle";
              if (test::allocate(5 * gib) != nullptr) return "more than there is";
              return use();
            }),
            "");
}

TEST(RegionGap, several_are_stepped_over) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              for (int i = 0; i < 20; ++i) {  // more than are left bare
                const Obstacle obstacle = obstruct(6 * gib);
                if (obstacle.start == nullptr) return "no obstacle";
                auto* const block = static_cast<char*>(test::allocate(2 * gib));
                if (block == nullptr) return std::to_string(i) + ": no growth";
                if (block < obstacle.start + obstacle.bytes) return "it lies in what is not the heap's";
                const std::string wrong = use();
                if (!wrong.empty()) return wrong;
              }
              return "";
            }),
            "");
}

TEST(RegionGap, under_a_limit_only_small_tables_are_laid_out_for_it) {
  EXPECT_EQ(test::in_child([] {
              mock_os::set_address_space_limit(gib + 600 * mib + 256 * os::page_size());  // tables end with a page
              return grow_past(100 * gib, gib);
            }),
            "");
}

TEST(RegionGap, any_call_may_fail_on_the_way_and_later_all_of_it_works) {
  for (const auto arm : {mock_os::fail_nth, mock_os::fail_from}) {
    for (unsigned n = 1; n <= 45; n += 2) {
      EXPECT_EQ(test::in_child([&]() -> std::string {
                  const Obstacle obstacle = obstruct(8 * gib);
                  if (obstacle.start == nullptr) return "no obstacle";
                  arm(mock_os::any, n);
                  void* const early = test::allocate(100 * mib);
                  mock_os::never_fail();
                  if (n % 4 == 1) munmap(obstacle.start, obstacle.bytes);
                  std::string wrong = use();
                  if (!wrong.empty()) return wrong;
                  void* const late = test::allocate(gib);
                  if (late == nullptr) return "no growth";
                  static_cast<char*>(late)[gib - 1] = 1;
                  test::calls::free(early);
                  test::calls::free(late);
                  return use();
                }),
                "")
          << "call " << n;
    }
  }
}

// A system that gives nothing for a while is no obstacle, however often it was asked.
TEST(RegionGap, no_gap_is_left_where_nothing_lies) {
  for (unsigned refusals = 1; refusals <= 60; refusals += refusals < 40 ? 1 : 4) {
    EXPECT_EQ(test::in_child([&]() -> std::string {
                test::calls::free(test::allocate(100));
                const char* const start = region_base + region::first_index() * unit_size;
                mock_os::fail_first(mock_os::Call::Reserve, refusals);
                void* const early = test::allocate(100 * mib);
                mock_os::never_fail();
                auto* const late = static_cast<char*>(test::allocate(gib));
                if (late == nullptr) return "no growth";
                if (late > start + 600 * mib) return "much is lost";
                late[gib - 1] = 1;
                test::calls::free(early);
                test::calls::free(late);
                return use();
              }),
              "")
        << refusals << " refusals";
  }
}

TEST(RegionGap, one_is_left_where_nothing_can_be_given_back) {
  for (const size_t bytes : {3 * mib + 4096, 8 * gib, 100 * gib})
    EXPECT_EQ(test::in_child([&]() -> std::string {
                const Obstacle obstacle = obstruct(bytes);
                if (obstacle.start == nullptr) return "no obstacle";
                mock_os::fail_from(mock_os::Call::Release, 1);
                auto* const block = static_cast<char*>(test::allocate(gib));
                if (block == nullptr) return "no growth";
                if (block > obstacle.start + 2 * bytes + 64 * mib) return "much is lost";
                block[0] = block[gib - 1] = 1;
                mock_os::never_fail();
                return use();
              }),
              "")
        << bytes / mib << " MiB";
}

#endif

}  // namespace
