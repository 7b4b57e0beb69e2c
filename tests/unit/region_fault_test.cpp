// How the region starts and grows when address space is short: it takes less, step by step, and says when there is no
// more.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/options.hpp"
#include "heap/heap.hpp"
#include "heap_calls.hpp"
#include "in_child.hpp"
#include "mock_os.hpp"
#include "pages/region.hpp"
#include "pages/region_state.hpp"

namespace {

using namespace sluice;
using mock_os::Call;

constexpr size_t mib = size_t{1} << 20;

std::string validated() {
  const char* wrong = heap::validate().what;
  return wrong != nullptr ? wrong : "";
}

// Where the heap cannot choose its place it reserves the range in one piece.
TEST(RegionFault, the_window_is_the_largest_halving_that_the_system_grants) {
  for (const size_t granted : {size_t{1} << 39, size_t{1} << 33, size_t{100} * mib}) {
    EXPECT_EQ(test::in_child([&]() -> std::string {
                options.reserve = size_t{1} << 40;
                mock_os::refuse_exact_reservations();
                mock_os::refuse_reservations_above(granted);
                if (test::allocate(100) == nullptr) return "no start";
                const size_t range = region_range_units * unit_size;
                if (range > granted) return "more than was granted";
                if (range < granted / 2 - unit_size)
                  return "less than half of what was granted: " + std::to_string(range);
                return validated();
              }),
              "")
        << granted;
  }
}

TEST(RegionFault, a_start_without_address_space_is_tried_again_and_leaks_none) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::fail_from(Call::Reserve, 1);
              for (int i = 0; i < 3; ++i) {
                errno = 0;
                if (test::allocate(100) != nullptr) return "a block out of nothing";
                if (errno != ENOMEM) return "null without ENOMEM";
              }
              for (const Call call : {Call::MakeReadable, Call::Commit}) {
                mock_os::fail_from(call, 1);
                for (int i = 0; i < 3; ++i) {
                  if (test::allocate(100) != nullptr || test::allocate(100'000) != nullptr)
                    return "a block out of nothing";
                  if (region_base == nullptr && mock_os::reserved_bytes() != 0) return "address space leaked";
                }
              }
              mock_os::never_fail();
              if (test::allocate(100) == nullptr) return "no second start";
              return mock_os::reserved_bytes() <= options.reserve + unit_size ? validated() : "address space leaked";
            }),
            "");
}

