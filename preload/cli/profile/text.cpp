// Writes the summary and the table of sites. Open it with text.hpp.
#include "text.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <fmt/core.h>

#include "command.hpp"
#include "measure/tables.hpp"
#include "printed_text.hpp"
#include "site_table.hpp"

namespace sluice::cli::profile {
namespace {

uint64_t whole(double value) {
  constexpr double most = 9e18;
  return static_cast<uint64_t>(std::clamp(std::round(value), 0.0, most));
}

std::string percent_text(double part, double all) {
  return all > 0 ? fmt::format("{:.1f} %", 100 * part / all) : "-";
}

std::string error_text(const Values& values, Measure measure) {
  const double error = values.error(measure);
  if (values[measure] <= 0) return "-";
  return error > 9.99 ? ">999 %" : fmt::format("{:.0f} %", 100 * error);
}

std::string line_of(const char* label, const std::string& text) {
  return fmt::format("  {:<12}  {}\n", label, text);
}

std::string rate_text(const Profile& profile) {
  const uint64_t samples = profile.number_fact("samples");
  if (profile.period <= 1)
    return fmt::format("{}; each allocation is one, so that all figures are exact",
                       count_text(static_cast<double>(samples)));
  return fmt::format("{}; one for each {} that are allocated, on the average", count_text(static_cast<double>(samples)),
                     bytes_text(static_cast<double>(profile.period)));
}

std::string lost_text(const Profile& profile) {
  const uint64_t dropped = profile.number_fact("dropped"), truncated = profile.number_fact("truncated");
  std::string text;
  if (dropped != 0)
    text += line_of("dropped", fmt::format("{} samples, since the tables were full: all figures are too low",
                                           count_text(static_cast<double>(dropped))));
  if (truncated != 0)
    text += line_of("cut off", fmt::format("{} stacks, whose outer functions are not known",
                                           count_text(static_cast<double>(truncated))));
  return text;
}

std::string peak_line(const Profile& profile, const Values& total) {
  const uint64_t nanoseconds = profile.number_fact("peak_ns");
  const std::string when =
      nanoseconds == 0 ? "" : fmt::format(" after {}", duration_text(static_cast<double>(nanoseconds) / 1e6));
  return line_of("peak",
                 fmt::format("{} in {} blocks{}", bytes_text(total[peak_bytes]), count_text(total[peak_blocks]), when));
}

std::string summary(const Profile& profile, const Stacks& stacks, Measure order) {
  const Values& total = stacks.total;
  std::string text =
      fmt::format("heap profile of {}", printable(profile.fact("program").value_or("an unknown program")));
  if (const uint64_t processes = profile.number_fact("processes"); processes > 1)
    text += fmt::format(" and others: {} processes", processes);
  else if (const auto pid = profile.fact("pid"))
    text += fmt::format(", pid {}", printable(*pid));
  text += "\n\n";
  if (profile.duration_nanos > 0)
    text += line_of("ran", duration_text(static_cast<double>(profile.duration_nanos) / 1e6));
  if (stacks.is_known[alloc_bytes])
    text += line_of("allocated",
                    fmt::format("{} in {} blocks", bytes_text(total[alloc_bytes]), count_text(total[alloc_blocks])));
  if (stacks.is_known[peak_bytes]) text += peak_line(profile, total);
  if (stacks.is_known[inuse_bytes])
    text += line_of("alive at end",
                    fmt::format("{} in {} blocks", bytes_text(total[inuse_bytes]), count_text(total[inuse_blocks])));
  if (stacks.is_known[short_lived])
    text += line_of("short-lived", fmt::format("{} of the blocks were freed before 64 KiB more had been allocated",
                                               percent_text(total[short_lived], total[alloc_blocks])));
  if (profile.fact("samples")) text += line_of("samples", rate_text(profile));
  text += lost_text(profile);
  if (profile.period > 1 && total[order] > 0)
    text += line_of("error", fmt::format("estimates: ±{} for all that is {} (95 % confidence); ± is that of each site",
                                         error_text(total, order), title_of(order)));
  return text;
}

// A column of figures, left of the sites.
struct Column {
  std::string title;
  std::string (*cell)(const Values& values, const Values& total, Measure order);
  Value needs;  // the value that has to be known
};

const std::vector<Column>& columns() {
  static const std::vector<Column> all = {
      {"%",
       [](const Values& values, const Values& total, Measure order) {
         return percent_text(values[order], total[order]);
       },
       value_count},
      {"±", [](const Values& values, const Values&, Measure order) { return error_text(values, order); }, value_count},
      {"alive", [](const Values& values, const Values&, Measure) { return bytes_text(values[inuse_bytes]); },
       inuse_bytes},
      {"blocks", [](const Values& values, const Values&, Measure) { return count_text(values[inuse_blocks]); },
       inuse_blocks},
      {"at peak", [](const Values& values, const Values&, Measure) { return bytes_text(values[peak_bytes]); },
       peak_bytes},
      {"allocated", [](const Values& values, const Values&, Measure) { return bytes_text(values[alloc_bytes]); },
       alloc_bytes},
      {"short-lived",
       [](const Values& values, const Values&, Measure) {
         return percent_text(values[short_lived], values[alloc_blocks]);
       },
       short_lived},
  };
  return all;
}

std::string via_text(const Stacks& stacks, const Site& site) {
  constexpr size_t most = 3;
  std::string text;
  for (size_t i = 0; i < site.via.size(); ++i) {
    const bool is_left_out = site.via.size() > most + 1 && i >= most - 1 && i + 1 < site.via.size();
    if (is_left_out && i == most - 1) text += ", …";
    if (!is_left_out) text += fmt::format("{}{}", text.empty() ? "via " : ", ", stacks.function_of(site.via[i]).name);
  }
  return printable(text);
}

std::string table_of_sites(const Stacks& stacks, const TextOptions& options) {
  const std::vector<Site> all = sites_of(stacks, options.order);
  std::vector<Site> sites = all;
  std::erase_if(sites, [&](const Site& site) { return site.values[options.order] <= 0; });
  if (sites.empty()) return fmt::format("\nno site has anything that is {}\n", title_of(options.order));
  const size_t count = std::min(options.top, sites.size());
  bench::Grid grid(count + 1);
  for (const Column& column : columns()) {
    if (column.needs != value_count && !stacks.is_known[column.needs]) continue;
    grid[0].push_back(column.title);
    for (size_t i = 0; i < count; ++i)
      grid[i + 1].push_back(column.cell(sites[i].values, stacks.total, options.order));
  }
  SiteTable table(grid, options.look.width);
  std::string text =
      fmt::format("\ntop {} of {} sites by {} (%: of all that is)\n", count, sites.size(), title_of(options.order));
  text += table.row(0, {"site"});
  for (size_t i = 0; i < count; ++i) {
    const Frame& frame = stacks.frames[sites[i].frame];
    std::vector<std::string> lines = {place_text(stacks.functions[frame.function], frame.line)};
    if (!sites[i].via.empty()) lines.push_back("  " + via_text(stacks, sites[i]));
    text += table.row(i + 1, lines);
  }
  return text + table.remark();
}

}  // namespace

std::string bytes_text(double bytes) {
  return text_of([&](Print& out) { out.size(whole(bytes)); });
}

std::string count_text(double count) {
  return text_of([&](Print& out) { out.grouped(whole(count)); });
}

std::string duration_text(double milliseconds) {
  if (milliseconds < 1000) return fmt::format("{} ms", bench::time_text(milliseconds));
  const double seconds = milliseconds / 1000;
  if (seconds < 120) return fmt::format("{} s", bench::time_text(seconds));
  const uint64_t all = whole(seconds);
  if (all < 7200) return fmt::format("{} min {} s", all / 60, all % 60);
  return fmt::format("{} h {} min", all / 3600, all / 60 % 60);
}

std::string place_text(const StackFunction& function, int64_t line) {
  std::string text = function.name;
  if (!function.file.empty()) text += "  " + function.file.substr(function.file.rfind('/') + 1);
  if (!function.file.empty() && line > 0) text += fmt::format(":{}", line);
  if (function.file.empty() && !function.module.empty() && !text.starts_with(function.module))
    text += "  " + function.module;
  return printable(text);
}

std::string report_text(const Profile& profile, const Stacks& stacks, const TextOptions& options) {
  return bench::fitted(summary(profile, stacks, options.order), options.look.width) + table_of_sites(stacks, options);
}

}  // namespace sluice::cli::profile
