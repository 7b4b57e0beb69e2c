// Writes a profile as Valgrind's DHAT does, for its viewer dh_view.html. Open it with exports.hpp.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "exports.hpp"
#include "text.hpp"

namespace sluice::cli::profile {
namespace {

using Json = nlohmann::ordered_json;

uint64_t whole(double value) {
  constexpr double most = 9e15;  // JavaScript's integers end there
  return static_cast<uint64_t>(std::clamp(std::round(value), 0.0, most));
}

std::string frame_text(const Stacks& stacks, size_t index) {
  const Frame& frame = stacks.frames[index];
  const StackFunction& function = stacks.functions[frame.function];
  const std::string module = function.module.empty() ? "an unknown file" : function.module;
  const std::string place = function.file.empty() ? "in " + module : fmt::format("{}:{}", function.file, frame.line);
  return fmt::format("{:#x}: {} ({})", index, function.full_name, place);
}

}  // namespace

Json dhat_document(const Profile& profile, const Stacks& stacks) {
  std::map<std::vector<size_t>, Values> points;  // of one stack with blocks of several sizes
  for (const Stack& each : stacks.stacks)
    points[each.frames].add(each.values);
  Json list = Json::array();
  for (const auto& [frames, values] : points) {
    Json indices = Json::array();
    for (const size_t each : frames)
      indices.push_back(each + 1);
    list.push_back({{"tb", whole(values[alloc_bytes])},
                    {"tbk", whole(values[alloc_blocks])},
                    {"tl", whole(values[lifetime_ms])},
                    // The most of each stack by itself is not known; these two are moments of it.
                    {"mb", whole(std::max(values[peak_bytes], values[inuse_bytes]))},
                    {"mbk", whole(std::max(values[peak_blocks], values[inuse_blocks]))},
                    {"gb", whole(values[peak_bytes])},
                    {"gbk", whole(values[peak_blocks])},
                    {"eb", whole(values[inuse_bytes])},
                    {"ebk", whole(values[inuse_blocks])},
                    {"fs", std::move(indices)}});
  }
  Json frames = {"[root]"};
  for (size_t i = 0; i < stacks.frames.size(); ++i)
    frames.push_back(frame_text(stacks, i));
  constexpr double in_a_millisecond = 1e6;
  constexpr int short_lived_ms = 1;
  return {{"dhatFileVersion", 2},
          {"mode", "sluice-heap-profile"},
          {"verb", "Allocated"},
          {"bklt", true},
          {"bkacc", false},
          {"tu", "ms"},
          {"Mtu", "ks"},  // a million of them
          {"tuth", short_lived_ms},
          {"cmd", profile.fact("program").value_or("unknown program")},
          {"pid", profile.number_fact("pid")},
          {"tg", whole(static_cast<double>(profile.number_fact("peak_ns")) / in_a_millisecond)},
          {"te", whole(static_cast<double>(profile.duration_nanos) / in_a_millisecond)},
          {"pps", std::move(list)},
          {"ftbl", std::move(frames)}};
}

}  // namespace sluice::cli::profile
