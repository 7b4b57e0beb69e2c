// The statistics as a table for people: what a user reads at exit and pastes into a ticket. Open it to change
// its look.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "stats/figures.hpp"
#include "stats/writers.hpp"

namespace sluice::stats {
namespace {

constexpr unsigned label_width = 12;
constexpr unsigned human_width = 10;
constexpr unsigned bytes_width = 20;
constexpr unsigned count_width = 16;
constexpr unsigned percent_width = 7;

uint64_t difference(uint64_t whole, uint64_t part) noexcept {
  return whole > part ? whole - part : 0;
}

// A program's name is whatever its file is called; control characters must not reach a terminal.
void write_program(Print& out, const char* program) noexcept {
  for (; *program != 0; ++program) {
    const unsigned char c = static_cast<unsigned char>(*program);
    out.character(c < 0x20 || c == 0x7f ? '?' : *program);
  }
}

void write_heading(Print& out, const Snapshot& snapshot, const ProcessInfo& process) noexcept {
  out.text("sluice ").text(process.version).text(": pid ").decimal(process.pid).text(", ");
  write_program(out, process.program != nullptr ? process.program : "unknown program");
  out.text("\n");
  if (!snapshot.counting)
    out.text(
        "mallocs, frees and peaks were not counted: that needs SLUICE_STATS=1 from the start,\n"
        "and no SLUICE_STATS_COUNT=0\n");
}

// What of a total fits a line.
struct TotalParts {
  bool bytes;    // its exact number of bytes
  bool meaning;  // what it is the total of
  unsigned count_width;
};

constexpr TotalParts parts_of_totals(size_t columns) noexcept {
  constexpr size_t longest_meaning = 40;
  constexpr size_t with_meaning = 2 + label_width + human_width + longest_meaning;
  constexpr size_t with_all = with_meaning + bytes_width + 6;
  const bool is_roomy = columns == 0 || columns >= with_meaning;
  return {columns == 0 || columns >= with_all, is_roomy, is_roomy ? count_width : 0};
}

// One total: in readable units and exactly. The caller ends the line.
Print& write_total(Print& out, std::string_view label, uint64_t bytes, TotalParts parts) noexcept {
  out.text("  ").text(label, label_width).size(bytes, human_width);
  return parts.bytes ? out.grouped(bytes, bytes_width).text(" bytes") : out;
}

void write_total(Print& out, std::string_view label, uint64_t bytes, TotalParts parts,
                 std::string_view meaning) noexcept {
  write_total(out, label, bytes, parts).text(parts.meaning ? meaning : "").text("\n");
}

void write_totals(Print& out, const Snapshot& s, TotalParts parts) noexcept {
  uint64_t live_blocks = s.large.live_spans;
  for (const ClassFigures& figures : s.classes)
    live_blocks += figures.live_blocks;
  const uint64_t ended = s.arena.lifo_frees + s.arena.out_of_order_frees + s.arena.remote_frees;
  live_blocks += difference(s.arena.objects, ended);

  out.text("\ntotals\n");
  if (s.counting) {
    write_total(out, "allocated", s.allocated_bytes, parts)
        .text(" in ")
        .grouped(s.mallocs, parts.count_width)
        .text(" mallocs\n");
    write_total(out, "freed", s.freed_bytes, parts).text(" in ").grouped(s.frees, parts.count_width).text(" frees\n");
  }
  write_total(out, "live", s.live_bytes, parts).text(" in ").grouped(live_blocks, parts.count_width).text(" blocks\n");
  if (s.counting) {
    const uint64_t lost = difference(s.allocated_bytes, s.requested_bytes);
    write_total(out, "peak live", s.peak_live_bytes, parts, "");
    write_total(out, "requested", s.requested_bytes, parts).text(", rounded up to blocks by ");
    out.percent(lost, s.requested_bytes).text("\n");
  }
  write_total(out, "active", s.active_bytes, parts, " of slabs, large blocks and chunks in use");
  write_total(out, "resident", s.resident_bytes, parts,
              s.resident_bytes != 0 ? " of the mapped ones in memory" : ": the system does not tell what is in memory");
  write_total(out, "mapped", s.mapped_bytes, parts, " of address space, readable and writable");
  write_total(out, "reserved", s.reserved_bytes, parts, " of address space, set aside");
  write_total(out, "metadata", s.metadata_bytes, parts, " of descriptors and thread caches");
  write_total(out, "retained", s.retained_bytes, parts, " of free pages not yet given back");
  write_total(out, "cached", s.cached_bytes, parts, " of free blocks in thread caches");
  if (!parts.bytes)
    out.text("(left out, for --wide: exact bytes").text(parts.meaning ? "" : ", what each is").text(")\n");
}

// One part of the resident memory. The caller ends the line.
Print& write_part(Print& out, std::string_view label, uint64_t bytes, uint64_t whole) noexcept {
  out.text("  ").text(label, label_width + 2).size(bytes, human_width - 2).character(' ');
  return out.percent(bytes, whole, percent_width);
}

// Where the resident memory is, and by how much it is more than what is live.
void write_resident(Print& out, const Snapshot& s) noexcept {
  const ResidentFigures& f = s.resident;
  const uint64_t whole = f.slab_bytes + f.large_bytes + f.arena_bytes + f.free_bytes + f.own_bytes;
  if (whole == 0) return;
  out.text("\nresident memory");
  if (s.live_bytes != 0) out.text(": ").ratio(whole, s.live_bytes, 2).text(" times what is live");
  out.text("\n");
  const uint64_t live = difference(s.live_bytes, s.large.live_bytes + s.arena.live_bytes);
  write_part(out, "slabs", f.slab_bytes, whole).text("  ").size(live).text(" live, ").size(s.cached_bytes);
  out.text(" in caches, ").size(difference(f.slab_bytes, live + s.cached_bytes)).text(" between\n");
  if (f.large_bytes != 0)
    write_part(out, "large blocks", f.large_bytes, whole).text("  ").size(s.large.live_bytes).text(" live\n");
  if (f.arena_bytes != 0)
    write_part(out, "arenas", f.arena_bytes, whole).text("  ").size(s.arena.live_bytes).text(" live\n");
  if (f.free_bytes != 0) write_part(out, "free pages", f.free_bytes, whole).text("  not yet given back\n");
  if (f.own_bytes != 0) write_part(out, "heap's own", f.own_bytes, whole).text("  thread caches\n");
}

// What is live in a size class or outside of them.
struct LivePart {
  uint64_t block_size;  // 0: not of one size
  std::string_view label;
  uint64_t bytes, blocks;
};

// The parts of what is live that hold most of it, each a hundredth at least.
void write_most_live(Print& out, const Snapshot& s) noexcept {
  constexpr size_t most = 10;
  LivePart parts[most + 1];
  size_t count = 0;
  const auto add = [&](const LivePart& part) {
    if (part.bytes == 0 || part.bytes < s.live_bytes / 100) return;
    size_t i = count;
    for (; i > 0 && parts[i - 1].bytes < part.bytes; --i)
      parts[i] = parts[i - 1];
    parts[i] = part;
    count = std::min(count + 1, most);
  };
  add({0, "large", s.large.live_bytes, s.large.live_spans});
  add({0, "arenas", s.arena.live_bytes, 0});
  for (const ClassFigures& f : s.classes)
    add({f.block_size, "", f.live_blocks * f.block_size, f.live_blocks});
  if (count == 0) return;
  out.text("\nmost of what is live\n");
  for (const LivePart* part = parts; part != parts + count; ++part) {
    if (part->block_size != 0)
      out.grouped(part->block_size, 7).text(" bytes  ");
    else
      out.text("  ").text(part->label, label_width + 1);
    out.size(part->bytes, human_width - 1).character(' ').percent(part->bytes, s.live_bytes, percent_width);
    if (part->blocks != 0) out.text("  ").grouped(part->blocks).text(" blocks");
    out.text("\n");
  }
}

// A column of the table of size classes. Each entry starts with a space beside its width, so that a number wider than
// its column still stands apart.
struct Column {
  std::string_view heading;
  unsigned width;
  bool counted;  // is there only while counting
  void (*write)(Print& out, const ClassFigures& figures, unsigned width) noexcept;
};

uint64_t lost_bytes(const ClassFigures& figures) noexcept {
  return difference(figures.mallocs * figures.block_size, figures.requested_bytes);
}

template <uint64_t ClassFigures::*figure>
void write_count(Print& out, const ClassFigures& figures, unsigned width) noexcept {
  out.grouped(figures.*figure, width);
}

void write_block(Print& out, const ClassFigures& figures, unsigned width) noexcept {
  out.grouped(figures.block_size, width);
}

void write_space(Print& out, const ClassFigures& figures, unsigned width) noexcept {
  out.size(figures.slab_bytes, width);
}

void write_use(Print& out, const ClassFigures& figures, unsigned width) noexcept {
  out.percent(figures.live_blocks * figures.block_size, figures.slab_bytes, width);
}

void write_lost(Print& out, const ClassFigures& figures, unsigned width) noexcept {
  const uint64_t lost = lost_bytes(figures);
  out.size(lost, width > percent_width ? width - percent_width - 1 : 0).character(' ');
  out.percent(lost, figures.mallocs * figures.block_size, percent_width);
}

constexpr Column class_columns[] = {
    {"block", 6, false, write_block},
    {"mallocs", 13, true, write_count<&ClassFigures::mallocs>},
    {"frees", 13, true, write_count<&ClassFigures::frees>},
    {"live", 11, false, write_count<&ClassFigures::live_blocks>},
    {"peak", 11, true, write_count<&ClassFigures::peak_live_blocks>},
    {"slabs", 6, false, write_count<&ClassFigures::slabs>},
    {"space", 8, false, write_space},
    {"use", 7, false, write_use},
    {"lost to rounding", 16, true, write_lost},
};
constexpr size_t class_column_count = sizeof class_columns / sizeof *class_columns;
constexpr size_t block_column = 0, live_column = 3;  // are never left out

// How wide each column is; 0: it is left out.
struct Layout {
  unsigned widths[class_column_count];

