// Blocks that one thread allocates and another frees: who gets them next, how many wait in between, and when they go
// back to their slabs. The clock and the memory nodes are the test's.
#include "heap/transfer.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "bare_fork.hpp"
#include "base/options.hpp"
#include "cache_test.hpp"
#include "heap/background.hpp"
#include "heap/heap.hpp"
#include "heap/thread_cache.hpp"
#include "heap_calls.hpp"
#include "in_child.hpp"
#include "mock_os.hpp"
#include "os/memory.hpp"
#include "pages/nodes.hpp"
#include "pages/purge.hpp"
#include "pages/region.hpp"
#include "stats/snapshot.hpp"
#include "without_stand_ins.hpp"

namespace {

using namespace sluice;
namespace transfer = cache::transfer;
using Blocks = std::vector<void*>;

constexpr size_t small = 500, middle = 3'000, large = 20'000;  // passed on as lists, likewise, and one by one
constexpr unsigned class_of_large = size_class_of(large);

void begin() {
  heap::free(test::allocate(1));
  heap::prepare_for_threads();
}

// Another thread, which does what it is told, as long as this lives.
class Thread {
 public:
  Thread()
      : thread_([this] {
          heap::free(test::allocate(1));
          for (int step = 0;;) {
            step_.wait(step);
            step = step_.load();
            if (act_ == nullptr) return;
            act_();
            done_ = step;
            done_.notify_all();
          }
        }) {
    run([] {});
  }
  ~Thread() {
    act_ = nullptr;
    ++step_;
    step_.notify_all();
    thread_.join();
  }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  void run(std::function<void()> act) {
    act_ = std::move(act);
    const int step = ++step_;
    step_.notify_all();
    for (int done; (done = done_.load()) != step;)
      done_.wait(done);
  }
  Blocks allocate(size_t count, size_t size) {
    Blocks blocks(count);
    run([&] {
      for (void*& block : blocks)
        block = std::memset(test::allocate(size), 0xab, size);
    });
    return blocks;
  }
  void free(const Blocks& blocks) {
    run([&] { test::free_many(blocks); });
  }

 private:
  std::function<void()> act_;
  std::atomic<int> step_{0}, done_{0};
  std::thread thread_;
};

// The calling thread shares the class from now on, as if a block of another thread had come to its full bin.
void share(unsigned k) {
  thread_cache->uses[k].from_others = true;
  cache::flush_own();
}

// Blocks of the class lie in the list that the calling thread looks at first, and another thread has come to it.
void let_others_come(Thread& other, size_t size) {
  transfer::flush();
  const unsigned k = size_class_of(size);
  const Blocks blocks = test::allocate_many(1, size);
  other.run([&] {
    share(k);
    thread_cache->first_transfer = 0;
    test::free_many(blocks);
  });
  thread_cache->first_transfer = 0;
}

// Frees blocks of the other thread, which takes part in what is passed on. Returns: whether the calling thread shares
// their class from now on.
bool begins_to_share_large(Thread& other) {
  const Blocks blocks = other.allocate(20, large);
  let_others_come(other, large);
  test::free_many(blocks);
  return budget::is_shared(*thread_cache, class_of_large);
}

void* take_from_common(size_t size) {
  const MutexLock<OwnerMutex> held(thread_cache->lock);
  return transfer::take_from_common(*thread_cache, size_class_of(size));
}

std::string validated() {
  const char* const wrong = heap::validate().what;
  return wrong == nullptr ? "" : wrong;
}

TEST(Transfer, what_one_thread_frees_another_gets) {
  for (const size_t size : {size_t{64}, small, middle, large})
    EXPECT_EQ(test::in_child([size]() -> std::string {
                begin();
                Thread other;
                const Blocks blocks = other.allocate(100, size);
                if (size == large) let_others_come(other, size);
                test::free_many(blocks);
                const size_t waiting = transfer::held_blocks(size_class_of(size));
                if (waiting < 2) return "nothing was passed on";
                const std::set<void*> known(blocks.begin(), blocks.end());
                const Blocks again = other.allocate(waiting, size);
                const auto served = static_cast<size_t>(std::count_if(
                    again.begin(), again.end(), [&known](void* block) { return known.count(block) != 0; }));
                if (served < waiting / 2) return std::to_string(served) + " of " + std::to_string(waiting) + " came";
                if (transfer::held_blocks(size_class_of(size)) > waiting / 2) return "they are still there";
                return validated();
              }),
              "")
        << size;
}

TEST(Transfer, no_block_is_handed_out_twice) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              Thread other;
              for (const size_t size : {small, middle, large}) {
                const Blocks blocks = other.allocate(100, size);
                let_others_come(other, size);
                test::free_many(blocks);
                Blocks all = test::allocate_many(120, size);
                const Blocks others = other.allocate(120, size);
                all.insert(all.end(), others.begin(), others.end());
                if (std::set<void*>(all.begin(), all.end()).size() != all.size()) return "twice";
                test::free_many(all);
              }
              return validated();
            }),
            "");
}

