// Memory nodes: which node's memory a thread gets, on a machine that the test makes up. A thread moves to another node
// when it says so, as the system may move it at any time.
#include "pages/nodes.hpp"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/options.hpp"
#include "heap/heap.hpp"
#include "heap/thread_life.hpp"
#include "heap_calls.hpp"
#include "in_child.hpp"
#include "mock_os.hpp"
#include "os/memory.hpp"
#include "pages/huge_pages.hpp"
#include "pages/purge.hpp"
#include "pages/region.hpp"
#include "pages/region_state.hpp"
#include "random_blocks.hpp"
#include "validate_among_others.hpp"

namespace {

using namespace sluice;

constexpr size_t mib = size_t{1} << 20;
constexpr size_t span_units = 40;        // no recent span
constexpr uint32_t names[] = {3, 0, 5};  // what the system calls the nodes that the heap counts from 0

void go_to(unsigned node) {
  mock_os::set_memory_node(names[node]);
}

// The heap of a program that has a second thread.
void begin() {
  options.purge_delay = 3'600'000;
  go_to(0);
  test::calls::free(test::allocate(100));
  heap::prepare_for_threads();
}

size_t take(size_t units = span_units) {
  bool clean = false;
  return region::allocate(units, 1, UnitState::Large, &clean);
}

void give_back(size_t index) {
  region::give_back(index, region::unit_at(index)->units, false);
}

// The node that the slab or the span of a block is of.
unsigned node_of(const void* block) {
  const size_t index = unit_index_of(block);
  const Unit& unit = *region::unit_at(index);
  return nodes::of(unit.use() == UnitState::Slab ? index - unit.slab.back : index);
}

std::string validated() {
  const MutexLock held(region::mutex());
  const char* const wrong = region::validate();
  return wrong == nullptr ? "" : wrong;
}

// Both nodes are known, and have some units; nothing of them is in memory.
void begin_with_two() {
  begin();
  const size_t first = take();
  go_to(1);
  const size_t second = take();
  give_back(first);
  give_back(second);
  (void)region::purge_all(0);
  go_to(0);
  (void)take(1000);  // so that no phase ends when little is given back
}

// Effects: gives the span back. Returns: "", or that it has left memory.
std::string keep_free(size_t index) {
  give_back(index);
  const UnitState use = region::use_of(index);
  return use == UnitState::FreeDirty || use == UnitState::FreeRecent ? "" : "what is free has left memory";
}

// Units of dirty spans of the node, but for recent ones.
size_t dirty_units_of(unsigned node) {
  const MutexLock held(region::mutex());
  size_t units = 0;
  for (size_t i = region::first_span(); i < region::limit(); i += region::unit_at(i)->units)
    if (region::unit_at(i)->use() == UnitState::FreeDirty && nodes::of(i) == node) units += region::unit_at(i)->units;
  return units;
}

uint64_t far_bytes() {
  return os::call_counts.far_bytes.load();
}

TEST(Nodes, a_thread_gets_units_of_its_own_node) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin_with_two();
              if (nodes::count.load() != 2) return "not two nodes";
              for (unsigned round = 0; round < 200; ++round) {
                const unsigned node = round % 2;
                go_to(node);
                const size_t index = take(1 + round);
                if (index == unit_index_none) return "nothing";
                if (nodes::of(index) != node) return "round " + std::to_string(round);
              }
              return far_bytes() == 0 ? validated() : "far";
            }),
            "");
}

TEST(Nodes, a_free_span_in_memory_serves_its_own_node_alone) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin_with_two();
              const size_t first = take();
              if (const std::string wrong = keep_free(first); !wrong.empty()) return wrong;
              go_to(1);
              if (const size_t index = take(); index == first) return "it serves the other node";
              go_to(0);
              return take() == first ? validated() : "it does not serve its own node";
            }),
            "");
}

