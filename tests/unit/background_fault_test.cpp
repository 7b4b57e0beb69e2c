// When the background thread looks, sleeps and is woken, step by step: the clock stands, and its sleep is a call of the
// test's. Each case is a process of its own, with a fresh heap.
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/options.hpp"
#include "cache_test.hpp"
#include "heap/background.hpp"
#include "heap/heap.hpp"
#include "heap/upkeep.hpp"
#include "heap_calls.hpp"
#include "in_child.hpp"
#include "mock_os.hpp"
#include "os/memory.hpp"
#include "pages/region.hpp"

namespace {

using namespace sluice;
using mock_os::Call;

constexpr uint64_t delay = 1000;
constexpr uint64_t early = delay / 16;              // after which a little may go
constexpr size_t block_bytes = size_t{1100} << 10;  // no recent span; few enough that age alone gives them back, early

void* use(size_t bytes) {
  return std::memset(test::allocate(bytes), 1, bytes);
}

// Starts the heap at a time of 5000, with nothing dirty, and so much in use that no phase ends.
void start_heap() {
  options.background = true;
  options.purge_delay = delay;
  mock_os::set_clock(5000);
  test::calls::free(test::allocate(1));
  (void)use(16 * block_bytes);
  (void)region::purge_all(0);
}

uintptr_t word() {
  return region::rest::word.load();
}

TEST(BackgroundFault, sleeps_for_good_where_nothing_is_dirty) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              start_heap();
              if (background::look() != region::nothing_dirty) return "there was something to wait for";
              return word() == region::rest::asleep ? "" : "it would miss the next free";
            }),
            "");
}

TEST(BackgroundFault, is_woken_by_the_free_that_makes_the_first_pages_dirty_and_by_no_other) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              start_heap();
              void* const blocks[] = {use(block_bytes), use(block_bytes), use(block_bytes)};
              (void)background::look();
              test::calls::free(blocks[0]);
              if (word() != region::rest::awake) return "not woken";
              mock_os::set_clock(5300);
              test::calls::free(blocks[2]);
              const uint64_t sleep = background::look();
              if (word() != region::rest::awake) return "asleep though pages are dirty";
              return sleep == delay / 4 + 1 ? "" : "sleeps for " + std::to_string(sleep);
            }),
            "");
}

TEST(BackgroundFault, gives_back_what_is_old_enough_and_sleeps_for_good) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              start_heap();
              test::calls::free(use(block_bytes));
              mock_os::set_clock(5000 + early - 1);
              const uint64_t before = mock_os::count(Call::Purge);
              if (const uint64_t sleep = background::look(); sleep != delay / 4 + 1)
                return "sleeps for " + std::to_string(sleep) + " with 1 ms to go";
              if (mock_os::count(Call::Purge) != before) return "purged too early";
              mock_os::set_clock(5000 + early);
              if (background::look() != region::nothing_dirty) return "not purged in time";
              if (os::call_counts.purged_bytes_at_rest.load() < block_bytes) return "not counted";
              return word() == region::rest::asleep ? "" : "not asleep";
            }),
            "");
}

TEST(BackgroundFault, tries_what_the_system_refuses_once_a_minute) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              start_heap();
              test::calls::free(use(block_bytes));
              mock_os::set_clock(6000);
              mock_os::fail_from(Call::Purge, 1);
              if (const uint64_t sleep = background::look(); sleep != 60'000)
                return "sleeps for " + std::to_string(sleep);
              if (!mock_os::has_failed()) return "nothing was purged";
              mock_os::never_fail();
              mock_os::set_clock(66'000);
              return background::look() == region::nothing_dirty ? "" : "not tried again";
            }),
            "");
}

TEST(BackgroundFault, never_looks_again_where_the_program_keeps_pages) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              start_heap();
              region::keep_free(size_t{1} << 30);
              test::calls::free(use(block_bytes));
              mock_os::set_clock(100'000);
              if (background::look() != region::never_due) return "looks again";
              return word() == region::rest::awake ? "" : "is woken by frees for nothing";
            }),
            "");
}