TEST(Transfer, who_needs_fewer_blocks_leaves_the_rest_of_a_list) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              Thread other;
              constexpr unsigned k = size_class_of(small);
              const Blocks blocks = other.allocate(100, small);
              test::free_many(blocks);
              const size_t waiting = transfer::held_blocks(k);
              other.run([] {
                cache::flush_own();
                thread_cache->uses[k].earned = 3;
              });
              const Blocks taken = other.allocate(1, small);
              if (transfer::held_blocks(k) != waiting - 3) return "another number is left";
              if (const char* const wrong = transfer::validate(k)) return wrong;
              Blocks all = other.allocate(waiting + 50, small);
              all.push_back(taken.front());
              if (std::set<void*>(all.begin(), all.end()).size() != all.size()) return "twice";
              return validated();
            }),
            "");
}

TEST(Transfer, what_a_thread_allocated_itself_is_not_passed_on) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              const Thread other;
              for (const size_t size : {small, middle, large})
                for (int round = 0; round < 5; ++round)
                  test::free_many(test::allocate_many(300, size));
              return transfer::were_used.load() ? "it is" : validated();
            }),
            "");
}

TEST(Transfer, no_more_waits_of_a_class_than_a_cache_may_hold) {
  for (const size_t cache_size : {size_t{64} << 10, size_t{8} << 10})
    for (const size_t size : {size_t{64}, small, middle, size_t{9'000}, large, size_t{65'536}})
      EXPECT_EQ(test::in_child([=]() -> std::string {
                  begin();
                  options.cache = cache_size;
                  Thread other;
                  const Blocks blocks = other.allocate((size_t{16} << 20) / size, size);
                  if (size > 8'192) let_others_come(other, size);
                  test::free_many(blocks);
                  const unsigned k = size_class_of(size);
                  const size_t bytes = transfer::held_blocks(k) * size_t{class_sizes[k]};
                  const size_t most =
                      budget::counts_room(k) ? 4 * std::max(cache_size, 2 * size_t{class_sizes[k]}) : cache_size;
                  if (bytes > most) return std::to_string(bytes) + " bytes";
                  if (bytes == 0 && 4 * class_sizes[k] <= cache_size) return "none";
                  return validated();
                }),
                "")
          << size << ' ' << cache_size;
}

TEST(Transfer, blocks_of_less_than_64_bytes_go_to_their_slabs) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              Thread other;
              test::free_many(other.allocate(10'000, 48));
              return transfer::were_used.load() ? "they wait" : validated();
            }),
            "");
}

// A cache keeps none of such a class then.
TEST(Transfer, a_class_of_larger_blocks_is_shared_while_others_take_part) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              Thread other;
              ThreadCache& c = *thread_cache;
              test::free_many(test::allocate_many(2, large));
              if (c.bins[class_of_large].cap == 0) return "its own blocks have no room";
              if (!begins_to_share_large(other)) return "not shared";
              if (c.bins[class_of_large].head != nullptr || c.spare[class_of_large] != nullptr) return "it keeps some";
              for (int i = 0; i < 20; ++i) {
                test::free_many(test::allocate_many(3, large));
                other.run([] {
                  share(class_of_large);
                  test::free_many(test::allocate_many(2, large));  // so that they lie in another order
                });
              }
              return budget::is_shared(c, class_of_large) ? validated() : "not shared any more";
            }),
            "");
}

