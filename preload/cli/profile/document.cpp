// The document of the page: facts, memory over time, the tree of all stacks and the sites. Open it with exports.hpp;
// the page itself is made by report/profile.js.
#include <algorithm>
#include <array>
#include <charconv>
#include <ctime>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "exports.hpp"
#include "sluice/sluice.h"

namespace sluice::cli::profile {
namespace {

using Json = nlohmann::ordered_json;
using Measures = std::array<double, all_measures.size()>;

constexpr const char* keys[] = {"inuse", "peak", "alloc", "short_lived"};

Measures measures_of(const Values& values) {
  Measures measures = {};
  for (size_t i = 0; i < measures.size(); ++i)
    measures[i] = values[all_measures[i]];
  return measures;
}

// All stacks as one tree from the outermost functions on, below a root that is no function.
class Tree {
 public:
  explicit Tree(const Stacks& stacks) {
    nodes_.push_back({.function = none});
    for (const Stack& stack : stacks.stacks) {
      const Measures measures = measures_of(stack.values);
      size_t node = 0;
      add(node, measures);
      for (size_t i = stack.frames.size(); i-- > 0;) {
        node = child_of(node, stacks.frames[stack.frames[i]].function);
        add(node, measures);
      }
    }
  }

  // Nodes in the order of a walk, each with its depth, as columns; those too thin to be seen are left out, with all
  // above them.
  Json json() const {
    Json functions = Json::array(), depths = Json::array();
    std::array<Json, all_measures.size()> columns;
    columns.fill(Json::array());
    std::vector<std::pair<size_t, size_t>> open = {{0, 0}};  // node and depth
    while (!open.empty()) {
      const auto [index, depth] = open.back();
      open.pop_back();
      const Node& node = nodes_[index];
      functions.push_back(node.function == none ? Json() : Json(node.function));
      depths.push_back(depth);
      for (size_t i = 0; i < columns.size(); ++i)
        columns[i].push_back(node.measures[i]);
      for (const auto& [function, child] : node.children)
        if (is_seen(nodes_[child])) open.emplace_back(child, depth + 1);
    }
    Json tree = {{"function", std::move(functions)}, {"depth", std::move(depths)}};
    for (size_t i = 0; i < columns.size(); ++i)
      tree[keys[i]] = std::move(columns[i]);
    return tree;
  }

 private:
  struct Node {
    size_t function = none;
    Measures measures = {};
    std::map<size_t, size_t> children = {};  // by function
  };

  void add(size_t node, const Measures& measures) {
    for (size_t i = 0; i < measures.size(); ++i)
      nodes_[node].measures[i] += measures[i];
  }

  size_t child_of(size_t node, size_t function) {
    const auto [place, is_new] = nodes_[node].children.emplace(function, nodes_.size());
    const size_t child = place->second;
    if (is_new) nodes_.push_back({.function = function});
    return child;
  }

  bool is_seen(const Node& node) const {
    constexpr double least_part = 1.0 / 20000;
    for (size_t i = 0; i < node.measures.size(); ++i)
      if (node.measures[i] > least_part * nodes_.front().measures[i]) return true;
    return false;
  }

