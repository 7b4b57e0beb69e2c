// Which memory asks for huge pages, and when none is asked for any more; a system that makes them slowly, or refuses.
#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/options.hpp"
#include "heap/heap.hpp"
#include "heap_calls.hpp"
#include "in_child.hpp"
#include "mock_os.hpp"
#include "os/memory.hpp"
#include "pages/region.hpp"
#include "vacant_blocks.hpp"

namespace {

using namespace sluice;
using namespace sluice::test;
using mock_os::Call;
using mock_os::Record;

constexpr size_t extent = 2 * mib;

class HugePagesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (guards_spans || os::page_size() != 4096) GTEST_SKIP() << "no huge pages are asked for here";
  }
};

std::vector<Record> calls_of(Call call) {
  std::vector<Record> found = mock_os::records();
  std::erase_if(found, [call](const Record& record) { return record.call != call; });
  return found;
}

std::string count_of(Call call) {
  return std::to_string(mock_os::count(call)) + " calls";
}

bool meet(const Record& record, const void* block, size_t bytes) {
  const auto start = reinterpret_cast<uintptr_t>(block);
  return record.address < start + bytes && start < record.address + record.bytes;
}

TEST_F(HugePagesTest, are_asked_for_by_slabs_of_a_thread_that_has_many) {
  EXPECT_EQ(in_child([]() -> std::string {
              const std::vector<unsigned char*> few = fill(30 * mib);
              if (mock_os::count(Call::AdviseHugePages) != 0) return "asked at once";
              const std::vector<unsigned char*> more = fill(64 * mib);
              const std::vector<Record> asked = calls_of(Call::AdviseHugePages);
              if (asked.size() < 29 || asked.size() > 32) return count_of(Call::AdviseHugePages);
              for (const Record& record : asked)
                if (record.address % extent != 0 || record.bytes != extent) return "not a huge page";
              if (os::call_counts.huge_bytes.load() != asked.size() * extent) return "miscounted";
              const std::string wrong = check_and_free(few);
              return wrong.empty() ? check_and_free(more) : wrong;
            }),
            "");
}

TEST_F(HugePagesTest, are_not_asked_for_by_threads_with_few_slabs_each) {
  EXPECT_EQ(in_child([]() -> std::string {
              std::vector<std::thread> threads;
              for (int i = 0; i < 8; ++i)
                threads.emplace_back([] { (void)fill(16 * mib); });
              for (std::thread& thread : threads)
                thread.join();
              return mock_os::count(Call::AdviseHugePages) == 0 ? validated() : count_of(Call::AdviseHugePages);
            }),
            "");
}

TEST_F(HugePagesTest, are_asked_for_again_in_the_new_mapping_of_what_is_given_back) {
  EXPECT_EQ(in_child([]() -> std::string {
              options.huge_pages = true;
              void* const block = allocate(8 * mib);
              static_cast<char*>(block)[0] = 1;
              test::calls::free(block);
              mock_os::forget_records();
              (void)heap::trim(0);
              const std::vector<Record> renewed = calls_of(Call::Renew), asked = calls_of(Call::AdviseHugePages);
              const auto asked_for = [&asked](const Record& mapping) {
                return std::any_of(asked.begin(), asked.end(), [&mapping](const Record& record) {
                  return record.address == mapping.address && record.bytes == mapping.bytes;
                });
              };
              if (renewed.empty()) return "nothing has a new mapping";
              return std::all_of(renewed.begin(), renewed.end(), asked_for) ? validated() : "not asked for";
            }),
            "");
}

TEST_F(HugePagesTest, hold_no_blocks_that_may_leave_a_page_untouched) {
  EXPECT_EQ(in_child([]() -> std::string {
              for (int i = 0; i < 8000; ++i)
                (void)allocate(8192);
              return mock_os::count(Call::AdviseHugePages) == 0 ? validated() : count_of(Call::AdviseHugePages);
            }),
            "");
}

