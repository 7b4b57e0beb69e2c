// Makes stacks of locations, and sites of stacks. Open it with sites.hpp.
#include "sites.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "names.hpp"
#include "profile/estimate.hpp"

namespace sluice::cli::profile {
namespace {

constexpr const char* value_names[value_count] = {
    "alloc_objects",           "alloc_space",         "inuse_objects", "inuse_space", "peak_objects", "peak_space",
    "freed_elsewhere_objects", "short_lived_objects", "lifetime_total"};

class StackMaker {
 public:
  explicit StackMaker(const Profile& profile) : profile_(profile) {
    for (size_t i = 0; i < value_count; ++i) {
      places_[i] = profile.type_called(value_names[i]);
      result_.is_known[i] = places_[i] != none;
    }
    for (const Location& each : profile.locations)
      frames_of_location_.push_back(frames_of(each));
  }

  Stacks make() && {
    for (const Sample& each : profile_.samples)
      add(each);
    return std::move(result_);
  }

 private:
  // Functions that differ in their parameters alone stay apart.
  size_t function_called(StackFunction function) {
    const auto [place, is_new] =
        functions_.emplace(std::tuple{function.full_name, function.file, function.module}, result_.functions.size());
    if (is_new) result_.functions.push_back(std::move(function));
    return place->second;
  }

  size_t frame_at(const Frame& frame) {
    const auto [place, is_new] = frames_.emplace(frame, result_.frames.size());
    if (is_new) result_.frames.push_back(frame);
    return place->second;
  }

  std::vector<size_t> frames_of(const Location& location) {
    const std::string path = location.mapping == none ? std::string() : profile_.mappings[location.mapping].file;
    const std::string module = path.substr(path.rfind('/') + 1);
    std::vector<size_t> frames;
    for (const Line& line : location.lines) {
      const Function& function = profile_.functions[line.function];
      std::string name = short_name(function.name);
      const bool is_of_allocator = module.starts_with("libsluice") || is_inside_allocator(name);
      const bool hands_on = hands_memory_on(name) || is_of_allocator;
      const size_t index =
          function_called({std::move(name), function.name, function.file, module, hands_on, path, is_of_allocator});
      frames.push_back(frame_at({index, line.line}));
    }
    return frames;
  }

  void add(const Sample& sample) {
    Stack stack;
    for (const uint32_t location : sample.locations)
      stack.frames.insert(stack.frames.end(), frames_of_location_[location].begin(),
                          frames_of_location_[location].end());
    if (stack.frames.empty()) stack.frames.push_back(frame_at({function_called({"unknown", "unknown", "", ""}), 0}));
    for (const Label& label : sample.labels) {
      if (label.key == "bytes" && label.number > 0) stack.block_size = label.number;
      if (label.key == "thread") stack.thread = label.text;
    }
    for (size_t i = 0; i < value_count; ++i)
      if (places_[i] != none) stack.values.of[i] = static_cast<double>(sample.values[places_[i]]);
    set_variance(stack);
    result_.total.add(stack.values);
    result_.stacks.push_back(std::move(stack));
  }

  // Each block is sampled with a probability p that follows from its size, counted as a few bytes more; of n blocks
  // that stand for n/p, the number is binomial.
  void set_variance(Stack& stack) const {
    const auto rate = static_cast<double>(profile_.period);
    if (rate <= 1) return;
    constexpr double added_bytes = sluice::profile::added_bytes;
    constexpr std::array blocks = {inuse_blocks, peak_blocks, alloc_blocks, short_lived};
    for (size_t i = 0; i < all_measures.size(); ++i) {
      const double value = stack.values[all_measures[i]], count = stack.values[blocks[i]];
      if (count <= 0) continue;
      const bool is_of_bytes = all_measures[i] != Measure::short_lived;
      const double size = is_of_bytes ? value / count : static_cast<double>(stack.block_size);
      const double missed = std::exp(-(size + added_bytes) / rate);
      const double weight = is_of_bytes ? size : 1;
      stack.values.variance[i] = count * weight * weight * missed / std::max(1 - missed, 1e-12);
    }
  }