  size_t total() const noexcept {
    size_t sum = 0;
    for (const unsigned width : widths)
      sum += width == 0 ? 0 : width + 1;
    return sum;
  }
};

unsigned width_needed(const Column& column, const ClassFigures& figures) noexcept {
  unsigned width = 0;
  char buffer[32];
  Print out(
      buffer, sizeof buffer,
      [](void* sum, const char*, size_t size) noexcept {
        *static_cast<unsigned*>(sum) += static_cast<unsigned>(size);
        return 0;
      },
      &width);
  column.write(out, figures, 0);
  out.flush();
  return width;
}

// As wide as headings and entries are.
void narrow(Layout& layout, const Snapshot& snapshot) noexcept {
  for (size_t i = 0; i < class_column_count; ++i) {
    if (layout.widths[i] == 0) continue;
    size_t width = class_columns[i].heading.size();
    for (const ClassFigures& figures : snapshot.classes)
      if (is_used(figures)) width = std::max<size_t>(width, width_needed(class_columns[i], figures));
    layout.widths[i] = static_cast<unsigned>(width);
  }
}

// The layout for so many columns (0: any number): columns narrow first, then the last ones go first.
Layout layout_of(const Snapshot& snapshot, size_t columns) noexcept {
  Layout layout;
  for (size_t i = 0; i < class_column_count; ++i)
    layout.widths[i] = snapshot.counting || !class_columns[i].counted ? class_columns[i].width : 0;
  if (columns == 0 || layout.total() <= columns) return layout;
  narrow(layout, snapshot);
  for (size_t i = class_column_count - 1; i > block_column && layout.total() > columns; --i)
    if (i != live_column) layout.widths[i] = 0;
  return layout;
}

void write_left_out(Print& out, const Layout& layout, bool counting) noexcept {
  bool any = false;
  for (size_t i = 0; i < class_column_count; ++i) {
    if (layout.widths[i] != 0 || (class_columns[i].counted && !counting)) continue;
    out.text(any ? ", " : "(left out, for --wide: ").text(class_columns[i].heading);
    any = true;
  }
  if (any) out.text(")\n");
}

void write_class_row(Print& out, const ClassFigures& figures, const Layout& layout) noexcept {
  for (size_t i = 0; i < class_column_count; ++i)
    if (layout.widths[i] != 0) class_columns[i].write(out.character(' '), figures, layout.widths[i]);
  out.text("\n");
}

void write_classes(Print& out, const Snapshot& snapshot, size_t columns) noexcept {
  out.text("\nsize classes (block in bytes; live").text(snapshot.counting ? " and peak" : "");
  out.text(" in blocks; use: live part of the slabs)\n");
  const Layout layout = layout_of(snapshot, columns);
  for (size_t i = 0; i < class_column_count; ++i) {
    const std::string_view heading = class_columns[i].heading;
    if (layout.widths[i] != 0)
      out.character(' ', layout.widths[i] + 1 - static_cast<unsigned>(heading.size())).text(heading);
  }
  out.text("\n");
  bool any = false;
  for (const ClassFigures& figures : snapshot.classes) {
    if (!is_used(figures)) continue;
    write_class_row(out, figures, layout);
    any = true;
  }
  if (!any) out.text("    none\n");
  write_left_out(out, layout, snapshot.counting);
}

Print& write_label(Print& out, std::string_view label) noexcept {
  return out.text("  ").text(label, label_width);
}

void write_large(Print& out, const LargeFigures& large, bool counting) noexcept {
  write_label(out, "large");
  if (counting) {
    const uint64_t lost = difference(large.allocated_bytes, large.requested_bytes);
    out.grouped(large.mallocs).text(" mallocs (").size(large.allocated_bytes).text("), ");
    out.grouped(large.frees).text(" frees (").size(large.freed_bytes).text(")");
    if (large.allocated_bytes > 0) out.text("; ").percent(lost, large.allocated_bytes).text(" lost to rounding");
    out.text("\n");
    write_label(out, "");
  }
  out.grouped(large.live_spans).text(" live (").size(large.live_bytes).text(")");
  if (counting) out.text(", peak ").size(large.peak_live_bytes);
  out.text("\n");
}

// Lines of words about one section, as statistics.def has them.
template <typename Figures, size_t count>
class Lines {
 public:
  Lines(Print& out, const Figure<Figures> (&table)[count], const Figures& figures, bool counting) noexcept
      : out_(out), table_(table), figures_(figures), counting_(counting) {}

