// Free pages that go before they are as old as the purge delay, by a clock that the test sets: so few that it costs
// little, however soon they are needed again.
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/options.hpp"
#include "heap/heap.hpp"
#include "heap_calls.hpp"
#include "in_child.hpp"
#include "mock_os.hpp"
#include "os/memory.hpp"
#include "pages/purge.hpp"
#include "pages/region.hpp"

namespace {

using namespace sluice;

constexpr size_t mib = size_t{1} << 20;
constexpr size_t block_bytes = 2 * mib;    // no recent span
constexpr uint64_t beginning = 1'000'000;  // of the clock
constexpr uint64_t delay = 1000;
constexpr uint64_t early = 62;  // a 16th of it
constexpr size_t at_once = 8;   // MiB
constexpr size_t a_second = 32;

size_t free_in_memory() {
  const MutexLock held(region::mutex());
  return region::figures().free_dirty_bytes / mib;
}

// Of so many blocks the first half stays alive, so that the phase does not end; the others are free, in memory, at
// `beginning`.
std::vector<void*> half_freed(size_t blocks) {
  options.purge_delay = delay;
  mock_os::set_clock(beginning);
  std::vector<void*> all;
  for (size_t i = 0; i < blocks; ++i)
    all.push_back(std::memset(test::allocate(block_bytes), 5, block_bytes));
  for (size_t i = blocks / 2; i < blocks; ++i)
    test::calls::free(all[i]);
  all.resize(blocks / 2);
  return all;
}

void look_at(uint64_t ms_later) {
  mock_os::set_clock(beginning + ms_later);
  region::purge_aged();
}

TEST(EarlyPurge, a_little_goes_after_a_part_of_the_delay_and_no_sooner) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              (void)half_freed(8);
              const size_t before = free_in_memory();
              if (before < 6) return "only " + std::to_string(before) + " MiB are free and in memory";
              look_at(early - 1);
              if (free_in_memory() != before) return "gone too soon";
              look_at(2 * early);
              return free_in_memory() == 0 ? "" : std::to_string(free_in_memory()) + " MiB stay";
            }),
            "");
}

TEST(EarlyPurge, no_more_goes_than_costs_little) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              (void)half_freed(60);
              for (unsigned round = 0; round < 10; ++round) {  // what is missed at once is kept
                std::vector<void*> again;
                for (size_t i = 0; i < 30 * mib / block_bytes; ++i)
                  again.push_back(std::memset(test::allocate(block_bytes), 5, block_bytes));
                for (void* const block : again)
                  test::calls::free(block);
              }
              const size_t before = free_in_memory();
              if (before < 25) return "only " + std::to_string(before) + " MiB are free and in memory";
              look_at(early);
              size_t left = free_in_memory();
              if (before - left != at_once) return std::to_string(before - left) + " MiB go at once";
              for (uint64_t ms = early; ms <= early + 500; ms += 20)
                look_at(ms);
              left = free_in_memory();
              const size_t gone = before - left - at_once;
              if (gone < a_second / 2 - 2 || gone > a_second / 2)
                return std::to_string(gone) + " MiB go in half a second";
              look_at(delay);
              return free_in_memory() == 0 ? "" : "what is as old as the delay does not go as a whole";
            }),
            "");
}

TEST(EarlyPurge, what_goes_early_and_is_needed_again_is_counted_and_teaches_nothing) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              (void)half_freed(8);
              const uint64_t usual = region::purge_delay();
              for (uint64_t round = 1; round <= 20; ++round) {
                look_at(round * 400);
                if (free_in_memory() != 0) return "round " + std::to_string(round) + ": pages stay";
                const uint64_t before = os::call_counts.regretted_bytes.load();
                void* const block = std::memset(test::allocate(block_bytes), 5, block_bytes);
                const uint64_t missed = os::call_counts.regretted_bytes.load() - before;
                if (missed < block_bytes) return "round " + std::to_string(round) + ": only " + std::to_string(missed);
                test::calls::free(block);
              }
              return region::purge_delay() == usual ? "" : "the delay has changed";
            }),
            "");
}

// Spans of the region alone, of which `taken` are 2 MiB long: the peak is 40 MiB.
class Spans {
 public:
  static constexpr size_t count = 20;

  Spans() {
    test::calls::free(test::allocate(1));  // starts the heap
    options.purge_delay = delay;
    mock_os::set_clock(beginning);
    take(count);
    leave(count - 2);  // begins an epoch
    take(count);
  }
  void take(size_t taken) {
    for (; taken_ < taken; ++taken_) {
      bool clean;
      spans_[taken_] = region::allocate(units, 1, UnitState::Large, &clean);
    }
  }
  void leave(size_t taken) {
    while (taken_ > taken)
      region::give_back(spans_[--taken_], units, false);
  }

