// Caches of processors for larger blocks: when they are used, what they keep, and what happens where one of them cannot
// be had. A thread moves to another processor when it says so, as the system may move it at any time.
#include "heap/processors.hpp"

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "bare_fork.hpp"
#include "base/options.hpp"
#include "heap/heap.hpp"
#include "heap/thread_cache.hpp"
#include "heap_calls.hpp"
#include "in_child.hpp"
#include "mock_os.hpp"
#include "os/memory.hpp"
#include "pages/region.hpp"
#include "stats/snapshot.hpp"

namespace {

using namespace sluice;
namespace processors = cache::processors;

constexpr unsigned larger = size_class_of(20'000);  // a class that they serve
constexpr unsigned first_larger = budget::last_not_counted_by_room + 1;

// Threads that wait, each with a cache, as long as this lives.
class Crowd {
 public:
  // On processor 0, 1 and so on, so many of them, and again from the first; 0: nobody knows which.
  Crowd(int count, int32_t processors) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this, i, processors] {
        mock_os::set_processor(processors == 0 ? -1 : i % processors);
        test::calls::free(test::allocate(10));
        started_.fetch_add(1);
        while (!ends_.load())
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
      });
      while (started_.load() != i + 1)  // one by one: how many there are is looked at when one comes
        std::this_thread::yield();
    }
  }
  ~Crowd() {
    ends_.store(true);
    for (std::thread& thread : threads_)
      thread.join();
  }
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;

 private:
  std::atomic<int> started_{0};
  std::atomic<bool> ends_{false};
  std::vector<std::thread> threads_;
};

// As if so many threads had budgets of a MiB.
void begin_with_rich(uint32_t threads) {
  budget::rich_threads.store(threads);
  processors::begin_if_many();
}

