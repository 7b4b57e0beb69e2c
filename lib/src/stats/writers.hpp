// The writers: a Snapshot as a table to read, as JSON for programs, and as the XML of malloc_info. Open it to
// print the statistics or to add an output format.
#pragma once

#include <cstdint>

#include "base/print.hpp"
#include "stats/snapshot.hpp"

namespace sluice::stats {

inline constexpr unsigned json_schema_version = 1;  // README.md in this folder says when it is raised

// Who the figures are about.
struct ProcessInfo {
  uint64_t pid;
  const char* program;  // null when unknown
  const char* version;  // of the library that counted
};

// Whether a class has anything to tell: the writers leave the others out.
inline bool is_used(const ClassFigures& figures) noexcept {
  return (figures.mallocs | figures.frees | figures.requested_bytes | figures.live_blocks | figures.peak_live_blocks |
          figures.cached_blocks | figures.slabs | figures.slab_bytes | figures.carved_blocks) != 0;
}

// Effects: writes the table, at most 100 columns wide unless counts exceed ten digits.
void write_text(Print& out, const Snapshot& snapshot, const ProcessInfo& process) noexcept;

// Effects: writes one JSON object, as README.md in this folder documents it.
void write_json(Print& out, const Snapshot& snapshot, const ProcessInfo& process) noexcept;

// Effects: writes what glibc's malloc_info writes, as one heap: free blocks by size, and the totals.
void write_xml(Print& out, const Snapshot& snapshot) noexcept;

}  // namespace sluice::stats
