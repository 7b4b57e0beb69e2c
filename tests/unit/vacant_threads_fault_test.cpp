// When vacant pages of threads that sleep, that have ended or that free nothing more go, by a clock that the test sets.
#include <algorithm>
#include <atomic>
#include <deque>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/options.hpp"
#include "heap/background.hpp"
#include "heap/heap.hpp"
#include "heap/sparse.hpp"
#include "heap/thread_cache.hpp"
#include "heap/upkeep.hpp"
#include "in_child.hpp"
#include "mock_os.hpp"
#include "pages/region.hpp"
#include "vacant_blocks.hpp"

namespace {

using namespace sluice;
using namespace sluice::test;
using mock_os::Call;

// Runs `work` on a thread that ends then; the clock and the heap are the child's.
template <typename Work>
void on_thread(Work work) {
  std::thread(work).join();
}

TEST_F(VacantPolicyTest, a_thread_that_takes_over_a_sparse_cache_gets_it_as_it_is) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(beginning);
              std::vector<unsigned char*> blocks;
              on_thread([&blocks] {
                blocks = fill(48 * mib);
                thin_out(blocks, 12);
              });
              mock_os::set_clock(beginning + 3 * options.purge_delay);
              mock_os::forget_records();
              std::string wrong;
              on_thread([&wrong] {
                use_a_little(8 * mib);
                if (gone() != 0) wrong = mib_gone() + " at once";
                mock_os::set_clock(beginning + 4 * options.purge_delay);
                use_a_little(8 * mib);
                if (wrong.empty() && gone() < 20 * mib) wrong = "only " + mib_gone();
              });
              return wrong.empty() ? check_and_free(blocks) : wrong;
            }),
            "");
}

// The thread ends as soon as a walk over its slabs has begun.
TEST_F(VacantPolicyTest, who_ends_walks_a_bounded_part_and_others_do_the_rest) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              const size_t part = (os::page_size() == 4096 ? 10 : 20) * mib;
              mock_os::set_clock(beginning);
              test::allocate(size);  // this thread's cache comes first
              std::vector<unsigned char*> blocks;
              std::vector<unsigned char*> more;
              ThreadCache* cache = nullptr;
              uint64_t portions = 0;
              on_thread([&] {
                blocks = fill(26 * part);
                more = fill(2 * part);
                cache = thread_cache;
                thin_part(blocks, 0, blocks.size(), 10 * 4);
                mock_os::set_clock(beginning + 2 * options.purge_delay);
                mock_os::forget_records();
                while (cache->vacancy.walk == Walk::None && !more.empty()) {
                  heap::free(more.back());
                  more.pop_back();
                }
                portions = cache->vacancy.portions;
              });
              if (!cache->orphan.load() || more.empty()) return "no walk has begun";
              if (cache->vacancy.portions - portions > 10)
                return std::to_string(cache->vacancy.portions - portions) + " portions at its end";
              const size_t at_end = gone();
              if (at_end > 13 * part) return "all was done at its end";
              use_a_little(7 * part);
              for (unsigned char* block : more)
                heap::free(block);
              if (gone() < 18 * part) return mib_gone() + " in all, " + std::to_string(at_end / mib) + " at its end";
              return check_and_free(blocks);
            }),
            "");
}

// A trim gives the owner of the lock way: the thread waits from within the first portion on.
TEST_F(VacantPolicyTest, a_trim_lets_in_who_waits) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              static ThreadCache* cache;
              static std::atomic<int> step;
              step = 0;
              std::vector<unsigned char*> blocks;
              std::thread other([&blocks] {
                blocks = fill(64 * mib);
                thin_part(blocks, 0, blocks.size(), 8 * 4);
                cache = thread_cache;
                step = 1;
                step.notify_all();
                step.wait(1);
                use_a_little(mib);
              });
              step.wait(0);
              mock_os::forget_records();
              mock_os::call_at_next(Call::Purge, [] {
                step = 2;
                step.notify_all();
                while (!cache->lock.is_wanted() && cache->lock.held_by_this_thread())
                  std::this_thread::yield();
              });
              const size_t before = mock_os::wakes();
              (void)heap::trim(0);
              const size_t wakes = mock_os::wakes() - before;
              int waiting = 1;  // where no page went
              step.compare_exchange_strong(waiting, 2);
              step.notify_all();
              other.join();
              if (wakes == 0) return "nobody was let in";
              if (gone() < 40 * mib) return "only " + mib_gone();
              return check_and_free(blocks);
            }),
            "");
}