// A program of one processor and so many threads that its cache is used, as long as it lives; of two and more such, so
// that a few others may be seen.
void begin(int threads = 5) {
  mock_os::set_processor(0);
  test::calls::free(test::allocate(10));
  options.processor_caches = true;  // when the heap has read what it is at its start
  static Crowd* const crowd = new Crowd(threads, 1);
  (void)crowd;
  begin_with_rich(1'000);
}
constexpr int enough_for_five = 20;

ThreadCache& cache_of(unsigned processor) {
  return *processors::caches[processor].load();
}

// A thread that was stopped while it held the lock of a processor's cache, as long as this lives.
class Stopped {
 public:
  explicit Stopped(unsigned processor)
      : thread_([this, processor]() SLUICE_UNCHECKED_LOCKS {
          cache_of(processor).lock.lock();
          is_stopped_.store(true);
          while (!goes_on_.load())
            std::this_thread::yield();
          cache_of(processor).lock.unlock();
        }) {
    while (!is_stopped_.load())
      std::this_thread::yield();
  }
  ~Stopped() {
    goes_on_.store(true);
    thread_.join();
  }
  Stopped(const Stopped&) = delete;
  Stopped& operator=(const Stopped&) = delete;

 private:
  std::atomic<bool> is_stopped_{false};
  std::atomic<bool> goes_on_{false};
  std::thread thread_;
};

// A thread that holds a lock, and gives it back when somebody waits briefly for one. At the end nobody may wait.
class HoldsUntilAwaited {
 public:
  explicit HoldsUntilAwaited(OwnerMutex* (*find)()) {
    state_.store(0);
    others_are_told_ = false;
    thread_ = std::thread([find]() SLUICE_UNCHECKED_LOCKS {
      test::calls::free(test::allocate(10));
      OwnerMutex& lock = *find();
      lock.lock();
      state_.store(1);
      while (state_.load() == 1)
        std::this_thread::yield();
      lock.unlock();
      state_.store(3);
    });
    await(1);
    mock_os::call_at_next_brief_wait([] {
      others_are_told_ = (processors::wants_all.load() & 1) != 0;
      state_.store(2);
      await(3);
    });
  }
  ~HoldsUntilAwaited() {
    mock_os::call_at_next_brief_wait(nullptr);
    if (state_.load() == 1) state_.store(2);
    thread_.join();
  }
  // Whether threads were told that somebody wants all locks, when that one waited for this.
  static bool others_are_told() { return others_are_told_; }
  HoldsUntilAwaited(const HoldsUntilAwaited&) = delete;
  HoldsUntilAwaited& operator=(const HoldsUntilAwaited&) = delete;

 private:
  static void await(int state) {
    while (state_.load() != state)
      std::this_thread::yield();
  }

  static inline std::atomic<int> state_{0};
  static inline bool others_are_told_ = false;
  std::thread thread_;
};

std::vector<void*> take_larger(int count) {
  std::vector<void*> blocks;
  for (int i = 0; i < count; ++i)
    blocks.push_back(test::allocate(20'000));
  return blocks;
}
void free_all(const std::vector<void*>& blocks) {
  for (void* block : blocks)
    test::calls::free(block);
}

// Takes several blocks at a time and frees them, often enough for the thread to ask which processor it is on.
void use_larger() {
  for (int round = 0; round < 20; ++round) {
    std::vector<void*> blocks = take_larger(16);
    free_all(blocks);
  }
}

// So that the processor's cache keeps some, also where freed blocks wait, as they do in the secure library.
void keep_some() {
  for (int i = 0; i < 64; ++i)
    test::calls::free(test::allocate(20'000));
}

// Frees blocks that do not wait, as they do in the secure library.
void free_now(void* block) {
#if defined(SLUICE_SECURE)
  test::calls::free(block);
  static std::vector<void*> others;
  for (unsigned i = 0; i < SecureCache::larger_slots; ++i)
    others.push_back(test::allocate(60'000));
  while (!others.empty()) {
    test::calls::free(others.back());
    others.pop_back();
  }
#else
  test::calls::free(block);
#endif
}

uint32_t kept_blocks(const ThreadCache& c) {
  uint32_t blocks = 0;
  for (unsigned k = first_larger; k < size_class_count; ++k)
    blocks += cache::held_blocks(c, k);
  return blocks;
}

// Of this thread and of all processors.
uint32_t slabs() SLUICE_UNCHECKED_LOCKS {
  uint32_t count = thread_cache->slab_count;
  for (const std::atomic<ThreadCache*>& each : processors::caches)
    if (const ThreadCache* const c = each.load()) count += c->slab_count;
  return count;
}

std::string validated() {
  const char* const wrong = heap::validate().what;
  return wrong == nullptr ? "" : wrong;
}

TEST(Processors, are_used_where_there_are_more_than_four_threads_for_each) {
  const auto used_with = [](int threads, int32_t processors, uint32_t rich) {
    return test::in_child([=]() -> std::string {
      mock_os::set_processor(processors == 0 ? -1 : 0);
      test::calls::free(test::allocate(10));  // one more thread
      options.processor_caches = true;
      const Crowd crowd(threads, processors);
      if (processors::are_used.load()) return "though none keeps much";
      begin_with_rich(rich);
      return processors::are_used.load() ? "used" : "";
    });
  };
  EXPECT_EQ(used_with(3, 1, 9), "");
  EXPECT_EQ(used_with(4, 1, 9), "used");
  EXPECT_EQ(used_with(7, 2, 9), "");
  EXPECT_EQ(used_with(8, 2, 9), "used");
  EXPECT_EQ(used_with(16, 8, 9), "");
  EXPECT_EQ(used_with(40, 0, 9), "") << "nobody knows the processor";
  EXPECT_EQ(used_with(9, 2, 2), "") << "few keep much";
  EXPECT_EQ(used_with(9, 2, 3), "used");
}

TEST(Processors, are_not_used_unless_the_option_says_so) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_processor(0);
              test::calls::free(test::allocate(10));
              options.processor_caches = false;
              const Crowd crowd(5, 1);
              begin_with_rich(9);
              return processors::are_used.load() ? "used" : "";
            }),
            "");
}

// By what their slow calls see, and not for what a thread had that has ended.
TEST(Processors, are_used_when_enough_threads_need_large_budgets) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_processor(0);
              test::calls::free(test::allocate(10));
              options.processor_caches = true;
              const Crowd crowd(5, 1);
              for (int i = 0; i < 4; ++i)
                std::thread([] {
                  test::calls::free(test::allocate(10));
                  budget::grow(*thread_cache, 2'000);
                }).join();
              if (budget::rich_threads.load() != 0) return "they have ended";
              uint32_t after_them = 0;
              std::thread([] {
                test::calls::free(test::allocate(10));
                budget::grow(*thread_cache, 4'000);
              }).join();
              std::thread([&after_them] {  // which gets the cache of that one, and half its budget
                test::calls::free(test::allocate(10));
                after_them = budget::rich_threads.load();
              })
                  .join();
              if (after_them != 1 || budget::rich_threads.load() != 0) return "who begins with much is miscounted";
              std::atomic<int> grown{0};
              std::atomic<bool> ends{false};
              std::vector<std::thread> threads;
              for (int i = 0; i < 3; ++i)
                threads.emplace_back([&] {
                  test::calls::free(test::allocate(10));
                  budget::grow(*thread_cache, 2'000);
                  ++grown;
                  while (!ends.load())
                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
                });
              while (grown.load() != 3)
                std::this_thread::yield();
              if (budget::rich_threads.load() != 3) return "miscounted";
              for (int i = 0; i < 100 && !processors::are_used.load(); ++i)
                use_larger();
              ends.store(true);
              for (std::thread& thread : threads)
                thread.join();
              return processors::are_used.load() ? validated() : "never used";
            }),
            "");
}

// What lies free in its own slabs was in memory for nothing otherwise.
TEST(Processors, what_is_free_in_slabs_of_the_thread_or_of_others_serves_before_a_new_one) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_processor(0);
              std::vector<void*> blocks = take_larger(400);
              const auto free_half_of = [&blocks] {
                for (size_t i = 0; i < blocks.size(); i += 2)
                  test::calls::free(blocks[i]);
                for (size_t i = 0; i < blocks.size(); i += 2)
                  blocks[i] = nullptr;
              };
              const auto take_half_again = [&blocks] {
                for (void*& block : blocks)
                  if (block == nullptr) block = test::allocate(20'000);
              };
              free_half_of();
              cache::flush_own();
              begin(20);
              const uint32_t before = slabs();
              take_half_again();
              if (slabs() > before + 1) return "new slabs beside the thread's own";
              for (void* block : blocks)  // those of the processor's cache and the thread
                test::calls::free(block);
              for (void*& block : blocks)
                block = test::allocate(20'000);
              free_half_of();
              processors::flush();
              mock_os::set_processor(1);
              use_larger();  // until the thread has asked where it is
              const uint32_t again = slabs();
              take_half_again();
              if (slabs() > again + 1) return "new slabs beside the other processor's";
              free_all(blocks);
              return validated();
            }),
            "");
}

