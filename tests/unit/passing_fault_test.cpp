// How many free spans wait for their like: more where one length comes and goes so often that joining them costs time
// for good, by a clock that the test sets.
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/options.hpp"
#include "heap/heap.hpp"
#include "heap/own_spans.hpp"
#include "heap_calls.hpp"
#include "in_child.hpp"
#include "mock_os.hpp"
#include "pages/purge.hpp"
#include "pages/region.hpp"
#include "pages/region_state.hpp"

namespace {

using namespace sluice;

constexpr size_t mib = size_t{1} << 20;
constexpr uint64_t beginning = 1'000'000;  // of the clock
constexpr uint64_t delay = 1000;
constexpr size_t live = 8;
constexpr unsigned many = 40'000;  // rounds

size_t most_passing() {
  const MutexLock held(region::state.lock);
  return region::most_passing();
}

void begin() {
  test::calls::free(test::allocate(mib));  // the heap has started then
  options.purge_delay = delay;
  mock_os::set_clock(beginning);
}

// Takes and gives back eight blocks, each a step longer than the one before.
void go_round(size_t bytes, size_t step = 0) {
  void* blocks[live];
  for (size_t i = 0; i < live; ++i)
    blocks[i] = test::allocate(bytes + i * step);
  for (void* block : blocks)
    test::calls::free(block);
}

void go_rounds(unsigned rounds, size_t bytes, size_t step = 0) {
  for (unsigned i = 0; i < rounds; ++i)
    go_round(bytes, step);
}

const OwnSpans& own() {
  return thread_cache->own_spans;
}

size_t kept() {
  return own().units.load(std::memory_order_relaxed);
}

size_t recent() {
  const MutexLock held(region::state.lock);
  return region::state.spans.recent_units();
}

// Returns: "" where `units` may pass, or what may.
std::string expect_most(size_t units) {
  const size_t most = most_passing();
  return most == units ? "" : std::to_string(most) + " units may pass";
}

TEST(Passing, what_comes_and_goes_all_the_time_comes_to_wait_for_its_like) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              go_rounds(many, mib);
              const std::string most = expect_most(2 * FreeSpans::most_recent);
              if (!most.empty()) return most;
              const size_t waiting = recent() + kept();
              return waiting == live * mib / unit_size ? "" : std::to_string(waiting) + " units wait";
            }),
            "");
}

TEST(Passing, no_more_than_four_times_as_much) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              for (const size_t count : {size_t{14}, size_t{28}}) {
                std::vector<void*> blocks(count);
                for (unsigned i = 0; i < many; ++i) {
                  for (void*& block : blocks)
                    block = test::allocate(mib);
                  for (void* block : blocks)
                    test::calls::free(block);
                }
              }
              return expect_most(4 * FreeSpans::most_recent);
            }),
            "");
}

TEST(Passing, what_comes_seldom_needs_no_more) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              for (unsigned i = 0; i < many; ++i) {
                mock_os::set_clock(beginning + 2 * i);
                go_round(mib);
              }
              return expect_most(FreeSpans::most_recent);
            }),
            "");
}

TEST(Passing, requests_of_other_lengths_need_no_more) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              for (unsigned i = 0; i < many; ++i)
                go_round(5 * unit_size + i % 11 * unit_size);
              return expect_most(FreeSpans::most_recent);
            }),
            "");
}

TEST(Passing, requests_that_more_would_not_serve_outweigh_those_that_it_would) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              for (unsigned i = 0; i < 3'000; ++i) {
                go_round(mib);
                for (unsigned other = 0; other < 3; ++other)  // of a length that nobody frees
                  if (test::allocate(2 * unit_size) == nullptr) return "no memory";
              }
              return expect_most(FreeSpans::most_recent);
            }),
            "");
}

TEST(Passing, no_more_than_may_stay_dirty_or_where_address_space_is_limited) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              options.retain = 4 * FreeSpans::most_recent * unit_size - 1;
              go_rounds(many, mib);
              return expect_most(FreeSpans::most_recent);
            }),
            "");
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              options.retain = 4 * FreeSpans::most_recent * unit_size;
              go_rounds(many, mib);
              return expect_most(2 * FreeSpans::most_recent);
            }),
            "");
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              {
                const MutexLock held(region::state.lock);
                region::state.address_limit = size_t{4} << 30;
              }
              go_rounds(many, mib);
              return expect_most(FreeSpans::most_recent);
            }),
            "");
}

TEST(Passing, it_becomes_less_again) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              go_rounds(many, mib);
              if (most_passing() == FreeSpans::most_recent) return "no more may pass";
              uint64_t now = beginning;
              for (unsigned i = 0; i < 3; ++i) {
                go_round(5 * unit_size);  // else nothing dirty is left to look at
                now += delay / 4 + 1;
                mock_os::set_clock(now);
                region::purge_aged();
              }
              return expect_most(FreeSpans::most_recent);
            }),
            "");
}

