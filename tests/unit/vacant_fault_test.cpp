// When vacant pages go, by a clock that the test sets; and a system that refuses to take them.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/options.hpp"
#include "heap/heap.hpp"
#include "heap/slab.hpp"
#include "heap/sparse.hpp"
#include "heap/thread_cache.hpp"
#include "in_child.hpp"
#include "mock_os.hpp"
#include "os/memory.hpp"
#include "pages/region.hpp"
#include "vacant_blocks.hpp"

namespace {

using namespace sluice;
using namespace sluice::test;
using mock_os::Call;

TEST_F(VacantPolicyTest, they_go_at_once_when_the_heap_has_shrunk_to_little) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(1'000'000);
              std::vector<unsigned char*> blocks = fill(128 * mib);
              mock_os::forget_records();
              thin_out(blocks, 30);
              if (gone() < 70 * mib) return "only " + std::to_string(gone() / mib) + " MiB went";
              if (std::string wrong = validated(); !wrong.empty()) return wrong;
              return check_and_free(blocks);
            }),
            "");
}

TEST_F(VacantPolicyTest, they_stay_while_little_is_free_and_go_when_they_are_old) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(1'000'000);
              std::vector<unsigned char*> blocks = fill(48 * mib);
              mock_os::forget_records();
              thin_out(blocks, 16);
              use_a_little();
              if (gone() != 0) return "too early";
              mock_os::set_clock(1'000'000 + options.purge_delay + 1);
              use_a_little(4 * mib);
              if (gone() < 24 * mib) return "only " + std::to_string(gone() / mib) + " MiB went";
              if (std::string wrong = validated(); !wrong.empty()) return wrong;
              return check_and_free(blocks);
            }),
            "");
}

// A program that thins its heap out and fills it again after so many ms, three times.
std::string fill_again_after(uint64_t pause) {
  uint64_t now = beginning;
  for (int round = 0; round < 3; ++round) {
    mock_os::set_clock(now);
    std::vector<unsigned char*> blocks = fill(128 * mib);
    mock_os::forget_records();
    thin_out(blocks, 30);
    const size_t regretted = os::call_counts.regretted_bytes.load();
    if ((gone() != 0) != (round == 0))
      return "round " + std::to_string(round) + ": " + std::to_string(gone() / mib) + " MiB went";
    mock_os::set_clock(now += pause);
    std::vector<unsigned char*> more = fill(120 * mib);
    if (round == 0 && os::call_counts.regretted_bytes.load() - regretted < 60 * mib) return "not counted";
    if (std::string wrong = check_and_free(more); !wrong.empty()) return wrong;
    if (std::string wrong = check_and_free(blocks); !wrong.empty()) return wrong;
  }
  return "";
}

TEST_F(VacantPolicyTest, what_is_needed_again_soon_stays_the_next_time) {
  EXPECT_EQ(test::in_child([] { return fill_again_after(0); }), "");
}

// Cycles over more than the heap may retain, each longer than a purge delay by far.
TEST_F(VacantPolicyTest, what_is_needed_again_soon_stays_whatever_is_retained_and_however_long_a_round_is) {
  EXPECT_EQ(test::in_child([] {
              options.retain = 16 * mib;
              return fill_again_after(5 * options.purge_delay / 2);
            }),
            "");
}

TEST_F(VacantPolicyTest, a_trim_and_a_rest_give_them_back_and_a_program_that_keeps_all_keeps_them) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              std::vector<unsigned char*> blocks = fill(16 * mib);
              thin_out(blocks, 16);
              mock_os::forget_records();
              heap::idle();
              if (gone() < 8 * mib) return "a rest left them";
              use_a_little();
              std::vector<unsigned char*> more = fill(8 * mib);
              thin_out(more, 16);
              mock_os::forget_records();
              if (!heap::trim(0) || gone() < 3 * mib) return "a trim left them";
              if (std::string wrong = check_and_free(more); !wrong.empty()) return wrong;
              options.purge_delay = 0;
              region::keep_free(SIZE_MAX);
              std::vector<unsigned char*> kept = fill(8 * mib);
              mock_os::forget_records();
              thin_out(kept, 16);
              if (gone() != 0) return "they went although all is kept";
              if (std::string wrong = check_and_free(kept); !wrong.empty()) return wrong;
              return check_and_free(blocks);
            }),
            "");
}