// Neither can a table be committed, nor what was reserved for it be given back.
TEST(RegionFault, a_start_that_fails_half_way_and_cannot_be_undone_is_tried_again) {
  for (unsigned n = 1; n <= 12; ++n) {
    EXPECT_EQ(test::in_child([n]() -> std::string {
                mock_os::fail_from(mock_os::any, n);
                for (int i = 0; i < 3; ++i)
                  heap::free(test::allocate(100'000));
                mock_os::never_fail();
                void* const block = test::allocate(100'000);
                if (block == nullptr) return "no memory though the system has it again";
                heap::free(block);
                return validated();
              }),
              "")
        << "from call " << n << " on";
  }
}

// Fills the heap with blocks of a size. Returns: how many fit.
size_t fill(std::vector<void*>& blocks, size_t size) {
  size_t count = 0;
  for (void* block; (block = test::allocate(size)) != nullptr; ++count) {
    static_cast<char*>(block)[0] = static_cast<char*>(block)[size - 1] = 'x';
    blocks.push_back(block);
  }
  return count;
}

// ThreadSanitizer has its own use for the addresses where a limited range is put.
#if !defined(SLUICE_THREAD_SANITIZER)

TEST(RegionFault, under_a_limit_the_heap_takes_a_part_and_grows_until_the_system_says_no) {
  for (const size_t limit : {512 * mib, 64 * mib}) {
    for (const size_t size : {size_t{300'000}, size_t{1000}, 3 * mib}) {
      EXPECT_EQ(test::in_child([&]() -> std::string {
                  mock_os::set_address_space_limit(limit);
                  if (test::allocate(100) == nullptr) return "no start";
                  const size_t at_start = mock_os::reserved_bytes();
                  if (at_start > limit / 2) return "too much is reserved at the start: " + std::to_string(at_start);
                  std::vector<void*> blocks;
                  const size_t count = fill(blocks, size);
                  if (errno != ENOMEM) return "null without ENOMEM";
                  if (mock_os::reserved_bytes() > limit) return "more than the limit";
                  if (count * size < limit / 10 * 8)
                    return "only " + std::to_string(count * size / mib) + " MiB of blocks";
                  std::string wrong = validated();
                  if (!wrong.empty()) return wrong;
                  for (void* block : blocks)
                    if (*static_cast<char*>(block) != 'x') return "contents lost";
                  for (void* block : blocks)
                    heap::free(block);
                  blocks.clear();
                  (void)heap::trim(0);
                  if (fill(blocks, size) < count / 10 * 9) return "less the second time";
                  return validated();
                }),
                "")
          << limit / mib << " MiB of blocks of " << size;
    }
  }
}

TEST(RegionFault, under_a_limit_a_freed_heap_of_small_blocks_serves_a_large_one) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_address_space_limit(256 * mib);
              std::vector<void*> blocks;
              fill(blocks, 500);
              for (void* block : blocks)
                heap::free(block);
              (void)heap::trim(0);
              void* large = test::allocate(150 * mib);
              if (large == nullptr) return "no room for a large block";
              static_cast<char*>(large)[150 * mib - 1] = 'x';
              return validated();
            }),
            "");
}

// What the heap does not need others may: the stacks of threads, for example. Each round takes up what the one before
// has given back.
TEST(RegionFault, under_a_limit_what_is_freed_gives_its_address_space_back) {
  for (const size_t size : {size_t{1000}, size_t{100'000}, 5 * mib}) {
    for (const bool in_order : {true, false}) {
      EXPECT_EQ(test::in_child([size, in_order]() -> std::string {
                  mock_os::set_address_space_limit(1024 * mib);
                  for (int round = 0; round < 4; ++round) {
                    std::vector<void*> blocks;
                    for (size_t taken = 0; taken < 700 * mib; taken += size) {
                      auto* const block = static_cast<char*>(heap::allocate_zeroed(1, size));
                      if (block == nullptr) return "no memory";
                      if (block[0] != 0 || block[size - 1] != 0) return "a new block does not read as zero";
                      block[0] = block[size - 1] = 'x';
                      blocks.push_back(block);
                    }
                    for (size_t i = 0; !in_order && i < blocks.size(); ++i)
                      std::swap(blocks[i], blocks[i * 7919 % blocks.size()]);
                    for (void* block : blocks)
                      heap::free(block);
                    if (!in_order || round != 0) (void)heap::trim(0);  // else what was missed is kept for a while
                    const size_t reserved = mock_os::reserved_bytes() / mib;
                    // A quarter is left alone, and what lies between retained pages.
                    if (reserved > (round == 0 && in_order ? 300 : 460)) return std::to_string(reserved) + " MiB stay";
                    const std::string wrong = validated();
                    if (!wrong.empty()) return wrong;
                    if (region::state.hole_count > 1'000) return std::to_string(region::state.hole_count) + " holes";
                  }
                  return "";
                }),
                "")
          << "blocks of " << size << " bytes, freed " << (in_order ? "in order" : "in any order");
    }
  }
}

// Pages that a program needs again and again are kept, also by one that needs nearly all that it may have.
TEST(RegionFault, under_a_limit_pages_that_are_missed_are_kept) {
  for (const size_t lives : {size_t{0}, 300 * mib, 450 * mib}) {
    EXPECT_EQ(test::in_child([lives]() -> std::string {
                mock_os::set_clock(1'000'000);
                mock_os::set_address_space_limit(1024 * mib);
                constexpr size_t size = 300'000;
                for (size_t i = 0; i < lives / size; ++i)
                  (void)test::allocate(size);
                for (int round = 0; round < 20; ++round) {
                  mock_os::forget_records();
                  std::vector<void*> blocks;
                  for (size_t taken = 0; taken < 300 * mib; taken += size)
                    blocks.push_back(test::allocate(size));
                  for (void* block : blocks)
                    heap::free(block);
                }
                size_t gone = 0;
                for (const mock_os::Record& record : mock_os::records())
                  if (record.call == Call::Purge) gone += record.bytes;
                return gone / mib > 10 ? std::to_string(gone / mib) + " MiB go in each round" : validated();
              }),
              "")
        << lives / mib << " MiB live";
  }
}

// A request that is hopeless does not bring back for good what went.
TEST(RegionFault, under_a_limit_a_request_that_fails_leaves_address_space_to_others) {
  for (const size_t hopeless : {1000 * mib, 598 * mib}) {
    EXPECT_EQ(test::in_child([hopeless]() -> std::string {
                mock_os::set_address_space_limit(600 * mib);
                std::vector<void*> blocks;
                for (int i = 0; i < 400; ++i)
                  blocks.push_back(test::allocate(mib));
                for (void* block : blocks)
                  heap::free(block);
                if (test::allocate(hopeless) != nullptr) return "more than the limit";
                const size_t reserved = mock_os::reserved_bytes() / mib;
                return reserved > 200 ? std::to_string(reserved) + " MiB stay" : validated();
              }),
              "")
        << hopeless / mib << " MiB asked for";
  }
}

TEST(RegionFault, without_a_limit_address_space_stays) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              const auto take_and_free = [] {
                std::vector<void*> blocks;
                for (int i = 0; i < 60; ++i)
                  std::memset(blocks.emplace_back(test::allocate(5 * mib)), 'x', 5 * mib);
                for (void* block : blocks)
                  heap::free(block);
              };
              take_and_free();
              const size_t reserved = mock_os::reserved_bytes();
              take_and_free();
              (void)heap::trim(0);
              return mock_os::reserved_bytes() >= reserved && region::state.hole_count == 0 ? "" : "it went";
            }),
            "");
}