TEST_F(HugePagesTest, are_not_asked_for_after_a_fork_that_shares_some) {
  EXPECT_EQ(in_child([]() -> std::string {
              const auto fork_and_wait = [] {
                const pid_t child = fork();
                if (child == 0) _exit(0);
                int status = 0;
                return waitpid(child, &status, 0) == child && status == 0;
              };
              (void)fill(30 * mib);
              if (!fork_and_wait()) return "no child";
              (void)fill(16 * mib);
              const size_t before = mock_os::count(Call::AdviseHugePages);
              if (before == 0) return "not asked for after a fork that shares none";
              if (!fork_and_wait()) return "no child";
              (void)fill(16 * mib);
              return mock_os::count(Call::AdviseHugePages) == before ? validated() : count_of(Call::AdviseHugePages);
            }),
            "");
}

TEST_F(HugePagesTest, are_not_asked_for_where_the_system_would_not_split_them) {
  EXPECT_EQ(in_child([]() -> std::string {
              mock_os::fail_from(Call::DropLazily, 1);
              (void)fill(64 * mib);
              return mock_os::count(Call::AdviseHugePages) == 0 ? validated() : count_of(Call::AdviseHugePages);
            }),
            "");
}

TEST_F(HugePagesTest, are_not_asked_for_where_the_option_is_off) {
  EXPECT_EQ(in_child([]() -> std::string {
              options.huge_slabs = false;
              (void)fill(64 * mib);
              return mock_os::count(Call::AdviseHugePages) == 0 ? validated() : count_of(Call::AdviseHugePages);
            }),
            "");
}

TEST_F(HugePagesTest, are_not_asked_for_where_address_space_is_limited) {
  EXPECT_EQ(in_child([]() -> std::string {
              mock_os::set_address_space_limit(512 * mib);
              (void)fill(64 * mib);
              return mock_os::count(Call::AdviseHugePages) == 0 ? validated() : count_of(Call::AdviseHugePages);
            }),
            "");
}

