// A dump that goes to a file: whole or not at all, wherever that can be had. Open it when a dump is cut short, or when
// a file is left where none should be.
#pragma once

#include <cstddef>

namespace sluice::stats {

// Writes a dump to a descriptor. Returns: 0, or an errno value.
using DumpWriter = int (*)(void* context, int descriptor) noexcept;

// Memory for the name of another file in the same folder.
struct NameMemory {
  char* name;
  size_t capacity;
};

// Effects: replaces the file's contents by what `write` writes; a file that is not there is made. A new file, and one
// that holds an earlier dump, is written under another name and renamed, so that a reader, a full disk or a kill meets
// the old dump, the new one or none. Anything else is written where it is: pipes, devices, links, files with several
// names or of other users, files in folders that cannot be written, and empty files, which somebody has made and may
// hold open. `write` may be called twice. Async-signal-safe; dumps of several threads to one file replace each other.
// A link that others may have planted is not followed (report_link.hpp). `path` is absolute, and changed for a moment.
// Returns: 0, an errno value, or link_of_others.
int write_file(char* path, NameMemory beside, DumpWriter write, void* context) noexcept;

}  // namespace sluice::stats