TEST(Nodes, a_recent_span_serves_its_own_node_alone) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin_with_two();
              const size_t first = take(2);
              go_to(1);
              give_back(first);  // whoever frees it
              if (take(2) == first) return "it serves the other node";
              go_to(0);
              return region::allocate_recent(2, UnitState::Large) == first ? validated() : "it does not serve its own";
            }),
            "");
}

TEST(Nodes, dirty_neighbours_of_two_nodes_are_not_joined_and_clean_ones_are) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin_with_two();
              size_t first = take();
              go_to(1);
              size_t second = take();
              for (; first + span_units != second; first = second, second = take())
                go_to(1 - nodes::of(second));
              const unsigned node = nodes::of(first);
              if (nodes::of(second) == node) return "both are of one node";
              for (const size_t index : {first, second})
                if (const std::string wrong = keep_free(index); !wrong.empty()) return wrong;
              if (region::unit_at(first)->units != span_units) return "dirty ones are joined";
              if (const std::string wrong = validated(); !wrong.empty()) return wrong;
              (void)region::purge_all(0);
              if (region::unit_at(first)->units < 2 * span_units) return "clean ones are not";
              return validated();
            }),
            "");
}

TEST(Nodes, what_is_cut_off_stays_on_its_node) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin_with_two();
              go_to(1);
              const size_t first = take(3 * span_units);
              go_to(0);
              if (!region::resize(first, 2 * span_units)) return "not resized";
              region::split(first, span_units);
              if (nodes::of(first + span_units) != 1) return "the second part is another node's";
              if (take() == first + 2 * span_units) return "the rest serves the other node";
              go_to(1);
              return take() == first + 2 * span_units ? validated() : "the rest does not serve its own node";
            }),
            "");
}

TEST(Nodes, the_rest_of_a_free_span_stays_on_its_node) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin_with_two();
              go_to(1);
              const size_t first = take(5 * span_units);
              if (const std::string wrong = keep_free(first); !wrong.empty()) return wrong;
              if (take() != first) return "it does not serve";
              go_to(0);
              if (take() == first + span_units) return "the rest serves the other node";
              go_to(1);
              return take() == first + span_units ? validated() : "the rest does not serve its own node";
            }),
            "");
}

// What is cut out of the middle, too.
TEST(Nodes, aligned_parts_of_a_free_span_stay_on_its_node) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin_with_two();
              go_to(1);
              const size_t first = take(5 * span_units);
              if (const std::string wrong = keep_free(first); !wrong.empty()) return wrong;
              bool clean = false;
              const size_t aligned = region::allocate(span_units, 64, UnitState::Large, &clean);
              if (aligned < first || aligned >= first + 5 * span_units) return "it does not serve";
              if (nodes::of(aligned) != 1) return "it is another node's now";
              return dirty_units_of(1) == 4 * span_units ? validated() : "the rest is another node's";
            }),
            "");
}

TEST(Nodes, aligned_spans_are_near) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin_with_two();
              const auto take_aligned = [](size_t units) {
                bool clean = false;
                return region::allocate(units, 16, UnitState::Large, &clean);
              };
              for (const size_t units : {span_units, size_t{3}}) {  // of recent ones, too
                std::vector<size_t> spans;
                for (unsigned round = 0; round < 8; ++round) {
                  go_to(round % 2);
                  spans.push_back(take_aligned(units));
                  spans.push_back(take_aligned(units));
                  for (size_t i = spans.size() - 2; i < spans.size(); ++i)
                    if (nodes::of(spans[i]) != round % 2) return "far";
                  give_back(spans[round]);
                  if (const std::string wrong = validated(); !wrong.empty()) return wrong;
                }
              }
              return "";
            }),
            "");
}

TEST(Nodes, pages_that_move_for_a_block_keep_their_node) {
  if (!os::can_move_pages) GTEST_SKIP() << "pages do not move here";
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin_with_two();
              const size_t from = take();
              go_to(1);
              bool clean = false;
              const size_t to = region::allocate(2 * span_units, 1, UnitState::Large, &clean, region::Prefer::Clean);
              if (nodes::of(to) != 1) return "what was touched here is far";
              if (region::move_pages(from, to, span_units, clean) != region::Moved::All) return "they do not move";
              return nodes::of(to) == 0 ? "" : "they lie on the other node now";
            }),
            "");
}

