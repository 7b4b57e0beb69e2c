// What malloc_info prints: glibc's XML, with the whole heap as its one heap. Open it when a tool that reads
// malloc_info misses something.
//
// "scopes" are the chunks of stack arenas with the bytes that live in them; "fast" are free blocks in thread caches,
// "rest" the other free blocks of slabs, "mmap" the large blocks.
#include "stats/writers.hpp"

#include <cstdint>
#include <string_view>

namespace sluice::stats {
namespace {

struct FreeBlocks {
  uint64_t count = 0;
  uint64_t bytes = 0;

  void add(uint64_t blocks, uint64_t block_size) noexcept {
    count += blocks;
    bytes += blocks * block_size;
  }
};

void write_total(Print& out, std::string_view type, uint64_t count, uint64_t bytes) noexcept {
  out.text("<total type=\"")
      .text(type)
      .text("\" count=\"")
      .decimal(count)
      .text("\" size=\"")
      .decimal(bytes)
      .text("\"/>\n");
}

void write_size(Print& out, std::string_view element, std::string_view type, uint64_t bytes) noexcept {
  out.text("<").text(element).text(" type=\"").text(type).text("\" size=\"").decimal(bytes).text("\"/>\n");
}

void write_figures(Print& out, const Snapshot& s, const FreeBlocks& cached, const FreeBlocks& rest) noexcept {
  write_total(out, "fast", cached.count, cached.bytes);
  write_total(out, "rest", rest.count, rest.bytes);
  write_total(out, "scopes", s.arena.chunks, s.arena.live_bytes);
  write_total(out, "mmap", s.large.live_spans, s.large.live_bytes);
  write_size(out, "system", "current", s.mapped_bytes);
  write_size(out, "system", "max", s.mapped_bytes);
  write_size(out, "aspace", "total", s.reserved_bytes);
  write_size(out, "aspace", "mprotect", s.mapped_bytes);
}

}  // namespace

void write_xml(Print& out, const Snapshot& s) noexcept {
  FreeBlocks cached, rest;
  out.text("<malloc version=\"1\">\n<heap nr=\"0\">\n<sizes>\n");
  for (unsigned c = 1; c < size_class_count; ++c) {
    const ClassFigures& figures = s.classes[c];
    const uint64_t held = figures.live_blocks + figures.cached_blocks;
    const uint64_t in_slabs = figures.carved_blocks > held ? figures.carved_blocks - held : 0;
    const uint64_t free_blocks = in_slabs + figures.cached_blocks;
    if (free_blocks == 0) continue;
    cached.add(figures.cached_blocks, figures.block_size);
    rest.add(in_slabs, figures.block_size);
    out.text("  <size from=\"").decimal(class_sizes[c - 1] + 1u).text("\" to=\"").decimal(figures.block_size);
    out.text("\" total=\"").decimal(free_blocks * figures.block_size).text("\" count=\"").decimal(free_blocks);
    out.text("\"/>\n");
  }
  out.text("</sizes>\n");
  write_figures(out, s, cached, rest);
  out.text("</heap>\n");
  write_figures(out, s, cached, rest);
  out.text("</malloc>\n");
}

}  // namespace sluice::stats