  // Ends the line. What follows begins another one, and is left out unless `shown`.
  void begin(std::string_view label, bool shown) noexcept {
    end();
    shown_ = shown;
    label_ = label;
  }

  // {} stands for the figure `name`, {other} for another one. Counted figures are left out where nothing is counted.
  void words(std::string_view name, Source source, std::string_view words) noexcept {
    if (!shown_ || words.empty() || (is_counted(source) && !counting_)) return;
    if (words.front() == '\n') {
      end();
      words.remove_prefix(1);
    }
    if (!open_) write_label(out_, label_);
    open_ = true;
    label_ = "";
    for (size_t begin; (begin = words.find('{')) != words.npos;) {
      const size_t end = words.find('}', begin);
      out_.text({words.data(), begin});
      write_figure(end == begin + 1 ? name : std::string_view(words.data() + begin + 1, end - begin - 1));
      words.remove_prefix(end + 1);
    }
    out_.text(words);
  }

  void end() noexcept {
    if (open_) out_.text("\n");
    open_ = false;
  }

 private:
  void write_figure(std::string_view name) noexcept {
    for (const Figure<Figures>& each : table_) {
      if (name != each.name) continue;
      const uint64_t value = figures_.*each.member;
      if (each.unit == Unit::bytes)
        out_.size(value);
      else
        out_.grouped(value);
    }
  }