TEST_F(VacantPolicyTest, a_system_that_refuses_loses_nothing_and_is_asked_seldom) {
  for (const unsigned n : {1u, 2u, 100u}) {
    EXPECT_EQ(test::in_child([n]() -> std::string {
                options.purge_delay = 0;
                std::vector<unsigned char*> blocks = fill(16 * mib);
                mock_os::forget_records();
                mock_os::fail_from(Call::Purge, n);
                thin_out(blocks, 16);
                (void)heap::trim(0);
                if (!mock_os::has_failed()) return "nothing failed";
                size_t failed = 0;
                for (const mock_os::Record& record : mock_os::records())
                  failed += record.failed ? 1 : 0;
                if (failed > 2 * 16 * mib / unit_size + 100) return std::to_string(failed) + " calls";
                if (std::string wrong = validated(); !wrong.empty()) return wrong;
                mock_os::never_fail();
                mock_os::forget_records();
                (void)heap::trim(0);
                if (gone() < 6 * mib) return "they stay although the system takes them again";
                return check_and_free(blocks);
              }),
              "")
        << n;
  }
}

// A heap where one block of each page stays: three quarters are free, and no page is vacant.
TEST_F(VacantPolicyTest, a_heap_that_is_sparse_for_long_is_walked_seldom) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(beginning);
              std::vector<unsigned char*> blocks = fill(64 * mib);
              for (size_t i = 0; i < blocks.size(); ++i)
                if (i % (os::page_size() / size) != 0) heap::free(std::exchange(blocks[i], nullptr));
              mock_os::set_clock(beginning + 2 * options.purge_delay);
              const uint64_t before = walked();
              for (int i = 0; i < 200; ++i)
                use_a_little();
              const size_t slabs = thread_cache->slab_count;
              if (walked() - before > 2 * slabs) return std::to_string(walked() - before) + " while the clock stood";
              uint64_t now = beginning + 2 * options.purge_delay;
              for (int i = 0; i < 400; ++i) {
                mock_os::set_clock(now += options.purge_delay / 20);
                use_a_little();
              }
              if (walked() - before > 10 * slabs) return std::to_string(walked() - before) + " in 20 purge delays";
              if (walked() == before) return "nobody looked";
              return check_and_free(blocks);
            }),
            "");
}

// A heap that has shrunk, and a part of it that is taken and freed again and again: the pages that are gone do not
// speak for those that are needed.
TEST_F(VacantPolicyTest, what_is_needed_in_a_cycle_stays) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(beginning);
              std::vector<unsigned char*> blocks = fill(160 * mib);
              thin_out(blocks, 60);
              mock_os::forget_records();
              for (int round = 0; round < 30; ++round)
                use_a_little(24 * mib);
              if (gone() > 60 * mib) return mib_gone();
              return check_and_free(blocks);
            }),
            "");
}

TEST_F(VacantPolicyTest, no_call_takes_long) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(beginning);
              std::vector<unsigned char*> blocks = fill(160 * mib);
              size_t most_gone = 0;
              for (size_t round = 0; round < 7; ++round) {
                for (size_t i = round; i < blocks.size(); i += 7) {
                  if (i % spread(30) == 0) continue;
                  const size_t absent = thread_cache->vacancy.absent_bytes;
                  heap::free(std::exchange(blocks[i], nullptr));
                  most_gone = std::max(most_gone + absent, thread_cache->vacancy.absent_bytes) - absent;
                }
              }
              if (gone() < 90 * mib) return "only " + mib_gone();
              if (most_gone > most_with_one_call()) return std::to_string(most_gone / mib) + " MiB with one call";
              return check_and_free(blocks);
            }),
            "");
}

TEST_F(VacantPolicyTest, who_rests_or_trims_again_finds_nothing_to_do) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              std::vector<unsigned char*> blocks = fill(16 * mib);
              thin_out(blocks, 16);
              heap::idle();
              uint64_t before = walked();
              for (int i = 0; i < 10; ++i) {
                use_a_little(size);
                heap::idle();
              }
              if (walked() != before) return "a rest after little was freed";
              (void)heap::trim(0);
              before = walked();
              if (heap::trim(0)) return "a second trim found something";
              if (walked() != before) return "a second trim looked";
              return check_and_free(blocks);
            }),
            "");
}

// Blocks on all slabs, as thin_out leaves them, and little that is freed between two trims.
TEST_F(VacantPolicyTest, a_trim_costs_what_was_freed_since_the_last_one) {
  for (const size_t keep : {size_t{0}, mib, 64 * mib}) {
    EXPECT_EQ(test::in_child([keep]() -> std::string {
                std::vector<unsigned char*> blocks = fill(32 * mib);
                thin_part(blocks, 0, blocks.size(), 4);
                thin_part(blocks, 0, blocks.size(), 2 * 4);
                (void)heap::trim(keep);
                (void)heap::trim(keep);
                const uint64_t before = walked();
                for (int i = 0; i < 10; ++i) {
                  use_a_little(16 * size);
                  (void)heap::trim(keep);
                }
                // A trim that keeps a MiB counts the slabs that it lies in.
                const size_t most = 10 * (8 + (keep == mib ? 2 * mib / unit_size : 0));
                if (walked() - before > most) return std::to_string(walked() - before) + " slabs";
                return check_and_free(blocks);
              }),
              "")
        << keep / mib;
  }
}

