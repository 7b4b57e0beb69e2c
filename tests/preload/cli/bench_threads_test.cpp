// Lists of numbers of threads, as `sluice bench --threads` takes them, and the scenarios that they make.
#include "bench/threads.hpp"

#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "../../../scenarios/arguments.hpp"

namespace bench {
namespace {

static_assert(most_threads == scenario::most_threads, "the command refuses what the programs would refuse");

Scenario named(const std::string& name, unsigned least_threads) {
  Scenario scenario{name, name, name};
  scenario.least_threads = least_threads;
  return scenario;
}

// Returns: what is said of a list; empty when it is one.
std::string complaint_of(const std::string& list) {
  try {
    parse_thread_counts(list);
    return {};
  } catch (const std::invalid_argument& problem) {
    return problem.what();
  }
}

TEST(BenchThreads, AListIsReadInAnyOrder) {
  EXPECT_EQ(parse_thread_counts("4"), ThreadCounts({4}));
  EXPECT_EQ(parse_thread_counts("1,2,4,8,16,32"), ThreadCounts({1, 2, 4, 8, 16, 32}));
  EXPECT_EQ(parse_thread_counts("32,1,256,3"), ThreadCounts({1, 3, 32, 256}));
}

TEST(BenchThreads, AWrongListIsRefusedWithWhatIsWrongInIt) {
  struct Wrong {
    const char* list;
    const char* word;
  };
  const Wrong lists[] = {
      {"", ""},       {",", ""},      {"1,,2", ""},   {"1,2,", ""},
      {",1", ""},     {"0", "0"},     {"1,0", "0"},   {"257", "257"},
      {"a", "a"},     {"1,2x", "2x"}, {"-1", "-1"},   {"+1", "+1"},
      {"1, 2", " 2"}, {"1;2", "1;2"}, {"1.5", "1.5"}, {"1,99999999999999999999", "99999999999999999999"}};
  for (const auto& [list, word] : lists)
    EXPECT_EQ(
        complaint_of(list),
        fmt::format("'{}' is no number of threads from 1 to 256; several stand between commas, as in 1,2,4", word));
  EXPECT_EQ(complaint_of("1,1"), "1 is there twice");
  EXPECT_EQ(complaint_of("8,2,4,02"), "2 is there twice");
}

TEST(BenchThreads, AListIsToldInWords) {
  EXPECT_EQ(counts_text({}), "");
  EXPECT_EQ(counts_text({2}), "2");
  EXPECT_EQ(counts_text({1, 2}), "1 and 2");
  EXPECT_EQ(counts_text({1, 2, 8}), "1, 2 and 8");
}

TEST(BenchThreads, OneNumberLeavesAScenarioItsName) {
  const std::vector<Scenario> taken = with_threads(named("pair", 1), {3});
  ASSERT_EQ(taken.size(), 1U);
  EXPECT_EQ(taken[0].name, "pair");
  EXPECT_EQ(taken[0].threads, 3U);
  EXPECT_EQ(taken[0].curve, "");
  EXPECT_EQ(taken[0].point(), "");
  for (const ThreadCounts& counts : {ThreadCounts(), ThreadCounts{3}}) {
    const std::vector<Scenario> left = with_threads(named("request", 0), counts);
    ASSERT_EQ(left.size(), 1U);
    EXPECT_FALSE(left[0].threads);
  }
}

TEST(BenchThreads, SeveralNumbersMakeAPointOfEachThatTheScenarioTakes) {
  const std::vector<Scenario> points = with_threads(named("fan_out", 2), {1, 2, 4});
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0].name, "fan_out@2");
  EXPECT_EQ(points[0].threads, 2U);
  EXPECT_EQ(points[1].name, "fan_out@4");
  EXPECT_EQ(points[1].threads, 4U);
  for (const Scenario& each : points) {
    EXPECT_EQ(each.curve, "fan_out");
    EXPECT_EQ(each.group, "fan_out");
  }
  EXPECT_TRUE(with_threads(named("request", 0), {1, 2}).empty());
}

}  // namespace
}  // namespace bench
