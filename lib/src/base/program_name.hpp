// Whether this program is one of those that an option names. Open it when SLUICE_STATS_PROGRAM misses a program.
#pragma once

namespace sluice {

// Whether one of the names in the list, with commas between them, is this program's: that of its file, that under which
// it was called (argv[0]), or that of the script which it runs, each without folders. An empty list names all programs.
// Does not allocate. Requires that libc has been started.
bool program_is_among(const char* list) noexcept;

}  // namespace sluice