TEST_F(HugePagesTest, pause_where_the_system_takes_long_to_make_them) {
  EXPECT_EQ(in_child([]() -> std::string {
              mock_os::set_clock(beginning);
              mock_os::set_touch_time(50'000'000);
              (void)fill(96 * mib);
              // 8 ms may be lost, half a millisecond of each is saved; later a quarter of that.
              if (mock_os::count(Call::AdviseHugePages) != 1) return count_of(Call::AdviseHugePages);
              mock_os::set_clock(beginning + 999);
              (void)fill(16 * mib);
              if (mock_os::count(Call::AdviseHugePages) != 1) return "too early";
              mock_os::set_clock(beginning + 1000);
              (void)fill(16 * mib);
              if (mock_os::count(Call::AdviseHugePages) != 2) return "not again";
              mock_os::set_clock(beginning + 2999);
              (void)fill(16 * mib);
              if (mock_os::count(Call::AdviseHugePages) != 2) return "no longer pause";
              mock_os::set_touch_time(100'000);
              mock_os::set_clock(beginning + 3000);
              (void)fill(16 * mib);
              if (mock_os::count(Call::AdviseHugePages) < 9) return "they do not come back";
              return os::call_counts.huge_pauses.load() == 2 ? validated() : "not counted";
            }),
            "");
}

TEST_F(HugePagesTest, go_on_where_the_system_is_slow_now_and_then) {
  EXPECT_EQ(in_child([]() -> std::string {
              for (int round = 0; round < 8; ++round) {
                mock_os::set_touch_time(2'000'000);
                (void)fill(8 * mib);
                mock_os::set_touch_time(100'000);
                (void)fill(40 * mib);
              }
              return os::call_counts.huge_pauses.load() == 0 ? validated() : "paused";
            }),
            "");
}

TEST_F(HugePagesTest, are_not_asked_for_again_where_the_system_has_none) {
  EXPECT_EQ(in_child([]() -> std::string {
              mock_os::fail_from(Call::AdviseHugePages, 1);
              const std::vector<unsigned char*> blocks = fill(64 * mib);
              if (mock_os::count(Call::AdviseHugePages) != 1) return count_of(Call::AdviseHugePages);
              return check_and_free(blocks);
            }),
            "");
}

TEST_F(HugePagesTest, hold_no_large_blocks) {
  EXPECT_EQ(in_child([]() -> std::string {
              (void)fill(40 * mib);
              std::vector<void*> large;
              for (int i = 0; i < 32; ++i) {
                large.push_back(allocate(3 * mib));
                (void)fill(mib / 4);
                large.push_back(allocate(mib / 2));
              }
              const std::vector<Record> asked = calls_of(Call::AdviseHugePages);
              if (asked.size() < 8) return count_of(Call::AdviseHugePages);
              for (size_t i = 0; i < large.size(); ++i)
                for (const Record& record : asked)
                  if (meet(record, large[i], i % 2 == 0 ? 3 * mib : mib / 2)) return "a large block lies in one";
              return validated();
            }),
            "");
}

TEST_F(HugePagesTest, are_left_to_the_system_no_more_where_much_went_back) {
  EXPECT_EQ(in_child([]() -> std::string {
              mock_os::set_clock(beginning);
              std::vector<unsigned char*> blocks = fill(192 * mib);
              const std::vector<Record> asked = calls_of(Call::AdviseHugePages);
              thin_out(blocks, 30);
              if (gone() < 70 * mib) return mib_gone();
              size_t small = 0;
              for (const Record& record : calls_of(Call::AdviseSmallPages)) {
                if (record.bytes % extent != 0) return "a part of a huge page";
                small += record.bytes;
              }
              if (small < 96 * mib || small > asked.size() * extent) return std::to_string(small / mib) + " MiB";
              return check_and_free(blocks);
            }),
            "");
}

TEST_F(HugePagesTest, stay_where_little_went_back) {
  EXPECT_EQ(in_child([]() -> std::string {
              mock_os::set_clock(beginning);
              (void)fill(32 * mib);
              const std::vector<unsigned char*> before = fill(64 * mib);
              const std::vector<unsigned char*> between = fill(4 * mib);
              const std::vector<unsigned char*> behind = fill(64 * mib);
              for (unsigned char* block : between)
                heap::free(block);
              if (region::purge_all(0) < 3 * mib) return "nothing went";
              return mock_os::count(Call::AdviseSmallPages) == 0 ? validated() : count_of(Call::AdviseSmallPages);
            }),
            "");
}

TEST_F(HugePagesTest, are_asked_for_again_when_the_heap_grows_again) {
  EXPECT_EQ(in_child([]() -> std::string {
              for (int round = 0; round < 3; ++round) {
                mock_os::forget_records();
                const std::vector<unsigned char*> blocks = fill(128 * mib);
                if (mock_os::count(Call::AdviseHugePages) < 40) return count_of(Call::AdviseHugePages);
                if (std::string wrong = check_and_free(blocks); !wrong.empty()) return wrong;
                heap::trim(0);
                if (mock_os::count(Call::AdviseSmallPages) == 0) return "still left to the system";
              }
              return validated();
            }),
            "");
}

// What no slab has taken of a huge page is in memory as a whole, and goes back as other free pages do.
TEST_F(HugePagesTest, are_given_back_whole) {
  EXPECT_EQ(in_child([]() -> std::string {
              (void)fill(32 * mib);
              const size_t before = mock_os::count(Call::AdviseHugePages);
              while (mock_os::count(Call::AdviseHugePages) == before)
                (void)fill(unit_size);
              const Record last = calls_of(Call::AdviseHugePages).back();
              mock_os::forget_records();
              (void)region::purge_all(0);
              size_t bytes = 0;
              for (const Record& record : calls_of(Call::Purge))
                if (record.address > last.address && record.address < last.address + extent) bytes += record.bytes;
              return bytes >= extent / 2 ? validated() : std::to_string(bytes) + " bytes went";
            }),
            "");
}

// The calls of a kind that lie in each extent that was asked for.
std::vector<size_t> calls_by_extent(const std::vector<Record>& asked, Call call) {
  std::vector<size_t> counts(asked.size());
  for (const Record& record : calls_of(call))
    for (size_t i = 0; i < asked.size(); ++i)
      if (record.address >= asked[i].address && record.address < asked[i].address + extent) ++counts[i];
  return counts;
}

TEST_F(HugePagesTest, are_split_once_before_a_part_is_dropped) {
  EXPECT_EQ(in_child([]() -> std::string {
              mock_os::set_clock(beginning);
              std::vector<unsigned char*> blocks = fill(192 * mib);
              const std::vector<Record> asked = calls_of(Call::AdviseHugePages);
              mock_os::forget_records();
              thin_out(blocks, 30);
              const std::vector<size_t> dropped = calls_by_extent(asked, Call::Purge);
              const std::vector<size_t> split = calls_by_extent(asked, Call::DropLazily);
              size_t parts = 0;
              for (size_t i = 0; i < asked.size(); ++i) {
                if (split[i] > 1) return "split twice";
                if (dropped[i] > 1 && split[i] == 0) return "dropped and not split";
                parts += split[i];
              }
              if (parts < asked.size() / 2) return std::to_string(parts) + " were split";
              return check_and_free(blocks);
            }),
            "");
}

// Bytes that were dropped of an extent.
size_t dropped_in(const Record& asked) {
  size_t bytes = 0;
  for (const Record& record : calls_of(Call::Purge)) {
    const uintptr_t from = std::max(record.address, asked.address);
    const uintptr_t end = std::min(record.address + record.bytes, asked.address + extent);
    if (from < end) bytes += end - from;
  }
  return bytes;
}

TEST_F(HugePagesTest, are_split_where_a_free_span_ends_within_them) {
  EXPECT_EQ(in_child([]() -> std::string {
              options.purge_delay = 3'600'000;  // so that nothing goes by itself
              mock_os::set_clock(beginning);
              (void)fill(33 * mib);
              std::vector<unsigned char*> between = fill(7 * mib);
              (void)fill(8 * mib);
              const std::vector<Record> asked = calls_of(Call::AdviseHugePages);
              mock_os::forget_records();
              for (unsigned char* block : between)
                heap::free(block);
              if (region::purge_all(0) < 6 * mib) return "nothing went";
              const std::vector<size_t> split = calls_by_extent(asked, Call::DropLazily);
              size_t parts = 0;
              for (size_t i = 0; i < asked.size(); ++i) {
                const size_t bytes = dropped_in(asked[i]);
                const bool is_part = bytes != 0 && bytes != extent;
                if (split[i] != (is_part ? 1 : 0)) return "extent " + std::to_string(i) + ": " + std::to_string(bytes);
                parts += split[i];
              }
              if (parts < 2) return std::to_string(parts) + " were split";
              return validated();
            }),
            "");
}

TEST_F(HugePagesTest, no_failing_call_does_harm) {
  for (const Call call :
       {Call::AdviseHugePages, Call::AdviseSmallPages, Call::DropLazily, Call::Commit, Call::Purge, Call::Reserve})
    for (unsigned n = 1; n < 40; n += 3)
      EXPECT_EQ(in_child([=]() -> std::string {
                  (void)fill(32 * mib);
                  mock_os::fail_first(call, n);
                  std::vector<unsigned char*> blocks(64 * mib / size);
                  for (size_t i = 0; i < blocks.size(); ++i) {
                    blocks[i] = static_cast<unsigned char*>(test::allocate(size));
                    if (blocks[i] != nullptr) std::memset(blocks[i], static_cast<int>(i % 251), size);
                  }
                  thin_out(blocks, 30);
                  return check_and_free(blocks);
                }),
                "")
          << static_cast<int>(call) << ", " << n;
}

}  // namespace
