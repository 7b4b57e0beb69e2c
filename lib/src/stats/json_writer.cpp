// The statistics as JSON. Open it together with README.md in this folder, which documents every field, and
// raise json_schema_version when a field changes its meaning or goes away.
#include "stats/writers.hpp"

namespace sluice::stats {
namespace {

// Length of the well-formed UTF-8 sequence at the start of `text` (RFC 3629: no overlong forms, no
// surrogates, nothing above U+10FFFF), or 0.
size_t utf8_length(std::string_view text) noexcept {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xc2 && first <= 0xdf   ? 2
                        : first >= 0xe0 && first <= 0xef ? 3
                        : first >= 0xf0 && first <= 0xf4 ? 4
                                                         : 0;
  if (length == 0 || text.size() < length) return 0;
  const unsigned char low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned char high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < low || byte(1) > high) return 0;
  for (size_t i = 2; i < length; ++i)
    if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
  return length;
}

// A JSON string. Bytes that are not UTF-8 become \u00XX, so that the output is always valid JSON.
void write_string(Print& out, std::string_view text) noexcept {
  out.character('"');
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const unsigned char first = static_cast<unsigned char>(text.front());
    if (length == 0 || first < 0x20 || first == 0x7f)
      out.text("\\u").hexadecimal(first, 4);
    else if (first == '"' || first == '\\')
      out.character('\\').character(text.front());
    else
      out.text({text.data(), length});
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out.character('"');
}

// The members of one JSON object, with the commas between them.
class Members {
 public:
  Members(Print& out, std::string_view separator) noexcept : out_(out), separator_(separator) {}

  Print& name(std::string_view name) noexcept {
    if (!first_) out_.text(separator_);
    first_ = false;
    return out_.character('"').text(name).text("\": ");
  }
  Members& number(std::string_view key, uint64_t value) noexcept {
    name(key).decimal(value);
    return *this;
  }
  Members& boolean(std::string_view key, bool value) noexcept {
    name(key).text(value ? "true" : "false");
    return *this;
  }
  Members& string(std::string_view key, std::string_view value) noexcept {
    write_string(name(key), value);
    return *this;
  }