// What malloc_trim(0) finds after one that left much.
TEST_F(VacantPolicyTest, what_a_trim_left_goes_when_less_is_to_stay) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              std::vector<unsigned char*> blocks = fill(32 * mib);
              thin_part(blocks, 0, blocks.size(), 32);
              mock_os::forget_records();
              (void)heap::trim(20 * mib);
              const size_t first = gone();
              (void)heap::trim(20 * mib);
              if (gone() != first) return "a second trim took more than it should";
              (void)heap::trim(4 * mib);
              if (gone() < first + 14 * mib) return std::to_string((gone() - first) / mib) + " MiB went";
              heap::idle();
              if (gone() < first + 18 * mib) return std::to_string((gone() - first) / mib) + " MiB went in all";
              return check_and_free(blocks);
            }),
            "");
}

TEST_F(VacantPolicyTest, pages_that_go_at_once_are_not_looked_for_at_every_turn) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              options.purge_delay = 0;
              std::vector<unsigned char*> blocks = fill(64 * mib);
              mock_os::forget_records();
              const uint64_t before = walked();
              thin_out(blocks, 20);
              if (gone() < 36 * mib) return "only " + mib_gone();
              if (walked() - before > 40 * 64 * mib / unit_size) return std::to_string(walked() - before) + " walked";
              return check_and_free(blocks);
            }),
            "");
}

// A heap that is sparse now and then, without a vacant page.
TEST_F(VacantPolicyTest, who_goes_to_and_fro_is_counted_no_more_often) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              uint64_t now = beginning;
              mock_os::set_clock(now);
              std::vector<unsigned char*> blocks = fill(64 * mib);
              for (size_t i = 0; i < blocks.size(); ++i)
                if (i % (os::page_size() / size) != 0) heap::free(std::exchange(blocks[i], nullptr));
              size_t counts = 0;
              for (int round = 0; round < 40; ++round) {
                std::vector<unsigned char*> some = fill(24 * mib);
                mock_os::set_clock(now += 10);
                use_a_little(8 * mib);
                for (unsigned char* block : some)
                  heap::free(block);
                mock_os::set_clock(now += options.purge_delay);
                for (int i = 0; i < 20; ++i) {
                  const uint64_t before = thread_cache->vacancy.counted_ms;
                  mock_os::set_clock(now += options.purge_delay / 10);
                  use_a_little();
                  counts += before != thread_cache->vacancy.counted_ms ? 1 : 0;
                }
              }
              if (counts > 120) return std::to_string(counts) + " counts";
              return check_and_free(blocks);
            }),
            "");
}

TEST_F(VacantPolicyTest, a_program_that_says_how_much_stays_is_heeded) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(beginning);
              region::keep_free(64 * mib);
              std::vector<unsigned char*> blocks = fill(48 * mib);
              mock_os::forget_records();
              thin_out(blocks, 16);
              mock_os::set_clock(beginning + 2 * options.purge_delay);
              use_a_little(4 * mib);
              if (gone() != 0) return mib_gone() + " of what was to stay";
              region::keep_free(16 * mib);
              use_a_little(8 * mib);
              if (gone() < 24 * mib) return "only " + mib_gone();
              return check_and_free(blocks);
            }),
            "");
}

TEST_F(VacantPolicyTest, a_trim_leaves_what_it_is_told_to) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              std::vector<unsigned char*> blocks = fill(24 * mib);
              thin_out(blocks, 32);
              mock_os::forget_records();
              if (heap::trim(64 * mib) || gone() != 0) return "a trim that leaves all: " + mib_gone();
              (void)heap::trim(8 * mib);
              const size_t first = gone();
              if (first < 4 * mib) return "only " + mib_gone();
              (void)heap::trim(0);
              if (gone() - first < 7 * mib || gone() - first > 9 * mib)
                return std::to_string(gone() - first) + " were left";
              return check_and_free(blocks);
            }),
            "");
}

TEST_F(VacantPolicyTest, the_age_begins_when_most_is_free) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(beginning);
              std::vector<unsigned char*> blocks = fill(48 * mib);
              thin_part(blocks, 0, blocks.size() * 70 / 100, 16);
              mock_os::set_clock(beginning + 3 * options.purge_delay);
              mock_os::forget_records();
              thin_part(blocks, blocks.size() * 70 / 100, blocks.size() * 85 / 100, 16);
              if (gone() != 0) return mib_gone() + " at once";
              mock_os::set_clock(beginning + 4 * options.purge_delay);
              use_a_little();
              use_a_little();
              if (gone() < 24 * mib) return "only " + mib_gone();
              return check_and_free(blocks);
            }),
            "");
}

