// Latencies of malloc and free: buckets, percentiles, damaged files, and that libsluice-latency.so counts each call of
// a program once, whatever the allocator. Open it when `p99` is in doubt.
#include "measure/latency.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <ostream>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "measure/allocators.hpp"
#include "measure/latency_format.h"

namespace bench {

void PrintTo(const Allocator& allocator, std::ostream* out) {
  *out << allocator.name;
}

namespace {

namespace fs = std::filesystem;

/// A file that is gone with the test.
class Scratch {
 public:
  explicit Scratch(const std::string& text = {}) {
    std::string name = (fs::temp_directory_path() / "latency_test.XXXXXX").string();
    const int file = mkstemp(name.data());
    if (file < 0) throw std::runtime_error("no temporary file");
    close(file);
    path_ = name;
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~Scratch() { fs::remove(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

Latency read_text(const std::string& text) {
  return read_latency(Scratch(text).path());
}

/// A line of a record, from times in ticks.
std::string line_of(const std::string& kind, const std::vector<std::uint64_t>& ticks) {
  std::map<unsigned, std::uint64_t> calls;
  std::uint64_t sum = 0, maximum = 0;
  for (const std::uint64_t each : ticks) {
    ++calls[latency_bucket_of(each)];
    sum += each;
    maximum = std::max(maximum, each);
  }
  std::string line = fmt::format("{} {} {} {}", kind, ticks.size(), sum, maximum);
  for (const auto& [bucket, count] : calls)
    line += fmt::format(" {}:{}", bucket, count);
  return line + "\n";
}

/// `header` is what follows the process: the timer, its step, the overhead, ticks and nanoseconds.
std::string record_of(const std::string& header, const std::vector<std::uint64_t>& allocate,
                      const std::vector<std::uint64_t>& release = {}, const std::vector<std::uint64_t>& resize = {}) {
  return fmt::format("latency 7 {}\n{}{}{}end 7\n", header, line_of("malloc", allocate), line_of("free", release),
                     line_of("realloc", resize));
}

const std::string plain_header = "tsc 1 0 1000000 1000000";

TEST(LatencyBuckets, EveryBucketHoldsWhatItSays) {
  EXPECT_EQ(latency_least_of(0), 0u);
  for (unsigned bucket = 0; bucket < latency_buckets; ++bucket) {
    const std::uint64_t least = latency_least_of(bucket);
    const std::uint64_t beyond = latency_least_of(bucket + 1);
    ASSERT_LT(least, beyond);
    ASSERT_EQ(latency_bucket_of(least), bucket);
    ASSERT_EQ(latency_bucket_of(beyond - 1), bucket);
    if (least < 256) {
      ASSERT_EQ(beyond, least + 1);
    } else {
      ASSERT_LE((beyond - least) * 128, least);
    }
  }
  EXPECT_EQ(latency_least_of(latency_buckets), std::uint64_t{1} << 40);
  EXPECT_EQ(latency_bucket_of(std::uint64_t{1} << 40), latency_buckets - 1u);
  EXPECT_EQ(latency_bucket_of(std::numeric_limits<std::uint64_t>::max()), latency_buckets - 1u);
}

/// The value that so many percent of sorted ones do not exceed.
double nearest_rank(const std::vector<std::uint64_t>& sorted, double percentile) {
  const double rank = std::ceil(percentile / 100 * static_cast<double>(sorted.size()) - 1e-6);
  return static_cast<double>(sorted[static_cast<std::size_t>(std::max(rank, 1.0)) - 1]);
}

void expect_percentiles(const LatencyCurve& curve, std::vector<std::uint64_t> samples, double ns_per_tick) {
  std::sort(samples.begin(), samples.end());
  double sum = 0;
  for (const std::uint64_t each : samples)
    sum += static_cast<double>(each);
  EXPECT_EQ(curve.count, samples.size());
  EXPECT_NEAR(curve.mean, sum / static_cast<double>(samples.size()) * ns_per_tick, curve.mean * 1e-9);
  EXPECT_DOUBLE_EQ(curve.max, static_cast<double>(samples.back()) * ns_per_tick);
  const auto expect_close = [&](double percentile, double value) {
    const double wanted = nearest_rank(samples, percentile) * ns_per_tick;
    EXPECT_NEAR(value, wanted, std::max(0.5 * ns_per_tick, wanted / 64)) << percentile << " %";
  };
  expect_close(50, curve.p50);
  expect_close(90, curve.p90);
  expect_close(99, curve.p99);
  expect_close(99.9, curve.p99_9);
  expect_close(99.99, curve.p99_99);
  for (const auto& [percentile, value] : curve.points)
    expect_close(percentile, value);
}

std::vector<std::uint64_t> random_ticks(std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::lognormal_distribution<double> draw(5, 3);
  std::vector<std::uint64_t> ticks(count);
  for (std::uint64_t& each : ticks)
    each = static_cast<std::uint64_t>(std::min(draw(random), 1e12));
  return ticks;
}

TEST(Latency, PercentilesAreThoseOfTheSortedSamples) {
  for (const std::size_t count : {1u, 2u, 3u, 10u, 100u, 1000u, 9999u, 100000u}) {
    SCOPED_TRACE(count);
    const std::vector<std::uint64_t> allocate = random_ticks(count, 1), release = random_ticks(count, 2),
                                     resize = random_ticks(count, 3);
    const Latency latency = read_text(record_of("clock 1 0 3000000 1000000", allocate, release, resize));
    EXPECT_EQ(latency.processes, 1);
    EXPECT_EQ(latency.timer, "clock");
    expect_percentiles(latency.allocate, allocate, 1.0 / 3);
    expect_percentiles(latency.release, release, 1.0 / 3);
    expect_percentiles(latency.resize, resize, 1.0 / 3);
  }
}

TEST(Latency, ProcessesAreMergedInNanoseconds) {
  const std::vector<std::uint64_t> slow = random_ticks(5000, 4), fast = random_ticks(20000, 5);
  const Latency latency =
      read_text(record_of("tsc 1 0 1000000 1000000", slow) + record_of("tsc 1 0 4000000 1000000", fast));
  EXPECT_EQ(latency.processes, 2);
  std::vector<std::uint64_t> all = fast;  // in ticks of the fast one
  for (const std::uint64_t each : slow)
    all.push_back(4 * each);
  EXPECT_EQ(latency.allocate.count, 25000u);
  std::sort(all.begin(), all.end());
  for (const auto& [percentile, value] : latency.allocate.points) {
    const double wanted = nearest_rank(all, percentile) / 4;
    EXPECT_NEAR(value, wanted, std::max(0.5, wanted / 64)) << percentile << " %";
  }
  EXPECT_EQ(read_text(record_of("tsc 1 0 5 5", {1}) + record_of("clock 1 0 5 5", {1})).timer, "mixed");
}

TEST(Latency, PointsRiseFromTheLeastToTheMaximum) {
  for (const std::size_t count : {1u, 7u, 100000u}) {
    const LatencyCurve curve = read_text(record_of(plain_header, random_ticks(count, 6))).allocate;
    ASSERT_EQ(curve.points.size(), 52u);
    EXPECT_EQ(curve.points.front().first, 0);
    EXPECT_NEAR(curve.points[50].first, 99.999, 1e-9);
    EXPECT_EQ(curve.points.back(), std::make_pair(100.0, curve.max));
    EXPECT_TRUE(std::is_sorted(curve.points.begin(), curve.points.end(),
                               [](const auto& one, const auto& other) { return one.first < other.first; }));
    EXPECT_TRUE(std::is_sorted(curve.points.begin(), curve.points.end(),
                               [](const auto& one, const auto& other) { return one.second < other.second; }));
  }
}

TEST(Latency, NoPercentileIsMoreThanTheMaximum) {
  const LatencyCurve curve = read_text(record_of(plain_header, {256})).allocate;  // in the lower half of its bucket
  EXPECT_EQ(curve.max, 256);
  EXPECT_EQ(curve.p99_99, 256);
}

TEST(Latency, OverheadIsSubtractedAndNothingIsLessThanNothing) {
  const Latency latency = read_text(record_of("tsc 1 40500 2000 1000", {10, 20, 30, 100, 1000}));
  EXPECT_DOUBLE_EQ(latency.overhead_ns, 20.25);
  EXPECT_DOUBLE_EQ(latency.resolution_ns, 0.5);
  EXPECT_EQ(latency.allocate.p50, 0);
  EXPECT_DOUBLE_EQ(latency.allocate.max, (1000 - 40.5) / 2);
  EXPECT_DOUBLE_EQ(latency.allocate.mean, (1160 - 5 * 40.5) / 5 / 2);
  const LatencyCurve none = read_text(record_of("tsc 1 40500 2000 1000", {10, 20})).allocate;
  EXPECT_EQ(none.count, 2u);
  EXPECT_EQ(none.mean, 0);
  EXPECT_EQ(none.max, 0);
}

// A call of 33 ticks is seen as 20 or 40 by a timer that moves on by 20 at once.
TEST(Latency, ACoarseTimerIsReadBetweenItsSteps) {
  std::vector<std::uint64_t> seen;
  for (std::uint64_t start = 0; start < 20000; ++start)
    seen.push_back((start + 33) / 20 * 20 - start / 20 * 20);
  const LatencyCurve curve = read_text(record_of("tsc 20 0 1000 1000", seen)).allocate;
  EXPECT_DOUBLE_EQ(curve.mean, 33);
  EXPECT_NEAR(curve.p50, 33, 5);
}

TEST(Latency, NoRecordsAndNoCallsAreNoDamage) {
  const Latency none = read_text("");
  EXPECT_EQ(none.processes, 0);
  EXPECT_EQ(none.timer, "");
  const Latency idle = read_text(record_of(plain_header, {}));
  EXPECT_EQ(idle.processes, 1);
  EXPECT_EQ(idle.allocate.count, 0u);
  EXPECT_EQ(idle.allocate.max, 0);
  EXPECT_TRUE(idle.allocate.points.empty());
}

TEST(Latency, ACutOffRecordIsDamage) {
  const std::string one = record_of(plain_header, random_ticks(5, 7), {1, 2, 3}, {5});
  const std::string text = one + one;
  for (std::size_t length = 1; length < text.size(); ++length) {
    if (length == one.size()) {
      EXPECT_EQ(read_text(text.substr(0, length)).processes, 1);
    } else {
      EXPECT_THROW(read_text(text.substr(0, length)), std::runtime_error) << length;
    }
  }
  EXPECT_EQ(read_text(text).processes, 2);
}

TEST(Latency, DamageIsToldWithItsPlace) {
  const std::string rest = "free 0 0 0\nrealloc 0 0 0\nend 7\n";
  const auto text_with = [&](const std::string& line) {
    return "latency 7 " + plain_header + "\n" + line + "\n" + rest;
  };
  EXPECT_EQ(read_text(text_with("malloc 3 3 1 0:1 1:2")).allocate.count, 3u);
  for (const char* line : {"malloc",
                           "malloc 1",
                           "malloc 1 1 1",
                           "malloc 1 1 1 1",
                           "malloc 1 1 1 1:",
                           "malloc 1 1 1 :1",
                           "malloc 1 1 1 1:2",
                           "malloc 2 1 1 1:1",
                           "malloc 2 2 1 1:1 1:1",
                           "malloc 2 2 1 2:1 1:1",
                           "malloc 1 1 1 4480:1",
                           "malloc 1 1 1 1:-1",
                           "malloc -1 1 1 1:1",
                           "malloc 1 1 1 1:1x",
                           "malloc 1 x 1 1:1",
                           "malloc 1  1 1 1:1",
                           "Malloc 1 1 1 1:1",
                           "free 1 1 1 1:1",
                           "malloc 1 1 1 1:1 2:0",
                           "malloc 1 1 1 1:99999999999999999999",
                           "malloc 1 1 1 1:1\r",
                           ""})
    EXPECT_THROW(read_text(text_with(line)), std::runtime_error) << line;
  const std::string calls = "malloc 0 0 0\n" + rest;
  for (const char* header : {"latency 7 sundial 1 0 5 5", "latency 7 tsc 1 0 0 5", "latency 7 tsc 1 0 5 0",
                             "latency 7 tsc 0 0 5 5", "latency 7 tsc 1 0 5", "latency 7 tsc 1 0 5 5 5",
                             "latency x tsc 1 0 5 5", "latency 8 tsc 1 0 5 5", "lat 7 tsc 1 0 5 5", ""})
    EXPECT_THROW(read_text(std::string(header) + "\n" + calls), std::runtime_error) << header;
  const Scratch damaged(text_with("malloc 1"));
  try {
    read_latency(damaged.path());
    ADD_FAILURE() << "nothing was thrown";
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(error.what(), damaged.path().string() + " is damaged in line 2");
  }
  EXPECT_THROW(read_latency("/nonexistent/file"), std::runtime_error);
  EXPECT_THROW(read_latency("/"), std::runtime_error);
}

// ---- libsluice-latency.so ----

class LatencyLibrary : public testing::TestWithParam<Allocator> {
 protected:
  /// What a program does under the allocator.
  static Latency measured(const std::string& program) {
    const Scratch file;
    const std::string line = fmt::format("LIBSLUICE_LATENCY='{}' LD_PRELOAD='{}:{}' exec {}", file.path().string(),
                                         LATENCY_LIBRARY, GetParam().library.string(), program);
    EXPECT_EQ(std::system(line.c_str()), 0) << line;
    return read_latency(file.path());
  }

  /// Expects so many calls for each that the subject is asked for, and nothing else: what the start of a program and of
  /// its threads takes is the same in both runs.
  static void expect_calls(const std::string& what, int processes, std::uint64_t allocate, std::uint64_t release,
                           std::uint64_t resize, const std::string& program = subject) {
    constexpr int count = 500;
    const Latency none = measured(fmt::format("{} {} 0", program, what));
    const Latency some = measured(fmt::format("{} {} {}", program, what, count));
    EXPECT_EQ(none.processes, processes) << what;
    EXPECT_EQ(some.processes, processes) << what;
    EXPECT_EQ(some.allocate.count - none.allocate.count, count * allocate) << what;
    EXPECT_EQ(some.release.count - none.release.count, count * release) << what;
    EXPECT_EQ(some.resize.count - none.resize.count, count * resize) << what;
  }

  static inline const std::string subject = fmt::format("'{}'", LATENCY_SUBJECT);
  static inline const std::string host = fmt::format("'{}' '{}'", LATENCY_HOST, LATENCY_MODULE);
  static bool is(const char* name) { return GetParam().name == name; }
};

TEST_P(LatencyLibrary, CountsEachFunctionOnce) {
  expect_calls("c", 1, 8, 8, 2);
  expect_calls("operators", 1, 12, 12, 0);
  if (is("system") || is("sluice")) expect_calls("pvalloc", 1, 1, 1, 0);
}

TEST_P(LatencyLibrary, GoesOnAfterAnException) {
  if (is("mimalloc")) GTEST_SKIP() << "ends the process instead of throwing, where it is built as C";
  expect_calls("throwing", 1, 3, 3, 0);
  expect_calls("throwing", 1, 3, 3, 0, host);
}

TEST_P(LatencyLibrary, FindsOperatorsThatOnlyALoadedLibraryHas) {
  expect_calls("operators", 1, 12, 12, 0, host);
}

TEST_P(LatencyLibrary, CountsThreadsThatRunEndAndComeBack) {
  expect_calls("threads", 1, 8, 8, 0);
  expect_calls("ending", 1, 160, 160, 0);
}

TEST_P(LatencyLibrary, CountsAChildOnce) {
  expect_calls("fork", 3, 9, 9, 0);
}

TEST_P(LatencyLibrary, WritesWhileThreadsRunAndNothingAfterAnImmediateExit) {
  EXPECT_GE(measured(subject + " running 500").allocate.count, 500u);
  EXPECT_EQ(measured(subject + " _exit 0").processes, 0);
}

std::vector<Allocator> allocators() {
  std::vector<Allocator> all = installed_allocators();
  all.insert(all.begin(), {{"system", {}}, {"sluice", SLUICE_LIBRARY}});
  return all;
}

std::string name_of(const testing::TestParamInfo<Allocator>& info) {
  std::string name = info.param.name;
  std::replace_if(
      name.begin(), name.end(), [](unsigned char letter) { return std::isalnum(letter) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Under, LatencyLibrary, testing::ValuesIn(allocators()), name_of);

}  // namespace
}  // namespace bench
