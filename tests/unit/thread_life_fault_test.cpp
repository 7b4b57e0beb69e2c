// Threads whose end the system does not promise to tell: they are served without a cache, so that none is lost with
// them, and get one as soon as the system promises. Each case is a process of its own, with a fresh heap.
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "heap/heap.hpp"
#include "heap_calls.hpp"
#include "in_child.hpp"
#include "mock_os.hpp"

namespace {

using namespace sluice;
using mock_os::Call;

cache::ThreadCounts counts() {
  cache::lock_all();
  const cache::ThreadCounts result = cache::thread_counts();
  cache::unlock_all();
  return result;
}
size_t caches() {
  return counts().caches;
}

// Bytes of spans that hold something, after all that can be given back has been.
size_t bytes_in_use() {
  cache::flush_idle();
  cache::lock_all();
  const region::Figures now = region::figures();
  cache::unlock_all();
  return now.committed_bytes - now.free_clean_bytes - now.free_dirty_bytes;
}

std::string validated() {
  const char* const wrong = heap::validate().what;
  return wrong != nullptr ? wrong : "";
}

// What a thread does that fills every list of a cache.
void use_memory() {
  std::vector<void*> blocks;
  for (const size_t size : {16u, 100u, 1000u, 20'000u, 100'000u})
    for (int i = 0; i < 200; ++i)
      blocks.push_back(std::memset(test::allocate(size), 1, size));
  for (void* const block : blocks)
    test::calls::free(block);
}

std::string run_threads_while(Call call_fails) {
  return test::in_child([call_fails]() -> std::string {
    mock_os::fail_from(call_fails, 1);
    use_memory();
    const size_t before = bytes_in_use(), caches_before = caches();
    for (int i = 0; i < 20; ++i)
      std::thread(use_memory).join();
    if (!mock_os::has_failed()) return "nothing has failed";
    if (caches() != caches_before) return std::to_string(caches() - caches_before) + " caches went with their threads";
    const size_t after = bytes_in_use();
    if (after > before) return std::to_string(after - before) + " bytes went with the threads";
    return validated();
  });
}

TEST(ThreadLifeFault, threads_that_cannot_ask_for_a_call_at_their_end_take_no_memory_along) {
  EXPECT_EQ(run_threads_while(Call::ArmThreadExit), "");
  EXPECT_EQ(run_threads_while(Call::RegisterThreadExit), "");
}

TEST(ThreadLifeFault, a_thread_gets_its_cache_when_it_can_ask_for_the_call_again) {
  for (const Call call : {Call::ArmThreadExit, Call::RegisterThreadExit}) {
    EXPECT_EQ(test::in_child([call]() -> std::string {
                mock_os::fail_from(call, 1);
                std::string wrong;
                std::thread([&wrong] {
                  void* const early = test::allocate(100);
                  if (thread_cache->attached) wrong = "a cache that would be lost";
                  mock_os::never_fail();
                  void* const late = test::allocate(100);
                  if (!thread_cache->attached) wrong = "no cache";
                  test::calls::free(early);
                  test::calls::free(late);
                }).join();
                if (!wrong.empty()) return wrong;
                if (!cache::first()->orphan.load()) return "the thread's cache was not left to others";
                return validated();
              }),
              "");
  }
}

// pthread_setspecific allocates on some threads.
TEST(ThreadLifeFault, libc_may_allocate_while_it_promises_to_tell_the_end) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              static thread_local void* table = nullptr;
              mock_os::call_when_arming([] {
                if (table == nullptr) table = test::calls::allocate_zeroed(32, 16);
              });
              std::string wrong;
              std::thread([&wrong] {
                void* const block = test::allocate(100);
                if (table == nullptr || table == block) wrong = "libc got no block of its own";
                if (!thread_cache->attached) wrong = "no cache";
                test::calls::free(block);
                test::calls::free(table);
              }).join();
              if (wrong.empty() && caches() != 1) wrong = "more caches than threads";
              return wrong.empty() ? validated() : wrong;
            }),
            "");
}

// Threads that live at once.
void nest(int depth, int& without_cache) {
  test::calls::free(test::allocate(100));
  if (!thread_cache->attached) ++without_cache;
  if (depth > 1) std::thread([depth, &without_cache] { nest(depth - 1, without_cache); }).join();
}

TEST(ThreadLifeFault, threads_that_asked_for_the_call_and_found_no_memory_for_a_cache_end_in_order) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              test::calls::free(test::allocate(1));
              mock_os::fail_from(Call::Commit, 1);
              while (test::allocate(size_t{1} << 20) != nullptr) {
              }
              int without_cache = 0;
              nest(50, without_cache);
              if (without_cache == 0) return "there was memory for all caches";
              if (counts().live != 1) return "a thread without a cache has left one";
              mock_os::never_fail();
              without_cache = 0;
              nest(50, without_cache);
              return without_cache == 0 ? validated() : "no cache though there is memory";
            }),
            "");
}

}  // namespace
