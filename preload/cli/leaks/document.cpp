// The report as JSON, schema "sluice-leaks 1". Open it with text.hpp; lib/docs/leaks.md describes the format.
#include <algorithm>
#include <cstdint>

#include <nlohmann/json.hpp>

#include "sluice/sluice.h"
#include "text.hpp"

namespace sluice::cli::leaks {
namespace {

using Json = nlohmann::ordered_json;

Json amount_json(const Amount& amount) {
  constexpr double most = 9e18;  // a damaged file may hold anything
  const auto whole = [=](double value) { return static_cast<int64_t>(std::clamp(value, -most, most)); };
  return {{"blocks", whole(amount.blocks)}, {"bytes", whole(amount.bytes)}};
}

Json frame_json(const LeakReport& report, size_t index) {
  const profile::Frame& frame = report.stacks.frames[index];
  const profile::StackFunction& function = report.stacks.functions[frame.function];
  Json json = {{"function", function.full_name}, {"object", function.module_path}};
  if (!function.file.empty()) json["file"] = function.file;
  if (frame.line > 0) json["line"] = frame.line;
  return json;
}

Json site_json(const LeakReport& report, const LeakSite& site) {
  Json json = {{"site", report.stacks.function_of(site.frame).name}, {"alive", amount_json(site.alive)}};
  if (report.is_known) {
    json["direct"] = amount_json(site.direct);
    json["indirect"] = amount_json(site.indirect);
    json["held"] = amount_json(site.held);
  }
  if (!report.is_exact) json["error"] = site.error();
  Json stack = Json::array();
  for (size_t i = site.via.size(); i-- > 0;)
    stack.push_back(frame_json(report, site.via[i]));
  stack.push_back(frame_json(report, site.frame));
  for (const size_t frame : site.callers)
    stack.push_back(frame_json(report, frame));
  json["stack"] = std::move(stack);
  return json;
}

}  // namespace

Json report_document(const profile::Profile& profile, const LeakReport& report, const std::string& since) {
  Json json = {{"schema", "sluice-leaks 1"},
               {"version", SLUICE_VERSION},
               {"program", profile.fact("program").value_or("")},
               {"pid", profile.number_fact("pid")},
               {"exact", report.is_exact},
               {"reachability", report.is_known          ? "known"
                                : report.unknown.empty() ? "not asked"
                                                         : "unknown: " + report.unknown}};
  if (!since.empty()) json["born_after"] = since;
  json["alive"] = amount_json(report.alive);
  if (report.is_known) {
    json["direct"] = amount_json(report.direct);
    json["indirect"] = amount_json(report.indirect);
  }
  json["suppressed"] = amount_json(report.suppressed);
  json["sites"] = Json::array();
  for (const LeakSite& site : report.sites)
    json["sites"].push_back(site_json(report, site));
  return json;
}

}  // namespace sluice::cli::leaks