 private:
  static constexpr size_t units = block_bytes / unit_size;
  size_t spans_[count];
  size_t taken_ = 0;
};

// Looks at a heap that uses 18 MiB after a need of 40, of which `unused` are not needed. Returns: how many MiB went.
size_t gone_at_look(Spans& spans, size_t unused) {
  spans.leave(9);
  const size_t before = free_in_memory();
  if (region::would_be_over(unused * mib / unit_size)) return SIZE_MAX;
  return before - free_in_memory();
}

TEST(EarlyPurge, half_of_it_goes_where_a_phase_is_almost_over_but_for_what_is_not_needed) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              Spans spans;
              if (const size_t gone = gone_at_look(spans, 4); gone != 0) return std::to_string(gone) + " MiB too many";
              const size_t gone = gone_at_look(spans, 8);
              return gone == at_once / 2 ? "" : std::to_string(gone) + " MiB go";
            }),
            "");
}

TEST(EarlyPurge, a_bound_of_what_is_not_needed_tells_that_no_phase_is_over_and_takes_nothing) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              Spans spans;
              spans.leave(9);
              const size_t before = free_in_memory();
              if (region::may_be_over(4 * mib / unit_size)) return "of 18 MiB, 14 at least are needed";
              if (!region::may_be_over(8 * mib / unit_size)) return "of 40 MiB, a third or less may be needed";
              if (free_in_memory() != before) return "some went";
              spans.leave(6);
              return region::has_shrunk.load() ? "" : "nobody looks when there is less";
            }),
            "");
}

// What goes at a second look, so long after all was needed again that had gone at the first.
size_t gone_again(uint64_t needed_ms, uint64_t after_ms) {
  Spans spans;
  (void)gone_at_look(spans, 8);
  mock_os::set_clock(beginning + needed_ms);
  spans.take(Spans::count);
  mock_os::set_clock(beginning + needed_ms + after_ms);
  return gone_at_look(spans, 8);
}

TEST(EarlyPurge, who_needs_it_again_at_once_loses_less_for_a_while) {
  const auto gone = [](auto again) {
    return test::in_child([again]() -> std::string { return std::to_string(again()); });
  };
  const std::string half = std::to_string(at_once / 2);
  EXPECT_EQ(gone([] { return gone_again(early + 1, 200); }), half);
  EXPECT_EQ(gone([] { return gone_again(early / 4, 50); }), "0");  // more went than may
  EXPECT_EQ(gone([] { return gone_again(early / 4, 200); }), "0");
  EXPECT_EQ(gone([] { return gone_again(early / 4, 2 * delay); }), half);
}

TEST(EarlyPurge, a_recent_span_may_be_the_last_of_a_phase) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              Spans spans;
              bool clean;
              constexpr size_t units = 8;
              const size_t last = region::allocate(units, 1, UnitState::Large, &clean);
              spans.leave(15);  // of more than 40 MiB three quarters and a half stay
              if (region::has_shrunk.load()) return "seen too soon";
              region::give_back(last, units, false);
              return region::has_shrunk.load() ? "" : "not seen";
            }),
            "");
}

TEST(EarlyPurge, what_may_stay_goes_where_a_phase_is_over) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              Spans spans;
              spans.leave(2);  // 4 MiB of 40
              const size_t left = free_in_memory();
              return left <= 6 ? "" : std::to_string(left) + " MiB stay";
            }),
            "");
}

// 12 MiB of 40 are in use, more than an eighth, of which the program needs 3.
TEST(EarlyPurge, who_looks_says_that_a_phase_is_over) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              Spans spans;
              spans.leave(6);
              if (!region::would_be_over(9 * mib / unit_size)) return "not over";
              region::purge_if_over();
              const size_t left = free_in_memory();
              return left <= 14 ? "" : std::to_string(left) + " MiB stay";
            }),
            "");
}

TEST(EarlyPurge, a_recent_span_stays_at_the_end_of_a_phase_only_in_place_of_another) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              Spans spans;
              options.purge_delay = 3'600'000;  // so that nothing goes early
              bool clean;
              constexpr size_t units = mib / unit_size;
              const size_t last = region::allocate(units, 1, UnitState::Large, &clean);
              spans.leave(0);
              const size_t before = free_in_memory();
              region::give_back(last, units, false);
              if (!region::would_be_over(0)) return "not over";
              region::purge_if_over();
              const size_t left = free_in_memory();
              return left <= before ? "" : std::to_string(left) + " MiB stay, and before " + std::to_string(before);
            }),
            "");
}

TEST(EarlyPurge, nothing_goes_where_all_is_kept) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              (void)half_freed(8);
              region::keep_free(SIZE_MAX);
              const size_t before = free_in_memory();
              look_at(2 * early);
              return free_in_memory() == before ? "" : "some is gone";
            }),
            "");
}

}  // namespace