TEST(Nodes, address_space_is_taken_once_for_all_nodes) {
  for (const unsigned node_count : {1u, 8u})
    EXPECT_EQ(test::in_child([node_count]() -> std::string {
                begin();
                const size_t before = region::limit();
                for (unsigned i = 0; i < 40; ++i) {
                  mock_os::set_memory_node(i % node_count);
                  std::vector<size_t> spans;
                  for (unsigned n = 0; n < 50; ++n)
                    spans.push_back(take(64));
                  for (const size_t index : spans)
                    give_back(index);
                  (void)region::purge_all(0);
                }
                const size_t grown = region::limit() - before;
                return grown < 2 * 50 * 64 ? validated() : std::to_string(grown) + " units";
              }),
              "");
}

// As with SLUICE_PURGE_DELAY=never: as much would lie on each node.
TEST(Nodes, where_free_pages_stay_for_good_far_ones_serve) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              region::keep_free(SIZE_MAX);
              for (unsigned i = 0; i < 20; ++i) {
                mock_os::set_memory_node(i % 8);
                std::vector<size_t> spans;
                for (unsigned n = 0; n < 100; ++n)
                  spans.push_back(take(64));
                for (const size_t index : spans)
                  give_back(index);
              }
              const MutexLock held(region::mutex());
              const size_t kept = region::figures().free_dirty_bytes / mib;
              return kept < 500 ? "" : std::to_string(kept) + " MiB stay of 400";
            }),
            "");
}

TEST(Nodes, what_several_nodes_have_serves_a_long_request_where_the_range_ends) {
  for (const bool refuses : {false, true})
    EXPECT_EQ(test::in_child([refuses]() -> std::string {
                options.reserve = 256 * mib;
                begin();
                std::vector<size_t> spans;
                for (unsigned i = 0; i == spans.size(); ++i) {
                  go_to(i % 3);
                  if (const size_t index = take(100); index != unit_index_none) spans.push_back(index);
                }
                // Some of it is clean, and some dirty for good.
                for (size_t i = 0; i < spans.size(); ++i)
                  if (i % 3 == 1) give_back(spans[i]);
                (void)region::purge_all(0);
                if (refuses) mock_os::fail_from(mock_os::Call::Purge, 1);
                for (size_t i = 0; i < spans.size(); ++i)
                  if (i % 3 != 1) give_back(spans[i]);
                const size_t units = spans.size() * 100 / 2;
                if (take(units) == unit_index_none) return "half of what is free does not serve";
                return validated();
              }),
              "");
}

TEST(Nodes, what_is_far_serves_where_the_system_gives_nothing) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin_with_two();
              const size_t first = take(200);
              if (const std::string wrong = keep_free(first); !wrong.empty()) return wrong;
              go_to(1);
              mock_os::fail_from(mock_os::Call::Commit, 1);
              const size_t index = take(200);
              mock_os::never_fail();
              if (index != first) return "it does not";
              return far_bytes() == 200 * unit_size ? validated() : std::to_string(far_bytes()) + " bytes are counted";
            }),
            "");
}

TEST(Nodes, a_thread_cache_lies_on_the_node_of_its_thread) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin_with_two();
              std::string wrong;
              for (unsigned i = 0; i < 6 && wrong.empty(); ++i) {
                std::thread thread([&wrong, i] {
                  go_to(i % 2);
                  test::calls::free(test::allocate(50));
                  const size_t at = unit_index_of(thread_cache);
                  if (nodes::of(at) != i % 2) wrong = "cache of thread " + std::to_string(i);
                });
                thread.join();
              }
              return wrong;
            }),
            "");
}