TEST(Transfer, who_is_alone_keeps_larger_blocks_for_itself_again) {
  for (const size_t count : {1, 2, 8})
    EXPECT_EQ(test::in_child([count]() -> std::string {
                mock_os::set_clock(1'000'000);
                begin();
                Thread other;
                ThreadCache& c = *thread_cache;
                if (!begins_to_share_large(other)) return "not shared";
                const auto work = [count] {
                  for (int i = 0; i < 30; ++i)
                    test::free_many(test::allocate_many(count, large));
                };
                work();
                mock_os::set_clock(1'000'130);
                work();
                if (budget::is_shared(c, class_of_large)) return "still shared";
                const uint32_t before = c.slow_calls;
                for (int i = 0; i < 100; ++i)
                  test::free_many(test::allocate_many(1, large));
                if (c.slow_calls - before > 10) return std::to_string(c.slow_calls - before) + " slow calls";
                if (!begins_to_share_large(other)) return "not shared again";
                work();
                return budget::is_shared(c, class_of_large) ? validated() : "shared for a moment";
              }),
              "")
        << count;
}

// On few processors each of many threads works for a while before another one comes.
TEST(Transfer, threads_that_take_turns_go_on_sharing) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(1'000'000);
              begin();
              Thread other;
              if (!begins_to_share_large(other)) return "not shared";
              for (uint64_t turn = 1; turn <= 100; ++turn) {
                for (int i = 0; i < 30; ++i)
                  test::free_many(test::allocate_many(2, large));
                if (!budget::is_shared(*thread_cache, class_of_large))
                  return "not shared any more after turn " + std::to_string(turn);
                mock_os::set_clock(1'000'000 + turn * 20);
                other.run([] {
                  share(class_of_large);
                  test::free_many(test::allocate_many(2, large));
                });
              }
              return validated();
            }),
            "");
}

// Who needs such blocks now and then cannot tell from a few of them.
TEST(Transfer, who_takes_few_larger_blocks_goes_on_sharing) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(1'000'000);
              begin();
              Thread other;
              if (!begins_to_share_large(other)) return "not shared";
              for (uint64_t i = 1; i <= 5; ++i) {
                mock_os::set_clock(1'000'000 + i * 150);
                test::free_many(test::allocate_many(1, large));
              }
              return budget::is_shared(*thread_cache, class_of_large) ? validated() : "not shared any more";
            }),
            "");
}

// With lists of all of them a thread would keep more than its budget allows.
TEST(Transfer, smaller_classes_are_shared_where_they_are_many) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              Thread other;
              ThreadCache& c = *thread_cache;
              const auto shared_classes = [&c] {
                size_t count = 0;
                for (unsigned k = size_class_of(2'049); k <= size_class_of(8'192); ++k)
                  count += budget::is_shared(c, k) ? 1 : 0;
                return count;
              };
              c.paid_until = 0;
              test::free_many(other.allocate(400, middle));
              if (shared_classes() != 0) return "one class is enough";
              const auto use_all = [&] {
                for (unsigned k = size_class_of(500); k <= size_class_of(8'192); ++k) {
                  const Blocks own = test::allocate_many(6, class_sizes[k]);
                  test::free_many(other.allocate(12, class_sizes[k]));
                  test::free_many(own);
                }
              };
              size_t rounds = 0;
              while (shared_classes() == 0 && ++rounds < 1'000)
                use_all();
              if (shared_classes() == 0) return "none is shared";
              cache::flush_own();  // what others need is little then
              for (unsigned k = size_class_of(2'049); k <= size_class_of(8'192); ++k)
                if (budget::is_shared(c, k)) test::free_many(other.allocate(1, class_sizes[k]));
              return shared_classes() == 0 ? validated() : "still shared";
            }),
            "");
}

TEST(Transfer, a_thread_that_begins_shares_nothing) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              {
                Thread other;
                other.run([] { share(class_of_large); });
              }
              Thread next;  // has the cache of the one that has ended
              bool is_shared = true;
              next.run([&] { is_shared = budget::is_shared(*thread_cache, class_of_large); });
              return is_shared ? "it does" : validated();
            }),
            "");
}

