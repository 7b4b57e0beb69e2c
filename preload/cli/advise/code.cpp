// Looks at each site's figures for what its code might do differently. Open it with code.hpp.
#include "advise/code.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "../profile/text.hpp"
#include "base/size_class.hpp"

namespace sluice::cli::advise {
namespace {

using namespace profile;

// Of all blocks or bytes; below that a site changes nothing that anybody could measure.
constexpr double least_part = 0.05;
// Of a site's own blocks, for it to be called so.
constexpr double nearly_all = 0.9, most = 0.5;
constexpr double least_blocks = 1000;
constexpr double least_loss = 0.1;  // of the bytes that were asked for
constexpr std::size_t fewest_steps = 5;
constexpr double many_nodes = 10'000;
constexpr double node_size = 64;

double part(double value, double of) {
  return of > 0 ? value / of : 0;
}

std::string percent(double value) {
  return fmt::format("{:.0f} %", value * 100);
}

// One site with the totals that it is a part of.
struct Seen {
  const Stacks& stacks;
  const Site& site;

  double operator[](Value value) const { return site.values[value]; }
  double part_of_all(Value value) const { return part(site.values[value], stacks.total[value]); }
  double mean_size() const { return part(site.values[alloc_bytes], site.values[alloc_blocks]); }
};

Finding finding(const char* kind, const Seen& seen, double weight, std::string text, const char* page) {
  const Frame& frame = seen.stacks.frames[seen.site.frame];
  const StackFunction& function = seen.stacks.function_of(seen.site.frame);
  return {kind,
          place_text(function, frame.line),
          std::move(text),
          page,
          weight,
          {{"function", function.full_name},
           {"file", function.file},
           {"line", frame.line},
           {"blocks", seen[alloc_blocks]},
           {"bytes", seen[alloc_bytes]}}};
}

void look_for_short_lives(const Seen& seen, std::vector<Finding>& found) {
  const double share = part(seen[short_lived], seen[alloc_blocks]);
  if (share < nearly_all || seen.part_of_all(alloc_blocks) < least_part || seen[alloc_blocks] < least_blocks) return;
  // Who frees it elsewhere cannot have it in a scope of its own.
  if (part(seen[freed_elsewhere], seen[alloc_blocks]) > 1 - nearly_all) return;
  Finding each = finding(
      "short-lived", seen, seen.part_of_all(alloc_blocks),
      fmt::format(
          "{} blocks ({} of all) of {} on the average; {} of them were freed before 64 KiB more had been "
          "allocated. A scope or a frame around what uses them, or one buffer that is kept, needs no free for each",
          count_text(seen[alloc_blocks]), percent(seen.part_of_all(alloc_blocks)), bytes_text(seen.mean_size()),
          percent(share)),
      "lib/docs/frames-and-scopes.md");
  each.figures["short_lived"] = share;
  found.push_back(std::move(each));
}

void look_for_other_threads(const Seen& seen, std::vector<Finding>& found) {
  const double share = part(seen[freed_elsewhere], seen[alloc_blocks]);
  if (share < most || seen.part_of_all(alloc_blocks) < least_part || seen[alloc_blocks] < least_blocks) return;
  Finding each =
      finding("other-thread", seen, seen.part_of_all(alloc_blocks),
              fmt::format("{} blocks ({} of all); {} of them were freed by another thread than the one that "
                          "allocated them. To hand several over at once, or back to be used again, moves "
                          "fewer cache lines between processors",
                          count_text(seen[alloc_blocks]), percent(seen.part_of_all(alloc_blocks)), percent(share)),
              "lib/docs/memory.md");
  each.figures["freed_by_another_thread"] = share;
  found.push_back(std::move(each));
}

// A mean size within one step of the profile's sizes is that of the blocks if they are alike.
void look_for_rounding(const Seen& seen, std::vector<Finding>& found) {
  double lost = 0, worst = 0, worst_size = 0;
  for (const auto& [step, values] : seen.site.sizes) {
    const double size = part(values[peak_bytes], values[peak_blocks]);
    if (size < 1 || size > static_cast<double>(max_small_size)) continue;
    const double block = class_sizes[size_class_of(static_cast<size_t>(std::lround(size)))];
    if (part(block - size, size) < least_loss) continue;
    const double of_step = (block - size) * values[peak_blocks];
    lost += of_step;
    if (of_step > worst) worst = of_step, worst_size = size;
  }
  const double weight = part(lost, seen.stacks.total[peak_bytes]);
  if (weight < least_part) return;
  const auto asked = static_cast<size_t>(std::lround(worst_size));
  const size_t block = class_sizes[size_class_of(asked)];
  Finding each = finding("rounding", seen, weight,
                         fmt::format("at the peak {} were lost to rounding ({} of all that was alive): blocks of {} "
                                     "bytes, on the average, take {}. {} bytes less, where there is padding or a field "
                                     "that could be narrower, save a whole step",
                                     bytes_text(lost), percent(weight), asked, block,
                                     asked - std::min<size_t>(asked, class_sizes[first_class_of(asked) - 1])),
                         "lib/docs/statistics.md");
  each.figures["lost_bytes"] = lost;
  found.push_back(std::move(each));
}

void look_for_growth(const Seen& seen, std::vector<Finding>& found) {
  const auto grows = [&](size_t frame) {
    const std::string& name = seen.stacks.function_of(frame).name;
    return name.find("realloc") != std::string::npos || name.find("_M_create") != std::string::npos ||
           name.find("_M_default_append") != std::string::npos || name.find("_M_rehash") != std::string::npos;
  };
  if (std::none_of(seen.site.via.begin(), seen.site.via.end(), grows) && !grows(seen.site.frame)) return;
  const auto& sizes = seen.site.sizes;
  if (sizes.size() < fewest_steps || seen.part_of_all(alloc_bytes) < least_part) return;
  const double largest = static_cast<double>(sizes.rbegin()->first);
  Finding each =
      finding("growth", seen, seen.part_of_all(alloc_bytes),
              fmt::format("{} ({} of all bytes) in blocks of {} sizes from {} to {}, which grow step by step. "
                          "Where the size is known, or can be guessed, reserve it once",
                          bytes_text(seen[alloc_bytes]), percent(seen.part_of_all(alloc_bytes)), sizes.size(),
                          bytes_text(static_cast<double>(sizes.begin()->first)), bytes_text(largest)),
              "lib/docs/library.md");
  each.figures["sizes"] = sizes.size();
  found.push_back(std::move(each));
}

void look_for_small_nodes(const Seen& seen, std::vector<Finding>& found) {
  const double size = part(seen[peak_bytes], seen[peak_blocks]);
  if (size > node_size || seen[peak_blocks] < many_nodes || seen.part_of_all(peak_blocks) < least_part) return;
  if (part(seen[short_lived], seen[alloc_blocks]) > most) return;
  Finding each =
      finding("small-and-many", seen, seen.part_of_all(peak_blocks),
              fmt::format("{} blocks of {:.0f} bytes on the average were alive at the peak ({} of all). A pool, or "
                          "a container that holds its elements in one array, keeps them together",
                          count_text(seen[peak_blocks]), size, percent(seen.part_of_all(peak_blocks))),
              "lib/docs/library.md");
  each.figures["peak_blocks"] = seen[peak_blocks];
  found.push_back(std::move(each));
}

}  // namespace

std::vector<Finding> findings_of(const Stacks& stacks) {
  std::vector<Finding> found;
  for (const Site& site : sites_of(stacks, Measure::alloc)) {
    const Seen seen{stacks, site};
    look_for_short_lives(seen, found);
    look_for_other_threads(seen, found);
    look_for_rounding(seen, found);
    look_for_growth(seen, found);
    look_for_small_nodes(seen, found);
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.weight > b.weight; });
  return found;
}

}  // namespace sluice::cli::advise
