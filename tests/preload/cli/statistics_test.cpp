// What `sluice compare` says of samples: medians, intervals that hold what they claim to hold, and verdicts.
#include "measure/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace bench {
namespace {

TEST(Statistics, MedianAndQuartilesAreThoseOfTextbooks) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(median({7}), 7);
  EXPECT_EQ(half_quartile_range({1, 2, 3, 4, 5}), 1);  // quartiles 2 and 4
  EXPECT_EQ(half_quartile_range({1, 2, 3, 4}), 0.75);  // quartiles 1.75 and 3.25
  EXPECT_EQ(half_quartile_range({5}), 0);
}

TEST(Statistics, TheRatioIsThatOfTheMiddlePairsAndLiesInItsInterval) {
  const std::vector<double> others = {10, 11, 12, 10, 11, 12, 10};
  std::vector<double> ours;
  for (const double value : others)
    ours.push_back(value * 1.25);
  ours[2] *= 9;  // one disturbed run moves neither
  const std::optional<Ratio> ratio = paired_ratio(ours, others, Center::median);
  ASSERT_TRUE(ratio);
  EXPECT_NEAR(ratio->value, 1.25, 1e-9);
  EXPECT_LE(ratio->low, ratio->value);
  EXPECT_GE(ratio->high, ratio->value);
}

TEST(Statistics, NothingIsSaidOfFewOrEmptySamples) {
  EXPECT_FALSE(paired_ratio({1, 1, 1, 1}, {1, 1, 1, 1}, Center::median));
  EXPECT_FALSE(paired_ratio({}, {}, Center::median));
  EXPECT_FALSE(paired_ratio({1, 1, 0, 1, 1}, {1, 1, 1, 1, 1}, Center::median));
  EXPECT_FALSE(paired_ratio({1, 1, 1, 1, 1}, {1, 1, 0, 1, 1}, Center::median));
  EXPECT_EQ(verdict_of(std::nullopt), Verdict::unknown);
}

TEST(Statistics, SamplesThatAreNoPairsAreComparedByTheirMedians) {
  const std::vector<double> before = {10, 11, 12, 10, 11, 12, 10, 11};
  const std::optional<Ratio> same = unpaired_ratio(before, before, Center::median);
  ASSERT_TRUE(same);
  EXPECT_EQ(same->value, 1);
  EXPECT_EQ(verdict_of(same), Verdict::no_difference);
  const std::optional<Ratio> half = unpaired_ratio({5, 6, 5.5, 5.2, 5.1}, before, Center::median);
  ASSERT_TRUE(half);
  EXPECT_NEAR(half->value, 5.2 / 11, 1e-9);
  EXPECT_EQ(verdict_of(half), Verdict::less);
  EXPECT_EQ(verdict_of(unpaired_ratio(before, {5, 6, 5.5, 5.2, 5.1}, Center::median)), Verdict::more);
  EXPECT_FALSE(unpaired_ratio({1, 2, 3, 4}, before, Center::median));
  EXPECT_FALSE(unpaired_ratio({1, 2, 3, 4, 0}, before, Center::median));
}

TEST(Statistics, VerdictsFollowTheInterval) {
  EXPECT_EQ(verdict_of(Ratio{0.90, 0.85, 0.95}), Verdict::less);
  EXPECT_EQ(verdict_of(Ratio{1.10, 1.05, 1.15}), Verdict::more);
  EXPECT_EQ(verdict_of(Ratio{1.10, 0.99, 1.20}), Verdict::no_difference);
  EXPECT_EQ(verdict_of(Ratio{1.003, 1.002, 1.004}), Verdict::no_difference) << "sure, but too small to speak of";
  EXPECT_EQ(verdict_of(paired_ratio({2, 2, 2, 2, 2}, {1, 1, 1, 1, 1}, Center::median)), Verdict::more)
      << "no spread at all";
  EXPECT_EQ(verdict_of(paired_ratio({1, 1, 1, 1, 1}, {1, 1, 1, 1, 1}, Center::median)), Verdict::no_difference);
}