TEST(Processors, end_where_most_threads_have_ended) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_processor(0);
              test::calls::free(test::allocate(10));
              options.processor_caches = true;
              {
                const Crowd crowd(5, 1);
                begin_with_rich(9);
                use_larger();
                if (kept_blocks(cache_of(0)) == 0) return "never used";
              }
              use_larger();
              if (processors::are_used.load()) return "they go on";
              for (int i = 0; i < 40; ++i)
                test::calls::free(test::allocate(20'000));
              return thread_cache->bins[larger].cap != 0 ? validated() : "the thread's own bin has no room";
            }),
            "");
}

TEST(Processors, what_one_thread_frees_serves_another) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              void* const block = test::allocate(20'000);
              free_now(block);
              bool served = false;
              std::thread([&] {
                mock_os::set_processor(0);
                std::vector<void*> blocks;
                for (int i = 0; i < 8; ++i) {
                  blocks.push_back(test::allocate(20'000));
                  served = served || blocks.back() == block;
                }
                free_all(blocks);
              }).join();
              return served ? validated() : "another block";
            }),
            "");
}

TEST(Processors, a_thread_keeps_none_of_what_they_serve) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_processor(0);
              std::vector<void*> blocks = take_larger(40);
              options.processor_caches = true;
              for (int i = 0; i < 20; ++i)
                test::calls::free(blocks[static_cast<size_t>(i)]);  // some lie in its own cache then
              const Crowd crowd(5, 1);
              begin_with_rich(9);
              for (size_t i = 20; i < blocks.size(); ++i)
                test::calls::free(blocks[i]);
              for (int i = 0; i < 40; ++i)
                free_now(test::allocate(20'000));
              if (thread_cache->bins[larger].cap != 0 || cache::held_blocks(*thread_cache, larger) != 0)
                return "its own bin has room, or blocks";
              return cache::held_blocks(cache_of(0), larger) != 0 ? validated() : "nothing in the processor's cache";
            }),
            "");
}

