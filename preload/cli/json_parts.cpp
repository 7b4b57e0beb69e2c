// Writes figures as JSON. Open it with json_parts.hpp.
#include "json_parts.hpp"

#include <ctime>

#include <fmt/chrono.h>
#include <fmt/core.h>

namespace bench {
namespace {

Json curve_json(const LatencyCurve& curve) {
  if (curve.count == 0) return nullptr;
  Json points = Json::array();
  for (const auto& [percentile, nanoseconds] : curve.points)
    points.push_back({percentile, nanoseconds});
  return {{"count", curve.count}, {"mean", curve.mean},     {"p50", curve.p50}, {"p90", curve.p90}, {"p99", curve.p99},
          {"p99_9", curve.p99_9}, {"p99_99", curve.p99_99}, {"max", curve.max}, {"points", points}};
}

}  // namespace

Json interval_json(const std::optional<Interval>& interval) {
  if (!interval) return nullptr;
  return {{"low", interval->low}, {"high", interval->high}};
}

Json ratio_json(const std::optional<Ratio>& ratio) {
  if (!ratio) return nullptr;
  return {{"value", ratio->value}, {"low", ratio->low}, {"high", ratio->high}};
}

Json timeline_json(const Timeline& timeline) {
  if (timeline.rss_kib.empty()) return nullptr;
  return {{"interval_ms", timeline.interval_milliseconds}, {"rss_kib", timeline.rss_kib}};
}

Json latency_json(const std::optional<Latency>& latency) {
  if (!latency || latency->processes == 0) return nullptr;
  return {{"timer", latency->timer},
          {"overhead_ns", latency->overhead_ns},
          {"malloc", curve_json(latency->allocate)},
          {"free", curve_json(latency->release)},
          {"realloc", curve_json(latency->resize)}};
}

Json machine_json(const Machine& machine) {
  return {{"system", machine.system},
          {"processor", machine.processor},
          {"processors", machine.processors},
          {"memory_mib", machine.memory_mib},
          {"transparent_huge_pages", machine.huge_pages}};
}

const char* verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::less:
      return "less";
    case Verdict::more:
      return "more";
    case Verdict::no_difference:
      return "no difference";
    case Verdict::unknown:
      break;
  }
  return "unknown";
}

std::string date_text() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

std::string json_text(const Json& document) {
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace bench