// Times of a machine that drifts, with a spread of `noise` and some runs that are disturbed by other work.
class Machine {
 public:
  explicit Machine(std::uint64_t seed, double noise) : random_(seed), spread_(0, noise) {}
  double time(double true_time) {
    drift_ += 0.3 * spread_(random_);
    const double disturbed = random_() % 12 == 0 ? 1.15 : 1;
    return true_time * std::exp(drift_ + spread_(random_)) * disturbed;
  }

 private:
  std::mt19937_64 random_;
  std::normal_distribution<double> spread_;
  double drift_ = 0;
};

int verdicts(Verdict wanted, double factor, std::size_t runs, double noise, Center center) {
  int count = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Machine machine(seed * 7919 + runs, noise);
    std::vector<double> ours, others;
    for (std::size_t i = 0; i < runs; ++i) {
      ours.push_back(machine.time(factor));
      others.push_back(machine.time(1));
    }
    count += verdict_of(paired_ratio(ours, others, center)) == wanted;
  }
  return count;
}

constexpr std::size_t default_runs = 30;

TEST(Statistics, AThingIsSeldomToldFromItself) {
  for (const Center center : {Center::median, Center::faster_half}) {
    for (const std::size_t runs : {std::size_t{5}, std::size_t{8}, std::size_t{20}, default_runs, std::size_t{60}}) {
      EXPECT_GE(verdicts(Verdict::no_difference, 1, runs, 0.02, center), 194)
          << runs << " runs, of 200 comparisons by " << (center == Center::median ? "medians" : "faster halves");
    }
  }
}

TEST(Statistics, FivePercentAreFoundWithTheDefaultNumberOfRuns) {
  for (const Center center : {Center::median, Center::faster_half}) {
    EXPECT_GE(verdicts(Verdict::more, 1.05, default_runs, 0.01, center), 192) << "of 200 comparisons";
    EXPECT_GE(verdicts(Verdict::less, 1 / 1.05, default_runs, 0.01, center), 192) << "of 200 comparisons";
  }
}

// On a machine where other work adds to most runs, and to some of them much.
TEST(Statistics, TheFasterHalfTellsWhatTheMedianDoesNot) {
  const auto found = [](Center center, double factor) {
    int count = 0;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
      std::mt19937_64 random(seed);
      std::exponential_distribution<double> disturbance(1 / 0.05);
      std::normal_distribution<double> spread(0, 0.01);
      const auto time = [&](double own) { return own * std::exp(spread(random)) * (1 + disturbance(random)); };
      std::vector<double> ours, others;
      for (std::size_t i = 0; i < default_runs; ++i) {
        ours.push_back(time(factor));
        others.push_back(time(1));
      }
      count += verdict_of(paired_ratio(ours, others, center)) == Verdict::more;
    }
    return count;
  };
  EXPECT_GE(found(Center::faster_half, 1.05), 180) << "of 200";
  EXPECT_GE(found(Center::faster_half, 1.03), 3 * found(Center::median, 1.03) / 2);
}

TEST(Statistics, FasterHalvesAreComparedByTheirMeans) {
  const std::optional<Ratio> ratio =
      paired_ratio({10, 12, 50, 14, 90}, {5, 99, 7, 6, 80}, Center::faster_half);  // of 10, 12, 14 and 5, 6, 7
  ASSERT_TRUE(ratio);
  EXPECT_NEAR(ratio->value, 2, 1e-9);
  const std::optional<Ratio> apart = unpaired_ratio({10, 12, 50, 14, 90, 14.4}, {5, 99, 7, 6, 80}, Center::faster_half);
  ASSERT_TRUE(apart);
  EXPECT_NEAR(apart->value, 2, 1e-9);
  EXPECT_LT(apart->low, apart->value);
}

TEST(Statistics, TheIntervalOfAMedianHoldsIt) {
  const std::optional<Interval> interval = median_interval({10, 11, 12, 13, 14, 15, 90});
  ASSERT_TRUE(interval);
  EXPECT_LE(interval->low, 13);
  EXPECT_GE(interval->high, 13);
  EXPECT_FALSE(median_interval({1, 2, 3, 4}));
  EXPECT_FALSE(median_interval({1, 2, 3, 4, 0}));
}

}  // namespace
}  // namespace bench