TEST_F(VacantPolicyTest, pages_of_threads_that_ended_or_sleep_go_when_another_frees_them) {
  for (const bool ends : {true, false}) {
    EXPECT_EQ(test::in_child([ends]() -> std::string {
                mock_os::set_clock(beginning);
                std::vector<unsigned char*> blocks;
                std::atomic<int> step{0};
                std::thread other([&] {
                  blocks = fill(128 * mib);
                  step = 1;
                  step.notify_all();
                  if (!ends) step.wait(1);
                });
                step.wait(0);
                if (ends) other.join();
                mock_os::forget_records();
                thin_out(blocks, 30);
                std::string wrong = gone() < 70 * mib ? "only " + mib_gone() : validated();
                step = 2;
                step.notify_all();
                if (!ends) other.join();
                return wrong.empty() ? check_and_free(blocks) : wrong;
              }),
              "")
        << ends;
  }
}

// A heap that is sparse, by little enough freed at the end that nobody looks for that.
std::vector<unsigned char*> sparse_heap(size_t bytes = 48 * mib) {
  mock_os::set_clock(beginning);
  std::vector<unsigned char*> blocks = fill(bytes);
  thin_out(blocks, 16);
  cache::flush_own();
  thread_cache->lock.lock();
  sparse::look(*thread_cache);
  thread_cache->lock.unlock();
  mock_os::forget_records();
  return blocks;
}

// Large blocks that come and go: the caches of small blocks have no calls.
void use_large_blocks(int count) {
  for (int i = 0; i < count; ++i)
    heap::free(allocate(8 * mib));
}

// Blocks that a thread takes and keeps.
void take_a_little() {
  for (int i = 0; i < 2000; ++i)
    (void)allocate(16);
}

constexpr int enough = 200;  // calls for all portions of a walk

TEST_F(VacantPolicyTest, they_go_when_they_are_old_also_if_nothing_more_is_freed) {
  for (const bool large : {false, true}) {
    EXPECT_EQ(test::in_child([large]() -> std::string {
                const auto use = [large] { large ? use_large_blocks(enough) : take_a_little(); };
                std::vector<unsigned char*> blocks = sparse_heap();
                use();
                mock_os::set_clock(beginning + options.purge_delay - 1);
                use();
                if (gone() != 0) return mib_gone() + " too early";
                mock_os::set_clock(beginning + options.purge_delay);
                use();
                use();
                if (gone() < 30 * mib) return "only " + mib_gone();
                if (sparse::next_due.load() != sparse::never) return "somebody is to look again";
                return check_and_free(blocks);
              }),
              "")
        << large;
  }
}

TEST_F(VacantPolicyTest, no_call_takes_long_where_they_go_by_age) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(beginning);
              std::vector<unsigned char*> blocks = fill(48 * mib);
              thin_out(blocks, 16);
              mock_os::set_clock(beginning + 2 * options.purge_delay);
              size_t most = 0;
              for (int i = 0; i < enough; ++i) {
                mock_os::forget_records();
                use_large_blocks(1);
                most = std::max(most, gone());
              }
              if (most == 0) return "nothing went";
              if (most > most_with_one_call()) return std::to_string(most / mib) + " MiB with one call";
              return check_and_free(blocks);
            }),
            "");
}

TEST_F(VacantPolicyTest, they_stay_when_most_is_in_use_again) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              std::vector<unsigned char*> blocks = sparse_heap();
              std::vector<unsigned char*> more = fill(40 * mib);
              mock_os::set_clock(beginning + 2 * options.purge_delay);
              use_large_blocks(enough);
              if (gone() != 0) return mib_gone();
              if (sparse::next_due.load() != sparse::never) return "somebody is to look again";
              if (std::string wrong = check_and_free(more); !wrong.empty()) return wrong;
              return check_and_free(blocks);
            }),
            "");
}

