// The heap profile that starts and stops while the program runs: which threads sample, and what a second profile knows
// of the first. What a profile counts is profile_test's.
#include <atomic>
#include <cmath>
#include <functional>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/options.hpp"
#include "guarded/pool.hpp"
#include "heap/heap.hpp"
#include "heap/sampling.hpp"
#include "heap_calls.hpp"
#include "in_child.hpp"
#include "os/diagnosis.hpp"
#include "os/process.hpp"
#include "profile/profile.hpp"
#include "stats/profile_file.hpp"

namespace {

using namespace sluice;
using test::allocate;

struct Sums {
  double allocated = 0, live = 0, live_bytes = 0, at_peak = 0, elsewhere = 0;
  size_t sites = 0;
  profile::Totals totals{};

  Sums() {
    const profile::Reading now(true);
    totals = now.totals();
    for (const profile::Site* site = now.sites().first(); site != nullptr; site = site->next, ++sites) {
      allocated += site->allocated.objects;
      live += site->live.objects;
      live_bytes += site->live.bytes;
      at_peak += profile::at_peak(*site, totals.peak).objects;
      elsewhere += site->freed_elsewhere;
    }
  }
};

std::string say(const char* what, double found, double expected) {
  return std::string(what) + ": " + std::to_string(found) + ", not " + std::to_string(expected);
}

// A thread with a cache that does what it is told, one thing after the other.
class Worker {
 public:
  Worker() {
    do_now([] { heap::free(allocate(100)); });
  }
  ~Worker() { run({}); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void do_now(std::function<void()> work) {
    run(std::move(work));
    done_.acquire();
  }

 private:
  void run(std::function<void()> work) {
    work_ = std::move(work);
    given_.release();
  }

  std::function<void()> work_;
  std::binary_semaphore given_{0}, done_{0};
  std::jthread thread_{[this] {
    for (;;) {
      given_.acquire();
      if (!work_) return;
      work_();
      done_.release();
    }
  }};
};

TEST(ProfileRestart, ThreadsThatHaveCachesBeginToSampleWithTheirNextCall) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              Worker worker;
              void* own = allocate(100);
              heap::free(own);  // lies in the bin, so that the next call would take the fast path
              if (stats::start_profile_now(1) != 0) return "not started";
              void* blocks[3];
              worker.do_now([&] { blocks[0] = allocate(100); });
              blocks[1] = allocate(100);
              std::thread([&] { blocks[2] = allocate(100); }).join();
              for (void* const block : blocks)
                if (!profile::covers(block)) return "not sampled";
              if (Sums().live != 3) return say("live", Sums().live, 3);
              for (void* const block : blocks)
                heap::free(block);
              return Sums().live == 0 ? "" : "alive";
            }),
            "");
}

// It may be all that the thread does.
TEST(ProfileRestart, AThreadThatResizesALargeBlockInPlaceBeginsToSampleToo) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              Worker worker;
              void* block = nullptr;
              worker.do_now([&] { block = allocate(100'000); });
              if (stats::start_profile_now(1) != 0) return "not started";
              worker.do_now([&] {
                for (size_t size = 100'000; size < 100'010; ++size)
                  block = heap::reallocate(block, size);
              });
              const Sums sums;
              if (sums.allocated != 10) return say("allocated", sums.allocated, 10);
              if (sums.live != 1) return say("live", sums.live, 1);
              worker.do_now([&] { heap::free(block); });
              return Sums().live == 0 ? "" : "alive";
            }),
            "");
}

TEST(ProfileRestart, AfterAStopNothingIsSampledAndTheFastPathsAreOpen) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              Worker worker;
              if (stats::start_profile_now(1) != 0) return "not started";
              void* block = nullptr;
              worker.do_now([&] { block = allocate(100); });
              if (stats::start_profile_now(1) != EBUSY) return "started twice";
              if (stats::stop_profile_now() != 0) return "not stopped";
              if (stats::stop_profile_now() != ESRCH) return "stopped twice";
              std::string wrong;
              const auto look = [&wrong] {
                void* const later = allocate(100);
                if (profile::covers(later)) wrong += "sampled ";
                heap::free(later);
                if (thread_cache->small_limit != small_limit_when_open) wrong += "the gate is shut ";
                if (thread_cache->mode.has(CacheMode::Sampling)) wrong += "samples ";
              };
              look();
              worker.do_now(look);
              if (Sums().live != 1) return say("live after the stop", Sums().live, 1);
              worker.do_now([&] { heap::free(block); });
              return Sums().live == 0 ? wrong : wrong + "alive";
            }),
            "");
}

TEST(ProfileRestart, ASecondProfileKnowsWhatIsAliveOfTheFirstAndNothingElse) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              if (stats::start_profile_now(1) != 0) return "not started";
              void* const kept = allocate(1000);
              for (int i = 0; i < 50; ++i)
                heap::free(allocate(2000));
              if (stats::stop_profile_now() != 0 || stats::start_profile_now(1) != 0) return "not started again";
              if (Sums().allocated != 0) return say("allocated", Sums().allocated, 0);
              if (Sums().live != 1 || Sums().at_peak != 1) return say("live", Sums().live, 1);
              void* const block = allocate(1000);
              std::thread([kept] { heap::free(kept); }).join();
              const Sums second;
              if (second.elsewhere != 0) return "what the first has allocated was freed elsewhere in the second";
              if (second.allocated != 1 || second.live != 1 || second.at_peak != 2)
                return say("live", second.live, 1) + say(", peak", second.at_peak, 2);
              heap::free(block);
              if (stats::stop_profile_now() != 0 || stats::start_profile_now(1) != 0) return "no third";
              return Sums().sites == 0 ? "" : "sites of which nothing is alive were kept";
            }),
            "");
}