// However many threads there are, and whatever classes.
TEST(Processors, keep_no_more_than_they_may) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              for (int thread = 0; thread < 8; ++thread)
                std::thread([] {
                  mock_os::set_processor(0);
                  std::vector<void*> blocks;
                  for (int i = 0; i < 30; ++i)
                    for (unsigned k = first_larger; k < size_class_count; ++k)
                      blocks.push_back(test::allocate(class_sizes[k] - 8));
                  free_all(blocks);
                }).join();
              const ThreadCache& c = cache_of(0);
              size_t bytes = 0, kib = 0;
              for (unsigned k = first_larger; k < size_class_count; ++k) {
                const size_t of_class = cache::held_blocks(c, k) * class_sizes[k];
                if (of_class > 2 * options.cache && cache::held_blocks(c, k) > 2) return "too much of one class";
                bytes += of_class;
                kib += cache::held_blocks(c, k) * (class_sizes[k] >> 10);
              }
              if (bytes > 16 * options.cache) return std::to_string(bytes) + " bytes";
              if (bytes < 8 * options.cache) return "hardly anything: " + std::to_string(bytes) + " bytes";
              if (kib != c.kept_kib) return "miscounted";
              return validated();
            }),
            "");
}

// Threads are told from one another by where they run: nine that began on two of many processors are not many.
TEST(Processors, end_where_more_are_seen) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(100'000);
              begin();
              use_larger();
              if (kept_blocks(cache_of(0)) == 0) return "never used";
              mock_os::set_processor(1);
              use_larger();
              if (!processors::are_used.load()) return "three threads for each are enough to go on";
              mock_os::set_processor(2);
              use_larger();
              if (processors::are_used.load()) return "they go on";
              if (processors::caches[2].load() != nullptr) return "one was made for nothing";
              for (int i = 0; i < 40; ++i)
                test::calls::free(test::allocate(20'000));
              if (thread_cache->bins[larger].cap == 0) return "the thread's own bin has no room";
              const uint32_t calls = cache_of(0).slow_calls;
              use_larger();
              if (cache_of(0).slow_calls != calls) return "it is used";
              for (uint64_t later = 1; later <= 2; ++later) {
                mock_os::set_clock(100'000 + later * options.purge_delay);
                for (int i = 0; i < 200; ++i)  // slow calls, one of which looks
                  use_larger();
              }
              if (kept_blocks(cache_of(0)) != 0) return "what it had stays";
              mock_os::set_processor(0);
              const Crowd crowd(8, 1);
              processors::begin_if_many();
              return processors::are_used.load() ? validated() : "more threads do not bring them back";
            }),
            "");
}

TEST(Processors, a_trim_reaches_what_they_keep_after_their_end) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(100'000);
              begin();
              void* blocks[3];
              for (void*& block : blocks)
                block = test::allocate(20'000);
              for (void* block : blocks)
                free_now(block);
              for (const int32_t processor : {1, 2}) {
                mock_os::set_processor(processor);
                for (int i = 0; i < 20; ++i)
                  free_now(test::allocate(20'000));
              }
              if (processors::are_used.load()) return "they go on";
              if (kept_blocks(cache_of(0)) == 0) return "nothing is kept";
              (void)heap::trim(0);
              return kept_blocks(cache_of(0)) == 0 ? validated() : "it stays";
            }),
            "");
}

