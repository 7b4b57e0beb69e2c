// The heap profile under threads that allocate, free what others allocated, move blocks and end, while its tables are
// read. Open it when sites of freed blocks stay alive, or when a sanitizer complains about the profile. STRESS_PERCENT
// scales the number of calls.
#include <atomic>
#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "heap/heap.hpp"
#include "heap/sampling.hpp"
#include "heap_calls.hpp"
#include "os/unwind.hpp"
#include "profile/profile.hpp"
#include "stats/profile_encoder.hpp"
#include "stats/profile_file.hpp"
#include "stress_rounds.hpp"

namespace {

using namespace sluice;
using test::allocate;
using test::rounds;

constexpr size_t slot_count = 4096;
std::atomic<void*> slots[slot_count];

void work(uint64_t seed, int calls) {
  uint64_t random = seed * 2 + 1;
  for (int i = 0; i < calls; ++i) {
    random = random * 6364136223846793005 + 1442695040888963407;
    const size_t size = (random >> 40) % (random >> 60 == 0 ? 200'000 : 2000);
    void* block = slots[(random >> 20) % slot_count].exchange(nullptr);
    if (random >> 62 == 0) {
      block = heap::reallocate(block, size + 1);
    } else {
      heap::free(block);
      block = random >> 62 == 1 ? heap::allocate_zeroed(1, size) : allocate(size);
    }
    heap::free(slots[(random >> 30) % slot_count].exchange(block));
  }
}

double live_objects() {
  const profile::Reading now(true);
  return now.totals().live.objects;
}

// Threads that begin, work and end. A child that is forked meanwhile finds the tables whole, and goes on with
// `in_child`.
template <class InChild>
void work_beside_forks(InChild in_child) {
  for (int round = 0; round < rounds(8); ++round) {
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < 4; ++i)
      threads.emplace_back([=] { work(static_cast<uint64_t>(round) * 16 + i, 20'000); });
    const pid_t child = fork();
    if (child == 0) {
      work(99, 2000);
      in_child();
      _exit(heap::validate().outcome == heap::Validation::Wrong ? 1 : 0);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    for (std::thread& thread : threads)
      thread.join();
  }
}

TEST(ProfileStress, NothingThatWasFreedStaysAlive) {
  heap::free(allocate(1));
  os::prepare_unwinding();
  ASSERT_EQ(profile::start(500), profile::Started::Yes);
  sampling::start_profile();
  std::atomic<bool> over{false};
  std::thread reader([&over] {
    while (!over) {
      const stats::EncodedProfile file(true, {1, nullptr, {}});
      EXPECT_EQ(file.outcome(), stats::EncodedProfile::Outcome::Done);
    }
  });
  work_beside_forks([] {});
  over = true;
  reader.join();
  EXPECT_GT(live_objects(), 100);
  for (auto& slot : slots)
    heap::free(slot.exchange(nullptr));
  EXPECT_LT(std::abs(live_objects()), 1e-3);
  for (unsigned k = 1; k < size_class_count; ++k)
    EXPECT_EQ(profile::figures(k).live_blocks, 0U);
  EXPECT_EQ(heap::validate().what, nullptr);
}

// Threads that have caches, threads that begin and end, and forks, while the profile starts and stops.
TEST(ProfileStress, StartsAndStopsBesideThreadsThatAllocate) {
  heap::free(allocate(1));
  (void)stats::stop_profile_now();  // of the test before
  std::atomic<bool> over{false};
  std::thread control([&over] {
    for (uint64_t turn = 0; !over; ++turn) {
      EXPECT_EQ(stats::start_profile_now(turn % 2 == 0 ? 500 : 3000), 0);
      const stats::EncodedProfile file(true, {1, nullptr, {}});
      EXPECT_EQ(file.outcome(), stats::EncodedProfile::Outcome::Done);
      std::this_thread::yield();
      EXPECT_EQ(stats::stop_profile_now(), 0);
    }
  });
  work_beside_forks([] {
    (void)stats::stop_profile_now();
    // ENOTSUP: the parent had a thread in the middle of a sample.
    if (const int error = stats::start_profile_now(500); error != 0 && error != ENOTSUP) _exit(error);
    work(98, 2000);
  });
  over = true;
  control.join();
  for (auto& slot : slots)
    heap::free(slot.exchange(nullptr));
  EXPECT_LT(std::abs(live_objects()), 1e-3);
  for (unsigned k = 1; k < size_class_count; ++k)
    EXPECT_EQ(profile::figures(k).live_blocks, 0U);
  EXPECT_EQ(heap::validate().what, nullptr);
}

}  // namespace