// A program may raise its soft limit as it runs.
TEST(RegionFault, the_heap_outgrows_a_limit_that_was_raised) {
  EXPECT_EQ(test::in_child([]() SLUICE_UNCHECKED_LOCKS -> std::string {
              mock_os::set_address_space_limit(64 * mib);
              std::vector<void*> blocks;
              fill(blocks, 100'000);
              mock_os::set_address_space_limit(SIZE_MAX);
              if (test::allocate(size_t{6} << 30) == nullptr) return "the limit at start still holds";
              if (region::is_limited()) return "and what is free still goes at once";
              auto* const more = static_cast<char*>(test::allocate(300 * mib));
              if (more == nullptr) return "no more after one large block";
              more[300 * mib - 1] = 'x';
              heap::free(more);
              return validated();
            }),
            "");
}

// Nobody trims: what lies idle in caches and free spans is given back for a request that finds nothing else.
TEST(RegionFault, under_a_limit_a_large_request_gets_what_lies_idle) {
  for (const size_t size : {size_t{48}, size_t{500}, size_t{5000}, size_t{40'000}, 1 * mib, 3 * mib}) {
    EXPECT_EQ(test::in_child([size]() -> std::string {
                mock_os::set_address_space_limit(256 * mib);
                std::vector<void*> blocks;
                fill(blocks, size);
                for (size_t i = 0; i < blocks.size(); ++i)  // in no order
                  std::swap(blocks[i], blocks[i * 7919 % blocks.size()]);
                for (void* block : blocks)
                  heap::free(block);
                auto* const large = static_cast<char*>(test::allocate(150 * mib));
                if (large == nullptr) return "no room for a large block";
                large[0] = large[150 * mib - 1] = 'x';
                return validated();
              }),
              "")
        << "all blocks of " << size << " bytes were freed";
  }
}

// Free memory in several places: none of it is large enough, but the address space of all together is.
TEST(RegionFault, under_a_limit_address_space_between_live_blocks_serves_a_large_one) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_address_space_limit(256 * mib);
              std::vector<void*> blocks;
              fill(blocks, 3 * mib);
              for (size_t i = 0; i < blocks.size(); i += 2)
                heap::free(std::exchange(blocks[i], nullptr));
              auto* const large = static_cast<char*>(heap::allocate_zeroed(1, 80 * mib));
              if (large == nullptr) return "no room for a large block";
              for (size_t at = 0; at < 80 * mib; at += 4096)
                if (std::exchange(large[at], 'x') != 0) return "new memory does not read as zero";
              if (mock_os::reserved_bytes() > 256 * mib) return "more than the limit";
              std::string wrong = validated();
              if (!wrong.empty()) return wrong;
              for (void* block : blocks)
                if (block != nullptr && *static_cast<char*>(block) != 'x') return "contents lost";
              // And back again: what was given back is had again, in its place or elsewhere.
              heap::free(large);
              size_t again = 0;
              for (void*& block : blocks)
                if (block == nullptr && (block = test::allocate(3 * mib)) != nullptr) {
                  std::memset(block, 'x', 3 * mib);
                  ++again;
                }
              if (again < 80 / 3 - 2) return "only " + std::to_string(again) + " blocks the second time";
              for (void* block : blocks)
                if (block != nullptr) heap::free(block);
              return validated();
            }),
            "");
}

