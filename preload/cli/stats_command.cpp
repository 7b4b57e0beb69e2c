// `sluice stats`: one dump as the table that the library itself prints, two as what changed between them.
// Open it to change how differences look.
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "command.hpp"
#include "dump.hpp"
#include "stats/writers.hpp"

namespace sluice::cli {
namespace {

int append_to_string(void* text, const char* data, size_t size) noexcept {
  static_cast<std::string*>(text)->append(data, size);
  return 0;
}

// A difference of two figures with its sign, as in +1,234.
std::string signed_difference(uint64_t before, uint64_t after) {
  std::string text;
  char buffer[32];
  Print out(buffer, sizeof buffer, append_to_string, &text);
  if (after == before)
    out.text("=");
  else
    out.text(after > before ? "+" : "-").grouped(after > before ? after - before : before - after);
  out.finish();
  return text;
}

Print& difference_column(Print& out, uint64_t before, uint64_t after, unsigned width) {
  const std::string text = signed_difference(before, after);
  if (text.size() < width) out.character(' ', width - static_cast<unsigned>(text.size()));
  return out.text(text);
}

void print_source(Print& out, std::string_view label, const Dump& dump) {
  out.text("  ").text(label).text("  ").text(printable(dump.source)).text(": sluice ").text(printable(dump.version));
  out.text(", pid ").decimal(dump.pid).text(", ").text(dump.program.empty() ? "unknown program"
                                                                            : printable(dump.program));
  out.text(dump.snapshot.counting ? "\n" : " (mallocs, frees and peaks were not counted)\n");
}

template <typename Figures, size_t count>
void print_fields(Print& out, const Field<Figures> (&fields)[count], const Figures& before, const Figures& after) {
  for (const Field<Figures>& field : fields) {
    const uint64_t a = before.*field.member;
    const uint64_t b = after.*field.member;
    std::string label = field.name;
    for (char& c : label)
      if (c == '_') c = ' ';
    out.text("  ").text(label, 18).character(' ').grouped(a, 22).character(' ').grouped(b, 22).character(' ');
    difference_column(out, a, b, 23).text("\n");
  }
}

template <typename Figures, size_t count>
void print_section(Print& out, std::string_view title, const Field<Figures> (&fields)[count], const Figures& before,
                   const Figures& after) {
  out.text("\n").text(title, 20).text("                      A                      B                   B-A\n");
  print_fields(out, fields, before, after);
}

void print_classes(Print& out, const stats::Snapshot& before, const stats::Snapshot& after) {
  out.text("\nsize classes (blocks)\n");
  out.text(
      "  block     mallocs A     mallocs B           B-A       live A       live B          B-A   slabs "
      "B-A\n");
  for (unsigned c = 1; c < size_class_count; ++c) {
    const stats::ClassFigures& a = before.classes[c];
    const stats::ClassFigures& b = after.classes[c];
    if (!is_used(a) && !is_used(b)) continue;
    out.grouped(class_sizes[c], 7).character(' ').grouped(a.mallocs, 13).character(' ').grouped(b.mallocs, 13);
    difference_column(out.character(' '), a.mallocs, b.mallocs, 13);
    out.character(' ').grouped(a.live_blocks, 12).character(' ').grouped(b.live_blocks, 12);
    difference_column(out.character(' '), a.live_blocks, b.live_blocks, 12);
    difference_column(out.character(' '), a.slabs, b.slabs, 11).text("\n");
  }
}

void print_difference(const Dump& a, const Dump& b) {
  StandardOutput out;
  out.text("difference of two dumps\n");
  print_source(out, "A", a);
  print_source(out, "B", b);
  print_section(out, "totals", total_fields, a.snapshot, b.snapshot);
  print_classes(out, a.snapshot, b.snapshot);
  print_section(out, "large", large_fields, a.snapshot.large, b.snapshot.large);
  if (a.snapshot.arena.scopes + b.snapshot.arena.scopes > 0)
    print_section(out, "arena", arena_fields, a.snapshot.arena, b.snapshot.arena);
  print_section(out, "threads", thread_fields, a.snapshot.threads, b.snapshot.threads);
  print_section(out, "system", os_fields, a.snapshot.os, b.snapshot.os);
  print_section(out, "not ours", foreign_fields, a.snapshot.foreign, b.snapshot.foreign);
}

}  // namespace

void print_stats(const std::vector<std::string>& files) {
  if (files.size() == 2 && files[0] == "-" && files[1] == "-")
    throw CommandError(exit_usage, "stats: standard input can be only one of the two dumps");
  const Dump first = read_dump(files.front());
  if (files.size() == 2) return print_difference(first, read_dump(files.back()));
  StandardOutput out;
  const std::string program = printable(first.program), version = printable(first.version);
  stats::write_text(out, first.snapshot, {first.pid, program.empty() ? nullptr : program.c_str(), version.c_str()});
}

}  // namespace sluice::cli
