// Latencies as tables and sentences say them. Open it to change how they look.
#pragma once

#include <string>
#include <vector>

#include "latency.hpp"

namespace bench {

/// The heading of cells made by `percentiles_text`.
constexpr const char* percentiles_title = "latency, ns: p50 / p99 / p99.9 / p99.99 / max";

/// One cell; a dash where there was no call. Units stand where they are not nanoseconds.
std::string percentiles_text(const LatencyCurve& curve);

/// How they were measured, and what was subtracted.
std::string latency_method(const std::vector<Latency>& latencies);

}  // namespace bench