// What the system does not take back is not lost: it is asked again, or the space serves small blocks as before.
TEST(RegionFault, under_a_limit_address_space_that_cannot_be_given_back_stays_of_use) {
  for (const bool always : {false, true}) {
    EXPECT_EQ(test::in_child([always]() -> std::string {
                mock_os::set_address_space_limit(256 * mib);
                std::vector<void*> blocks;
                fill(blocks, 3 * mib);
                if (always)
                  mock_os::fail_from(Call::Release, 1);
                else
                  mock_os::fail_nth(Call::Release, 1);
                for (size_t i = 0; i < blocks.size(); i += 2)
                  heap::free(std::exchange(blocks[i], nullptr));
                void* large = test::allocate(80 * mib);
                if (!always && large == nullptr) return "no room for a large block";
                if (!mock_os::has_failed()) return "nothing was refused";
                mock_os::never_fail();
                if (large == nullptr) large = test::allocate(80 * mib);
                if (large == nullptr) return "no room for a large block later";
                heap::free(large);
                for (void*& block : blocks)
                  if (block == nullptr && (block = test::allocate(2 * mib)) == nullptr) return "space is lost";
                return validated();
              }),
              "")
        << (always ? "each is refused" : "one is refused");
  }
}

// What the program does not use yet is left to others: threads' stacks and libraries need address space too.
TEST(RegionFault, under_a_limit_growth_takes_an_eighth_of_what_it_has_at_most_and_less_where_there_is_less) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_address_space_limit(512 * mib);
              if (test::allocate(100) == nullptr) return "no start";
              const size_t at_start = mock_os::reserved_bytes();
              mock_os::set_address_space_limit(505 * mib);  // others have taken some
              mock_os::forget_records();
              std::vector<void*> blocks;
              fill(blocks, 100'000);
              size_t has = at_start;
              size_t last = 0;
              for (const mock_os::Record& record : mock_os::records()) {
                if (record.call != Call::Reserve || record.failed) continue;
                if (record.bytes > std::max(has / 8, 4 * mib))
                  return "a step of " + std::to_string(record.bytes / mib) + " MiB";
                has += record.bytes;
                last = record.bytes;
              }
              if (last >= 16 * mib) return "the last step is as large as others";
              if (mock_os::reserved_bytes() < 504 * mib) return "space is left";
              return validated();
            }),
            "");
}