TEST(Processors, each_has_a_cache_of_its_own) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin(enough_for_five);
              use_larger();
              mock_os::set_processor(70);  // beyond the last that has one: it is shared
              use_larger();
              mock_os::set_processor(3);
              use_larger();
              for (const unsigned n : {0u, 6u, 3u})
                if (processors::caches[n].load() == nullptr) return "no cache " + std::to_string(n);
              for (const unsigned n : {0u, 6u, 3u})
                if (cache_of(n).slow_calls < 300) return "hardly used: " + std::to_string(n);
              return validated();
            }),
            "");
}

// Its signal handlers find out so that they interrupted the heap. Else one that allocates would wait for the thread's
// own lock, and who looks at the whole heap would hold that and wait for the processor's cache.
TEST(Processors, a_thread_holds_its_own_lock_while_it_uses_one) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              free_now(test::allocate(20'000));
              static bool holds_both = false;
              mock_os::call_at_next(mock_os::Call::Commit, []() SLUICE_UNCHECKED_LOCKS {
                holds_both = thread_cache->lock.held_by_this_thread() && cache_of(0).lock.held_by_this_thread();
              });
              std::vector<void*> blocks;
              for (int i = 0; i < 2'000 && !holds_both; ++i)  // until it takes a slab that is not yet in memory
                blocks.push_back(test::allocate(20'000));
              free_all(blocks);
              return holds_both ? validated() : "it holds but one";
            }),
            "");
}

// As a signal handler that interrupts the thread while it holds the lock.
TEST(Processors, a_thread_that_holds_the_lock_serves_itself) {
  if (checked) GTEST_SKIP() << "checked builds stop a handler that takes a cache's lock while its thread holds one";
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              free_now(test::allocate(20'000));
              ThreadCache& c = cache_of(0);
              const uint32_t before = kept_blocks(c);
              thread_cache->lock.lock();
              if (!c.lock.try_lock()) return "somebody has the lock";
              void* const block = test::allocate(20'000);
              if (block == nullptr) return "nothing";
              free_now(block);
              const bool same = kept_blocks(c) == before;
              c.lock.unlock();
              thread_cache->lock.unlock();
              return same ? validated() : "the cache was changed";
            }),
            "");
}

TEST(Processors, nobody_waits_for_a_thread_that_was_stopped_with_the_lock) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              free_now(test::allocate(20'000));
              std::string wrong;
              {
                const Stopped other(0);
                std::vector<void*> blocks = take_larger(20);
                for (void* block : blocks)
                  if (block == nullptr) wrong = "nothing";
                const uint32_t rests = thread_cache->processor_rests;
                if (rests == 0) wrong = "each call waits anew";
                for (int i = 0; i < 2'000 && thread_cache->processor_waits < 2; ++i)
                  blocks.push_back(test::allocate(20'000));
                if (thread_cache->processor_rests <= 32) wrong = "it waits again as soon";
                free_all(blocks);
              }
              for (int i = 0; i < 16; ++i)  // it does without for a while
                use_larger();
              if (wrong.empty() && thread_cache->processor_waits != 0) wrong = "it was waited for in vain";
              if (wrong.empty() && thread_cache->bins[larger].cap != 0) wrong = "the thread goes on by itself";
              return wrong.empty() ? validated() : wrong;
            }),
            "");
}

TEST(Processors, another_ones_cache_serves_where_somebody_uses_this_one) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin(enough_for_five);
              use_larger();
              mock_os::set_processor(1);
              use_larger();
              cache::flush_orphans();
              if (kept_blocks(cache_of(0)) + kept_blocks(cache_of(1)) != 0) return "not flushed";
              const Stopped other(1);
              use_larger();
              return kept_blocks(cache_of(0)) != 0 ? "" : "not served";
            }),
            "");
}

TEST(Processors, what_lies_unused_goes_back) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(100'000);
              begin();
              keep_some();
              processors::look_if_due();
              if (kept_blocks(cache_of(0)) == 0) return "gone at once";
              processors::look_if_due();
              if (kept_blocks(cache_of(0)) == 0) return "looked too soon";
              for (uint64_t later = 1; later <= 2; ++later) {
                mock_os::set_clock(100'000 + later * options.purge_delay);
                processors::look_if_due();
              }
              return kept_blocks(cache_of(0)) == 0 ? validated() : "it stays";
            }),
            "");
}