// What is behind the last block of each slab is not in use: with blocks of 45,056 bytes that is a twelfth.
TEST_F(VacantPolicyTest, what_no_block_reaches_does_not_count_as_used) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              constexpr size_t long_size = 45'056;
              mock_os::set_clock(beginning);
              std::vector<unsigned char*> blocks(2'000);
              for (unsigned char*& block : blocks)
                std::memset(block = static_cast<unsigned char*>(allocate(long_size)), 1, long_size);
              mock_os::forget_records();
              for (size_t i = 0; i < blocks.size(); ++i)
                if (i % 100 < 73) heap::free(std::exchange(blocks[i * 7 % blocks.size()], nullptr));
              mock_os::set_clock(beginning + 2 * options.purge_delay);
              use_a_little();
              use_a_little();
              size_t bytes = 0;
              for (const mock_os::Record& record : mock_os::records())
                if (record.call == Call::Purge && !record.failed) bytes += record.bytes;
              if (bytes < 40 * mib) return "only " + std::to_string(bytes / mib) + " MiB went";
              for (unsigned char* block : blocks)
                heap::free(block);
              return validated();
            }),
            "");
}

// Between two portions the owner goes on: the slab that the walk would come to next may be gone.
TEST_F(VacantPolicyTest, a_walk_passes_by_a_slab_that_has_gone_meanwhile) {
  EXPECT_EQ(test::in_child([]() SLUICE_UNCHECKED_LOCKS -> std::string {
              mock_os::set_clock(beginning);
              std::vector<unsigned char*> blocks = fill(128 * mib);
              thin_out(blocks, 8);
              cache::flush_own();
              ThreadCache& c = *thread_cache;
              const auto go_on = [&c] {
                c.lock.lock();
                (void)sparse::go_on(c);
                c.lock.unlock();
              };
              c.lock.lock();
              const bool begun = sparse::begin(c, 0, 0);
              c.lock.unlock();
              if (!begun) return "there is nothing to do";
              go_on();
              if (c.vacancy.next == unit_index_none) return "the walk is over after a portion";
              const Unit* const next = region::unit_at(c.vacancy.next);
              for (unsigned char*& block : blocks)
                if (block != nullptr && slab::of(block) == next) heap::free(std::exchange(block, nullptr));
              cache::flush_own();
              if (next->owner.load(std::memory_order_relaxed) != nullptr) return "the slab is still there";
              if (std::string wrong = validated(); !wrong.empty()) return wrong;
              for (int portion = 0; portion < 10'000 && sparse::is_asked(c); ++portion)
                go_on();
              if (sparse::is_asked(c)) return "the walk has no end";
              return check_and_free(blocks);
            }),
            "");
}

TEST_F(VacantPolicyTest, slabs_with_locked_pages_are_left_out_and_asked_once) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              options.purge_delay = 0;
              std::vector<unsigned char*> blocks = fill(32 * mib);
              constexpr size_t locked = 40;
              const auto first = reinterpret_cast<uintptr_t>(blocks[0]) / unit_size * unit_size;
              mock_os::refuse_purges_in(reinterpret_cast<void*>(first), locked * unit_size);
              mock_os::forget_records();
              thin_out(blocks, 16);
              use_a_little(8 * mib);
              if (gone() < 16 * mib) return "only " + mib_gone();
              size_t refused = 0;
              for (const mock_os::Record& record : mock_os::records())
                refused += record.failed && record.bytes < unit_size ? 1 : 0;
              if (refused == 0 || refused > locked) return std::to_string(refused) + " refusals";
              mock_os::refuse_purges_in(nullptr, 0);
              mock_os::forget_records();
              (void)heap::trim(0);
              if (gone() < 1 * mib) return "they stay although the system takes them now";
              return check_and_free(blocks);
            }),
            "");
}

TEST_F(VacantPolicyTest, nobody_asks_while_all_memory_is_locked) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(beginning);
              mock_os::lock_all_memory(true);
              std::vector<unsigned char*> blocks = fill(128 * mib);
              mock_os::forget_records();
              thin_out(blocks, 30);
              for (const mock_os::Record& record : mock_os::records())
                if (record.call == Call::Purge && record.bytes < unit_size) return "a page was to go";
              mock_os::set_clock(beginning + 2 * options.purge_delay);
              use_a_little(8 * mib);
              mock_os::set_clock(beginning + 4 * options.purge_delay);
              heap::free(allocate(8 * mib));
              if (sparse::next_due.load() != sparse::never) return "somebody is to look again";
              return check_and_free(blocks);
            }),
            "");
}

}  // namespace
