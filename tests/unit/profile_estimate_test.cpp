// The arithmetic of sampling by bytes: what is estimated is right on average, and varies as much as theory says.
#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include "profile/estimate.hpp"

namespace {

using namespace sluice;

uint64_t next(uint64_t& state) {
  state += 0x9e3779b97f4a7c15;
  uint64_t z = state;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

constexpr uint64_t rate = 512;

double probability_of(size_t size) {
  return -std::expm1(-(static_cast<double>(size) + 15) / static_cast<double>(rate));
}

// A program's allocations: many small ones, few large ones, in a pattern.
std::vector<size_t> known_sizes() {
  std::vector<size_t> sizes;
  for (size_t i = 0; i < 20'000; ++i)
    sizes.push_back(i % 500 == 0 ? 40'000 : i % 20 == 0 ? 1'500 : i % 3 == 0 ? 0 : 64);
  return sizes;
}

struct Sums {
  double objects = 0, bytes = 0;
};

// What the samples of one run add up to.
Sums estimate(const std::vector<size_t>& sizes, uint64_t seed) {
  Sums sums;
  int64_t left = profile::distance_to_next(rate, next(seed));
  for (const size_t size : sizes) {
    left -= static_cast<int64_t>(profile::counted_bytes(size));
    if (left >= 0) continue;
    sums.objects += profile::weight_of(size, rate);
    sums.bytes += profile::weight_of(size, rate) * static_cast<double>(size);
    left = profile::distance_to_next(rate, next(seed));
  }
  return sums;
}

// Checks the mean and the variance of a sum over many runs against what they should be.
struct Expected {
  double truth = 0, variance = 0;

  void add(double value, double probability) {
    truth += value;
    variance += value * value * (1 - probability) / probability;
  }
  void check(const std::vector<double>& runs, const char* what) const {
    const auto count = static_cast<double>(runs.size());
    double mean = 0;
    for (const double run : runs)
      mean += run / count;
    double spread = 0;
    for (const double run : runs)
      spread += (run - mean) * (run - mean) / (count - 1);
    const double error_of_mean = std::sqrt(variance / count);
    EXPECT_LT(std::abs(mean - truth), 4 * error_of_mean) << what;
    EXPECT_LT(error_of_mean, truth / 400) << what << ": too few runs to see a bias of a hundredth";
    EXPECT_NEAR(spread / variance, 1, 0.25) << what;
  }
};

TEST(ProfileEstimate, SumsOverSamplesAreUnbiasedWithTheVarianceOfTheory) {
  const std::vector<size_t> sizes = known_sizes();
  Expected objects;
  Expected bytes;
  for (const size_t size : sizes) {
    objects.add(1, probability_of(size));
    bytes.add(static_cast<double>(size), probability_of(size));
  }
  std::vector<double> of_objects;
  std::vector<double> of_bytes;
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    const Sums sums = estimate(sizes, seed * 7919);
    of_objects.push_back(sums.objects);
    of_bytes.push_back(sums.bytes);
  }
  objects.check(of_objects, "objects");
  bytes.check(of_bytes, "bytes");
}

TEST(ProfileEstimate, AWeightIsOneByTheProbability) {
  for (double size = 0; size < 1e9; size = size * 1.3 + 1) {
    const auto whole = static_cast<size_t>(size);
    EXPECT_NEAR(profile::weight_of(whole, rate) * probability_of(whole), 1, 1e-12) << whole;
  }
}

TEST(ProfileEstimate, DistancesAreExponential) {
  for (const double uniform : {1e-9, 1e-3, 0.1, 0.5, 0.7, 0.999}) {
    const auto random = static_cast<uint64_t>(uniform * 0x1p64);
    const double expected = -std::log(uniform) * 0x1p40;
    EXPECT_NEAR(static_cast<double>(profile::distance_to_next(uint64_t{1} << 40, random)), expected,
                expected * 1e-5 + 1e3)
        << uniform;
  }
}

TEST(ProfileEstimate, AtARateOfOneEveryBlockIsASampleAndCountsOnce) {
  EXPECT_EQ(profile::distance_to_next(1, ~uint64_t{0}), 0);
  for (const size_t size : {size_t{0}, size_t{1}, size_t{1} << 40})
    EXPECT_EQ(profile::weight_of(size, 1), 1);
}

TEST(ProfileEstimate, HugeRequestsDoNotOverflowTheCount) {
  EXPECT_LE(profile::counted_bytes(SIZE_MAX), static_cast<size_t>(PTRDIFF_MAX / 2));
  EXPECT_EQ(profile::counted_bytes(0), 15U);
}

}  // namespace