// What went for nothing holds pages back until half of it is forgotten often enough.
TEST_F(VacantPolicyTest, they_go_when_what_was_missed_is_long_ago) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              std::vector<unsigned char*> blocks = sparse_heap();
              Vacancy& v = thread_cache->vacancy;
              v.missed = 34 * mib;  // 36 MiB are vacant: they go when half of it is forgotten
              v.missed_ms = beginning;
              const uint64_t eight = 8 * options.purge_delay;
              mock_os::set_clock(beginning + options.purge_delay);
              use_large_blocks(enough);
              if (gone() != 0) return mib_gone() + " although it was missed";
              mock_os::set_clock(beginning + eight - 1);
              use_large_blocks(enough);
              if (gone() != 0) return mib_gone() + " too early";
              mock_os::set_clock(beginning + eight);
              use_large_blocks(enough);
              if (gone() < 30 * mib) return "only " + mib_gone();
              return check_and_free(blocks);
            }),
            "");
}

// A heap without a vacant page, although most is free: one look by age is enough.
TEST_F(VacantPolicyTest, a_look_that_finds_none_is_not_repeated) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(beginning);
              std::vector<unsigned char*> blocks = fill(48 * mib);
              thin_part(blocks, 0, blocks.size(), 4);
              const uint64_t before = walked();
              uint64_t now = beginning;
              for (int i = 0; i < 400; ++i) {
                mock_os::set_clock(now += options.purge_delay / 8);
                use_large_blocks(8);
              }
              if (walked() == before) return "nobody looked";
              if (walked() - before > 3 * thread_cache->slab_count) return std::to_string(walked() - before) + " slabs";
              if (sparse::next_due.load() != sparse::never) return "somebody is to look again";
              return check_and_free(blocks);
            }),
            "");
}

// A thread with a sparse heap that sleeps until told, or has ended.
class Owner {
 public:
  explicit Owner(bool ends, size_t bytes = 48 * mib) {
    thread_ = std::thread([this, ends, bytes] {
      blocks = sparse_heap(bytes);
      cache = thread_cache;
      step_ = 1;
      step_.notify_all();
      if (!ends) step_.wait(1);
    });
    step_.wait(0);
    if (ends) thread_.join();
  }
  void end() {
    step_ = 2;
    step_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  std::vector<unsigned char*> blocks;
  ThreadCache* cache = nullptr;

 private:
  std::atomic<int> step_{0};
  std::thread thread_;
};

TEST_F(VacantPolicyTest, another_thread_gives_back_what_gets_old_of_one_that_sleeps_or_has_ended) {
  for (const bool ends : {false, true}) {
    EXPECT_EQ(test::in_child([ends]() -> std::string {
                (void)allocate(size);
                Owner owner(ends);
                mock_os::set_clock(beginning + options.purge_delay + 1);
                use_large_blocks(enough);
                std::string wrong = gone() < 30 * mib ? "only " + mib_gone() : validated();
                owner.end();
                return wrong.empty() ? check_and_free(owner.blocks) : wrong;
              }),
              "")
        << ends;
  }
}

TEST_F(VacantPolicyTest, the_background_thread_gives_them_back_and_sleeps_until_then) {
  for (const bool ends : {false, true}) {
    EXPECT_EQ(test::in_child([ends]() -> std::string {
                (void)allocate(size);
                Owner owner(ends);
                (void)region::purge_all(0);
                mock_os::forget_records();
                std::string wrong;
                const uint64_t sleep = background::look();
                if (sleep != options.purge_delay) wrong = "sleeps for " + std::to_string(sleep);
                if (region::rest::word.load() != region::rest::awake) wrong = "it sleeps for good";
                mock_os::set_clock(beginning + options.purge_delay / 2);
                if (background::look() != options.purge_delay / 2) wrong = "sleeps for longer than until then";
                if (gone() != 0) wrong = mib_gone() + " too early";
                mock_os::set_clock(beginning + options.purge_delay);
                const uint64_t next = background::look();
                if (wrong.empty() && gone() < 30 * mib) wrong = "only " + mib_gone();
                if (wrong.empty() && next != region::nothing_dirty) wrong = "then sleeps for " + std::to_string(next);
                if (wrong.empty()) wrong = validated();
                owner.end();
                return wrong.empty() ? check_and_free(owner.blocks) : wrong;
              }),
              "")
        << ends;
  }
}

// Half of the threads sleep, and half have ended. Each call looks for a portion, not for one of each: of long walks,
// nor of walks that are over after one.
TEST_F(VacantPolicyTest, no_call_takes_long_where_many_caches_are_due) {
  for (const auto& [count, bytes] : {std::pair(4, 48 * mib), std::pair(32, 6 * mib)}) {
    EXPECT_EQ(test::in_child([count = count, bytes = bytes]() -> std::string {
                (void)allocate(size);
                std::deque<Owner> owners;
                for (int i = 0; i < count; ++i)
                  owners.emplace_back(false, bytes);
                for (int i = 0; i < count / 2; ++i)
                  owners[i].end();
                mock_os::set_clock(beginning + options.purge_delay + 1);
                size_t most = 0;
                size_t all = 0;
                for (int i = 0; i < enough; ++i) {
                  mock_os::forget_records();
                  use_large_blocks(1);
                  most = std::max(most, gone());
                  all += gone();
                }
                std::string wrong = all < 120 * mib ? "only " + std::to_string(all / mib) + " MiB went" : validated();
                if (most > most_with_one_call()) wrong = std::to_string(most / mib) + " MiB with one call";
                for (int i = count / 2; i < count; ++i)
                  owners[i].end();
                for (const Owner& owner : owners)
                  if (wrong.empty()) wrong = check_and_free(owner.blocks);
                return wrong;
              }),
              "")
        << count;
  }
}

TEST_F(VacantPolicyTest, what_a_thread_takes_over_gets_old_also_if_it_frees_nothing) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              (void)allocate(size);
              Owner owner(true);
              on_thread([] {
                (void)allocate(size);
                mock_os::set_clock(beginning + options.purge_delay);
                use_large_blocks(enough);
              });
              if (gone() != 0) return mib_gone() + " at once";
              mock_os::set_clock(beginning + 2 * options.purge_delay);
              use_large_blocks(enough);
              return gone() < 30 * mib ? "only " + mib_gone() : check_and_free(owner.blocks);
            }),
            "");
}