// Fills slabs on a new thread of each of the nodes, all at the same time, and leaves them with free blocks behind.
void leave_slabs(unsigned nodes, size_t bytes, size_t blocks) {
  std::vector<std::thread> threads;
  std::atomic<unsigned> filled{0};
  for (unsigned node = 0; node < nodes; ++node)
    threads.emplace_back([=, &filled] {
      go_to(node);
      std::vector<void*> all;
      for (size_t i = 0; i < blocks; ++i)
        all.push_back(test::allocate(bytes));
      ++filled;
      while (filled != nodes)
        std::this_thread::yield();
      for (size_t i = 0; i < blocks; ++i)
        if (i % 16 != 0) test::calls::free(all[i]);
    });
  for (std::thread& thread : threads)
    thread.join();
}

TEST(Nodes, slabs_of_ended_threads_serve_threads_on_their_node_first) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin_with_two();
              constexpr size_t bytes = 2000;
              leave_slabs(2, bytes, 4000);
              // This thread has slabs of neither. A search that takes the first ones goes on with those of one node.
              for (unsigned node = 0; node < 2; ++node) {
                go_to(node);
                size_t far = 0;
                for (unsigned i = 0; i < 1000; ++i)
                  far += node_of(test::allocate(bytes)) != node ? 1 : 0;
                if (far > 200) return std::to_string(far) + " of 1000 blocks are far from node " + std::to_string(node);
              }
              return validated();
            }),
            "");
}

TEST(Nodes, slabs_of_ended_threads_serve_another_node_before_more_memory_is_taken) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin_with_two();
              constexpr size_t bytes = 2000;
              leave_slabs(1, bytes, 4000);
              std::string wrong = "none";
              std::thread thread([&wrong] {
                go_to(1);
                for (unsigned i = 0; i < 200; ++i)
                  if (node_of(test::allocate(bytes)) == 0) wrong.clear();
              });
              thread.join();
              return wrong;
            }),
            "");
}

TEST(Nodes, large_blocks_of_threads_that_take_turns_lie_near_to_them) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin_with_two();
              for (unsigned round = 0; round < 40; ++round) {
                go_to(round % 2);
                std::vector<void*> blocks;
                for (size_t i = 0; i < 60; ++i) {
                  blocks.push_back(test::allocate(100'000 + 10'000 * i));
                  if (node_of(blocks.back()) != round % 2) return "round " + std::to_string(round);
                }
                for (void* const block : blocks)
                  test::calls::free(block);
              }
              return validated();
            }),
            "");
}

TEST(Nodes, a_thread_keeps_no_span_of_another_node_for_itself) {
  if (quarantines_spans) GTEST_SKIP() << "spans wait in the quarantine here";
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin_with_two();
              void* const far = test::allocate(mib / 2);
              const size_t far_at = unit_index_of(far);
              go_to(1);
              for (unsigned i = 0; i < 100; ++i)
                test::calls::free(test::allocate(mib / 2));
              if (thread_cache->own_spans.granted == 0) return "it keeps none";
              test::calls::free(far);
              const size_t units = thread_cache->own_spans.units.load(std::memory_order_relaxed);
              if (units > region::unit_at(unit_index_of(test::allocate(mib / 2)))->units) return "it keeps it";
              go_to(0);
              return take(region::unit_at(far_at)->units) == far_at ? validated() : "its node does not have it again";
            }),
            "");
}

TEST(Nodes, pages_do_not_move_to_another_node) {
  if (!os::can_move_pages) GTEST_SKIP() << "pages do not move here";
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin_with_two();
              go_to(1);
              std::vector<size_t> spans;
              for (unsigned i = 0; i < 20; ++i)
                spans.push_back(take());
              for (unsigned i = 0; i < 20; i += 2)
                if (const std::string wrong = keep_free(spans[i]); !wrong.empty()) return wrong;  // apart
              const auto moved = [before = os::call_counts.recycled_bytes.load()] {
                return os::call_counts.recycled_bytes.load() - before;
              };
              go_to(0);
              if (nodes::of(take(5 * span_units)) != 0) return "far";
              if (moved() != 0) return "they do";
              if (far_bytes() != 0) return "they serve the other node";
              go_to(1);
              if (nodes::of(take(5 * span_units + span_units / 2)) != 1) return "what they moved to is another node's";
              if (moved() == 0) return "nor do they within their own";
              // Of one span a part is left.
              return dirty_units_of(0) == 0 && dirty_units_of(1) != 0 ? validated() : "the rest is another node's";
            }),
            "");
}

