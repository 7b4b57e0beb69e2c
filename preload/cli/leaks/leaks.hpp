// `sluice leaks`: what is alive at a program's end, or was born between two profiles and is alive, and which of it the
// program can no longer find. Open it to change what its options do.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "command.hpp"

namespace sluice::cli::leaks {

struct LeaksRequest {
  RunRequest run = {};                  // its command is empty when files are reported on
  std::vector<std::string> files = {};  // one, or two of one process
  bool exact = false;
  std::string rate = {};
  bool all = false;          // merge the profiles of all processes of a run
  std::string program = {};  // merge those of programs with this name
  bool reachable = false;    // list what can be reached, too
  size_t top = 20;
  bool wide = false;
  std::string json = {};
  std::string suppressions = {};
  int error_exitcode = 0;  // 0: the program's own
};

// Effects: runs the program or reads the files, and writes the report. Returns: the exit status. Throws: CommandError.
int find_leaks(const LeaksRequest& request);

}  // namespace sluice::cli::leaks