// At another rate than what the threads have drawn at: the rule of four standard deviations.
TEST(ProfileRestart, EstimatesAreUnbiasedRightAfterARestartAtAnotherRate) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              constexpr int count = 40;  // few of a thread in each profile, so that its first distance tells
              constexpr size_t size = 400;
              constexpr int rounds = 500;
              Worker worker;
              for (const uint64_t rate : {2048, 16'384}) {
                double estimate = 0;
                for (int round = 0; round < rounds; ++round) {
                  if (stats::start_profile_now(uint64_t{1} << 30) != 0 || stats::stop_profile_now() != 0) return "idle";
                  if (stats::start_profile_now(rate) != 0) return "not started";
                  const auto work = [] {
                    for (int i = 0; i < count; ++i)
                      heap::free(allocate(size));
                  };
                  worker.do_now(work);
                  work();
                  estimate += Sums().allocated;
                  if (stats::stop_profile_now() != 0) return "not stopped";
                }
                // What std::function and the test allocate is the system's.
                constexpr double truth = 2.0 * count * rounds;
                const double p = -std::expm1(-double{size + 15} / static_cast<double>(rate));
                const double deviation = std::sqrt(truth * (1 - p) / p);
                if (std::fabs(estimate - truth) > 4 * deviation) return say("allocated", estimate, truth);
                if (deviation > truth / 20) return "too few to tell";
              }
              return "";
            }),
            "");
}

TEST(ProfileRestart, GuardingGoesOnBesideAProfileThatStartsAndStops) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              guarded::set_slots(64);
              sampling::start(1);
              for (int round = 0; round < 3; ++round) {
                if (stats::start_profile_now(1) != 0) return "not started";
                void* block = allocate(100);
                if (!guarded::covers(block) || Sums().live != 1) return say("live", Sums().live, 1);
                heap::free(block);
                if (stats::stop_profile_now() != 0) return "not stopped";
                block = allocate(100);
                if (!guarded::covers(block)) return "not guarded";
                heap::free(block);
                if (Sums().live != 0) return "alive";
              }
              return "";
            }),
            "");
}

TEST(ProfileRestart, AForkedChildStartsAndStopsForItself) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              if (stats::start_profile_now(1) != 0) return "not started";
              void* const block = allocate(100);
              const pid_t child = fork();
              if (child == 0) {
                bool right = stats::stop_profile_now() == 0 && !profile::covers(allocate(100));
                right = right && stats::start_profile_now(1) == 0 && profile::covers(allocate(100)) && Sums().live == 2;
                heap::free(block);
                _exit(right && Sums().live == 1 ? 0 : 1);
              }
              int status = 1;
              if (waitpid(child, &status, 0) != child || status != 0) return "the child is wrong";
              return Sums().live == 1 ? "" : say("live", Sums().live, 1);
            }),
            "");
}

// A sample that waited for the lock while one profile ended and another began is no older than the latter.
TEST(ProfileRestart, NothingIsBornBeforeItsProfile) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              heap::free(allocate(100));
              if (stats::start_profile_now(1) != 0 || stats::stop_profile_now() != 0) return "not started";
              const uint64_t before = os::clock_ns();
              os::sleep_briefly();
              if (stats::start_profile_now(1) != 0) return "not started again";
              const uintptr_t frames[] = {1, 2, 3};
              const char name[os::thread_name_capacity] = "late";
              const profile::Sample sample{{1, 0}, before, size_t{1} << 40, frames, 3, true, 1, name};
              const profile::RecordNumber number = profile::begin(sample);
              if (number == profile::no_record) return "not taken";
              const profile::Reading now(true);
              const profile::Totals totals = now.totals();
              if (totals.peak_ns > 3'600'000'000'000) return say("the peak's time", double(totals.peak_ns), 0);
              return totals.point_count == 1 && totals.points[0].ms < 3'600'000 ? ""
                                                                                : "the peak is not in the timeline";
            }),
            "");
}

TEST(ProfileRestart, WhatCannotBeDoneIsSaid) {
  EXPECT_EQ(test::in_child([]() -> std::string {
              if (stats::dump_profile_now("/tmp/never") != ESRCH) return "a dump of nothing";
              if (stats::start_profile_now(~uint64_t{0}) != EINVAL) return "a rate of all there is";
              if (stats::start_profile_now(0) != 0) return "the default rate";
              if (profile::rate() != options.profile_rate) return "another rate";
              if (stats::dump_profile_now("") != EINVAL || stats::dump_profile_now(nullptr) != EINVAL) return "no name";
              if (stats::dump_profile_now("/nowhere/profile") != ENOENT) return "no folder";
              return stats::dump_profile_now(std::string(5000, 'a').c_str()) == ENAMETOOLONG ? "" : "a long name";
            }),
            "");
}

}  // namespace
