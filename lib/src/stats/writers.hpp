// The writers: a Snapshot as a table to read, as JSON for programs, as metrics for Prometheus, and as the XML of
// malloc_info. Open it to
// print the statistics or to add an output format.
#pragma once

#include <cstddef>
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
  uint64_t any = 0;
#define SLUICE_FIGURE_CLASS(name, ...) any |= figures.name;
#include "os/statistics.def"
  return any != 0;
}

// Effects: writes the tables, at most 100 columns wide unless counts exceed ten digits. With `columns` (0: any number)
// they fit: columns become narrower, then the last ones are left out first, and a line names them. Lines of words stay
// as they are.
void write_text(Print& out, const Snapshot& snapshot, const ProcessInfo& process, size_t columns = 0) noexcept;

// Effects: writes one JSON object, as README.md in this folder documents it.
void write_json(Print& out, const Snapshot& snapshot, const ProcessInfo& process) noexcept;

// Effects: writes metrics in the text format of Prometheus, as lib/docs/statistics.md lists them.
void write_prometheus(Print& out, const Snapshot& snapshot, const ProcessInfo& process) noexcept;

// Effects: writes what glibc's malloc_info writes, as one heap: free blocks by size, and the totals.
void write_xml(Print& out, const Snapshot& snapshot) noexcept;

}  // namespace sluice::stats