  Print& out_;
  const Figure<Figures> (&table_)[count];
  const Figures& figures_;
  const bool counting_;
  std::string_view label_;  // of the line that begins with the next words
  bool shown_ = true;
  bool open_ = false;  // the line has words
};

void write_arena(Print& out, const ArenaFigures& f, bool counting) noexcept {
  Lines lines(out, arena_figures, f, counting);
#define SLUICE_FIGURE_ARENA(name, source, unit, words_of, ...) lines.words(#name, Source::source, words_of);
#define SLUICE_FIGURE_ARENA_LINE(label, shown) lines.begin(label, (shown) != 0);
#include "os/statistics.def"
  lines.end();
}

void write_threads(Print& out, const ThreadFigures& f, bool counting) noexcept {
  Lines lines(out, thread_figures, f, counting);
#define SLUICE_FIGURE_THREADS(name, source, unit, words_of, ...) lines.words(#name, Source::source, words_of);
#define SLUICE_FIGURE_THREADS_LINE(label, shown) lines.begin(label, (shown) != 0);
#include "os/statistics.def"
  lines.end();
}

void write_os(Print& out, const OsFigures& f, bool counting) noexcept {
  Lines lines(out, os_figures, f, counting);
#define SLUICE_FIGURE_OS(name, source, unit, words_of, ...) lines.words(#name, Source::source, words_of);
#define SLUICE_FIGURE_OS_LINE(label, shown) lines.begin(label, (shown) != 0);
#include "os/statistics.def"
  lines.end();
}

void write_foreign(Print& out, const ForeignFigures& f, bool counting) noexcept {
  Lines lines(out, foreign_figures, f, counting);
#define SLUICE_FIGURE_FOREIGN(name, source, unit, words_of, ...) lines.words(#name, Source::source, words_of);
#define SLUICE_FIGURE_FOREIGN_LINE(label, shown) lines.begin(label, (shown) != 0);
#include "os/statistics.def"
  lines.end();
}

void write_others(Print& out, const Snapshot& s) noexcept {
  out.text("\nothers\n");
  write_large(out, s.large, s.counting);
  write_arena(out, s.arena, s.counting);
  write_threads(out, s.threads, s.counting);
  write_os(out, s.os, s.counting);
  write_foreign(out, s.foreign, s.counting);
}

}  // namespace

void write_text(Print& out, const Snapshot& snapshot, const ProcessInfo& process, size_t columns) noexcept {
  write_heading(out, snapshot, process);
  write_totals(out, snapshot, parts_of_totals(columns));
  write_resident(out, snapshot);
  write_most_live(out, snapshot);
  write_classes(out, snapshot, columns);
  write_others(out, snapshot);
}

}  // namespace sluice::stats