// So few that nobody is told of them.
TEST(Processors, what_others_have_freed_goes_back) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(100'000);
              begin(enough_for_five);
              std::vector<void*> blocks = take_larger(3);
              mock_os::set_processor(1);
              thread_cache->processor = nullptr;  // it asks at its next call
              for (void* block : blocks)
                free_now(block);
              for (uint64_t later = 1; later <= 5; ++later) {
                mock_os::set_clock(100'000 + later * options.purge_delay);
                processors::look_if_due();
              }
              if (cache_of(1).slow_calls < 3) return "the other one was not used";
              return cache_of(0).slab_count == 0 ? validated() : std::to_string(cache_of(0).slab_count) + " slabs stay";
            }),
            "");
}

TEST(Processors, what_was_used_since_the_last_look_stays) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              mock_os::set_clock(100'000);
              begin();
              for (uint64_t later = 1; later <= 4; ++later) {
                use_larger();
                if (kept_blocks(cache_of(0)) == 0) return "nothing is kept";
                mock_os::set_clock(100'000 + later * options.purge_delay);
                processors::look_if_due();
                if (kept_blocks(cache_of(0)) == 0) return "it goes";
              }
              return validated();
            }),
            "");
}

TEST(Processors, a_trim_reaches_what_they_keep) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              keep_some();
              if (kept_blocks(cache_of(0)) == 0) return "nothing is kept";
              (void)heap::trim(0);
              return kept_blocks(cache_of(0)) == 0 ? validated() : "it stays";
            }),
            "");
}

// As most are where a program trims that has many threads.
TEST(Processors, a_trim_waits_for_who_uses_one) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              keep_some();
              const HoldsUntilAwaited other([] { return &cache_of(0).lock; });
              (void)heap::trim(0);
              return kept_blocks(cache_of(0)) == 0 ? validated() : "it stays";
            }),
            "");
}

// A thread that does little but allocate such blocks holds its cache's lock most of the time. Who wants all locks would
// wait for each such thread in turn.
TEST(Processors, who_wants_all_locks_is_let_in) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              free_now(test::allocate(20'000));
              const auto waits_of = [](int calls) {
                const size_t before = mock_os::brief_waits();
                for (int i = 0; i < calls; ++i)
                  test::calls::free(test::allocate(60'000));
                return mock_os::brief_waits() - before;
              };
              if (waits_of(10) != 0) return "it waits though nobody wants them";
              cache::lock_all();
              cache::unlock_all();
              if (waits_of(10) != 0) return "it waits though nobody wants them any more";
              processors::wants_all.store(1);
              const size_t waited = waits_of(10);
              if (waited < 10) return "it waits " + std::to_string(waited) + " times";
              (void)waits_of(500);
              if (waits_of(10) != 0) return "it waits for ever";
              processors::wants_all.store(3);
              if (waits_of(10) < 10) return "it does not wait for the next one";
              processors::wants_all.store(4);
              return waits_of(10) == 0 ? validated() : "it waits for nobody";
            }),
            "");
}

TEST(Processors, who_takes_all_locks_tells_others) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              {
                const HoldsUntilAwaited other([] { return &thread_cache->lock; });
                cache::lock_all();
                cache::unlock_all();
              }
              if (!HoldsUntilAwaited::others_are_told()) return "a look does not";
              {
                const HoldsUntilAwaited other([] { return &thread_cache->lock; });
                cache::lock_for_fork();
                cache::unlock_after_fork();
              }
              if (!HoldsUntilAwaited::others_are_told()) return "a fork does not";
              return validated();
            }),
            "");
}

// As a thread of such a program does, for a moment; a signal that asks for statistics comes meanwhile.
TEST(Processors, who_tries_for_all_locks_waits_a_moment_for_each) {
  const auto tries = [](bool are_used) {
    return test::in_child([are_used]() -> std::string {
      begin();
      processors::are_used.store(are_used);
      bool has_them = false;
      {
        const HoldsUntilAwaited other([] { return &thread_cache->lock; });
        has_them = cache::try_lock_all();
        if (has_them) cache::unlock_tried();
      }
      if (HoldsUntilAwaited::others_are_told() != are_used) return "others are told, or not";
      if (has_them != are_used) return has_them ? "it waited" : "it did not wait";
      if ((processors::wants_all.load() & 1) != 0) return "it still wants them";
      return validated();
    });
  };
  EXPECT_EQ(tries(true), "");
  EXPECT_EQ(tries(false), "");
}