// The script of the thread's sleeps: each entry is one.
std::vector<uint64_t>& sleeps() {
  static std::vector<uint64_t> all;
  return all;
}

TEST(BackgroundFault, sleeps_as_its_looks_say) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              start_heap();
              static void* block = use(block_bytes);
              sleeps().reserve(100);
              mock_os::call_when_waiting([](uint64_t milliseconds) {
                sleeps().push_back(milliseconds);
                switch (sleeps().size()) {
                  case 1:  // for good
                    test::calls::free(block);
                    break;
                  case 2:
                    mock_os::set_clock(6000);
                    break;
                  default:
                    region::rest::word.store(region::rest::ending);
                }
              });
              background::run();
              const std::vector<uint64_t> wanted = {region::nothing_dirty, delay, region::nothing_dirty};
              if (sleeps() != wanted) return std::to_string(sleeps().size()) + " sleeps";
              return os::call_counts.background_looks.load() == 2 ? "" : "looks without a reason";
            }),
            "");
}

TEST(BackgroundFault, the_heap_goes_on_without_where_no_thread_can_be_made) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              start_heap();
              mock_os::fail_from(Call::StartThread, 1);
              background::start();
              if (!mock_os::has_failed()) return "none was made";
              test::calls::free(use(block_bytes));
              background::stop();
              mock_os::never_fail();
              background::start();
              if (mock_os::count(Call::StartThread) != 2) return "not tried again";
              background::start();
              if (mock_os::count(Call::StartThread) != 2) return "there are two";
              background::stop();
              background::stop();
              return "";
            }),
            "");
}

TEST(BackgroundFault, starts_with_the_second_cache_where_nobody_stands_before_pthread_create) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              options.background = true;
              const auto use_heap = [] { test::calls::free(use(100)); };
              use_heap();
              std::thread(use_heap).join();
              if (mock_os::count(Call::StartThread) != 0) return "started though it is told of threads";
              background::start_with_caches();
              std::thread(use_heap).join();
              if (mock_os::count(Call::StartThread) != 1) return "not started";
              background::stop();
              options.background = false;
              std::thread(use_heap).join();
              return mock_os::count(Call::StartThread) == 1 ? "" : "started though it is off";
            }),
            "");
}

TEST(BackgroundFault, the_last_thread_with_a_cache_ends_it) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              options.background = true;
              std::thread([] {
                background::start();
                std::thread([] { test::calls::free(use(100)); }).join();
                if (word() == region::rest::ending) background::stop();
              }).join();
              return word() == region::rest::ending ? "" : "it runs on";
            }),
            "");
}

// Frees of another thread wait for the owner of the slab, which may sleep for long.
TEST(BackgroundFault, takes_in_for_a_thread_that_sleeps_what_others_freed) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              start_heap();
              std::vector<void*> blocks;
              std::atomic<int> step{0};
              std::thread owner([&] {
                blocks = test::allocate_many(500, 48);  // so small that they are not passed on
                cache::flush_idle();
                step = 1;
                step.notify_all();
                step.wait(1);
              });
              step.wait(0);
              cache::flush_own();  // no slab of this thread is given back later
              (void)region::purge_all(0);
              std::string wrong;
              if (background::look() != region::nothing_dirty) wrong = "there was something to do before";
              for (void* const block : blocks)
                test::calls::free(block);
              cache::flush_own();
              if (word() != region::rest::awake) wrong = "not woken";
              if (!cache::any_pending()) wrong = "nothing waits for the owner";
              mock_os::set_clock(6000);
              if (background::look() == region::nothing_dirty) wrong = "nothing became free";
              if (cache::any_pending()) wrong = "not taken in";
              if (test::used_blocks(size_class_of(48)) != 0) wrong = "blocks are still in use";
              step = 2;
              step.notify_all();
              owner.join();
              return wrong;
            }),
            "");
}

}  // namespace