  const Profile& profile_;
  std::array<size_t, value_count> places_ = {};
  std::map<std::tuple<std::string, std::string, std::string>, size_t> functions_;
  std::map<Frame, size_t> frames_;
  std::vector<std::vector<size_t>> frames_of_location_;
  Stacks result_;
};

void add_to_site(const Stacks& stacks, const Stack& stack, size_t at, Site& site) {
  site.values.add(stack.values);
  site.threads[stack.thread].add(stack.values);
  site.sizes[stack.block_size].add(stack.values);
  if (stack.values[alloc_bytes] <= site.most_through_via) return;
  site.most_through_via = stack.values[alloc_bytes];
  site.via.clear();
  for (size_t i = at; i-- > 0;)
    if (!stacks.function_of(stack.frames[i]).is_of_allocator) site.via.push_back(stack.frames[i]);
  site.callers.assign(stack.frames.begin() + static_cast<std::ptrdiff_t>(at) + 1, stack.frames.end());
}

}  // namespace

Value value_of(Measure measure) noexcept {
  switch (measure) {
    case Measure::inuse:
      return inuse_bytes;
    case Measure::peak:
      return peak_bytes;
    case Measure::alloc:
      return alloc_bytes;
    case Measure::short_lived:
      break;
  }
  return short_lived;
}

const char* title_of(Measure measure) noexcept {
  switch (measure) {
    case Measure::inuse:
      return "alive at the end";
    case Measure::peak:
      return "alive at the peak";
    case Measure::alloc:
      return "allocated";
    case Measure::short_lived:
      break;
  }
  return "short-lived";
}

void Values::add(const Values& other) noexcept {
  for (size_t i = 0; i < of.size(); ++i)
    of[i] += other.of[i];
  for (size_t i = 0; i < variance.size(); ++i)
    variance[i] += other.variance[i];
}

double Values::error(Measure measure) const noexcept {
  constexpr double deviations = 1.96;
  const double value = (*this)[measure];
  return value > 0 ? deviations * std::sqrt(variance[static_cast<size_t>(measure)]) / value : 0;
}

double Values::mean_lifetime_ms() const noexcept {
  const double freed = of[alloc_blocks] - of[inuse_blocks];
  return freed > 0 ? of[lifetime_ms] / freed : 0;
}

size_t Stacks::site_in(const Stack& stack) const {
  for (size_t i = 0; i < stack.frames.size(); ++i)
    if (!function_of(stack.frames[i]).hands_on) return i;
  return 0;
}

Measure usual_order(const Stacks& stacks) noexcept {
  if (!stacks.is_known[inuse_bytes]) return Measure::alloc;
  constexpr double little = 0.1;
  const bool is_little = stacks.total[inuse_bytes] < little * stacks.total[peak_bytes];
  return is_little ? Measure::peak : Measure::inuse;
}

Stacks stacks_of(const Profile& profile) {
  return StackMaker(profile).make();
}

std::vector<Site> sites_of(const Stacks& stacks, Measure order) {
  std::map<size_t, Site> by_frame;
  for (const Stack& stack : stacks.stacks) {
    const size_t at = stacks.site_in(stack);
    Site& site = by_frame[stack.frames[at]];
    site.frame = stack.frames[at];
    add_to_site(stacks, stack, at, site);
  }
  std::vector<Site> sites;
  for (auto& [frame, site] : by_frame)
    if (std::any_of(site.values.of.begin(), site.values.of.end(), [](double each) { return each > 0; }))
      sites.push_back(std::move(site));
  // Those that are equal by the measure come in the order of what they allocated.
  std::stable_sort(sites.begin(), sites.end(), [&](const Site& a, const Site& b) {
    return std::pair(a.values[order], a.values[alloc_bytes]) > std::pair(b.values[order], b.values[alloc_bytes]);
  });
  return sites;
}

}  // namespace sluice::cli::profile