TEST(Processors, who_tries_for_all_locks_waits_neither_for_itself_nor_for_ever) {
  EXPECT_EQ(test::in_child([]() SLUICE_UNCHECKED_LOCKS -> std::string {
              begin();
              free_now(test::allocate(20'000));
              thread_cache->lock.lock();
              const size_t before = mock_os::brief_waits();
              bool has_them = cache::try_lock_all();
              thread_cache->lock.unlock();
              if (has_them || mock_os::brief_waits() != before) return "it waits for itself";
              {
                const Stopped other(0);
                has_them = cache::try_lock_all();
              }
              return has_them ? "it has the lock of another" : validated();
            }),
            "");
}

TEST(Processors, what_they_keep_counts_as_cached) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin();
              keep_some();
              static stats::Snapshot snapshot;
              stats::take_snapshot(&snapshot);
              const uint32_t kept = cache::held_blocks(cache_of(0), larger);
              if (kept == 0 || snapshot.classes[larger].cached_blocks < kept) return "not counted";
              return snapshot.classes[larger].live_blocks == 0 ? "" : "seems to be live";
            }),
            "");
}

TEST(Processors, without_memory_for_one_threads_serve_themselves) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              begin(enough_for_five);
              void* blocks[4];
              mock_os::fail_from(mock_os::any, 1);
              mock_os::set_processor(9);
              for (void*& block : blocks)
                block = test::allocate(20'000);
              for (void* block : blocks)
                test::calls::free(block);
              mock_os::never_fail();
              keep_some();
              return validated();
            }),
            "");
}

// What the child of a fork says in which nobody is in the middle of a change, or a thread that has taken the lock of
// the processor's cache over.
std::string say_in_child(bool is_broken, std::string (*child)()) {
  begin();
  keep_some();
  std::atomic<int> step{0};
  std::thread other([&step, is_broken] {
    while (step.load() != 1)
      std::this_thread::yield();
    if (is_broken) cache_of(0).lock.lock();  // after a while, since it is held for the fork
    step.store(2);
    while (step.load() != 3)
      std::this_thread::yield();
    if (is_broken) cache_of(0).lock.unlock();
  });
  cache::lock_for_fork();
  processors::wants_all.store(1);  // as a handler may have interrupted who wanted them
  step.store(1);
  while (step.load() != 2)
    std::this_thread::yield();
  const std::string wrong = test::said_by_bare_fork(child);
  processors::wants_all.store(0);
  cache::unlock_after_fork();
  step.store(3);
  other.join();
  return wrong.empty() ? validated() : wrong;
}

TEST(Processors, the_child_of_a_fork_has_one_thread_and_none_of_them) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "ThreadSanitizer lets no thread start in the child of a program with threads";
#endif
  const auto child = []() -> std::string {
    if (thread_cache->orphan.load()) return "the thread has ended";
    if (processors::wants_all.load() != 0) return "somebody wants all locks who is no more";
    std::vector<void*> blocks = take_larger(100);
    for (size_t i = 0; i < blocks.size(); ++i)
      for (size_t j = 0; j < i; ++j)
        if (blocks[i] == blocks[j]) return "one block was handed out twice";
    free_all(blocks);
    if (processors::are_used.load()) return "they go on";
    if (budget::rich_threads.load() > 1) return "threads count that are no more";
    processors::flush();
    if (kept_blocks(cache_of(0)) != 0) return "what it had stays";
    for (int i = 0; i < 10; ++i)
      std::thread([] { test::calls::free(test::allocate(20'000)); }).join();
    if (cache_of(0).orphan.load() || cache_of(0).attached) return "a processor's cache became a thread's";
    return validated();
  };
  for (const bool is_broken : {false, true})
    EXPECT_EQ(test::in_child([=]() -> std::string { return say_in_child(is_broken, child); }), "") << is_broken;
}

}  // namespace