TEST(Transfer, threads_share_the_slabs_of_shared_classes) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              std::set<size_t> slabs;
              Blocks all;
              {
                Thread threads[6];
                for (Thread& thread : threads) {
                  thread.run([&] {
                    share(class_of_large);
                    all.push_back(test::allocate(large));
                  });
                  const size_t index = unit_index_of(all.back());
                  slabs.insert(index - region::unit_at(index)->slab.back);
                }
              }
              if (slabs.size() != 1) return std::to_string(slabs.size()) + " slabs";
              test::free_many(all);
              (void)heap::trim(0);
              return test::used_blocks(class_of_large) == 0 ? validated() : "blocks are lost";
            }),
            "");
}

TEST(Transfer, statistics_count_what_waits_as_free) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              Thread other;
              const Blocks blocks = other.allocate(400, small);
              test::free_many(Blocks(blocks.begin() + 1, blocks.end()));
              if (transfer::held_blocks(size_class_of(small)) == 0) return "nothing waits";
              static stats::Snapshot seen;
              stats::take_snapshot(&seen);
              const auto& figures = seen.classes[size_class_of(small)];
              return figures.live_blocks == 1 ? validated() : std::to_string(figures.live_blocks) + " are live";
            }),
            "");
}

TEST(Transfer, a_trim_gives_them_back) {
  for (const size_t size : {small, middle, large})
    EXPECT_EQ(test::in_child([size]() -> std::string {
                begin();
                Thread other;
                const Blocks blocks = other.allocate(60, size);
                if (size == large) let_others_come(other, size);
                test::free_many(blocks);
                if (!transfer::hold_any()) return "nothing waits";
                other.run([] { cache::flush_own(); });
                (void)heap::trim(0);
                if (transfer::hold_any()) return "some wait still";
                return test::used_blocks(size_class_of(size)) == 0 ? validated() : "blocks are in use";
              }),
              "")
        << size;
}

TEST(Transfer, what_nobody_needs_goes_after_half_a_purge_delay) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(1'000'000);
              begin();
              Thread other;
              constexpr unsigned k = size_class_of(small);
              test::free_many(other.allocate(100, small));
              const size_t waiting = transfer::held_blocks(k);
              if (waiting == 0) return "nothing waits";
              transfer::look();
              mock_os::set_clock(1'000'000 + options.purge_delay / 8);
              transfer::look();
              if (transfer::held_blocks(k) != waiting) return "it went too early";
              mock_os::set_clock(1'000'000 + options.purge_delay / 2);
              test::free_many(other.allocate(100, middle));
              transfer::look();
              if (transfer::held_blocks(k) != 0) return "it waits still";
              return transfer::hold_any() ? validated() : "what has just come went, too";
            }),
            "");
}

TEST(Transfer, an_event_loop_that_rests_looks_after_them) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(1'000'000);
              begin();
              Thread other;
              test::free_many(other.allocate(100, small));
              if (!transfer::hold_any()) return "nothing waits";
              heap::idle();
              if (!transfer::hold_any()) return "it went too early";
              mock_os::set_clock(1'000'000 + options.purge_delay / 2);
              heap::idle();
              return transfer::hold_any() ? "it waits still" : validated();
            }),
            "");
}

TEST(Transfer, the_background_thread_looks_after_them) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(1'000'000);
              begin();
              Thread other;
              const Blocks blocks = other.allocate(12, small);
              other.run([] { cache::flush_own(); });
              cache::flush_own();
              (void)region::purge_all(0);
              if (background::look() != region::nothing_dirty) return "there was something to do before";
              test::free_many(blocks);
              if (!transfer::hold_any()) return "nothing waits";
              if (region::rest::word.load() != region::rest::awake) return "not woken";
              for (uint64_t looks = 1; looks <= 3; ++looks) {
                mock_os::set_clock(1'000'000 + looks * options.purge_delay);
                if (background::look() == region::nothing_dirty && transfer::hold_any()) return "it rests too early";
              }
              return transfer::hold_any() ? "they wait still" : validated();
            }),
            "");
}

