// `sluice stats`: one dump as the table that the library itself prints, two as what changed between them.
// Open it to change how differences look.
#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "command.hpp"
#include "dump.hpp"
#include "measure/tables.hpp"
#include "printed_text.hpp"
#include "stats/figures.hpp"
#include "stats/writers.hpp"

namespace sluice::cli {
namespace {

using bench::Grid;

std::string number(uint64_t value) {
  return text_of([&](Print& out) { out.grouped(value); });
}

// A difference of two figures with its sign, as in +1,234.
std::string signed_difference(uint64_t before, uint64_t after) {
  return after == before ? "=" : after > before ? "+" + number(after - before) : "-" + number(before - after);
}

std::string source_line(std::string_view label, const Dump& dump) {
  return fmt::format("  {}  {}: sluice {}, pid {}, {}{}\n", label, printable(dump.source), printable(dump.version),
                     dump.pid, dump.program.empty() ? "unknown program" : printable(dump.program),
                     dump.snapshot.counting ? "" : " (mallocs, frees and peaks were not counted)");
}

// A figure's name in words.
std::string label_of(std::string_view name) {
  std::string label = fmt::format("  {}", name);
  std::replace(label.begin(), label.end(), '_', ' ');
  return label;
}

template <typename Figures, size_t count>
Grid section_grid(const char* title, const stats::Figure<Figures> (&table)[count], const Figures& before,
                  const Figures& after) {
  Grid grid{{title, "A", "B", "B-A"}};
  for (const stats::Figure<Figures>& each : table) {
    const uint64_t a = before.*each.member, b = after.*each.member;
    grid.push_back({label_of(each.name), number(a), number(b), signed_difference(a, b)});
  }
  return grid;
}

Grid class_grid(const stats::Snapshot& before, const stats::Snapshot& after) {
  Grid grid{{"  block", "mallocs A", "mallocs B", "B-A", "live A", "live B", "B-A", "slabs B-A"}};
  for (unsigned c = 1; c < size_class_count; ++c) {
    const stats::ClassFigures& a = before.classes[c];
    const stats::ClassFigures& b = after.classes[c];
    if (!is_used(a) && !is_used(b)) continue;
    grid.push_back({fmt::format("{:>7}", number(b.block_size != 0 ? b.block_size : a.block_size)), number(a.mallocs),
                    number(b.mallocs), signed_difference(a.mallocs, b.mallocs), number(a.live_blocks),
                    number(b.live_blocks), signed_difference(a.live_blocks, b.live_blocks),
                    signed_difference(a.slabs, b.slabs)});
  }
  return grid;
}

// The columns are the same in each table as long as they fit; what is kept where they do not are the differences.
std::string laid_out(const Grid& grid, const std::vector<size_t>& widths, const std::set<size_t>& kept,
                     const bench::Look& look) {
  Grid padded = grid;
  for (auto& row : padded) {
    row.front() = fmt::format("{:<{}}", row.front(), widths.front());
    for (size_t i = 1; i < row.size(); ++i)
      row[i] = fmt::format("{:>{}}", row[i], widths[i]);
  }
  std::string text = bench::text_table(padded);
  return look.width == 0 || text.find('\n') <= look.width ? text : bench::text_table(grid, look, {}, kept);
}

template <typename Figures, size_t count>
std::string section(const char* title, const stats::Figure<Figures> (&table)[count], const Figures& before,
                    const Figures& after, const bench::Look& look) {
  return '\n' + laid_out(section_grid(title, table, before, after), {21, 20, 21, 22}, {3}, look);
}

std::string difference(const Dump& a, const Dump& b, const bench::Look& look) {
  const stats::Snapshot &before = a.snapshot, &after = b.snapshot;
  std::string text = "difference of two dumps\n" + source_line("A", a) + source_line("B", b);
  text += section("totals", stats::total_figures, before, after, look);
  text += section("resident", stats::resident_figures, before.resident, after.resident, look);
  text +=
      "\nsize classes (blocks)\n" + laid_out(class_grid(before, after), {7, 12, 12, 12, 11, 11, 11, 10}, {3, 6}, look);
  text += section("large", stats::large_figures, before.large, after.large, look);
  if (before.arena.scopes + after.arena.scopes > 0)
    text += section("arena", stats::arena_figures, before.arena, after.arena, look);
  text += section("threads", stats::thread_figures, before.threads, after.threads, look);
  text += section("system", stats::os_figures, before.os, after.os, look);
  text += section("not ours", stats::foreign_figures, before.foreign, after.foreign, look);
  return text;
}

std::string one_dump(const Dump& dump, const bench::Look& look) {
  const std::string program = printable(dump.program), version = printable(dump.version);
  return text_of([&](Print& out) {
    stats::write_text(out, dump.snapshot, {dump.pid, program.empty() ? nullptr : program.c_str(), version.c_str()},
                      look.width);
  });
}

}  // namespace

void print_stats(const std::vector<std::string>& files, bool wide) {
  if (files.size() == 2 && files[0] == "-" && files[1] == "-")
    throw CommandError(exit_usage, "stats: standard input can be only one of the two dumps");
  const bench::Look look = bench::look_of_output(wide, false);
  const Dump first = read_dump(files.front());
  StandardOutput out;
  out.text(bench::fitted(files.size() == 1 ? one_dump(first, look) : difference(first, read_dump(files.back()), look),
                         look.width));
}

}  // namespace sluice::cli
