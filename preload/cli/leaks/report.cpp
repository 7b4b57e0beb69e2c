// Sums up the samples of a profile. Open it with report.hpp.
#include "report.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace sluice::cli::leaks {
namespace {

using profile::none;
using profile::Profile;
using profile::Sample;
using profile::Stack;

constexpr std::string_view unknown_prefix = "unknown: ";

int64_t label_of(const Sample& sample, std::string_view key) {
  for (const profile::Label& label : sample.labels)
    if (label.key == key) return label.number;
  return 0;
}

class Summary {
 public:
  Summary(const Profile& profile, const Suppressions& suppressions, int64_t born_since)
      : profile_(profile), suppressions_(suppressions), born_since_(born_since) {
    report_.stacks = stacks_of(profile);
    report_.is_exact = profile.period <= 1;
    direct_ = places("leaked_objects", "leaked_space");
    indirect_ = places("indirectly_leaked_objects", "indirectly_leaked_space");
    report_.is_known = direct_.blocks != none && indirect_.blocks != none;
    const std::string reachability = profile.fact("reachability").value_or("");
    if (reachability.starts_with(unknown_prefix)) report_.unknown = reachability.substr(unknown_prefix.size());
  }

  LeakReport make() && {
    mark_suppressed_functions();
    for (size_t i = 0; i < profile_.samples.size(); ++i)
      if (const int64_t number = label_of(profile_.samples[i], "site"); number != 0) leaders_.emplace(number, i);
    for (size_t i = 0; i < profile_.samples.size(); ++i)
      add(i);
    for (auto& [frame, site] : by_frame_)
      if (site.alive.blocks > 0 || site.held.blocks > 0) report_.sites.push_back(std::move(site));
    std::stable_sort(report_.sites.begin(), report_.sites.end(), [](const LeakSite& a, const LeakSite& b) {
      const auto key = [](const LeakSite& site) {
        return std::tuple(site.direct.bytes + site.held.bytes, site.direct.blocks, site.indirect.bytes,
                          site.alive.bytes);
      };
      return key(a) > key(b);
    });
    return std::move(report_);
  }

 private:
  struct Places {
    size_t blocks, bytes;
  };
  Places places(std::string_view blocks, std::string_view bytes) const {
    return {profile_.type_called(blocks), profile_.type_called(bytes)};
  }

  static Amount amount(const Sample& sample, const Places& places) {
    if (places.blocks == none || places.bytes == none) return {};
    return {static_cast<double>(sample.values[places.blocks]), static_cast<double>(sample.values[places.bytes])};
  }

  void mark_suppressed_functions() {
    for (const profile::StackFunction& each : report_.stacks.functions)
      is_suppressed_function_.push_back(!suppressions_.empty() &&
                                        (suppressions_.cover(each.full_name) || suppressions_.cover(each.file) ||
                                         suppressions_.cover(each.module_path)));
  }

  bool is_suppressed(const Stack& stack) const {
    return std::any_of(stack.frames.begin(), stack.frames.end(),
                       [&](size_t frame) { return is_suppressed_function_[report_.stacks.frames[frame].function]; });
  }

  LeakSite& site_of(const Stack& stack) {
    const size_t frame = stack.frames[report_.stacks.site_in(stack)];
    LeakSite& site = by_frame_[frame];
    site.frame = frame;
    return site;
  }

  void note_stack(const Stack& stack, double bytes, LeakSite& site) const {
    if (bytes <= site.most_of_a_stack) return;
    const size_t at = report_.stacks.site_in(stack);
    site.most_of_a_stack = bytes;
    site.via.clear();
    for (size_t i = at; i-- > 0;)
      if (!report_.stacks.function_of(stack.frames[i]).is_of_allocator) site.via.push_back(stack.frames[i]);
    site.callers.assign(stack.frames.begin() + static_cast<std::ptrdiff_t>(at) + 1, stack.frames.end());
  }

  void add(size_t index) {
    const Sample& sample = profile_.samples[index];
    if (label_of(sample, "born") < born_since_) return;
    const Stack& stack = report_.stacks.stacks[index];
    const Amount alive = {stack.values[profile::inuse_blocks], stack.values[profile::inuse_bytes]};
    if (alive.blocks <= 0) return;
    const Amount direct = amount(sample, direct_), indirect = amount(sample, indirect_);
    const bool is_leaked = direct.blocks > 0 || indirect.blocks > 0;
    const auto leader = leaders_.find(label_of(sample, "under"));
    const Stack* const leading = leader != leaders_.end() ? &report_.stacks.stacks[leader->second] : nullptr;
    // What is only found through a suppressed leak goes with it.
    if ((is_leaked || !report_.is_known) && (is_suppressed(stack) || (leading != nullptr && is_suppressed(*leading))))
      return report_.suppressed.add(alive);
    LeakSite& site = site_of(stack);
    site.alive.add(alive);
    site.direct.add(direct);
    site.indirect.add(indirect);
    site.variance += stack.values.variance[static_cast<size_t>(profile::Measure::inuse)];
    note_stack(stack, is_leaked ? direct.bytes + indirect.bytes : 0, site);
    report_.alive.add(alive);
    report_.direct.add(direct);
    report_.indirect.add(indirect);
    report_.variance += stack.values.variance[static_cast<size_t>(profile::Measure::inuse)];
    if (leading != nullptr && indirect.blocks > 0) site_of(*leading).held.add(indirect);
  }

  const Profile& profile_;
  const Suppressions& suppressions_;
  const int64_t born_since_;
  Places direct_ = {}, indirect_ = {};
  std::vector<bool> is_suppressed_function_;
  std::map<int64_t, size_t> leaders_;  // the sample of each number of a site
  std::map<size_t, LeakSite> by_frame_;
  LeakReport report_;
};

}  // namespace

double LeakSite::error() const noexcept {
  constexpr double deviations = 1.96;
  return alive.bytes > 0 ? deviations * std::sqrt(variance) / alive.bytes : 0;
}

LeakReport report_of(const Profile& profile, const Suppressions& suppressions, int64_t born_since) {
  return Summary(profile, suppressions, born_since).make();
}

}  // namespace sluice::cli::leaks