TEST(Transfer, nothing_waits_where_one_thread_is_left) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              {
                Thread other;
                test::free_many(other.allocate(100, small));
                if (!transfer::hold_any()) return "nothing was passed on";
              }
              return transfer::hold_any() ? "they wait still" : validated();
            }),
            "");
}

TEST(Transfer, a_thread_that_is_alone_passes_nothing_on) {
  for (const size_t size : {small, middle, large})
    EXPECT_EQ(test::in_child([size]() -> std::string {
                begin();
                Blocks blocks;
                {
                  Thread other;
                  blocks = other.allocate(100, size);
                  let_others_come(other, size);
                }
                test::free_many(blocks);
                if (transfer::hold_any()) return "some wait";
                return budget::is_shared(*thread_cache, size_class_of(size)) ? "shared" : validated();
              }),
              "")
        << size;
}

TEST(Transfer, blocks_of_ended_threads_are_not_passed_on) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              const Thread lives;
              Blocks blocks;
              {
                Thread other;
                blocks = other.allocate(100, small);
              }
              test::free_many(blocks);
              return transfer::hold_any() ? "some wait" : validated();
            }),
            "");
}

// Who frees the last block of one gives it back: no thread has that cache.
TEST(Transfer, empty_slabs_of_a_common_cache_go_at_once) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              const Thread lives;
              Blocks blocks(100);
              {
                Thread other;
                other.run([&] {
                  share(class_of_large);
                  for (void*& block : blocks)
                    block = test::allocate(large);
                });
              }
              const ThreadCache* const common = transfer::common_caches[0].load();
              if (common == nullptr || common->slab_count < 10) return "they are no common slabs";
              test::free_many(blocks);
              cache::flush_own();
              // The lists hold some of the first ones.
              return common->slab_count <= 2 ? validated() : std::to_string(common->slab_count) + " slabs stay";
            }),
            "");
}

// A slab of a class of less than 8 KiB stays where its thread may need it soon, but no thread has that cache.
TEST(Transfer, what_a_thread_gives_back_empties_common_slabs) {
  const std::pair<const char*, void (*)()> calls[] = {{"idle", heap::idle}, {"flush", cache::flush_idle}};
  for (const auto& call : calls)
    EXPECT_EQ(test::in_child([&call]() -> std::string {
                mock_os::set_clock(1'000'000);
                begin();
                Thread other;
                void* block = nullptr;
                other.run([&] { block = take_from_common(middle); });
                const ThreadCache* const common = transfer::common_caches[0].load();
                if (common == nullptr || common->slab_count != 1) return "it is of no common slab";
                heap::free(block);
                if (common->slab_count != 1) return "no bin holds it";
                transfer::look();  // so that none is due
                call.second();
                return common->slab_count == 0 ? validated() : "an empty slab stays";
              }),
              "")
        << call.first;
}

TEST(Transfer, what_ended_threads_give_back_empties_common_slabs) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(1'000'000);
              begin();
              const Thread lives;
              {
                Thread other;
                other.run([&] { heap::free(take_from_common(middle)); });
              }
              const ThreadCache* const common = transfer::common_caches[0].load();
              if (common == nullptr || common->slab_count != 1) return "no bin holds it";
              cache::flush_orphans();
              return common->slab_count == 0 ? validated() : "an empty slab stays";
            }),
            "");
}

// A signal handler, or a fork, may leave it off by one.
TEST(Transfer, a_list_has_as_many_blocks_as_it_says_whatever_the_room_of_the_bin) {
  for (const int off : {-1, 1})
    EXPECT_EQ(test::in_child([off]() -> std::string {
                begin();
                Thread other;
                const Blocks blocks = other.allocate(100, small);
                heap::free(blocks[0]);
                Bin& bin = thread_cache->bins[size_class_of(small)];
                bin.room += off;
                test::free_many(Blocks(blocks.begin() + 1, blocks.begin() + 12));
                if (!transfer::hold_any()) return "nothing was passed on";
                const char* const wrong = transfer::validate(size_class_of(small));
                return wrong == nullptr ? "" : wrong;
              }),
              "")
        << off;
}

