// Writes latencies. Open it with latency_tables.hpp.
#include "latency_tables.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "tables.hpp"

namespace bench {
namespace {

/// Without a fraction, which the clock does not have.
std::string latency_text(double nanoseconds) {
  if (nanoseconds < 0.5) return "<1";  // nothing is left after what reading the clock costs
  return nanoseconds >= 1e4 ? duration_text(nanoseconds) : fmt::format("{:.0f}", nanoseconds);
}

}  // namespace

std::string percentiles_text(const LatencyCurve& curve) {
  if (curve.count == 0) return "-";
  return fmt::format("{} / {} / {} / {} / {}", latency_text(curve.p50), latency_text(curve.p99),
                     latency_text(curve.p99_9), latency_text(curve.p99_99), latency_text(curve.max));
}

std::string latency_method(const std::vector<Latency>& latencies) {
  if (latencies.empty()) return {};
  const auto [least, most] = std::minmax_element(
      latencies.begin(), latencies.end(),
      [](const Latency& left, const Latency& right) { return left.overhead_ns < right.overhead_ns; });
  return fmt::format(
      "Latency: of each call in one more run, by {}; what reading the clock costs, {:.1f} to {:.1f} ns, is subtracted; "
      "<1 is below the clock's step.",
      latencies.front().timer == "tsc" ? "the time-stamp counter" : "the system's clock", least->overhead_ns,
      most->overhead_ns);
}

}  // namespace bench