  std::vector<Node> nodes_;
};

// "0:1024 10:2048" as [[0, 1024], [10, 2048]]; what is damaged ends it.
Json timeline_of(const Profile& profile) {
  const std::string text = profile.fact("timeline").value_or("");
  Json points = Json::array();
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at != end) {
    double moment = 0, bytes = 0;
    const auto first = std::from_chars(at, end, moment);
    if (first.ec != std::errc() || first.ptr == end || *first.ptr != ':') break;
    const auto second = std::from_chars(first.ptr + 1, end, bytes);
    if (second.ec != std::errc()) break;
    points.push_back({moment, bytes});
    at = second.ptr;
    while (at != end && *at == ' ')
      ++at;
  }
  return points;
}

Json values_json(const Values& values, const Stacks& stacks) {
  constexpr const char* names[value_count] = {"alloc_blocks", "alloc",     "inuse_blocks", "inuse",      "peak_blocks",
                                              "peak",         "elsewhere", "short_lived",  "lifetime_ms"};
  Json json = Json::object();
  for (size_t i = 0; i < value_count; ++i)
    if (stacks.is_known[i]) json[names[i]] = values.of[i];
  return json;
}

// The largest few, and how many are left out.
template <typename Key>
Json largest(const std::map<Key, Values>& parts, const char* key) {
  std::vector<std::pair<double, const Key*>> order;
  order.reserve(parts.size());
  for (const auto& [name, values] : parts)
    order.emplace_back(-values[alloc_bytes], &name);
  std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  constexpr size_t most = 8;
  Json json = Json::array();
  for (size_t i = 0; i < std::min(most, order.size()); ++i) {
    const Values& values = parts.at(*order[i].second);
    json.push_back({{key, *order[i].second},
                    {"alloc", values[alloc_bytes]},
                    {"inuse", values[inuse_bytes]},
                    {"alloc_blocks", values[alloc_blocks]}});
  }
  return json;
}

Json frames_json(const std::vector<size_t>& frames, const Stacks& stacks) {
  constexpr size_t most = 40;
  Json json = Json::array();
  for (size_t i = 0; i < std::min(frames.size(), most); ++i)
    json.push_back({stacks.frames[frames[i]].function, stacks.frames[frames[i]].line});
  return json;
}

Json sites_json(const Stacks& stacks, Measure order) {
  Json sites = Json::array();
  for (const Site& site : sites_of(stacks, order)) {
    const Frame& frame = stacks.frames[site.frame];
    Json errors = Json::object();
    for (size_t i = 0; i < all_measures.size(); ++i)
      errors[keys[i]] = site.values.error(all_measures[i]);
    sites.push_back({{"function", frame.function},
                     {"line", frame.line},
                     {"values", values_json(site.values, stacks)},
                     {"errors", errors},
                     {"mean_lifetime_ms", site.values.mean_lifetime_ms()},
                     {"via", frames_json(site.via, stacks)},
                     {"callers", frames_json(site.callers, stacks)},
                     {"threads", largest(site.threads, "name")},
                     {"sizes", largest(site.sizes, "bytes")}});
  }
  return sites;
}

std::string date_text(int64_t nanoseconds) {
  constexpr int64_t in_a_second = 1'000'000'000;
  const std::time_t seconds = nanoseconds / in_a_second;
  std::tm utc = {};
  if (nanoseconds == 0 || gmtime_r(&seconds, &utc) == nullptr) return {};
  char text[64];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

}  // namespace

nlohmann::ordered_json page_document(const Profile& profile, const Stacks& stacks, Measure order) {
  Json functions = Json::array();
  for (const StackFunction& each : stacks.functions)
    functions.push_back({{"name", each.name},
                         {"full_name", each.full_name == each.name ? "" : each.full_name},
                         {"file", each.file},
                         {"module", each.module}});
  Json document = {{"schema", "sluice-profile 1"}, {"sluice_version", SLUICE_VERSION}};
  if (const std::string date = date_text(profile.time_nanos); !date.empty()) document["date"] = date;
  document.update(Json{{"program", profile.fact("program").value_or("")},
                       {"pid", profile.fact("pid").value_or("")},
                       {"processes", profile.number_fact("processes")},
                       {"duration_ms", static_cast<double>(profile.duration_nanos) / 1e6},
                       {"peak_ms", static_cast<double>(profile.number_fact("peak_ns")) / 1e6},
                       {"rate", profile.period},
                       {"samples", profile.number_fact("samples")},
                       {"dropped", profile.number_fact("dropped")},
                       {"truncated", profile.number_fact("truncated")},
                       {"total", values_json(stacks.total, stacks)},
                       {"order", keys[static_cast<size_t>(order)]},
                       {"errors", Json::object()},
                       {"timeline", timeline_of(profile)},
                       {"functions", std::move(functions)},
                       {"tree", Tree(stacks).json()},
                       {"sites", sites_json(stacks, order)}});
  for (size_t i = 0; i < all_measures.size(); ++i)
    document["errors"][keys[i]] = stacks.total.error(all_measures[i]);
  return document;
}

}  // namespace sluice::cli::profile
