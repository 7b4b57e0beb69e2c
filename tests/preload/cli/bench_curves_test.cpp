// How `sluice bench --threads 1,2,4` computes speed-ups and their share of the linear one.
#include "bench/curves.hpp"

#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "bench/threads.hpp"

namespace bench {
namespace {

// A benchmark under two allocators of one scenario with two cases, which has run with each of the numbers.
struct Ran {
  explicit Ran(const ThreadCounts& counts) : results(points(counts), {{"one", ""}, {"other", ""}}, 1, {}) {}

  static std::vector<Scenario> points(const ThreadCounts& counts) {
    Scenario scenario{"churn", "churn", "churn"};
    scenario.least_threads = 1;
    return with_threads(scenario, counts);
  }

  void add(std::size_t point, std::size_t allocator, double fill, double clear) {
    Sample sample;
    sample.cases = {{"churn_fill", 10, fill}, {"churn_clear", 10, clear}};
    results.add(results.scenarios[point], allocator, sample);
  }

  Results results;
};

TEST(BenchCurves, TwiceTheThroughputWithTwiceTheThreadsIsLinear) {
  const CurveFigures figures = figures_at(2, 5.0, 1, 10.0);
  EXPECT_EQ(figures.nanoseconds, 5.0);
  EXPECT_EQ(figures.speed_up, 2.0);
  EXPECT_EQ(figures.of_linear, 1.0);
}

TEST(BenchCurves, LinearCountsFromTheFewestThreads) {
  const CurveFigures figures = figures_at(8, 10.0, 2, 20.0);  // four times as many threads, twice the throughput
  EXPECT_EQ(figures.speed_up, 2.0);
  EXPECT_EQ(figures.of_linear, 0.5);
  EXPECT_EQ(figures_at(2, 20.0, 2, 20.0).of_linear, 1.0);
  EXPECT_EQ(figures_at(4, 80.0, 1, 20.0).speed_up, 0.25);  // slower than one thread
  EXPECT_EQ(figures_at(4, 80.0, 1, 20.0).of_linear, 0.0625);
}

TEST(BenchCurves, NothingIsSaidWithoutATimeOrOneToCompareWith) {
  EXPECT_FALSE(figures_at(2, std::nullopt, 1, 10.0).speed_up);
  EXPECT_FALSE(figures_at(2, std::nullopt, 1, 10.0).nanoseconds);
  for (const std::optional<double> fewest : {std::optional<double>(), std::optional<double>(0)}) {
    const CurveFigures figures = figures_at(2, 5.0, 1, fewest);
    EXPECT_EQ(figures.nanoseconds, 5.0);
    EXPECT_FALSE(figures.speed_up);
    EXPECT_FALSE(figures.of_linear);
  }
  EXPECT_FALSE(figures_at(2, 0.0, 1, 10.0).speed_up);
}

TEST(BenchCurves, EachCaseAndAllocatorHasItsOwn) {
  Ran ran({1, 2, 4});
  for (const double noise : {0.0, 1.0, -1.0}) {  // the medians count
    ran.add(0, 0, 40 + noise, 8);
    ran.add(0, 1, 100 + noise, 16);
    ran.add(1, 0, 20 + noise, 8);
    ran.add(1, 1, 80 + noise, 4);
    ran.add(2, 0, 16 + noise, 8);
    ran.add(2, 1, 200 + noise, 4);
  }
  const std::vector<Curve> curves = curves_of(ran.results);
  ASSERT_EQ(curves.size(), 2U);
  EXPECT_EQ(curves[0].scenario, "churn");
  EXPECT_EQ(curves[0].name, "churn_fill");
  EXPECT_EQ(curves[1].name, "churn_clear");
  ASSERT_EQ(curves[0].points.size(), 3U);
  const double speed_ups[3][2] = {{1, 1}, {2, 1.25}, {2.5, 0.5}};
  const std::uint64_t threads[] = {1, 2, 4};
  for (std::size_t i = 0; i < 3; ++i) {
    const CurvePoint& point = curves[0].points[i];
    EXPECT_EQ(point.threads, threads[i]);
    EXPECT_EQ(point.row->name, "churn_fill@" + std::to_string(threads[i]));
    for (std::size_t allocator = 0; allocator < 2; ++allocator) {
      EXPECT_DOUBLE_EQ(point.allocators[allocator].speed_up.value(), speed_ups[i][allocator]);
      EXPECT_DOUBLE_EQ(point.allocators[allocator].of_linear.value(),
                       speed_ups[i][allocator] / static_cast<double>(threads[i]));
    }
  }
  EXPECT_EQ(curves[1].points[2].allocators[1].speed_up, 4.0);
}

TEST(BenchCurves, AnAllocatorThatFailsWithTheFewestThreadsIsComparedWithNothing) {
  Ran ran({1, 2});
  ran.add(0, 0, 40, 8);
  ran.add(0, 1, 40, 8);
  ran.add(1, 0, 20, 8);
  ran.add(1, 1, 20, 8);
  ran.results.fail(ran.results.scenarios[0], 1, "ouch");
  const std::vector<Curve> curves = curves_of(ran.results);
  ASSERT_EQ(curves.size(), 2U);
  EXPECT_FALSE(curves[0].points[0].allocators[1].nanoseconds);
  EXPECT_EQ(curves[0].points[1].allocators[1].nanoseconds, 20.0);
  EXPECT_FALSE(curves[0].points[1].allocators[1].speed_up);
  EXPECT_EQ(curves[0].points[1].allocators[0].speed_up, 2.0);
}

TEST(BenchCurves, OneNumberOfThreadsIsNoCurve) {
  Ran one({2});
  one.add(0, 0, 40, 8);
  EXPECT_TRUE(curves_of(one.results).empty());
  Ran interrupted({1, 2});
  interrupted.add(0, 0, 40, 8);
  EXPECT_TRUE(curves_of(interrupted.results).empty());
}

TEST(BenchCurves, MoreThreadsThanProcessorsAreOverCommitted) {
  Ran ran({1, 2, 4});
  for (std::size_t point = 0; point < 3; ++point)
    ran.add(point, 0, 40, 8);
  EXPECT_GE(ran.results.processors, 1);
  ran.results.processors = 2;
  const std::vector<Curve> curves = curves_of(ran.results);
  ASSERT_EQ(curves[0].points.size(), 3U);
  EXPECT_FALSE(is_over_committed(ran.results, curves[0].points[0]));
  EXPECT_FALSE(is_over_committed(ran.results, curves[0].points[1]));
  EXPECT_TRUE(is_over_committed(ran.results, curves[0].points[2]));
}

}  // namespace
}  // namespace bench
