// Looks things up in a profile, and joins two. Open it with model.hpp.
#include "model.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/core.h>

namespace sluice::cli::profile {
namespace {

constexpr std::string_view fact_prefix = "sluice.";

void set_number_fact(Profile& profile, std::string_view name, uint64_t value) {
  const std::string start = fmt::format("{}{}=", fact_prefix, name);
  std::erase_if(profile.comments, [&](const std::string& each) { return each.starts_with(start); });
  profile.comments.push_back(start + std::to_string(value));
}

constexpr int site_number_bits = 40;

size_t moved(size_t index, size_t by) {
  return index == none ? none : index + by;
}

}  // namespace

size_t Profile::type_called(std::string_view name) const noexcept {
  for (size_t i = 0; i < types.size(); ++i)
    if (types[i].name == name) return i;
  return none;
}

std::optional<std::string> Profile::fact(std::string_view name) const {
  const std::string start = fmt::format("{}{}=", fact_prefix, name);
  for (const std::string& comment : comments)
    if (comment.starts_with(start)) return comment.substr(start.size());
  return std::nullopt;
}

uint64_t Profile::number_fact(std::string_view name) const {
  const std::string text = fact(name).value_or("");
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : 0;
}

bool merge(Profile& into, const Profile& other) {
  if (into.types != other.types || into.period != other.period) return false;
  const size_t mappings = into.mappings.size(), locations = into.locations.size(), functions = into.functions.size();
  into.mappings.insert(into.mappings.end(), other.mappings.begin(), other.mappings.end());
  into.functions.insert(into.functions.end(), other.functions.begin(), other.functions.end());
  for (Location each : other.locations) {
    each.mapping = moved(each.mapping, mappings);
    for (Line& line : each.lines)
      line.function = moved(line.function, functions);
    into.locations.push_back(std::move(each));
  }
  const auto processes = static_cast<int64_t>(std::max<uint64_t>(into.number_fact("processes"), 1));
  for (Sample each : other.samples) {
    for (uint32_t& location : each.locations)
      location += static_cast<uint32_t>(locations);
    for (Label& label : each.labels)  // numbers of sites are those of one process
      if (label.key == "site" || label.key == "under") label.number += processes << site_number_bits;
    into.samples.push_back(std::move(each));
  }
  for (const char* const name : {"samples", "dropped", "truncated"})
    set_number_fact(into, name, into.number_fact(name) + other.number_fact(name));
  const uint64_t one = 1;
  set_number_fact(into, "processes",
                  std::max(into.number_fact("processes"), one) + std::max(other.number_fact("processes"), one));
  // Moments of one process say nothing of several.
  for (const std::string_view name : {"sluice.timeline=", "sluice.peak_ns=", "sluice.pid="})
    std::erase_if(into.comments, [&](const std::string& comment) { return comment.starts_with(name); });
  into.duration_nanos = std::max(into.duration_nanos, other.duration_nanos);
  return true;
}

}  // namespace sluice::cli::profile
