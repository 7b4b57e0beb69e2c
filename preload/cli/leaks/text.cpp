// Writes the summary and the table of sites. Open it with text.hpp.
#include "text.hpp"

#include <algorithm>
#include <vector>

#include <fmt/core.h>

#include "command.hpp"
#include "measure/tables.hpp"
#include "profile/site_table.hpp"
#include "profile/text.hpp"

namespace sluice::cli::leaks {
namespace {

using profile::bytes_text;
using profile::count_text;
using profile::Profile;

std::string line_of(const char* label, const std::string& text) {
  return fmt::format("  {:<13}  {}\n", label, text);
}

std::string amount_text(const Amount& amount) {
  return fmt::format("{} in {} block{}", bytes_text(amount.bytes), count_text(amount.blocks),
                     amount.blocks == 1 ? "" : "s");
}

std::string error_text(double error) {
  return error > 9.99 ? ">999 %" : fmt::format("{:.0f} %", 100 * error);
}

std::string heading(const Profile& profile, const std::string& since) {
  std::string text = fmt::format("leaks of {}", printable(profile.fact("program").value_or("an unknown program")));
  if (const uint64_t processes = profile.number_fact("processes"); processes > 1)
    text += fmt::format(" and others: {} processes", processes);
  else if (const auto pid = profile.fact("pid"))
    text += fmt::format(", pid {}", printable(*pid));
  if (!since.empty()) text += fmt::format(": blocks born after {}", printable(since));
  return text + "\n\n";
}

std::string summary(const Profile& profile, const LeakReport& report, const TextOptions& options) {
  std::string text = heading(profile, options.since);
  if (profile.duration_nanos > 0)
    text += line_of("ran", profile::duration_text(static_cast<double>(profile.duration_nanos) / 1e6));
  text += line_of("alive", amount_text(report.alive));
  if (report.is_known) {
    text += line_of("leaked", fmt::format("{}, to which no pointer is found", amount_text(report.direct)));
    text += line_of("indirectly", fmt::format("{}, to which only leaked blocks point", amount_text(report.indirect)));
    text += line_of("reachable", amount_text(report.reachable()));
  } else if (!report.unknown.empty()) {
    text += line_of("leaked", fmt::format("unknown: {}", printable(report.unknown)));
  } else {
    text += line_of("leaked", "not known; --exact finds out");
  }
  if (report.suppressed.blocks > 0) text += line_of("suppressed", amount_text(report.suppressed));
  if (!report.is_exact && report.alive.bytes > 0) {
    LeakSite all;
    all.alive = report.alive;
    all.variance = report.variance;
    text += line_of("error", fmt::format("estimates from samples, one for each {}: ±{} for all that is alive (95 % "
                                         "confidence)",
                                         bytes_text(static_cast<double>(profile.period)), error_text(all.error())));
  }
  if (const uint64_t dropped = profile.number_fact("dropped"); dropped != 0)
    text += line_of("dropped", fmt::format("{} samples, since the tables were full: all figures are too low",
                                           count_text(static_cast<double>(dropped))));
  return text;
}

struct Column {
  const char* title;
  std::string (*cell)(const LeakSite& site);
};

std::string bytes_or_dash(double bytes, double blocks) {
  return blocks > 0 ? bytes_text(bytes) : "-";
}
std::string count_or_dash(double blocks) {
  return blocks > 0 ? count_text(blocks) : "-";
}

constexpr Column leak_columns[] = {
    {"leaked", [](const LeakSite& site) { return bytes_or_dash(site.direct.bytes, site.direct.blocks); }},
    {"blocks", [](const LeakSite& site) { return count_or_dash(site.direct.blocks); }},
    {"holds", [](const LeakSite& site) { return bytes_or_dash(site.held.bytes, site.held.blocks); }},
    {"indirectly", [](const LeakSite& site) { return bytes_or_dash(site.indirect.bytes, site.indirect.blocks); }},
    {"blocks", [](const LeakSite& site) { return count_or_dash(site.indirect.blocks); }}};
constexpr Column reachable_column = {"reachable", [](const LeakSite& site) {
                                       return bytes_or_dash(
                                           site.alive.bytes - site.direct.bytes - site.indirect.bytes,
                                           site.alive.blocks - site.direct.blocks - site.indirect.blocks);
                                     }};
constexpr Column alive_columns[] = {{"alive", [](const LeakSite& site) { return bytes_text(site.alive.bytes); }},
                                    {"blocks", [](const LeakSite& site) { return count_text(site.alive.blocks); }}};
constexpr Column error_column = {"±", [](const LeakSite& site) { return error_text(site.error()); }};

// The functions, up to main and so many.
std::string frames_text(const LeakReport& report, const char* word, const std::vector<size_t>& frames, size_t most) {
  std::string text;
  for (size_t i = 0; i < frames.size(); ++i) {
    if (i == most) return printable(text + ", …");
    const std::string& name = report.stacks.function_of(frames[i]).name;
    text += fmt::format("{}{}", i == 0 ? fmt::format("  {} ", word) : ", ", name);
    if (name == "main") break;
  }
  return printable(text);
}

// What called a site says nothing where that is main.
std::string callers_text(const LeakReport& report, const LeakSite& site, size_t most) {
  if (report.stacks.function_of(site.frame).name == "main") return {};
  return frames_text(report, "called by", site.callers, most);
}

std::string table(const LeakReport& report, const TextOptions& options) {
  std::vector<const LeakSite*> sites;
  for (const LeakSite& site : report.sites)
    if (!report.is_known || options.reachable || site.is_leaked()) sites.push_back(&site);
  if (sites.empty()) return report.is_known ? "\nnothing is leaked\n" : "\nnothing is alive\n";
  std::vector<Column> columns;
  if (report.is_known) {
    columns.assign(std::begin(leak_columns), std::end(leak_columns));
    if (options.reachable) columns.push_back(reachable_column);
  } else {
    columns.assign(std::begin(alive_columns), std::end(alive_columns));
    if (!report.is_exact) columns.insert(columns.begin() + 1, error_column);
  }
  const size_t count = std::min(options.top, sites.size());
  bench::Grid grid(count + 1);
  for (const Column& column : columns) {
    grid[0].emplace_back(column.title);
    for (size_t i = 0; i < count; ++i)
      grid[i + 1].push_back(column.cell(*sites[i]));
  }
  const profile::SiteTable layout(grid, options.look.width);
  std::string text =
      fmt::format("\ntop {} of {} sites by what is {}\n", count, sites.size(), report.is_known ? "leaked" : "alive");
  text += layout.row(0, {"site"});
  constexpr size_t most_via = 3, most_callers = 5;
  for (size_t i = 0; i < count; ++i) {
    const profile::Frame& frame = report.stacks.frames[sites[i]->frame];
    std::vector<std::string> lines = {place_text(report.stacks.functions[frame.function], frame.line)};
    for (const std::string& line :
         {frames_text(report, "via", sites[i]->via, most_via), callers_text(report, *sites[i], most_callers)})
      if (!line.empty()) lines.push_back(line);
    text += layout.row(i + 1, lines);
  }
  return text + layout.remark();
}

}  // namespace

std::string report_text(const Profile& profile, const LeakReport& report, const TextOptions& options) {
  return bench::fitted(summary(profile, report, options), options.look.width) + table(report, options);
}

}  // namespace sluice::cli::leaks