 private:
  Print& out_;
  const std::string_view separator_;
  bool first_ = true;
};

void write_class(Print& out, const ClassFigures& figures) noexcept {
  out.text("{");
  Members(out, ", ")
      .number("block_size", figures.block_size)
      .number("mallocs", figures.mallocs)
      .number("frees", figures.frees)
      .number("requested_bytes", figures.requested_bytes)
      .number("allocated_bytes", figures.mallocs * figures.block_size)
      .number("freed_bytes", figures.frees * figures.block_size)
      .number("live_bytes", figures.live_blocks * figures.block_size)
      .number("live_blocks", figures.live_blocks)
      .number("peak_live_blocks", figures.peak_live_blocks)
      .number("cached_blocks", figures.cached_blocks)
      .number("slabs", figures.slabs)
      .number("slab_bytes", figures.slab_bytes)
      .number("carved_blocks", figures.carved_blocks);
  out.text("}");
}

void write_classes(Print& out, const Snapshot& snapshot) noexcept {
  out.text("[");
  bool first = true;
  for (const ClassFigures& figures : snapshot.classes) {
    if (!is_used(figures)) continue;
    out.text(first ? "\n    " : ",\n    ");
    first = false;
    write_class(out, figures);
  }
  out.text(first ? "]" : "\n  ]");
}

void write_large(Print& out, const LargeFigures& large) noexcept {
  out.text("{");
  Members(out, ", ")
      .number("mallocs", large.mallocs)
      .number("frees", large.frees)
      .number("requested_bytes", large.requested_bytes)
      .number("allocated_bytes", large.allocated_bytes)
      .number("freed_bytes", large.freed_bytes)
      .number("live_bytes", large.live_bytes)
      .number("live_spans", large.live_spans)
      .number("peak_live_bytes", large.peak_live_bytes);
  out.text("}");
}

void write_arena(Print& out, const ArenaFigures& arena) noexcept {
  out.text("{");
  Members(out, ", ")
      .number("scopes", arena.scopes)
      .number("objects", arena.objects)
      .number("requested_bytes", arena.requested_bytes)
      .number("bytes", arena.bytes)
      .number("freed_bytes", arena.freed_bytes)
      .number("live_bytes", arena.live_bytes)
      .number("lifo_frees", arena.lifo_frees)
      .number("out_of_order_frees", arena.out_of_order_frees)
      .number("remote_frees", arena.remote_frees)
      .number("grown_in_place", arena.grown_in_place)
      .number("chunks", arena.chunks)
      .number("hot_chunks", arena.hot_chunks)
      .number("pinned_chunks", arena.pinned_chunks)
      .number("pinned_bytes", arena.pinned_bytes)
      .number("chunks_opened", arena.chunks_opened)
      .number("chunks_recycled", arena.chunks_recycled)
      .number("back_offs", arena.back_offs)
      .number("stale_leaves", arena.stale_leaves)
      .number("abandoned_scopes", arena.abandoned_scopes)
      .number("depth_overflows", arena.depth_overflows)
      .number("frame_chunks", arena.frame_chunks)
      .number("frame_bytes", arena.frame_bytes)
      .number("frame_chunks_opened", arena.frame_chunks_opened);
  out.text("}");
}

void write_threads(Print& out, const ThreadFigures& threads) noexcept {
  out.text("{");
  Members(out, ", ")
      .number("live", threads.live)
      .number("peak", threads.peak)
      .number("started", threads.started)
      .number("caches", threads.caches);
  out.text("}");
}

void write_os(Print& out, const OsFigures& os) noexcept {
  out.text("{");
  Members(out, ", ")
      .number("mmap_calls", os.mmap_calls)
      .number("munmap_calls", os.munmap_calls)
      .number("mremap_calls", os.mremap_calls)
      .number("mprotect_calls", os.mprotect_calls)
      .number("madvise_calls", os.madvise_calls)
      .number("failed_calls", os.failed_calls)
      .number("purged_bytes", os.purged_bytes);
  out.text("}");
}

void write_foreign(Print& out, const ForeignFigures& foreign) noexcept {
  out.text("{");
  Members(out, ", ")
      .number("frees", foreign.frees)
      .number("reallocs", foreign.reallocs)
      .number("usable_sizes", foreign.usable_sizes)
      .number("passed_to_libc", foreign.passed_to_libc)
      .number("late_calls", foreign.late_calls);
  out.text("}");
}

}  // namespace

void write_json(Print& out, const Snapshot& s, const ProcessInfo& process) noexcept {
  out.text("{\n  ");
  Members members(out, ",\n  ");
  members.string("schema", "sluice-stats")
      .number("schema_version", json_schema_version)
      .string("version", process.version)
      .number("pid", process.pid)
      .string("program", process.program != nullptr ? process.program : "")
      .boolean("counting", s.counting)
      .number("allocated_bytes", s.allocated_bytes)
      .number("freed_bytes", s.freed_bytes)
      .number("live_bytes", s.live_bytes)
      .number("peak_live_bytes", s.peak_live_bytes)
      .number("requested_bytes", s.requested_bytes)
      .number("mallocs", s.mallocs)
      .number("frees", s.frees)
      .number("active_bytes", s.active_bytes)
      .number("resident_bytes", s.resident_bytes)
      .number("reserved_bytes", s.reserved_bytes)
      .number("mapped_bytes", s.mapped_bytes)
      .number("metadata_bytes", s.metadata_bytes)
      .number("retained_bytes", s.retained_bytes)
      .number("cached_bytes", s.cached_bytes);
  write_classes(members.name("classes"), s);
  write_large(members.name("large"), s.large);
  write_arena(members.name("arena"), s.arena);
  write_threads(members.name("threads"), s.threads);
  write_os(members.name("os"), s.os);
  write_foreign(members.name("foreign"), s.foreign);
  out.text("\n}\n");
}

}  // namespace sluice::stats