// Lists of mixed lengths are not searched to their ends: the span is found by its age, and is longer than what is
// wanted.
TEST(Nodes, the_rest_of_a_span_that_is_found_by_its_age_stays_on_its_node) {
  if (!os::can_move_pages) GTEST_SKIP() << "no span is looked for by its age where pages do not move";
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin_with_two();
              region::keep_free(64 * mib);
              go_to(1);
              std::vector<size_t> spans;
              for (unsigned i = 0; i <= FreeSpans::usual_search_depth; ++i) {
                spans.push_back(take(i == 0 ? 35 : 33));  // of one list
                (void)take(1);
              }
              for (const size_t index : spans)
                if (const std::string wrong = keep_free(index); !wrong.empty()) return wrong;
              if (take(34) != spans[0]) return "another span serves";
              const size_t rest = spans[0] + 34;
              if (region::use_of(rest) != UnitState::FreeDirty) return "nothing is left";
              return nodes::of(rest) == 1 ? validated() : "the rest is another node's";
            }),
            "");
}

TEST(Nodes, each_node_has_an_extent_of_huge_pages) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin_with_two();
              if (!os::can_advise_huge_pages || os::page_size() != 4096 || guards_spans) return "";
              const auto take_slab = [] {
                bool clean = false;
                return region::allocate(1, 1, UnitState::Slab, &clean, region::Prefer::Huge);
              };
              size_t last[2] = {};
              unsigned ends = 0;
              for (unsigned i = 0; i < 2 * region::extent_units; ++i) {
                const unsigned node = i % 2;
                go_to(node);
                const size_t index = take_slab();
                if (nodes::of(index) != node) return "an extent of the other node";
                if (index != last[node] + 1) ++ends;
                last[node] = index;
              }
              if (ends > 6) return std::to_string(ends) + " extents end before they are full";
              (void)take_slab();
              go_to(0);
              (void)take_slab();
              if (region::units_in_extents() < region::extent_units) return "neither node has an extent now";
              (void)region::purge_all(SIZE_MAX);  // all are kept, and no extent stays open
              if (region::units_in_extents() != 0) return "one of them stays open";
              for (unsigned node = 0; node < 2; ++node)
                if (dirty_units_of(node) == 0) return "what was open is another node's";
              go_to(1);
              bool clean = false;
              const size_t other = region::allocate(span_units, 1, UnitState::Large, &clean, region::Prefer::Clean);
              if (region::lies_in_huge_page(other)) return "another span lies in a huge page";
              return validated();
            }),
            "");
}

// So many threads that live at the same time.
void run_threads(unsigned threads, unsigned node) {
  std::vector<std::thread> all;
  std::atomic<unsigned> here{0};
  for (unsigned i = 0; i < threads; ++i)
    all.emplace_back([=, &here] {
      go_to(node);
      test::calls::free(test::allocate(50));
      ++here;
      while (here != threads)
        std::this_thread::yield();
    });
  for (std::thread& thread : all)
    thread.join();
}

TEST(Nodes, threads_that_come_and_go_on_all_nodes_make_few_caches) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin_with_two();
              // Now and then more end on one node than are looked at.
              for (unsigned i = 0; i < 60; ++i)
                run_threads(i % 5 == 0 ? 40 : 1, i / 5 % 2);
              const size_t caches = cache::thread_counts().caches;
              return caches <= 2 * 40 + 1 ? "" : std::to_string(caches) + " caches";
            }),
            "");
}