// The thread sleeps for good; then a heap becomes sparse whose spans are all in use.
TEST_F(VacantPolicyTest, the_background_thread_is_woken_when_pages_begin_to_get_old) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(beginning);
              std::vector<unsigned char*> blocks = fill(48 * mib);
              cache::flush_own();
              (void)region::purge_all(0);
              if (background::look() != region::nothing_dirty) return "there is something to do before";
              if (region::rest::word.load() != region::rest::asleep) return "it does not sleep";
              for (size_t i = 0; i < blocks.size(); ++i)
                if (i % 32 != 0) heap::free(std::exchange(blocks[i], nullptr));
              if (region::rest::word.load() != region::rest::awake) return "it sleeps on";
              return check_and_free(blocks);
            }),
            "");
}

TEST_F(VacantPolicyTest, a_cache_that_is_in_use_is_looked_at_later) {
  EXPECT_EQ(test::in_child([]() SLUICE_UNCHECKED_LOCKS -> std::string {
              (void)allocate(size);
              Owner owner(false);
              const uint64_t due = beginning + options.purge_delay;
              mock_os::set_clock(due);
              static ThreadCache* cache;
              cache = owner.cache;
              std::atomic<int> step{0};
              std::thread user([&step]() SLUICE_UNCHECKED_LOCKS {
                cache->lock.lock();
                step = 1;
                step.notify_all();
                step.wait(1);
                cache->lock.unlock();
              });
              step.wait(0);
              use_large_blocks(enough);
              std::string wrong = gone() != 0 ? mib_gone() + " while it was in use" : "";
              step = 2;
              step.notify_all();
              user.join();
              if (sparse::next_due.load() <= due) wrong = "it is tried again and again";
              use_large_blocks(enough);
              if (gone() != 0) wrong = "tried again at once";
              mock_os::set_clock(due + options.purge_delay / 4);
              use_large_blocks(enough);
              if (wrong.empty() && gone() < 30 * mib) wrong = "only " + mib_gone();
              owner.end();
              return wrong.empty() ? check_and_free(owner.blocks) : wrong;
            }),
            "");
}

// The parent's thread may have been about to look when it was left behind.
TEST_F(VacantPolicyTest, the_child_of_a_fork_looks_also_if_nobody_is_to) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              std::vector<unsigned char*> blocks = sparse_heap();
              sparse::next_due = sparse::never;  // taken away
              return test::in_child([&blocks]() -> std::string {
                mock_os::set_clock(beginning + options.purge_delay);
                use_large_blocks(enough);
                return gone() < 30 * mib ? "only " + mib_gone() : check_and_free(blocks);
              });
            }),
            "");
}

}  // namespace