TEST(Passing, who_is_alone_keeps_all_of_it) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              go_rounds(many, mib);
              if (kept() != live * mib / unit_size) return std::to_string(kept()) + " units are kept";
              for (unsigned i = 0; i < 2 * own_spans::puts_per_look; ++i) {  // each look in between keeps it, too
                go_round(mib);
                if (recent() != 0) return "the region has one of them";
              }
              return expect_most(2 * FreeSpans::most_recent);
            }),
            "");
}

TEST(Passing, what_is_kept_stays_while_it_is_used) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              constexpr size_t freed = 64;
              void* others[4 * freed];
              for (void*& other : others)
                other = test::allocate(2 * mib);
              go_rounds(many, mib);
              uint64_t now = beginning;
              for (size_t i = 0; i < freed; ++i) {
                test::calls::free(others[i]);  // leaves something dirty
                mock_os::set_clock(now += delay / 8);
                go_rounds(own_spans::puts_per_look, mib);
                region::purge_aged();
              }
              if (kept() != live * mib / unit_size) return std::to_string(kept()) + " units are kept";
              return expect_most(2 * FreeSpans::most_recent);
            }),
            "");
}

// Of a grant that only one that is alone gets, since other requests could do with what it keeps.
TEST(Passing, all_is_given_back_at_a_request_of_another_kind) {
  using Request = void (*)();
  const Request requests[] = {
      [] { (void)test::allocate(17 * unit_size); },  // longer than what is kept
      [] { (void)test::allocate(7 * unit_size); },   // of a length that nobody freed
      [] {                                           // of a slab
        for (unsigned i = 0; i < 3 * unit_size / 512; ++i)
          (void)test::allocate(512);
      },
      [] { heap::prepare_for_threads(); },
  };
  for (const Request& request : requests)
    EXPECT_EQ(test::in_child([&request]() -> std::string {
                begin();
                go_rounds(many, mib);
                if (own().granted <= FreeSpans::most_granted) return "it was granted too little";
                request();
                if (kept() != 0) return std::to_string(kept()) + " units are kept";
                return own().granted == 0 ? "" : "the grant stays";
              }),
              "")
        << &request - requests;
}

TEST(Passing, what_waits_takes_its_grant_along) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              for (unsigned i = 0; i < 128; ++i)  // no phase ends
                if (test::allocate(2 * mib) == nullptr) return "no memory";
              go_rounds(many, mib);
              uint64_t now = beginning;
              for (unsigned i = 0; i < 4; ++i) {
                mock_os::set_clock(now += delay / 4);
                for (unsigned k = 0; k < own_spans::puts_per_look; ++k) {
                  void* const first = test::allocate(mib);  // one of the two is kept at each look
                  void* const second = test::allocate(mib);
                  test::calls::free(first);
                  test::calls::free(second);
                }
                if (own().granted == 0) return "all was given back";
              }
              if (kept() != 2 * mib / unit_size) return std::to_string(kept()) + " units are kept";
              const size_t granted = own().granted;
              return granted <= FreeSpans::most_granted ? "" : std::to_string(granted) + " units are granted";
            }),
            "");
}

// The thread that is alone until then frees nothing more for a while.
TEST(Passing, others_that_come_have_what_they_would_have) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              go_rounds(many, mib);
              if (own().granted <= FreeSpans::most_granted) return "it was granted too little";
              std::string wrong;
              std::thread([&wrong] {
                go_rounds(100, 2 * unit_size);
                if (own().granted != 0) wrong = "more was granted than all may have";
                if (kept() + recent() != 2 * live) wrong = "their spans do not wait";
              }).join();
              if (!wrong.empty()) return wrong;
              go_rounds(own_spans::puts_per_look, mib);
              if (own().granted > FreeSpans::most_granted) return "it has more than it would be granted";
              go_rounds(many, mib);
              return own().granted <= FreeSpans::most_granted ? "" : "it was granted too much again";
            }),
            "");
}

// Nothing else is called than what the thread keeps serves.
TEST(Passing, what_others_left_gets_old_meanwhile) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              void* const other = test::allocate(20 * mib);
              std::memset(other, 1, 20 * mib);
              void* const behind = test::allocate(20 * mib);
              go_rounds(many, mib);
              test::calls::free(other);
              const auto dirty = [] {
                const MutexLock held(region::state.lock);
                return region::state.spans.dirty_units();
              };
              if (dirty() < 20 * mib / unit_size) return "nothing is dirty";
              uint64_t now = beginning;
              for (unsigned i = 0; i < 16 && dirty() != 0; ++i) {
                now += delay;
                mock_os::set_clock(now);
                go_rounds(own_spans::puts_per_look, mib);
                if (recent() != 0) return "the region has one of them";
              }
              const size_t left = dirty();
              test::calls::free(behind);
              return left == 0 ? "" : std::to_string(left) + " units are dirty";
            }),
            "");
}

}  // namespace