TEST(Nodes, where_no_cache_can_be_made_a_far_one_serves) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin_with_two();
              run_threads(1, 0);
              std::string wrong;
              std::thread thread([&wrong] {  // libc has what it needs for it
                go_to(1);
                mock_os::fail_from(mock_os::Call::Commit, 1);
                while (take(1) != unit_index_none)
                  continue;
                test::calls::free(test::allocate(50));
                if (!thread_cache->attached) wrong = "it has none";
                mock_os::never_fail();
              });
              thread.join();
              return wrong;
            }),
            "");
}

TEST(Nodes, where_the_first_units_cannot_be_had_nothing_is_lost) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              options.purge_delay = 3'600'000;
              if (!region::initialize()) return "no range";
              has_several_threads.store(true);
              mock_os::fail_from(mock_os::Call::Commit, 1);
              for (unsigned i = 0; i < 4; ++i) {
                go_to(i % 2);
                if (take() != unit_index_none) return "there is no memory";
              }
              mock_os::never_fail();
              for (unsigned i = 0; i < 4; ++i) {
                go_to(i % 2);
                if (take() == unit_index_none) return "there is memory";
              }
              return validated();
            }),
            "");
}

// Returns: "", or that nodes are told apart where spans are taken on two.
std::string expect_one() {
  for (unsigned i = 0; i < 10; ++i) {
    go_to(i % 2);
    (void)take();
  }
  return nodes::count.load() == 1 ? "" : "more are told apart";
}

TEST(Nodes, a_program_of_one_thread_has_one) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              test::calls::free(test::allocate(100));
              return expect_one();
            }),
            "");
}

TEST(Nodes, the_option_turns_them_off) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              options.numa = false;  // what the heap has read at its start
              return expect_one();
            }),
            "");
}

TEST(Nodes, the_first_is_that_of_the_thread_that_makes_the_second_thread) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              go_to(1);
              if (nodes::of(take()) != 1) return "the second node is the first";
              go_to(0);
              return nodes::own() == 0 ? "" : "the first node is another one";
            }),
            "");
}

TEST(Nodes, statistics_tell_them) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              if (os::call_counts.memory_nodes.load() != 0) return "one is told apart";
              begin_with_two();
              return os::call_counts.memory_nodes.load() == 2 ? "" : "two are not";
            }),
            "");
}

TEST(Nodes, those_beyond_the_last_are_one_with_others) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              for (unsigned round = 0; round < 4; ++round)
                for (uint32_t node = 0; node < 3 * most_nodes; ++node) {
                  mock_os::set_memory_node(node);
                  const size_t index = take(node + 1);
                  if (index == unit_index_none || nodes::of(index) != nodes::own()) return std::to_string(node);
                  give_back(index);
                }
              return nodes::count.load() == most_nodes ? validated() : std::to_string(nodes::count.load());
            }),
            "");
}

struct Span {
  size_t index;
  size_t units;
};

class RandomSpans {
 public:
  explicit RandomSpans(unsigned seed) : random_(seed) {}

  // Returns: "", or what is wrong with the region after one more step.
  std::string step() {
    mock_os::set_memory_node(static_cast<uint32_t>(random_.below(4)));
    if (random_.chance(5))
      mock_os::fail_nth(static_cast<mock_os::Call>(random_.below(11)), 1 + static_cast<unsigned>(random_.below(4)));
    const uint64_t what = random_.below(100);
    if (what < 50)
      take_one();
    else if (what < 85)
      give_one_back();
    else if (what < 95)
      resize_one();
    else if (what < 97)
      (void)region::allocate_metadata(64 * (1 + random_.below(900)));
    else
      (void)region::purge_all(random_.below(3) * 8 * mib);
    if (random_.chance(20)) mock_os::never_fail();
    if (overlap_) return "spans overlap";
    return validated();
  }

