// The background thread beside threads that allocate, start it and end, and beside forks; also under ThreadSanitizer.
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "base/options.hpp"
#include "heap/background.hpp"
#include "heap/heap.hpp"
#include "heap_calls.hpp"
#include "in_child.hpp"
#include "os/memory.hpp"
#include "pages/region.hpp"

namespace {

using namespace sluice;

void use_memory(unsigned rounds) {
  for (unsigned i = 0; i < rounds; ++i) {
    std::vector<void*> blocks;
    for (const size_t size : {16u, 1000u, 20'000u, 100'000u, 1'000'000u})
      for (int k = 0; k < 4; ++k)
        blocks.push_back(std::memset(test::allocate(size), 1, size));
    for (void* const block : blocks)
      test::calls::free(block);
  }
}

std::string validated() {
  const char* const wrong = heap::validate().what;
  return wrong != nullptr ? wrong : "";
}

TEST(Background, works_beside_threads_that_use_the_heap) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              options.background = true;
              options.purge_delay = 1;
              use_memory(1);
              background::start();
              std::vector<std::thread> threads;
              for (int i = 0; i < 4; ++i)
                threads.emplace_back(use_memory, 200);
              for (std::thread& thread : threads)
                thread.join();
              while (os::call_counts.purged_bytes_at_rest.load() == 0) {
                use_memory(1);
                std::this_thread::yield();
              }
              background::stop();
              return validated();
            }),
            "");
}

TEST(Background, ends_and_starts_again) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              options.background = true;
              options.purge_delay = 1;
              for (int i = 0; i < 50; ++i)
                std::thread([] {
                  background::start();
                  use_memory(1);
                }).join();  // its end is the thread's end
              return region::rest::word.load() == region::rest::ending ? validated() : "it runs on";
            }),
            "");
}

TEST(Background, a_child_of_a_fork_has_none_and_can_start_one) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              options.background = true;
              options.purge_delay = 1;
              use_memory(1);
              background::start();
              for (int i = 0; i < 20; ++i) {
                use_memory(1);
                const pid_t child = fork();
                if (child == 0) {
                  use_memory(2);
#if !defined(SLUICE_TEST_SANITIZER)  // ThreadSanitizer lets no thread be made in such a child
                  background::start();
                  use_memory(2);
                  background::stop();
#endif
                  _exit(validated().empty() ? 0 : 1);
                }
                int status = 0;
                waitpid(child, &status, 0);
                if (status != 0) return "the child ended with " + std::to_string(status);
              }
              background::stop();
              return validated();
            }),
            "");
}

}  // namespace