TEST(RegionFault, under_a_limit_the_heap_starts_elsewhere_when_its_place_is_taken) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_address_space_limit(512 * mib);
              mock_os::fail_nth(Call::Reserve, 1);
              void* block = test::allocate(100'000);
              if (block == nullptr) return "no start";
              std::memset(block, 1, 100'000);
              heap::free(block);
              return validated();
            }),
            "");
}

TEST(RegionFault, a_limit_that_is_too_small_for_a_heap_gives_null) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_address_space_limit(mib / 8);
              errno = 0;
              if (test::allocate(100) != nullptr) return "a block out of nothing";
              return errno == ENOMEM ? "" : "null without ENOMEM";
            }),
            "");
}

TEST(RegionFault, commits_that_fail_under_a_limit_lose_no_address_space) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_address_space_limit(512 * mib);
              if (test::allocate(100) == nullptr) return "no start";
              mock_os::fail_from(Call::Commit, 1);
              std::vector<void*> blocks;
              fill(blocks, 100'000);
              const size_t few = blocks.size();
              mock_os::never_fail();
              fill(blocks, 100'000);
              if (blocks.size() < few + 1000) return "no more after the failure";
              return mock_os::reserved_bytes() <= 512 * mib ? validated() : "more than the limit";
            }),
            "");
}

#endif

TEST(RegionFault, a_small_window_that_is_full_recovers) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              options.reserve = 64 * mib;
              std::vector<void*> blocks;
              const size_t count = fill(blocks, 5000);
              if (count * 5000 < 50 * mib) return "only " + std::to_string(count) + " blocks";
              for (size_t i = 0; i < blocks.size(); i += 2)
                heap::free(blocks[i]);
              std::vector<void*> again;
              if (fill(again, 5000) < count / 10 * 4) return "what was freed is not there";
              return validated();
            }),
            "");
}

bool in_window(uintptr_t address) {
  return address >= reinterpret_cast<uintptr_t>(region::address_of(region::first_index())) &&
         address < reinterpret_cast<uintptr_t>(region_base + region_range_units * unit_size);
}

// Allocates so many bytes. Returns: how much one allocation made accessible at most, without tables.
size_t most_committed_at_once(std::vector<void*>& blocks, size_t size, size_t bytes) {
  size_t most = 0;
  for (size_t had = 0; had < bytes; had += size) {
    mock_os::forget_records();
    blocks.push_back(test::allocate(size));
    size_t committed = 0;
    for (const mock_os::Record& record : mock_os::records())
      if (record.call == Call::Commit && in_window(record.address)) committed += record.bytes;
    most = std::max(most, committed);
  }
  return most;
}

// Each page of it costs time and memory then: real-time programs lock what will come (mlockall with MCL_FUTURE).
TEST(RegionFault, where_memory_is_locked_an_allocation_makes_no_more_accessible_than_it_needs) {
  for (const size_t size : {size_t{1000}, size_t{100'000}, size_t{500'000}, 3 * mib}) {
    EXPECT_EQ(test::in_child([size]() -> std::string {
                std::vector<void*> blocks;
                if (most_committed_at_once(blocks, size, 200 * mib) < 16 * mib) return "the heap never grows ahead";
                mock_os::lock_what_comes(true);
                const size_t most = most_committed_at_once(blocks, size, 200 * mib);
                if (most > size + 2 * mib) return "locked: " + std::to_string(most) + " bytes at once";
                mock_os::lock_what_comes(false);
                if (most_committed_at_once(blocks, size, 200 * mib) < 16 * mib) return "no growth ahead any more";
                return validated();
              }),
              "")
        << "blocks of " << size << " bytes";
  }
}

}  // namespace
