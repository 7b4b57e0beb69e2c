// The statistics as a table for people: what a user reads at exit and pastes into a ticket. Open it to change
// its look.
#include "stats/writers.hpp"

namespace sluice::stats {
namespace {

constexpr unsigned label_width = 12;
constexpr unsigned human_width = 10;
constexpr unsigned bytes_width = 20;
constexpr unsigned count_width = 17;

constexpr std::string_view counted_columns =
    "  block       mallocs         frees        live        peak  slabs    space     use lost to rounding\n";
constexpr std::string_view plain_columns = "  block        live  slabs    space     use\n";

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
    out.text("mallocs, frees and peaks were not counted: counts need SLUICE_STATS=1 from the start\n");
}

// One total: in readable units and exactly. The caller ends the line.
Print& write_total(Print& out, std::string_view label, uint64_t bytes) noexcept {
  return out.text("  ").text(label, label_width).size(bytes, human_width).grouped(bytes, bytes_width).text(" bytes");
}

void write_totals(Print& out, const Snapshot& s) noexcept {
  uint64_t live_blocks = s.large.live_spans;
  for (const ClassFigures& figures : s.classes)
    live_blocks += figures.live_blocks;
  const uint64_t ended = s.arena.lifo_frees + s.arena.out_of_order_frees + s.arena.remote_frees;
  live_blocks += difference(s.arena.objects, ended);

  out.text("\ntotals\n");
  if (s.counting) {
    write_total(out, "allocated", s.allocated_bytes).text(" in").grouped(s.mallocs, count_width).text(" mallocs\n");
    write_total(out, "freed", s.freed_bytes).text(" in").grouped(s.frees, count_width).text(" frees\n");
  }
  write_total(out, "live", s.live_bytes).text(" in").grouped(live_blocks, count_width).text(" blocks\n");
  if (s.counting) {
    const uint64_t lost = difference(s.allocated_bytes, s.requested_bytes);
    write_total(out, "peak live", s.peak_live_bytes).text("\n");
    write_total(out, "requested", s.requested_bytes).text(", rounded up to blocks by ");
    out.percent(lost, s.requested_bytes).text("\n");
  }
  write_total(out, "active", s.active_bytes).text(" of slabs, large blocks and chunks in use\n");
  write_total(out, "resident", s.resident_bytes).text(" of the mapped ones in memory\n");
  write_total(out, "mapped", s.mapped_bytes).text(" of address space, readable and writable\n");
  write_total(out, "reserved", s.reserved_bytes).text(" of address space, set aside\n");
  write_total(out, "metadata", s.metadata_bytes).text(" of descriptors and thread caches\n");
  write_total(out, "retained", s.retained_bytes).text(" of free pages not yet given back\n");
  write_total(out, "cached", s.cached_bytes).text(" of free blocks in thread caches\n");
}

// A column's entry always starts with a space, so that a number wider than its column still stands apart.
Print& column(Print& out, uint64_t value, unsigned width) noexcept {
  return out.character(' ').grouped(value, width - 1);
}

void write_class_row(Print& out, const ClassFigures& figures, bool counting) noexcept {
  column(out, figures.block_size, 7);
  if (counting) {
    column(out, figures.mallocs, 14);
    column(out, figures.frees, 14);
  }
  column(out, figures.live_blocks, 12);
  if (counting) column(out, figures.peak_live_blocks, 12);
  column(out, figures.slabs, 7);
  out.character(' ').size(figures.slab_bytes, 8);
  out.character(' ').percent(figures.live_blocks * figures.block_size, figures.slab_bytes, 7);
  if (counting) {
    const uint64_t allocated = figures.mallocs * figures.block_size;
    const uint64_t lost = difference(allocated, figures.requested_bytes);
    out.character(' ').size(lost, 8).character(' ').percent(lost, allocated, 7);
  }
  out.text("\n");
}

void write_classes(Print& out, const Snapshot& snapshot) noexcept {
  out.text("\nsize classes (block in bytes; live").text(snapshot.counting ? " and peak" : "");
  out.text(" in blocks; use: live part of the slabs)\n");
  out.text(snapshot.counting ? counted_columns : plain_columns);
  bool any = false;
  for (const ClassFigures& figures : snapshot.classes) {
    if (!is_used(figures)) continue;
    write_class_row(out, figures, snapshot.counting);
    any = true;
  }
  if (!any) out.text("    none\n");
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

void write_arena(Print& out, const ArenaFigures& arena, bool counting) noexcept {
  if ((arena.scopes | arena.chunks_opened | arena.stale_leaves | arena.depth_overflows) != 0) {
    write_label(out, "arena").grouped(arena.scopes).text(" scopes");
    if (counting) {
      out.text(", ").grouped(arena.objects).text(" objects (").size(arena.bytes).text(")\n");
      write_label(out, "").grouped(arena.lifo_frees).text(" freed in reverse order, ");
      out.grouped(arena.out_of_order_frees).text(" in another,\n");
      write_label(out, "").grouped(arena.remote_frees).text(" by other threads; ");
      out.grouped(arena.grown_in_place).text(" grown in place");
    }
    out.text("\n");
    write_label(out, "").size(arena.live_bytes).text(" live in ").grouped(arena.chunks).text(" chunks, ");
    out.grouped(arena.hot_chunks).text(" of them empty\n");
    write_label(out, "").size(arena.pinned_bytes).text(" free in ").grouped(arena.pinned_chunks);
    out.text(" chunks that survivors pin\n");
    write_label(out, "").grouped(arena.chunks_opened).text(" chunks opened, ").grouped(arena.chunks_recycled);
    out.text(" holes used again,\n");
    write_label(out, "").grouped(arena.back_offs).text(" back-offs\n");
    if ((arena.stale_leaves | arena.abandoned_scopes | arena.depth_overflows) != 0) {
      write_label(out, "").grouped(arena.stale_leaves).text(" stale leaves, ");
      out.grouped(arena.abandoned_scopes).text(" scopes never left,\n");
      write_label(out, "").grouped(arena.depth_overflows).text(" scopes opened too deep\n");
    }
  }
  if ((arena.frame_chunks | arena.frame_chunks_opened) != 0) {
    write_label(out, "frames").size(arena.frame_bytes).text(" in ").grouped(arena.frame_chunks).text(" chunks; ");
    out.grouped(arena.frame_chunks_opened).text(" opened\n");
  }
}

void write_others(Print& out, const Snapshot& s) noexcept {
  out.text("\nothers\n");
  write_large(out, s.large, s.counting);
  write_arena(out, s.arena, s.counting);
  write_label(out, "threads").grouped(s.threads.live).text(" now, ").grouped(s.threads.peak).text(" at most, ");
  out.grouped(s.threads.started).text(" in all; ").grouped(s.threads.caches).text(" caches made\n");

  write_label(out, "system").grouped(s.os.mmap_calls).text(" mmap, ").grouped(s.os.munmap_calls).text(" munmap, ");
  out.grouped(s.os.mremap_calls).text(" mremap, ").grouped(s.os.mprotect_calls).text(" mprotect\n");
  write_label(out, "")
      .grouped(s.os.madvise_calls)
      .text(" madvise; ")
      .grouped(s.os.failed_calls)
      .text(" calls failed; ");
  out.size(s.os.purged_bytes).text(" given back\n");

  write_label(out, "not ours")
      .grouped(s.foreign.frees)
      .text(" frees, ")
      .grouped(s.foreign.reallocs)
      .text(" reallocs, ");
  out.grouped(s.foreign.usable_sizes)
      .text(" size queries; ")
      .grouped(s.foreign.passed_to_libc)
      .text(" passed to libc\n");
  write_label(out, "late calls").grouped(s.foreign.late_calls).text(" on threads without a cache\n");
}

}  // namespace

void write_text(Print& out, const Snapshot& snapshot, const ProcessInfo& process) noexcept {
  write_heading(out, snapshot, process);
  write_totals(out, snapshot);
  write_classes(out, snapshot);
  write_others(out, snapshot);
}

}  // namespace sluice::stats
