// What every soak program shares: its arguments, how long it runs, what it has counted, and a thread beside it that
// tells how far it is and stops it when it hangs. Open it to write another one, or to change what a line of progress
// says.
//
//   PROGRAM [--rounds N] [--seconds N] [--seed N] [--limit N]
//
// runs at least so many rounds, and at least so long; it hangs when nothing is counted for --limit seconds.
//
// The programs use the standard interfaces only, so that they run on any malloc. Status 0: all was well; 1: a promise
// was broken, and a line says which; else it crashed, or was stopped as it hung.
#pragma once

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "preload/subject.hpp"
#include "random_blocks.hpp"

namespace soak {

using sluice::test::Random;
using subject::hide;
using subject::KiB;
using subject::MiB;
using subject::resident_bytes;

// What is counted; rounds are what --rounds asks for, and each program says what it takes for one.
struct Totals {
  std::atomic<uint64_t> rounds{0}, operations{0}, forks{0}, threads{0}, faults{0};
};
inline constinit Totals totals;

inline double seconds_now() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

inline void sleep_ms(long milliseconds) {
  timespec left{milliseconds / 1000, milliseconds % 1000 * 1'000'000};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

inline uint64_t number_of(const char* text) {
  char* end = nullptr;
  const uint64_t number = std::strtoull(text, &end, 10);
  if (end != text && *end == '\0') return number;
  std::fprintf(stderr, "not a number: %s\n", text);
  std::exit(2);
}

// One for the process, before it starts threads. Nothing here allocates once it is made.
class Run {
 public:
  Run(const char* name, int count, char** arguments) : name_(name), start_(seconds_now()) {
    for (int i = 1; i < count; ++i) {
      const char* const option = arguments[i];
      if (i + 1 < count && std::strcmp(option, "--rounds") == 0) {
        rounds_ = number_of(arguments[++i]);
      } else if (i + 1 < count && std::strcmp(option, "--seconds") == 0) {
        seconds_ = static_cast<double>(number_of(arguments[++i]));
      } else if (i + 1 < count && std::strcmp(option, "--seed") == 0) {
        seed_ = number_of(arguments[++i]);
      } else if (i + 1 < count && std::strcmp(option, "--limit") == 0) {
        limit_ = static_cast<unsigned>(number_of(arguments[++i]));
      } else {
        std::fprintf(stderr, "usage: %s [--rounds N] [--seconds N] [--seed N] [--limit N]\n", name);
        std::exit(2);
      }
    }
    self_ = this;
    pthread_create(&watcher_, nullptr, watch, this);
  }
  ~Run() {
    done_ = true;
    pthread_join(watcher_, nullptr);
    tell("done");
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  uint64_t seed() const { return seed_; }
  uint64_t rounds() const { return rounds_; }
  // In a forked child: a signal ends it when it takes too long. Requires: a Run has been made.
  static void limit_child() { alarm(self_->limit_); }
  static unsigned limit() { return self_->limit_; }
  bool goes_on() const { return totals.rounds < rounds_ || seconds_now() - start_ < seconds_; }

  // Ends the process, in a forked child too: a promise was broken.
  [[noreturn, gnu::format(printf, 1, 2)]] static void fail(const char* format, ...) {
    char what[400], line[500];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    const int length =
        std::snprintf(line, sizeof line, "%s: FAILED (seed %llu, process %d): %s\n", self_ ? self_->name_ : "a child",
                      self_ ? counted(self_->seed_) : 0, static_cast<int>(getpid()), what);
    (void)!write(STDERR_FILENO, line, static_cast<size_t>(length));
    _exit(1);
  }

 private:
  static constexpr double tell_every = 10;  // seconds

  static void* watch(void* argument) {
    auto& run = *static_cast<Run*>(argument);
    uint64_t seen = 0;
    double changed = seconds_now(), told = changed;
    while (!run.done_) {
      sleep_ms(20);
      run.peak_ = std::max(run.peak_.load(), resident_bytes());
      const double now = seconds_now();
      const uint64_t counted = totals.operations + totals.rounds + totals.forks + totals.threads;
      if (counted != seen) {
        seen = counted;
        changed = now;
      } else if (now - changed > run.limit_) {
        run.tell("HANGS");
        abort();
      }
      if (now - told < tell_every) continue;
      told = now;
      run.tell("goes on");
    }
    return nullptr;
  }
  // scripts/soak reads the last of these lines.
  void tell(const char* state) const {
    char line[400];
    const int length = std::snprintf(
        line, sizeof line,
        "%s %s: elapsed=%.0f rounds=%llu operations=%llu forks=%llu threads=%llu faults=%llu resident_kib=%zu "
        "peak_kib=%zu\n",
        name_, state, seconds_now() - start_, counted(totals.rounds), counted(totals.operations), counted(totals.forks),
        counted(totals.threads), counted(totals.faults), resident_bytes() / KiB,
        std::max(peak_.load(), resident_bytes()) / KiB);
    (void)!write(STDOUT_FILENO, line, static_cast<size_t>(length));
  }
  static unsigned long long counted(const std::atomic<uint64_t>& count) { return count; }

  static inline Run* self_ = nullptr;
  const char* const name_;
  const double start_;
  uint64_t rounds_ = 1, seed_ = 1;
  double seconds_ = 0;
  unsigned limit_ = 90;  // seconds
  std::atomic<size_t> peak_{0};
  std::atomic<bool> done_{false};
  pthread_t watcher_{};
};

// Waits until the resident set is at most `most` bytes; the heap is used a little meanwhile, so that what it has put
// off comes due. Gives up, and says no, long after any heap's delay: after 30 seconds, or --limit.
inline bool falls_to(size_t most) {
  const double end = seconds_now() + std::min(Run::limit(), 30u);
  do {
    for (const size_t size : {40u, 300u, 3000u, 20'000u, 100'000u, 1'000'000u})
      free(hide(malloc(size)));
    ++totals.operations;
    if (resident_bytes() <= most) return true;
    sleep_ms(10);
  } while (seconds_now() < end);
  return false;
}

}  // namespace soak