 private:
  void add(Span span) {
    for (const Span& other : spans_)
      overlap_ |= span.index < other.index + other.units && other.index < span.index + span.units;
    spans_.push_back(span);
  }
  Span take_off() {
    std::swap(spans_[random_.below(spans_.size())], spans_.back());
    const Span span = spans_.back();
    spans_.pop_back();
    return span;
  }
  void take_one() {
    const size_t units = 1 + random_.below(random_.chance(30) ? 600 : 30);
    const size_t align_units = random_.chance(20) ? size_t{1} << random_.below(7) : 1;
    bool clean = false;
    const auto prefer = static_cast<region::Prefer>(random_.below(3));
    const size_t index = region::allocate(units, align_units, UnitState::Large, &clean, prefer);
    if (index == unit_index_none) return;
    char* const bytes = region::address_of(index);
    for (size_t i = 0; i < units; ++i) {
      if (clean && bytes[i * unit_size] != 0) overlap_ = true;
      bytes[i * unit_size] = 1;
    }
    add({index, units});
  }
  void give_one_back() {
    if (!spans_.empty()) give_back(take_off().index);
  }
  void resize_one() {
    if (spans_.empty()) return;
    Span span = take_off();
    const size_t units = 1 + random_.below(2 * span.units);
    if (region::resize(span.index, units)) span.units = units;
    add(span);
  }

  test::Random random_;
  std::vector<Span> spans_;
  bool overlap_ = false;
};

TEST(Nodes, spans_of_all_kinds_whose_threads_move_and_whose_calls_fail_leave_the_region_whole) {
  for (unsigned seed = 0; seed < 12; ++seed)
    EXPECT_EQ(test::in_child([seed]() -> std::string {
                begin();
                RandomSpans spans(seed);
                for (unsigned i = 0; i < 1500; ++i)
                  if (const std::string wrong = spans.step(); !wrong.empty())
                    return wrong + " at step " + std::to_string(i);
                return nodes::count.load() == 4 ? "" : "not all nodes were seen";
              }),
              "")
        << seed;
}

// Each thread takes and frees blocks of all kinds, those of other threads, too, and moves from node to node.
void live_on_nodes(unsigned seed, std::vector<std::atomic<char*>>& shared) {
  test::Random random(seed);
  for (unsigned step = 0; step < 20'000; ++step) {
    if (step % 64 == 0) go_to(random.below(3));
    auto& place = shared[random.below(shared.size())];
    const size_t bytes = 1 + random.below(random.below(8) == 0 ? 4 * mib : 3000);
    char* block = place.exchange(nullptr);
    const size_t what = random.below(10);
    if (what == 0 && block != nullptr) {
      block = static_cast<char*>(test::calls::reallocate(block, bytes));
      block[0] = 1;
    } else {
      test::calls::free(block);
      block =
          static_cast<char*>(what == 1 ? test::calls::allocate_aligned(unit_size * 2, bytes) : test::allocate(bytes));
      block[0] = 1;
      block[bytes - 1] = 1;
    }
    test::calls::free(place.exchange(block));
    if (step % 5000 == 4999) (void)heap::trim(0);
  }
}

std::string whole() {
  const char* const wrong = test::validate_among_others();
  return wrong == nullptr ? "" : wrong;
}

TEST(Nodes, threads_that_move_between_nodes_find_the_heap_whole) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              std::vector<std::atomic<char*>> shared(300);
              for (unsigned round = 0; round < 3; ++round) {
                std::vector<std::thread> threads;
                for (unsigned i = 0; i < 4; ++i)
                  threads.emplace_back([&shared, round, i] { live_on_nodes(round * 4 + i, shared); });
                for (std::thread& thread : threads)
                  thread.join();
                if (const std::string wrong = whole(); !wrong.empty()) return wrong;
              }
              if (nodes::count.load() != 3) return "not three nodes";
              for (auto& place : shared)
                test::calls::free(place.exchange(nullptr));
              (void)heap::trim(0);
              return whole();
            }),
            "");
}

}  // namespace
