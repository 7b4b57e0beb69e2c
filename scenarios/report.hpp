// What a scenario program says of itself: how long each case took, its memory at the peak and at rest, and which malloc
// it ran on, as one line of JSON. Open it to change how a scenario is timed or how its memory is read.
#pragma once

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "arguments.hpp"

namespace scenario {

/// A figure of /proc/self/status in KiB; 0 where there is none.
inline long kib_in_status(const char* name) {
  const int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[8192];
  const ssize_t length = read(file, text, sizeof text - 1);
  close(file);
  text[length > 0 ? length : 0] = '\0';
  const char* const mark = std::strstr(text, name);
  return mark != nullptr ? std::strtol(mark + std::strlen(name), nullptr, 10) : 0;
}

/// The most memory this process has had resident, in KiB. Linux carries getrusage's figure over exec from the
/// program that started this one, so the kernel's own high-water mark of this address space comes first.
inline long peak_rss_kib() {
  const long mark = kib_in_status("VmHWM:");
  if (mark != 0) return mark;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

/// What is resident after a rest of so long, in which nothing is allocated or freed.
inline long quiet_rss_kib(std::uint64_t milliseconds) {
  timespec left{static_cast<time_t>(milliseconds / 1000), static_cast<long>(milliseconds % 1000) * 1'000'000};
  while (nanosleep(&left, &left) != 0) {
  }
  return kib_in_status("VmRSS:");
}

/// Adds up the time of a case that is interrupted by what is not measured.
class Stopwatch {
 public:
  void start() { started_ = std::chrono::steady_clock::now(); }
  void stop() { elapsed_ += std::chrono::steady_clock::now() - started_; }
  double nanoseconds() const { return std::chrono::duration<double, std::nano>(elapsed_).count(); }

 private:
  std::chrono::steady_clock::time_point started_{};
  std::chrono::steady_clock::duration elapsed_{};
};

/// Collects the timed cases of one scenario and prints them as one JSON line.
class Report {
 public:
  explicit Report(const char* scenario) : scenario_(scenario) {}

  /// Runs `body`, which performs `ops` operations, and records how long it took.
  template <class Body>
  void measure(const char* name, std::uint64_t ops, Body&& body) {
    Stopwatch watch;
    watch.start();
    body();
    watch.stop();
    add(name, ops, watch.nanoseconds());
  }

  /// Records a case that took so long for `ops` operations.
  void add(const char* name, std::uint64_t ops, double nanoseconds) {
    if (count_ == max_cases) std::abort();
    cases_[count_++] = {name, ops, nanoseconds / static_cast<double>(ops)};
  }

  /// Records a figure of another kind under a name of its own. Requires: `name` outlives the report.
  void note(const char* name, double value) {
    if (figure_count_ == max_figures) std::abort();
    figures_[figure_count_++] = {name, value};
  }

  /// Says which kind of memory the scenario ran with, and whether it had any effect under this malloc.
  void set_memory(const char* memory, bool in_effect) {
    memory_ = memory;
    in_effect_ = in_effect;
  }

  /// Remembers that a block did not hold what was written to it, when `holds` is false.
  void require(bool holds) { intact_ = intact_ && holds; }

  /// Rests if that is asked for, prints the line; returns the program's exit status.
  int finish(const Arguments& arguments) {
    return finish(arguments, [](long) {});
  }

  /// The same, and calls `at_rest`, which may note figures, with what is resident after the rest, in KiB.
  template <class AtRest>
  int finish(const Arguments& arguments, AtRest&& at_rest) {
    const long peak = peak_rss_kib();
    const long quiet = arguments.quiet_milliseconds != 0 ? quiet_rss_kib(arguments.quiet_milliseconds) : 0;
    if (arguments.quiet_milliseconds != 0) at_rest(quiet);
    if (!intact_) {
      std::fprintf(stderr, "%s: a block did not hold what was written to it\n", scenario_);
      return 1;
    }
    std::printf("{\"scenario\":\"%s\",", scenario_);
    if (memory_ != nullptr)
      std::printf("\"memory\":\"%s\",\"memory_in_effect\":%s,", memory_, in_effect_ ? "true" : "false");
    std::printf("\"ops\":%llu,\"seed\":%llu,\"threads\":%llu,\"cases\":[",
                static_cast<unsigned long long>(arguments.ops), static_cast<unsigned long long>(arguments.seed),
                static_cast<unsigned long long>(arguments.threads));
    for (std::size_t i = 0; i < count_; ++i) {
      std::printf("%s{\"name\":\"%s\",\"ops\":%llu,\"ns_per_op\":%.4f,\"ops_per_second\":%.0f}", i == 0 ? "" : ",",
                  cases_[i].name, static_cast<unsigned long long>(cases_[i].ops), cases_[i].ns_per_op,
                  1e9 / cases_[i].ns_per_op);
    }
    std::printf("],");
    print_figures();
    std::printf("\"peak_rss_kib\":%ld", peak);
    if (arguments.quiet_milliseconds != 0) std::printf(",\"quiet_rss_kib\":%ld", quiet);
    print_origin("malloc");
    print_origin("free");
    std::printf("}\n");
    return std::fflush(stdout) == 0 ? 0 : 1;
  }

 private:
  static constexpr std::size_t max_cases = 8;
  static constexpr std::size_t max_figures = 16;
  struct Case {
    const char* name;
    std::uint64_t ops;
    double ns_per_op;
  };
  struct Figure {
    const char* name;
    double value;
  };

  void print_figures() const {
    if (figure_count_ == 0) return;
    for (std::size_t i = 0; i < figure_count_; ++i)
      std::printf("%s\"%s\":%.4g", i == 0 ? "\"figures\":{" : ",", figures_[i].name, figures_[i].value);
    std::printf("},");
  }

  /// Names the object file that serves `symbol` in this process.
  static void print_origin(const char* symbol) {
    Dl_info info{};
    void* const address = dlsym(RTLD_DEFAULT, symbol);
    const bool known = address != nullptr && dladdr(address, &info) != 0 && info.dli_fname != nullptr;
    std::printf(",\"%s_from\":\"", symbol);
    for (const char* letter = known ? info.dli_fname : ""; *letter != '\0'; ++letter) {
      if (*letter == '"' || *letter == '\\') std::putchar('\\');
      std::putchar(*letter);
    }
    std::putchar('"');
  }

  const char* scenario_;
  const char* memory_ = nullptr;
  bool in_effect_ = true;
  Case cases_[max_cases] = {};
  std::size_t count_ = 0;
  Figure figures_[max_figures] = {};
  std::size_t figure_count_ = 0;
  bool intact_ = true;
};

}  // namespace scenario