TEST(Transfer, the_child_of_a_fork_has_them) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              Thread other;
              test::free_many(other.allocate(100, small));
              const size_t waiting = transfer::held_blocks(size_class_of(small));
              if (waiting == 0) return "nothing waits";
              cache::lock_for_fork();
              const std::string wrong = test::said_by_bare_fork([waiting]() -> std::string {
                if (transfer::held_blocks(size_class_of(small)) != waiting) return "others wait";
                test::free_many(test::allocate_many(200, small));
                (void)heap::trim(0);
                return transfer::hold_any() ? "some wait still" : validated();
              });
              cache::unlock_after_fork();
              return wrong.empty() ? validated() : wrong;
            }),
            "");
}

TEST(Transfer, a_list_serves_threads_of_its_own_node) {
  for (const size_t size : {small, large})
    EXPECT_EQ(test::in_child([size]() -> std::string {
                mock_os::set_memory_node(3);
                begin();
                Thread near, far;
                near.run([] { mock_os::set_memory_node(3); });
                far.run([] { mock_os::set_memory_node(7); });
                const Blocks blocks = near.allocate(40, size);
                (void)far.allocate(1, 100'000);  // now there are two nodes
                if (!nodes::are_several()) return "one node";
                if (size == large) let_others_come(near, size);
                test::free_many(blocks);
                const size_t waiting = transfer::held_blocks(size_class_of(size));
                if (waiting == 0) return "nothing was passed on";
                (void)far.allocate(20, size);
                if (transfer::held_blocks(size_class_of(size)) != waiting) return "a thread of another node got some";
                (void)near.allocate(20, size);
                if (transfer::held_blocks(size_class_of(size)) == waiting) return "no thread of its node did";
                return validated();
              }),
              "")
        << size;
}

// What others have left in memory where the first slab of a class lies goes, but for the first page.
TEST(Transfer, the_first_slab_of_a_class_keeps_no_pages_that_it_does_not_need) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              heap::free(std::memset(test::allocate(100'000), 1, 100'000));
              const Unit* const s = slab::of(test::allocate(small));
              if (s->slab.has_pages) return "it is taken for one with pages";
              const size_t pages = unit_size / os::page_size();
              std::vector<unsigned char> present(pages);
              if (mincore(region::address_of(region::index_of(s)), unit_size, present.data()) != 0) return "mincore";
              const auto stay = std::count_if(present.begin(), present.end(), [](unsigned char p) { return p & 1; });
              return stay <= 1 ? validated() : std::to_string(stay) + " pages stay";
            }),
            "");
}

// Each block is written by who has it, and looked at by who frees it.
TEST(Transfer, many_threads_exchange_blocks_of_all_kinds) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              constexpr int threads = 6, rounds = 4'000;
              constexpr size_t sizes[] = {64, 500, 1'000, 3'000, 8'000, 9'000, 20'000, 65'000};
              constexpr size_t places = 64;
              static std::atomic<uint64_t*> shared[places];
              std::atomic<bool> damaged{false};
              std::vector<std::thread> all;
              for (int t = 0; t < threads; ++t)
                all.emplace_back([&, t] {
                  test::Random random(static_cast<uint64_t>(t) + 1);
                  for (int i = 0; i < rounds; ++i) {
                    const size_t words = sizes[random.below(std::size(sizes))] / sizeof(uint64_t);
                    auto* const block = static_cast<uint64_t*>(test::allocate(words * sizeof(uint64_t)));
                    block[0] = words;
                    block[1] = block[words - 1] = reinterpret_cast<uintptr_t>(block);
                    uint64_t* const old = shared[random.below(places)].exchange(block);
                    if (old == nullptr) continue;
                    const auto own = reinterpret_cast<uintptr_t>(old);
                    if (old[1] != own || old[old[0] - 1] != own) damaged = true;
                    heap::free(old);
                  }
                });
              for (std::thread& thread : all)
                thread.join();
              for (std::atomic<uint64_t*>& place : shared)
                heap::free(place.exchange(nullptr));
              if (damaged) return "a block was damaged";
              (void)heap::trim(0);
              for (const size_t size : sizes)
                if (test::used_blocks(size_class_of(size)) != 0) return "blocks are lost";
              return validated();
            }),
            "");
}

}  // namespace
