// See estimate.hpp.
#include "profile/estimate.hpp"

#include <bit>

namespace sluice::profile {
namespace {

constexpr double natural_logarithm_of_2 = 0.693147180559945309417;

// Requires: x > 0, a normal number.
double logarithm(double x) noexcept {
  const auto bits = std::bit_cast<uint64_t>(x);
  auto exponent = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & ((uint64_t{1} << 52) - 1)) | uint64_t{1023} << 52);
  if (m > 1.4) {
    m /= 2;
    ++exponent;
  }
  // ln m = 2 artanh t, |t| <= 1/6
  const double t = (m - 1) / (m + 1);
  const double square = t * t;
  double sum = 0;
#pragma GCC unroll 9
  for (int k = 17; k >= 1; k -= 2)
    sum = sum * square + 1.0 / k;
  return 2 * t * sum + exponent * natural_logarithm_of_2;
}

// 1 - exp(-x). Requires: x >= 0.
double probability(double x) noexcept {
  if (x > 40) return 1;
  // Halved until the series is short; then p(2x) = p(x) * (2 - p(x)).
  int halvings = 0;
  while (x > 0.125) {
    x /= 2;
    ++halvings;
  }
  double sum = 0;
#pragma GCC unroll 9
  for (int k = 9; k >= 1; --k)
    sum = (1 - sum) * (x * (1.0 / k));  // by constants: a division takes as long as five of these
  double p = sum;
  for (; halvings != 0; --halvings)
    p = p * (2 - p);
  return p;
}

}  // namespace

int64_t distance_to_next(uint64_t rate, uint64_t random) noexcept {
  if (rate <= 1) return 0;
  const double uniform = (static_cast<double>(random >> 12) + 0.5) * 0x1p-52;  // between 0 and 1, neither included
  return static_cast<int64_t>(-logarithm(uniform) * static_cast<double>(rate));
}

double weight_of(size_t size, uint64_t rate) noexcept {
  if (rate <= 1) return 1;
  return 1 / probability(static_cast<double>(counted_bytes(size)) / static_cast<double>(rate));
}

}  // namespace sluice::profile
