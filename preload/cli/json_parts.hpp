// What the JSON reports of `sluice compare` and `sluice bench` have in common. Open it to change how a figure is
// written.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "measure/latency.hpp"
#include "measure/machine.hpp"
#include "measure/memory_timeline.hpp"
#include "measure/statistics.hpp"

namespace bench {

using Json = nlohmann::ordered_json;

// Null where there is nothing.
Json interval_json(const std::optional<Interval>& interval);
Json ratio_json(const std::optional<Ratio>& ratio);
Json timeline_json(const Timeline& timeline);
Json latency_json(const std::optional<Latency>& latency);

Json machine_json(const Machine& machine);

// "less", "more", "no difference" or "unknown".
const char* verdict_name(Verdict verdict);

// The time now as ISO 8601 has it, in UTC.
std::string date_text();

// The document as a file holds it; what is no UTF-8 in it is replaced.
std::string json_text(const Json& document);

}  // namespace bench
